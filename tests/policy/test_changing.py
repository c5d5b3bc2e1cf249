"""Arms that are added and retired while a policy is under way."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
import research.prior_work  # noqa: F401  # makes dp-exp3-lap known

import bandanna as bd
from bandanna.policy import Policy
from bandanna.policy.codec import learned_to_dict
from bandanna.policy.facade import policy_from_dict
from bandanna.policy.transitions import batch_with_room
from bandanna.privacy.certificate import verify
from bandanna.privacy.statements import ARMS_CHANGED
from tests.contracts.policies import hear_what_waits

MEANS = {"red": 0.7, "green": 0.5, "blue": 0.2, "grey": 0.9}
PRIVATE = ("one-bit", "one-bit-exp3", "adaptive", "changing", "dp-klucb", "htinf", "ftpl", "exp3")
PLAIN = ("kl-ucb", "thompson", "tsallis-inf", "uniform", "exp3")


def make(name: str) -> Policy:
    arms = ["red", "green", "grey"]
    if name.startswith("plain "):
        return bd.Bandit(arms, name.removeprefix("plain "), rounds=3000, seed=1)
    if name == "changing":
        return bd.PrivateBandit(arms, 3.0, 3000, "one-bit-exp3", changes=3, seed=1)
    return bd.PrivateBandit(arms, 3.0, 3000, name, seed=1)


EVERY = pytest.mark.parametrize("name", [*PRIVATE, *(f"plain {name}" for name in PLAIN)])


def play(policy: Policy, rounds: int, rng: np.random.Generator) -> Counter[Any]:
    played = Counter[Any]()
    for _ in range(rounds):
        decision = policy.decide()
        assert policy.arms[decision.index] == decision.arm
        played[decision.arm] += 1
        policy.observe(decision, loss=float(rng.random() < MEANS[str(decision.arm)]))
    return played


@EVERY
def test_an_added_arm_is_found_and_a_retired_one_not_played(name: str) -> None:
    policy, rng = make(name), np.random.default_rng(2)
    play(policy, 300, rng)
    assert policy.add_arm("blue") == 3
    assert policy.arms == ("red", "green", "grey", "blue")
    before = play(policy, 1500, rng)
    assert before["blue"] > 100
    policy.retire_arm("green")
    policy.retire_arm(0)
    while batch_with_room(policy.state) is not None:  # what has begun goes on
        play(policy, 1, rng)
    after = play(policy, 300, rng)
    assert set(after) <= {"grey", "blue"}
    assert name == "plain uniform" or name.endswith("exp3") or after["blue"] > after["grey"]
    assert policy.recipe.learner.arms == 2
    rows = {row.arm: row for row in policy.summary().rows}
    assert set(rows) == {"red", "green", "grey", "blue"}
    assert rows["red"].chance in (0.0, None)
    if rows["blue"].chance is not None:
        assert sum(policy.chances.values()) == pytest.approx(1.0)
    assert policy.leader in ("grey", "blue", None)


@pytest.mark.parametrize("name", ["one-bit", "one-bit-exp3", "adaptive", "dp-klucb", "exp3"])
def test_a_new_arm_starts_level_with_the_best(name: str) -> None:
    policy, rng = make(name), np.random.default_rng(3)
    play(policy, 600, rng)
    if name == "dp-klucb":
        policy.add_arm("blue")
        state = learned_to_dict(policy.state)["learner"]
        assert state["plays"][3] == state["waiting"][3] == 0.0
        return
    best = policy.likeliest
    assert best is not None
    policy.add_arm("blue")
    chances = policy.chances
    if name == "adaptive":  # its arms have rates of their own
        assert chances["blue"] > 0.2
    else:
        assert chances["blue"] == pytest.approx(chances[best])
    assert sum(chances.values()) == pytest.approx(1.0)


@EVERY
def test_feedback_that_comes_after_a_change_is_credited_or_left_out(name: str) -> None:
    policy = make(name)
    waiting = [policy.decide() for _ in range(4 * policy.batch)]
    policy.add_arm("blue")
    waiting += [policy.decide() for _ in range(2 * policy.batch)]
    policy.retire_arm("grey")
    for decision in reversed(waiting):
        policy.observe(decision, loss=0.25)
    assert policy.waiting == 0
    state = learned_to_dict(policy.state)["learner"]
    assert all(np.all(np.isfinite(values)) for values in state.values())
    play(policy, 3 * policy.batch, np.random.default_rng(1))


@pytest.mark.parametrize("name", ["one-bit", "adaptive", "dp-klucb", "changing", "plain kl-ucb"])
def test_it_goes_on_from_a_file_with_the_arms_it_has(name: str) -> None:
    policy = make(name)
    rng = np.random.default_rng(4)
    play(policy, 50, rng)
    policy.add_arm("blue")
    waiting = [policy.decide() for _ in range(3)]
    policy.retire_arm("red")
    other = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
    assert (other.arms, other.retired, other.active) == (policy.arms, frozenset([0]), (1, 2, 3))
    assert other.guarantee == policy.guarantee
    for each in (policy, other):
        hear_what_waits(each, waiting)
    for number in range(60):
        eligible = [0, 1, 3] if number % 3 == 0 else None
        ours, theirs = policy.decide(eligible=eligible), other.decide(eligible=eligible)
        assert theirs == ours._replace(policy=theirs.policy)
        policy.observe(ours, loss=0.75)
        other.observe(theirs, loss=0.75)


def test_the_guarantee_and_the_plan_say_that_arms_changed() -> None:
    policy = bd.PrivateBandit(3, 1.0, 100_000, "adaptive", seed=1)
    assert policy.plan.own is not None
    assert policy.plan.own.bound is not None
    policy.add_arm("new")
    assert ARMS_CHANGED in policy.guarantee.assumptions
    assert policy.guarantee.epsilon == 1.0
    document = policy.certificate()
    assert document["arms"] == 4
    assert all(finding.holds for finding in verify(json.dumps(document)))
    own = policy.plan.own
    assert own is not None
    assert own.bound is None
    assert "added or retired" in own.reason
    assert "added or retired" in str(policy.plan)
    adaptive = bd.PrivateBandit(3, 1.0, 100_000, "adaptive")
    assert adaptive.regret_bound is not None
    adaptive.retire_arm(2)
    assert adaptive.regret_bound is None
    some = bd.PrivateBandit(3, 1.0, 100_000, "adaptive")
    some.decide(eligible=[0, 1])
    assert some.plan.own is not None
    assert some.plan.own.bound is not None
    assert "over the rounds in which it was" in str(some.plan)


def test_bad_changes_are_refused_and_change_nothing() -> None:
    policy = bd.PrivateBandit(["red", "green", "grey"], 1.0, seed=1)
    policy.decide()
    before = policy.to_dict()
    for name in ("red", 1.5, None, True):
        with pytest.raises(bd.InputError, match="names of arms"):
            policy.add_arm(name)  # type: ignore[arg-type]
    for arm in ("pink", 3, -1, None):
        with pytest.raises(bd.InputError, match="unknown arm"):
            policy.retire_arm(arm)  # type: ignore[arg-type]
    assert policy.to_dict() == before
    policy.retire_arm("grey")
    with pytest.raises(bd.InputError, match="retired before"):
        policy.retire_arm("grey")
    with pytest.raises(bd.InputError, match="last two"):
        policy.retire_arm("red")
    with pytest.raises(bd.InputError, match="have been retired"):
        policy.decide(eligible=["grey"])
    with pytest.raises(bd.InputError, match="names of arms must differ"):
        policy.add_arm("grey")
    with pytest.raises(bd.InputError, match="retired arms"):
        bd.simulate(policy, np.zeros((100, 3)))


def test_where_it_is_not_defined_it_is_refused() -> None:
    with pytest.raises(bd.InputError, match="with experts"):
        bd.PrivateExperts(3, 2, 1.0, rounds=1000).add_arm("new")
    with pytest.raises(bd.InputError, match="with experts"):
        bd.PrivateExperts(3, 4, 1.0, 0.0, 1000, "one-bit").retire_arm(0)
    with pytest.raises(bd.InputError, match="cannot be added to dp-exp3-lap"):
        bd.PrivateBandit(3, 1.0, 1000, "dp-exp3-lap").add_arm("new")

    class Mine:
        def draw(self) -> int:
            return 0

        def update(self, arm: int, loss: float) -> None:
            pass

    with pytest.raises(bd.InputError, match="other libraries"):
        bd.privatize(Mine(), 3, 1.0).add_arm("new")


def test_people_keep_their_slots_when_arms_change() -> None:
    policy = bd.PrivateBandit(3, 1.0, batch=2, per_person=1, seed=1)
    first = policy.decide(person="a")
    policy.retire_arm(first.index)
    policy.add_arm("new")
    again = policy.decide(person="a")
    assert (again.arm, again.batch) == (first.arm, first.batch)
    policy.decide(person="b")
    for person in ("a", "b"):
        policy.finish(person)
    assert policy.released == 1
    assert policy.decide(person="c").arm != first.arm

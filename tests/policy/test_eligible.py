"""Decisions among some of the arms: who is played, how likely, and what is learned of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.policy import Policy
from bandanna.policy.codec import learned_to_dict
from bandanna.policy.facade import policy_from_dict
from bandanna.privacy.certificate import verify
from bandanna.privacy.statements import PUBLIC_ARMS
from tests.contracts.policies import hear_what_waits
from tests.soak import mostly_slow

RANDOM = ("one-bit", "one-bit-exp3", "adaptive", "htinf", "exp3", "ldp-exp3")
RANKING = ("kl-ucb", "thompson")


def learned(algorithm: str, seed: int = 1) -> bd.PrivateBandit:
    """Return a policy that has seen enough not to be uniform."""
    policy = bd.PrivateBandit(4, 2.0, 10_000, algorithm, batch=3, seed=seed)
    for number in range(60):
        decision = policy.decide()
        policy.observe(decision, loss=0.2 * decision.index if number % 3 else 0.5)
    return policy


@pytest.mark.parametrize("algorithm", RANDOM)
def test_the_chance_is_renormalised(algorithm: str) -> None:
    policy = learned(algorithm)
    for eligible in ([0, 1], [1, 3], [2], [3, 0, 2]):
        chances = policy.chances
        decision = policy.decide(eligible=eligible)
        assert decision.index in eligible
        expected = chances[decision.arm] / sum(chances[arm] for arm in eligible)
        assert decision.chance == pytest.approx(expected)


@pytest.mark.parametrize(
    "algorithm", mostly_slow(["one-bit", "one-bit-exp3", "htinf"], ["one-bit"])
)
def test_arms_are_drawn_with_their_chance_and_estimates_stay_unbiased(algorithm: str) -> None:
    """Six standard errors and five numbers: a false alarm is rarer than one in a million.

    What the learner is told of arm i is ``importance * loss`` if i is credited, otherwise 0. On
    average it must be the loss of an eligible arm, and of the others what is lost on average.
    """
    policy = learned(algorithm)
    chances = np.array(list(policy.chances.values()))
    eligible, losses = (0, 2), np.array([0.1, 0.9, 0.7, 0.4])
    shares = np.zeros(4)
    shares[[0, 2]] = chances[[0, 2]] / chances[[0, 2]].sum()
    draws, told, played = 40_000, np.zeros((2, 4)), Counter[int]()
    for _ in range(draws):
        drawn = policy._parts.runner.open(eligible)
        played[drawn.choice] += 1
        estimate = drawn.importance * losses[drawn.choice]
        told[:, drawn.credited] += estimate, estimate**2
        policy._parts.runner.take_back(drawn.credited, drawn.importance)
    mean = told[0] / draws
    error = 6.0 * np.sqrt(np.maximum(told[1] / draws - mean**2, 1e-12) / draws)
    expected = np.where(np.isin(range(4), eligible), losses, shares @ losses)
    assert np.all(np.abs(mean - expected) <= error), (mean, expected, error)
    assert set(played) <= set(eligible)
    share = played[0] / draws
    assert abs(share - shares[0]) <= 6.0 * np.sqrt(shares[0] * (1 - shares[0]) / draws)


def test_rounds_with_the_same_eligible_arms_fill_the_same_batches() -> None:
    policy = bd.PrivateBandit(["a", "b", "c"], 1.0, batch=3, seed=2)
    sets: list[list[str] | None] = [None, ["a", "b"], ["b", "a"], ["c", "b", "a"], ["c"], None]
    made = [policy.decide(eligible=eligible) for eligible in sets]
    assert [decision.batch for decision in made] == [0, 1, 1, 0, 2, 0]
    assert [decision.position for decision in made] == [0, 0, 1, 1, 0, 2]
    assert [decision.round for decision in made] == list(range(6))
    assert made[4].arm == "c"
    assert made[4].chance == 1.0
    for decision in reversed(made):
        policy.observe(decision, loss=0.5)
    assert policy.released == 1
    policy.observe(policy.decide(eligible=["a", "b"]), loss=0.5)
    assert policy.released == 2
    assert policy.waiting == 0


@pytest.mark.parametrize("algorithm", ["one-bit", "one-bit-exp3", "adaptive"])
def test_an_arm_that_is_seldom_eligible_does_not_gain_by_it(algorithm: str) -> None:
    """Left out, its losses would not grow while those of all others do, and it would look best."""
    policy = bd.PrivateBandit(3, 5.0, 6000, algorithm, batch=1)
    policy = policy.rehearse(new_stream(5), new_stream(6))  # with other noise one in fifty fails
    rng = np.random.default_rng(3)
    means = [0.2, 0.8, 0.9]
    for number in range(3000):
        decision = policy.decide(eligible=[0, 1] if number % 10 else None)
        policy.observe(decision, loss=float(rng.random() < means[decision.index]))
    chances = policy.chances
    assert chances[2] < 1 / 3
    assert chances[0] > 0.6


@pytest.mark.parametrize("learner", RANKING)
def test_rankings_are_of_the_eligible_arms(learner: str) -> None:
    policy = bd.Bandit(3, learner, seed=1)
    rng = np.random.default_rng(1)
    means = [0.1, 0.3, 0.9]
    played = Counter[int]()
    for number in range(600):
        eligible = None if number % 2 else [1, 2]
        decision = policy.decide(eligible=eligible)
        policy.observe(decision, loss=float(rng.random() < means[decision.index]))
        if eligible is not None:
            assert decision.index in eligible
            played[decision.index] += 1
    assert played[1] > 2 * played[2]
    state = learned_to_dict(policy.state)["learner"]
    if learner == "kl-ucb":
        assert state["waiting"] == [0.0] * 3
        assert sum(state["plays"]) == 600


def test_the_steady_algorithm_takes_eligible_arms_before_and_after_an_alarm() -> None:
    policy = bd.PrivateBandit(8, 1.0, 10**6, "dp-klucb", seed=1)  # as many arms as guard fields
    for _ in range(400):
        decision = policy.decide(eligible=[2, 5, 7])
        assert decision.index in (2, 5, 7)
        assert decision.chance is None
        policy.observe(decision, loss=0.1 * decision.index)
    assert policy.released > 3
    policy._parts.runner._play.state.guard[0].alarm = 1.0  # type: ignore[union-attr]
    policy.state.filling.clear()
    chances = policy.chances
    decision = policy.decide(eligible=[2, 5])
    assert decision.chance == pytest.approx(chances[decision.index] / (chances[2] + chances[5]))
    open_batch = policy.state.open[decision.batch]
    assert open_batch.size == policy._parts.runner._play.params.batch  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "eligible", [[], ["d"], [3], [-1], [True], [None], "ab", 1, [["a"]], [1.0]]
)
def test_bad_sets_are_refused_and_change_nothing(eligible: Any) -> None:
    policy = bd.PrivateBandit(["a", "b", "c"], 1.0, seed=1)
    policy.decide()
    before = policy.to_dict()
    with pytest.raises(bd.InputError, match=r"eligible|unknown arm"):
        policy.decide(eligible=eligible)
    assert policy.to_dict() == before


def test_arms_are_named_as_decisions_name_them() -> None:
    policy = bd.PrivateBandit([10, 20, 0], 1.0, seed=1)
    assert policy.decide(eligible=[0]).index == 2
    assert policy.decide(eligible=np.array([20])).arm == 20
    with pytest.raises(bd.InputError, match="unknown arm 1"):
        policy.decide(eligible=[1])


def test_where_it_is_not_defined_it_is_refused() -> None:
    with pytest.raises(bd.InputError, match="without experts"):
        bd.PrivateExperts(3, 2, 1.0, rounds=1000).decide([0, 1, 1], eligible=[0])
    with pytest.raises(bd.InputError, match="ftpl knows no probabilities"):
        bd.PrivateBandit(3, 1.0, 1000, "ftpl").decide(eligible=[0])

    class Mine:
        def draw(self) -> int:
            return 0

        def update(self, arm: int, loss: float) -> None:
            pass

    with pytest.raises(bd.InputError, match="Mine knows no probabilities"):
        bd.privatize(Mine(), 3, 1.0).decide(eligible=[0])


def visit(policy: Policy, person: str, eligible: list[int] | None = None) -> bd.Decision:
    decision = policy.decide(person=person, eligible=eligible)
    policy.observe(decision, loss=0.5)
    return decision


def others(arm: int) -> list[int]:
    return [other for other in range(3) if other != arm]


def test_a_person_whose_arm_is_not_eligible_takes_another_slot() -> None:
    policy = bd.PrivateBandit(3, 1.0, batch=2, per_person=2, seed=1)
    people = policy.state.people
    assert people is not None
    first = visit(policy, "a")
    assert visit(policy, "a", [first.index]).batch == first.batch  # eligible: the same slot
    second = visit(policy, "a", others(first.index))
    assert second.batch != first.batch
    assert second.index != first.index
    assert visit(policy, "a").batch == second.batch  # the newest slot that is open
    assert visit(policy, "a", [first.index]).batch == first.batch
    assert people.slots == {people.known_as("a"): 2}
    both = {first.index, second.index}
    third = visit(policy, "a", [arm for arm in range(3) if arm not in both])  # one too many
    assert third.batch not in (first.batch, second.batch)
    slots = policy.state.open[third.batch].slots
    assert slots is not None
    slot = slots[people.known_as("a")]
    assert not slot.counts
    policy.finish("a")
    visit(policy, "b")
    policy.finish("b")
    assert policy.released == 1
    assert people.slots[people.known_as("a")] == 2


@pytest.mark.parametrize("people", [False, True])
def test_it_goes_on_from_a_file_with_several_batches_filling(people: bool) -> None:
    options: dict[str, Any] = {"per_person": 3, "rounds_per_slot": 2} if people else {}
    policy = bd.PrivateBandit(4, 2.0, 10_000, batch=3, seed=1, **options)
    rng = np.random.default_rng(2)
    sets = [None, [0, 1], [1, 2, 3], [2]]

    def ask(policy: Policy, number: int) -> bd.Decision:
        who: dict[str, Any] = {"person": number % 7} if people else {}
        return policy.decide(eligible=sets[number * 5 % 4], **who)

    waiting = []
    for number in range(23):
        waiting.append(ask(policy, number))
        if rng.random() < 0.7:
            policy.observe(waiting.pop(), loss=0.5)
    other = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
    assert len(policy.state.filling) > 1
    for each in (policy, other):
        hear_what_waits(each, waiting)
    for number in range(23, 60):
        ours, theirs = ask(policy, number), ask(other, number)
        assert theirs == ours._replace(policy=theirs.policy)
        policy.observe(ours, loss=0.75)
        other.observe(theirs, loss=0.75)
    assert learned_to_dict(policy.state)["learner"] == learned_to_dict(other.state)["learner"]


def test_the_guarantee_says_that_eligibility_is_public_from_then_on() -> None:
    policy = bd.PrivateBandit(3, 1.0, batch=1, seed=1)
    assert PUBLIC_ARMS not in policy.guarantee.assumptions
    policy.observe(policy.decide(eligible=[0, 1, 2]), loss=0.5)
    assert PUBLIC_ARMS not in policy.guarantee.assumptions
    policy.observe(policy.decide(eligible=[0, 1]), loss=0.5)
    loaded = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
    for each in (policy, loaded):
        assert each.guarantee.assumptions[-1] == PUBLIC_ARMS
        assert each.guarantee.epsilon == 1.0
        assert all(finding.holds for finding in verify(json.dumps(each.certificate())))


def test_segments_take_eligible_arms() -> None:
    shops = bd.Segments(lambda country: bd.PrivateBandit(3, 1.0), ["de", "fr"])
    assert shops.decide(segment="de", eligible=[2]).index == 2


def test_an_arm_that_was_added_may_be_the_only_eligible_one_of_an_open_phase() -> None:
    policy = bd.PrivateBandit(2, 1.0, 1000, algorithm="phased", seed=1)
    policy.decide()
    policy.add_arm("new")
    assert policy.decide(eligible=["new"]).arm == "new"

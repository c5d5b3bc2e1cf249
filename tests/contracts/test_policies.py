"""What every policy must do, with experts and without, private or not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.policy import Policy
from bandanna.policy.codec import learned_to_dict
from bandanna.policy.facade import policy_from_dict
from bandanna.privacy import LaplaceRelease, OneBitRelease, PlainRelease, VectorRelease
from bandanna.simulation.engine import run_streams
from tests.contracts.policies import (
    ARMS,
    DELTA,
    EVERY,
    EXPERTS,
    FOLLOWED,
    PLAIN,
    PRIVATE,
    advise,
    advised,
    hear_what_waits,
    make,
)

every_policy = pytest.mark.parametrize("name", EVERY)
private_policies = pytest.mark.parametrize("name", PRIVATE)
spread_or_not = pytest.mark.parametrize("spread", [False, True], ids=["votes", "spread"])
CONVERTED = {name for name in EVERY if FOLLOWED in name and name != f"one-bit{FOLLOWED}"}
"""Learners converted to experts, all but one: each has a kernel of its own to be compiled."""


@every_policy
@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32), st.booleans())
def test_decisions_depend_on_losses_only_through_releases(
    name: str, seed: int, spread: bool
) -> None:
    """Different losses with the same released values: the same decisions, the same learning."""
    rng = np.random.default_rng(seed)
    script = rng.normal(0.5, 1.0, (60, EXPERTS))
    advice = [advise(name, rng, spread) for _ in range(60)]

    def play(losses: np.ndarray) -> tuple[list[int], object]:
        count = 0

        def release(self: object, total: Any, scale: float | None = None) -> Any:
            nonlocal count
            count += 1
            vector = isinstance(self, VectorRelease)
            return script[count - 1].copy() if vector else float(script[count - 1, 0])

        with pytest.MonkeyPatch.context() as patch:
            for kind in (OneBitRelease, LaplaceRelease, PlainRelease, VectorRelease):
                patch.setattr(kind, "release", release)
            policy = make(name, seed=4)
            arms = []
            for said, loss in zip(advice, losses, strict=True):
                decision = policy.decide(said)
                arms.append(decision.index)
                policy.observe(decision, loss=float(loss))
        each = ARMS if getattr(policy.recipe.learner, "phases", False) else 1  # of every arm
        each *= 2 if getattr(policy.recipe.release, "squares", False) else 1
        assert count == each * policy.released > 0
        return arms, policy.to_dict()["learned"]

    assert play(rng.random(60)) == play(rng.random(60))


@pytest.mark.parametrize(
    ("name", "spread"),
    [(name, False) for name in EVERY]
    + [
        pytest.param(name, True, marks=[pytest.mark.slow] * (name in CONVERTED))
        for name in EVERY
        if advised(name)
    ],
)
def test_the_simulator_makes_the_same_decisions(name: str, spread: bool) -> None:
    policy = make(name)
    rng = np.random.default_rng(8)
    rounds = 211
    # Exact on the grid, so that rounding plays no part.
    losses = rng.integers(0, 2**20 + 1, (rounds, ARMS)) / 2**20
    advice = [advise(name, rng, spread) for _ in range(rounds)]
    said = np.array(advice) if advised(name) else None
    results = bd.simulate(policy, losses, advice=said, replicates=2, seed=21, checkpoints=5)
    choices = np.tile(np.eye(ARMS), (rounds, 1, 1))
    if said is not None:
        choices = said if spread else np.eye(ARMS)[said]
    best = np.einsum("tnk,tk->tn", choices, losses).cumsum(axis=0)[results.stops - 1].min(axis=1)
    for run in range(2):
        arms, releases, _ = run_streams(21, run)
        rehearsal = policy.rehearse(arms, releases)
        assert not rehearsal.guarantee.private
        played = []
        for row, words in zip(losses, advice, strict=True):
            decision = rehearsal.decide(words)
            played.append(decision.index)
            rehearsal.observe(decision, loss=float(row[decision.index]))
        counts = np.bincount(played, minlength=ARMS)
        np.testing.assert_array_equal(results.plays("policy")[run], counts)
        mine = losses[np.arange(rounds), played].cumsum()[results.stops - 1]
        np.testing.assert_allclose(results.curves("policy")[run], mine - best, atol=1e-6)


@every_policy
@spread_or_not
def test_feedback_may_come_late_and_in_any_order(name: str, spread: bool) -> None:
    rng = np.random.default_rng(2)
    policy = make(name)
    decisions = [policy.decide(advise(name, rng, spread)) for _ in range(29)]
    assert [decision.round for decision in decisions] == list(range(29))
    for index in rng.permutation(29):
        policy.observe(decisions[index], loss=float(rng.random()))
    assert (policy.waiting, policy.decided) == (0, 29)
    assert policy.released == 29 // policy.batch


@every_policy
@settings(deadline=None, max_examples=8)
@given(before=st.integers(0, 40), late=st.sets(st.integers(0, 39)), after=st.integers(1, 30))
def test_it_goes_on_bit_for_bit_from_a_file(
    name: str, before: int, late: set[int], after: int
) -> None:
    """Stop anywhere, with feedback outstanding; continue with the same noise on both sides."""
    rng = np.random.default_rng(6)
    policy = make(name)
    waiting = []
    for number in range(before):
        decision = policy.decide(advise(name, rng, number % 2 == 0))
        if number in late:
            waiting.append(decision)
        else:
            policy.observe(decision, loss=float(rng.random()))
    other = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
    assert type(other) is type(policy)
    assert other.guarantee == policy.guarantee
    assert (other.decided, other.waiting, other.released) == (before, len(waiting), policy.released)
    for each in (policy, other):
        hear_what_waits(each, waiting)
    for number in range(after):
        advice = advise(name, rng, number % 3 == 0)
        ours, theirs = policy.decide(advice), other.decide(advice)
        assert theirs == ours._replace(policy=theirs.policy)
        policy.observe(ours, loss=number % 5 / 4)
        other.observe(theirs, loss=number % 5 / 4)


@every_policy
def test_bad_advice_changes_nothing(name: str) -> None:
    policy = make(name, seed=3)
    rng = np.random.default_rng(0)
    policy.decide(advise(name, rng))
    before = policy.to_dict()
    bad: list[Any] = [[0] * 4, [0, 1, 2, 3, 0], np.full((EXPERTS, ARMS), 0.5), "advice"]
    for advice in [*bad, None] if advised(name) else bad:
        with pytest.raises(bd.InputError):
            policy.decide(advice)
    assert policy.to_dict() == before


@every_policy
def test_some_arms_may_be_eligible_or_it_says_why_not(name: str) -> None:
    policy = make(name, seed=3)
    before = policy.to_dict()
    rng = np.random.default_rng(5)
    learner = policy.recipe.learner
    knows = policy._parts.runner.chances() is not None
    knows = knows or getattr(learner, "ranks", False) or getattr(learner, "phases", False)
    if advised(name) or not knows:
        with pytest.raises(bd.InputError, match=r"experts|no probabilities"):
            policy.decide(advise(name, rng), eligible=[0, 2])
        assert policy.to_dict() == before
        return
    sets = [None, [0, 2], [1], [0, 1]]
    made = []
    for number in range(8 * policy.batch):
        eligible = sets[number % 4]
        decision = policy.decide(eligible=eligible)
        assert eligible is None or decision.index in eligible
        assert decision.chance is None or 0.0 < decision.chance <= 1.0 + 1e-9
        assert eligible != [1] or decision.chance in (None, 1.0)
        made.append(decision)
    other = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
    assert other.to_dict()["open_batches"] == policy.to_dict()["open_batches"]
    for decision in made:
        other.observe(decision, loss=0.5)
    assert (other.waiting, other.decided, policy.released) == (0, len(made), 0)
    assert other.released >= 4
    assert [decision.round for decision in made] == list(range(len(made)))


@every_policy
def test_losses_are_gone_once_their_batch_is_released(name: str) -> None:
    policy = make(name)
    rng = np.random.default_rng(1)
    seen = []
    learn = policy._learn

    def spy(batch: Any) -> None:
        learn(batch)
        if batch is not None:
            seen.append((len(batch.losses), batch.waiting))
            with pytest.raises(AssertionError, match="has been published"):
                batch.tally.publish()

    policy._learn = spy  # type: ignore[method-assign]
    while len(seen) < 3:
        policy.observe(policy.decide(advise(name, rng)), loss=0.625)
    assert seen == [(0, {})] * 3
    assert policy.decided == 3 * policy.batch or getattr(policy.recipe.learner, "phases", False)
    assert not policy.state.open


@every_policy
def test_repeats_are_ignored_and_other_values_refused(name: str) -> None:
    policy = make(name)
    rng = np.random.default_rng(1)
    first = policy.decide(advise(name, rng))
    policy.observe(first, loss=0.5)
    policy.observe(first, loss=0.5)
    policy.observe(first._asdict(), loss=0.5)
    with pytest.raises(bd.DecisionError, match="another value"):
        policy.observe(first, loss=0.25)
    second = policy.decide(advise(name, rng))
    policy.give_up(second)
    policy.give_up(second)
    for late in (0.75, 0.5):  # also the default itself: the answer must not depend on the value
        with pytest.raises(bd.DecisionError, match="was given up"):
            policy.observe(second, loss=late)


@every_policy
@pytest.mark.parametrize("open_rounds", [1, 5], ids=["closed", "open"])
def test_giving_up_on_an_observed_decision_tells_nothing(name: str, open_rounds: int) -> None:
    """Whoever runs the timer must not learn whether feedback equals the default."""
    rng = np.random.default_rng(1)
    outcomes = []
    for loss in (0.5, 0.25, 1.0):  # the first is the default
        policy = make(name)
        decisions = [policy.decide(advise(name, rng)) for _ in range(open_rounds * policy.batch)]
        for decision in decisions[: policy.batch]:
            policy.observe(decision, loss=loss)
        outcomes.append([policy.give_up(decision) for decision in decisions[: policy.batch]])  # type: ignore[func-returns-value]
    assert outcomes[0] == outcomes[1] == outcomes[2]


@private_policies
def test_it_says_what_it_protects(name: str) -> None:
    promise = make(name).guarantee
    assert promise.epsilon == 0.8
    assert promise.delta == DELTA.get(name, 0.0)
    assert any("advice is public" in line for line in promise.assumptions) == advised(name)
    followed = "which experts were followed" in promise.protects
    assert followed == (FOLLOWED in name)
    assert "(the actions do show advice)" in promise.protects or not followed


@pytest.mark.parametrize("name", PLAIN)
def test_without_privacy_it_says_so(name: str) -> None:
    assert not make(name).guarantee.private


@every_policy
def test_an_array_that_is_used_again_does_not_change_what_was_advised(name: str) -> None:
    learned = []
    for reuse in (True, False):
        arms, releases, _ = run_streams(3, 0)
        policy = make(name).rehearse(arms, releases)
        votes = np.array([0, 1, 2, 0, 1], dtype=np.uint8)
        for _ in range(3 * policy.batch):
            buffer = votes.copy() if advised(name) else None
            decision = policy.decide(buffer)
            if reuse and buffer is not None:
                buffer[:] = 2 - buffer
            policy.observe(decision, loss=0.9)
        learned.append(learned_to_dict(policy.state)["learner"])
    assert learned[0] == learned[1]


@pytest.mark.parametrize("name", [f"one-bit{FOLLOWED}", f"htinf{FOLLOWED}"])
def test_followed_experts_do_not_show_how_advice_was_written(name: str) -> None:
    """Even to someone who knows the seed of the arms."""
    followed = []
    for advice in ([0] * EXPERTS, [[1.0, 0.0, 0.0]] * EXPERTS):
        policy = make(name, seed=1, batch=2)
        policy.decide(advice)
        for _ in range(20):
            policy.decide([1] * EXPERTS)
        followed.append([batch.choice for batch in policy.state.open.values()])
    assert followed[0] == followed[1]


def test_a_batch_longer_than_the_run_is_refused() -> None:
    with pytest.raises(bd.InputError, match="nothing would ever be released"):
        bd.PrivateBandit(2, 0.5, rounds=10, batch=11)


def test_a_policy_is_not_saved_under_another_class_name() -> None:
    class Mine(bd.PrivateBandit):
        pass

    policy: Policy = Mine(2, 0.5)
    with pytest.raises(bd.InputError, match="cannot be saved"):
        policy.to_dict()

"""Deciding and observing, as a user does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.types import Decision
from bandanna.policy.state import ClosedBatches


def bandit(**changes: Any) -> bd.PrivateBandit:
    arguments: dict[str, Any] = {"arms": ["a", "b", "c"], "epsilon": 0.5, "batch": 4, "seed": 1}
    return bd.PrivateBandit(**arguments | changes)


def everything(policy: bd.PrivateBandit) -> str:
    return json.dumps(policy.to_dict())


def test_the_five_lines_of_the_readme() -> None:
    policy = bd.PrivateBandit(arms=["drug A", "drug B", "drug C"], epsilon=0.5, rounds=100_000)
    decision = policy.decide()
    policy.observe(decision, loss=0.3)
    assert decision.arm in ("drug A", "drug B", "drug C")
    assert policy.arms[decision.index] == decision.arm
    assert (policy.guarantee.epsilon, policy.guarantee.delta) == (0.5, 0.0)
    assert policy.guarantee.model == "central"


def test_a_batch_plays_one_arm_and_is_released_when_full() -> None:
    policy = bandit()
    decisions = [policy.decide() for _ in range(4)]
    assert len({decision.arm for decision in decisions}) == 1
    assert [decision.position for decision in decisions] == [0, 1, 2, 3]
    for decision in decisions[:3]:
        policy.observe(decision, loss=0.2)
    assert (policy.released, policy.waiting, policy.decided) == (0, 1, 4)
    policy.observe(decisions[3], loss=0.2)
    assert (policy.released, policy.waiting, policy.decided) == (1, 0, 4)
    assert "1 batches released" in repr(policy)


@settings(deadline=None, max_examples=40)
@given(st.permutations(range(24)), st.integers(1, 7))
def test_feedback_may_come_in_any_order(order: list[int], batch: int) -> None:
    policy = bandit(batch=batch)
    decisions = [policy.decide() for _ in range(24)]
    for index in order:
        policy.observe(decisions[index], loss=index / 24)
    assert policy.released == 24 // batch
    assert policy.waiting == 0
    assert policy.decided == 24
    assert [decision.round for decision in decisions] == list(range(24))


def test_reward_is_the_mirrored_loss() -> None:
    policy = bandit(loss_range=(-2.0, 6.0))
    first, second = policy.decide(), policy.decide()
    policy.observe(first, loss=0.0)
    policy.observe(second, reward=4.0)  # low + high - 4 = 0
    losses = next(iter(policy.state.open.values())).losses
    assert list(losses) == [UNITS // 4, UNITS // 4]


@pytest.mark.parametrize("batch", [1, 4])
def test_the_same_feedback_again_is_ignored_and_another_refused(batch: int) -> None:
    policy = bandit(batch=batch)
    decisions = [policy.decide() for _ in range(8)]
    for decision in decisions:
        policy.observe(decision, loss=0.25)
    policy.observe(policy.decide(), loss=0.25)
    before = everything(policy)
    for decision in decisions:
        policy.observe(decision, loss=0.25)
        with pytest.raises(bd.DecisionError, match="already been observed with another value"):
            policy.observe(decision, loss=0.26)
    assert everything(policy) == before


def test_closed_batches_are_remembered_only_for_a_while() -> None:
    closed = ClosedBatches(remember=6)
    for number in range(4):
        closed.add(number, [number, 5], set())
    assert closed.compare(0, 0, 0) == "forgotten"
    assert closed.compare(3, 0, 3) == "same"
    assert closed.compare(3, 0, 4) == "different"
    assert closed.compare(3, 1, 3) == "different"
    closed.add(9, [1] * 7, set())
    assert closed.compare(9, 0, 1) == "forgotten"


def test_feedback_long_after_its_batch_is_refused_with_the_reason() -> None:
    policy = bandit(batch=1)
    decision = policy.decide()
    policy.observe(decision, loss=0.5)
    policy.state.closed = ClosedBatches()
    with pytest.raises(bd.DecisionError, match="can no longer be told"):
        policy.observe(decision, loss=0.5)


@pytest.mark.parametrize(
    ("feedback", "reason"),
    [
        ({}, "loss= or reward="),
        ({"loss": 0.5, "reward": 0.5}, "not both"),
        ({"loss": 1.5}, "from 0 to 1"),
        ({"loss": -0.1}, "from 0 to 1"),
        ({"loss": math.nan}, "from 0 to 1"),
        ({"reward": math.inf}, "from 0 to 1"),
        ({"loss": "0.5"}, "from 0 to 1"),
    ],
)
def test_bad_feedback_changes_nothing(feedback: dict[str, Any], reason: str) -> None:
    policy = bandit()
    decision = policy.decide()
    before = everything(policy)
    with pytest.raises(bd.InputError, match=reason):
        policy.observe(decision, **feedback)
    assert everything(policy) == before


def test_errors_do_not_repeat_private_values() -> None:
    policy = bandit()
    decision = policy.decide()
    with pytest.raises(bd.InputError) as wrong:
        policy.observe(decision, loss=1.73205)
    policy.observe(decision, loss=0.12345)
    with pytest.raises(bd.DecisionError) as other:
        policy.observe(decision, loss=0.54321)
    for message in (str(wrong.value), str(other.value)):
        assert not any(value in message for value in ("1.73", "0.123", "0.543"))


def test_decisions_that_are_not_ours_are_refused() -> None:
    policy, other = bandit(), bandit()
    decision = policy.decide()
    before = everything(policy)
    with pytest.raises(bd.DecisionError, match="another policy"):
        policy.observe(other.decide(), loss=0.5)
    for forged in (
        decision._replace(position=1),
        decision._replace(batch=1),
        decision._replace(batch=-1),
        decision._replace(index=decision.index + 1),
        decision._replace(round=1),
    ):
        with pytest.raises(bd.DecisionError, match="never made"):
            policy.observe(forged, loss=0.5)
    with pytest.raises(bd.DecisionError, match="the Decision that decide"):
        policy.observe(0, loss=0.5)  # type: ignore[arg-type]
    assert everything(policy) == before


def test_a_decision_can_travel_as_plain_values() -> None:
    policy = bandit()
    decision = policy.decide()
    policy.observe(Decision(**json.loads(json.dumps(decision._asdict()))), loss=0.5)
    assert policy.waiting == 0


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: bandit(epsilon=0), "epsilon must be a finite number above 0"),
        (lambda: bandit(epsilon=-0.1), "epsilon"),
        (lambda: bandit(epsilon=math.inf), "epsilon"),
        (lambda: bandit(epsilon=math.nan), "epsilon"),
        (lambda: bandit(epsilon="1"), "epsilon"),
        (lambda: bandit(arms=1), "at least 2 and at most 1e"),
        (lambda: bandit(arms=0), "at least 2"),
        (lambda: bandit(arms=["only"]), "at least 2 arms; got 1"),
        (lambda: bandit(arms=[]), "at least 2 arms"),
        (lambda: bandit(arms=["x", "y", "x"]), "repeated: x"),
        (lambda: bandit(arms="xyz"), "list of names"),
        (lambda: bandit(arms=b"xyz"), "list of names"),
        (lambda: bandit(arms={"x", "y"}), "list of names"),
        (lambda: bandit(arms=None), "list of names"),
        (lambda: bandit(arms=10**9), "at most 1e"),
        (lambda: bandit(epsilon=1e5), "from 1e-09 to 100"),
        (lambda: bandit(epsilon=5e-324), "from 1e-09 to 100"),
        (lambda: bandit(epsilon=10**400), "epsilon"),
        (lambda: bandit(rounds=10**30), "at most 1e"),
        (lambda: bandit(seed=-1), "seed"),
        (lambda: bandit(seed="a"), "seed"),
        (lambda: bandit(default_loss=2.0), "default_loss"),
        (lambda: bandit(arms=[1.5, 2.5]), "texts or whole numbers"),
        (lambda: bandit(arms=2.5), "whole number"),
        (lambda: bandit(rounds=0), "rounds"),
        (lambda: bandit(rounds=10.5), "rounds"),
        (lambda: bandit(batch=0), "batch"),
        (
            lambda: bandit(algorithm="magic"),
            "there are one-bit, one-bit-exp3, one-bit-tsallis, adaptive",
        ),
        (lambda: bandit(learner="magic"), "there are tsallis-inf"),
        (lambda: bandit(release="magic"), "one-bit, laplace, device"),
        (lambda: bandit(learner=3.5), "river"),
        (lambda: bandit(loss_range=(1, 0)), "loss_range"),
        (lambda: bandit(learner=bd.learners.Uniform(5)), "5 arms and the bandit 3"),
        (lambda: bandit(release=bd.privacy.OneBitRelease(0.9, 4)), "weaker"),
        (lambda: bandit(release=bd.privacy.OneBitRelease(0.5, 9)), "contradicts"),
        (lambda: bandit(release=bd.privacy.PlainRelease(4)), "weaker"),
        (lambda: bd.Bandit(3, learner=None), "learner"),
        (lambda: bd.privatize(None, 3, 1.0), "learner"),
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(bd.InputError, match=reason):
        make()


@pytest.mark.parametrize(
    "arms",
    [("x", "y"), np.array(["x", "y"]), {"x": 1, "y": 2}, iter("xy"), {"x": 0, "y": 0}.keys()],
)
def test_names_may_come_in_any_ordered_form(arms: Any) -> None:
    assert bandit(arms=arms).arms == ("x", "y")
    assert all(type(name) is str for name in bandit(arms=np.array(["x", "y"])).arms)


def test_numpy_numbers_are_numbers() -> None:
    numbers: Any = (np.int64(3), np.float32(0.5), np.int32(100))
    size: Any = np.int64(4)
    policy = bd.PrivateBandit(*numbers, batch=size)
    clicked: Any = np.bool_(True)
    policy.observe(policy.decide(), reward=clicked)
    assert json.dumps(policy.to_dict())
    assert bd.PrivateBandit(list(np.arange(3)), 0.5).arms == (0, 1, 2)


def test_feedback_that_never_comes_can_be_given_up() -> None:
    policy = bandit(batch=2, loss_range=(0, 4), default_loss=1.0)
    first, second = policy.decide(), policy.decide()
    policy.observe(first, loss=0.0)
    policy.give_up(second)
    assert policy.released == 1
    with pytest.raises(bd.DecisionError, match="was given up"):
        policy.observe(second, loss=3.0)
    assert bandit(loss_range=(0, 4)).default_loss == 2.0


def test_the_guarantee_spells_out_what_weakens_it() -> None:
    text = str(bandit(loss_range=(-3, 8)).guarantee)
    assert "from -3 to 8" in text
    assert "k times epsilon" in text
    assert "resumed once" in text
    assert "when feedback arrives" in text
    assert not bd.Bandit(3).guarantee.private
    assert "no privacy" in str(bd.Bandit(3).guarantee)


def test_a_range_at_the_end_of_floats_has_a_middle() -> None:
    assert bandit(loss_range=(1e308, 1.7e308)).default_loss == pytest.approx(1.35e308)


@pytest.mark.parametrize(
    ("arms", "epsilon", "rounds", "runs"), [(4, 5.0, 5, 200), (50, 20.0, 40, 20)]
)
def test_the_shortest_phases_never_have_less_than_no_rounds(
    arms: int, epsilon: float, rounds: int, runs: int
) -> None:
    for seed in range(runs):
        policy = bd.PrivateBandit(arms, epsilon, rounds, seed=seed)
        for _ in range(rounds):
            decision = policy.decide()
            phase = policy.state.open[decision.batch].phase
            assert phase is None or phase.planned.min() >= 0.0
            policy.observe(decision, loss=float(decision.index != 0))


COUNTED = {0: (8, 1000, 300), 1: (8, 2000, 400)}
"""What a phase came to: those who met an arm, their losses and squares."""


@pytest.mark.parametrize(
    "wrong", [(8, 1000.567, 300), (8, 1000), (8, 1000, 300, 5)], ids=["part", "short", "long"]
)
def test_a_phase_counted_elsewhere_takes_whole_numbers_or_nothing(wrong: tuple[float, ...]) -> None:
    policy = bd.PrivateBandit(2, 1.0, 1000, algorithm="phased")
    number = policy.plan_phase().number
    for sums in (COUNTED | {1: wrong}, COUNTED | {7: (8, 1000, 300)}):
        with pytest.raises(bd.InputError, match="must be 3 whole numbers") as refused:
            policy.observe_phase(number, sums)  # type: ignore[arg-type]
        assert "1000" not in str(refused.value)
    policy.observe_phase(number, COUNTED)
    assert policy.state.rounds == 16

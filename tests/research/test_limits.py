from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from research.limits import best_p, check_limits, limit

import bandanna as bd
from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform
from bandanna.learners import CompiledLearner
from bandanna.learners.steps import Lesson, register


def test_the_lemmas_arithmetic() -> None:
    bound = limit(gamma=0.001, tau=500, p=5, epsilon=0.1, rounds=1_000_000)
    assert bound.base_instance == pytest.approx(250)
    assert bound.shifted_instance == pytest.approx((1 - math.exp(0.5) / 2) * 5 / 0.004 - 250)
    assert bound.regret == max(bound.base_instance, bound.shifted_instance)
    root = math.sqrt(5 * 1_000_000 * (1 - math.exp(0.5) / 2) / 16) - 250
    assert bound.regret >= root


def test_the_best_p_is_the_best() -> None:
    for epsilon in (0.05, 0.1, 0.5, 1.0):

        def value(p: int, epsilon: float = epsilon) -> float:
            return p * (1 - 0.5 * math.exp(epsilon * p))

        assert value(best_p(epsilon)) == max(value(p) for p in range(1, 200))


@pytest.mark.parametrize(
    "change",
    [
        {"gamma": 0.6},
        {"gamma": 0.0},
        {"epsilon": 1.5},
        {"tau": 600_000},
        {"p": 1},
        {"p": 10_000},
        {"rounds": 0},
    ],
)
def test_outside_its_range_it_says_nothing(change: dict[str, float]) -> None:
    good = {"gamma": 0.001, "tau": 1500, "p": 5, "epsilon": 0.1, "rounds": 1_000_000}
    limit(**good)  # type: ignore[arg-type]
    with pytest.raises(bd.InputError):
        limit(**good | change)  # type: ignore[arg-type]


class StubbornParams(NamedTuple):
    share: float


class StubbornState(NamedTuple):
    nothing: np.ndarray


@dataclass(frozen=True)
class Stubborn(CompiledLearner):
    """Plays the second arm one time in a hundred, whatever it is told."""

    arms: int = 2
    name: ClassVar[str] = "stubborn"

    def params(self) -> StubbornParams:
        return StubbornParams(0.01)

    def start(self) -> StubbornState:
        return StubbornState(np.zeros(1))


@step
def _draw(params: StubbornParams, state: StubbornState, stream: Stream) -> tuple[int, float]:
    return (1 if uniform(stream) < params.share else 0), 1.0


@step
def _update(params: StubbornParams, state: StubbornState, lesson: Lesson) -> None:
    state.nothing[0] = lesson.loss


register(StubbornParams, _draw, _update)


@pytest.mark.slow
def test_a_player_that_drops_the_arm_at_once_is_caught() -> None:
    policy = bd.privatize(Stubborn(), arms=2, epsilon=0.1, batch=1)
    report = check_limits(policy, 50_000, replicates=1000)
    assert report.applies
    assert report.respected
    assert report.gamma == pytest.approx(0.01, rel=0.1)
    assert report.shifted_regret > 20_000  # it never notices that arm 2 became free
    assert report.limit.regret > 100


@pytest.mark.parametrize("algorithm", ["phased", "adaptive", "one-bit"])
def test_policies_of_long_batches_do_not_meet_the_conditions(algorithm: str) -> None:
    """Their batches are longer than p, so they cannot have dropped the arm by round tau."""
    report = check_limits(bd.PrivateBandit(2, 0.1, 50_000, algorithm), 50_000, replicates=400)
    assert report.plays_enough.holds
    assert not report.drops_quickly.holds
    assert not report.applies


def test_the_default_loses_at_least_what_the_lemma_says() -> None:
    """A gap this large is seen in its first phases, so it may drop the arm by round tau."""
    report = check_limits(bd.PrivateBandit(2, 0.1, 50_000), 50_000, replicates=400)
    assert report.plays_enough.holds
    assert max(report.regret, report.shifted_regret) > report.limit.regret
    assert report.respected


def test_what_the_lemma_is_not_about_is_refused() -> None:
    for policy in (bd.PrivateBandit(2, 2.0), bd.PrivateBandit(3, 0.5), bd.Bandit(2)):
        with pytest.raises(bd.InputError):
            check_limits(policy, 1000)

"""Phases: plans are those of the textbook version, counts are exact, the guard knows its tails."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bandanna._core.compiled import kernel
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import InputError
from bandanna.learners import AbTest, Phased
from bandanna.learners.base import dump_arrays, load_arrays
from bandanna.learners.phase_model import SUMMARY, Model, log_chance
from bandanna.learners.phased_state import PhasedState
from bandanna.learners.steps import (
    draw_round,
    draw_round_among,
    learn_phase_once,
    open_phase_once,
)
from tests.learners.phased_reference import AlarmError, TextbookPhases, tail

UNKNOWN = np.full(3, math.nan)
"""Squares that were not released."""


@kernel
def draw_round_once(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Draw an arm, from Python."""
    return draw_round(params, state, stream)


@kernel
def draw_round_among_once(
    params: object, state: object, allowed: NDArray[np.bool_], stream: Stream
) -> tuple[int, float]:
    """Draw an arm among eligible ones, from Python."""
    return draw_round_among(params, state, allowed, stream)


def released(
    planned: np.ndarray, means: np.ndarray, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    sums = rng.binomial(planned.astype(int), means) + rng.laplace(0, 1 / epsilon, planned.size)
    return np.where(planned > 0, sums / np.maximum(planned, 1), 0.0)


def run(
    learner: Phased, means: list[np.ndarray], seed: int, rounds: int
) -> tuple[PhasedState, list[np.ndarray]]:
    """Play phases against means that change at equal intervals."""
    params, state, stream = learner.params(), learner.start(), new_stream(seed)
    rng = np.random.default_rng(seed)
    t, plans = 0, []
    while t < rounds:
        size, memo = open_phase_once(params, state, stream)
        now = means[min(t * len(means) // rounds, len(means) - 1)]
        values = released(state.planned, now, learner.epsilon, rng)
        plans.append(state.planned.copy())
        learn_phase_once(params, state, memo, state.planned.copy(), values, values * math.nan)
        t += size
    return state, plans


@pytest.mark.parametrize(
    ("arms", "rounds", "epsilon", "wave"),
    [
        (3, 4000, 0.5, 0.0),
        pytest.param(10, 200_000, 0.1, 0.0, marks=pytest.mark.slow),
        pytest.param(4, 20_000, 1.0, 0.25, marks=pytest.mark.slow),
        pytest.param(10, 100_000, 0.2, 0.2, marks=pytest.mark.slow),
    ],
)
def test_plans_are_those_of_the_textbook(
    arms: int, rounds: int, epsilon: float, wave: float
) -> None:
    for seed in range(3):
        learner = Phased(arms, epsilon, rounds=rounds)
        params, state, stream = learner.params(), learner.start(), new_stream(seed)
        textbook = TextbookPhases(arms, epsilon, rounds, new_stream(seed))
        rng = np.random.default_rng(seed)
        means = np.linspace(0.4, 0.55, arms)
        phases = 0
        while textbook.t < rounds:
            size, memo = open_phase_once(params, state, stream)
            np.testing.assert_array_equal(state.planned, textbook.plan())
            assert size == state.planned.sum()
            now = means + wave * math.sin(2.0 * phases)
            values = released(state.planned, now, epsilon, rng)
            learn_phase_once(params, state, memo, state.planned.copy(), values, values * math.nan)
            phases += 1
            try:
                textbook.learn(state.planned, values)
            except AlarmError:
                break
            assert state.phase[0].alarms == 0
            if state.totals[0].rate or phases == 60:  # the net plays; or records are merged
                break
        assert phases > 3


def test_a_phase_is_a_permutation_of_fixed_counts() -> None:
    learner = Phased(5, 0.5, rounds=20_000)
    params, state, stream = learner.params(), learner.start(), new_stream(3)
    size, memo = open_phase_once(params, state, stream)
    planned = state.planned.copy()
    drawn = [draw_round_once(params, state, stream) for _ in range(size)]
    arms = np.array([arm for arm, _ in drawn])
    np.testing.assert_array_equal(np.bincount(arms, minlength=5), planned)
    assert all(chance == planned[arm] / size for arm, chance in drawn)
    # The mean position of an arm is that of a permutation: z below 6, by chance 1 in 5e8.
    for arm in range(5):
        mean = np.flatnonzero(arms == arm).mean()
        error = math.sqrt(size**2 / 12 / planned[arm])
        assert abs(mean - (size - 1) / 2) < 6 * error
    assert 0 < memo < 1


def test_eligible_arms_are_drawn_from_what_is_left() -> None:
    learner = Phased(4, 0.5, rounds=4000)
    params, state, stream = learner.params(), learner.start(), new_stream(3)
    open_phase_once(params, state, stream)
    allowed = np.array([False, True, False, True])
    before = state.left.copy()
    for _ in range(int(before[1] + before[3]) + 20):  # more than there are
        arm, chance = draw_round_among_once(params, state, allowed, stream)
        assert allowed[arm]
        assert 0.0 < chance <= 1.0
    np.testing.assert_array_equal(state.left, [before[0], 0, before[2], 0])


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [0.01, 0.25])
def test_the_guard_knows_the_tails_of_laplace_noise(sampling: float) -> None:
    epsilon = 0.1
    rounds = np.array([[400.0, 150.0, 300.0], [900.0, 3000.0, 5000.0]])
    mean = 0.5 * (1.0 - math.sqrt(1.0 - 4.0 * sampling))
    summary = np.zeros(1, SUMMARY)
    summary[0].variance = sampling
    scratch = [np.full(3, sampling)] * 5
    known: list[Any] = [np.full(2, mean), np.full(2, 1e12), *scratch, summary]
    squares = np.full((2, 3), 0.25)
    model = Model(rounds, np.zeros((2, 3)), 2 / (epsilon * rounds) ** 2, squares, *known)
    variances = (sampling / rounds + 2 / (epsilon * rounds) ** 2).sum(0)
    weights = 1 / variances
    parts = np.concatenate((weights[:2] / weights[:2].sum(), [1.0]))
    for errors in (2.0, 3.0, 4.0, 6.0):
        gap = errors * math.sqrt(1 / weights[:2].sum() + variances[2])
        found = log_chance(model, 2, 3, 0, 1, sampling, gap)
        exact = math.log(tail(gap, parts, rounds.T, sampling, epsilon))
        assert -0.1 < found - exact < 4.0  # a bound, by the moments of 0 or 1


@pytest.mark.slow
def test_an_arm_that_wakes_is_found_and_common_moves_are_no_alarm() -> None:
    asleep = np.full(10, 0.5)
    asleep[0] = 0.45
    found, first = 0, set()
    for seed in range(30):
        awake, arm = asleep.copy(), (2, 9)[seed % 2]  # whichever index it has
        awake[arm] = 0.2
        _, plans = run(Phased(10, 0.1, rounds=200_000), [asleep, awake], seed, 200_000)
        found += bool(plans[-1].argmax() == arm)
        quiet = next(k for k, plan in enumerate(plans) if (plan > 0).sum() == 1)
        probed = next(plan for plan in plans[quiet:] if (plan > 0).sum() > 1)
        first.update(np.flatnonzero(probed).tolist())
    assert found >= 20  # measured 0.96; fewer by chance: below 1e-6
    assert len(first) > 6  # probes begin with no arm in particular
    steady = np.full(10, 0.4)
    steady[1] = 0.3
    moves = [steady, steady + 0.3, steady + 0.1, steady + 0.35]
    alarms = 0
    for seed in range(30):
        state, _ = run(Phased(10, 0.1, rounds=200_000), moves, seed, 200_000)
        alarms += state.phase[0].alarms > 0
    assert alarms <= 5  # below 1 in 100 runs: 6 or more of 30 by chance below 1e-6


@pytest.mark.slow
def test_losses_that_keep_changing_are_left_to_the_adaptive_learner() -> None:
    rng = np.random.default_rng(5)
    pieces = list(rng.random((50, 10)))
    handed = [
        run(Phased(10, 0.1, rounds=200_000), pieces, seed, 200_000)[0].phase[0].adaptive
        for seed in range(12)
    ]
    assert sum(handed) >= 5  # measured 0.95; fewer by chance: below 1e-6


def test_ten_thousand_arms() -> None:
    means = np.random.default_rng(1).random(10_000)
    learner = Phased(10_000, 1.0, rounds=1_000_000)
    _, plans = run(learner, [means], 0, 300_000)
    assert len(plans) > 3
    best = np.average(means, weights=plans[-1])
    assert best < 0.3


def test_phases_grow_where_the_horizon_is_not_known() -> None:
    _, plans = run(Phased(4, 0.5), [np.array([0.3, 0.5, 0.5, 0.5])], 2, 100_000)
    sizes = [plan.sum() for plan in plans]
    assert sizes[-1] > 5 * sizes[1]
    assert plans[-1].argmax() == 0
    _, longer = run(Phased(4, 0.5), [np.array([0.3, 0.5, 0.5, 0.5])], 2, 10**9)
    assert max(plan.sum() for plan in longer) <= 2**22


def test_what_was_learned_is_saved_and_loaded() -> None:
    learner = Phased(5, 0.5, rounds=20_000)
    state, _ = run(learner, [np.linspace(0.3, 0.6, 5)], 1, 9_000)
    again = learner.start()
    load_arrays(again, json.loads(json.dumps(dump_arrays(state))))
    one, two = new_stream(9), new_stream(9)
    for kept, stream in ((state, one), (again, two)):
        open_phase_once(learner.params(), kept, stream)
    np.testing.assert_array_equal(state.planned, again.planned)
    assert type(learner)(**{k: v for k, v in learner.to_dict().items() if k != "name"}) == learner


def test_arms_come_and_go() -> None:
    learner = Phased(4, 0.5, rounds=20_000)
    state, _ = run(learner, [np.array([0.2, 0.5, 0.5, 0.5])], 1, 6_000)
    open_phase_once(learner.params(), state, new_stream(1))
    fewer, kept = learner.with_arms(state, [1, 2, 3], 1)
    params, stream = fewer.params(), new_stream(2)
    assert isinstance(kept, PhasedState)
    for _ in range(600):  # more than are left of the three
        assert 0 <= draw_round_once(params, kept, stream)[0] < 4
    open_phase_once(params, kept, stream)
    assert kept.planned[3] > 0
    assert kept.phase[0].records == state.phase[0].records


def test_the_ab_test_explores_evenly_and_commits() -> None:
    learner = AbTest(3, 1000)
    params, state, stream = learner.params(), learner.start(), new_stream(0)
    size, memo = open_phase_once(params, state, stream)
    assert size == 200
    np.testing.assert_allclose(state.planned, 66.6, atol=1)
    learn_phase_once(params, state, memo, state.planned.copy(), np.array([0.5, 0.1, 0.4]), UNKNOWN)
    for _ in range(3):
        size, memo = open_phase_once(params, state, stream)
        np.testing.assert_array_equal(state.planned, [0, 200, 0])
        learn_phase_once(
            params, state, memo, state.planned.copy(), np.array([0.0, 0.9, 0.0]), UNKNOWN
        )
    assert draw_round_once(params, state, stream) == (1, 1.0)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="explore"):
        AbTest(3, 1000, explore=0.0)
    with pytest.raises(InputError, match=r"at most 100,000 arms; got 200,000"):
        Phased(200_000, 1.0)
    with pytest.raises(InputError, match="algorithm='phased'"):
        Phased(3, 1.0).play(new_stream(0))

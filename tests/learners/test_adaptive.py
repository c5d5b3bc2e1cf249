from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.learners.adaptive import Adaptive
from bandanna.learners.base import load_arrays
from bandanna.learners.log_barrier import higher_orders
from bandanna.theory.adaptive import (
    adaptive_batch,
    adaptive_memory,
    adaptive_regret,
)
from tests.laws import assert_same_mean
from tests.learners import adaptive_reference as reference

ROUNDS, RUNS = 250, 60
MEANS = np.tile([0.3, 0.6, 0.5, 0.7], (ROUNDS, 1))
MOVING = np.where(np.arange(ROUNDS)[:, None] < 100, MEANS, MEANS[:, ::-1])


def mine(learner: Adaptive, means: np.ndarray, noise: float, seed: int) -> tuple[float, Any]:
    rng, player, regret = np.random.default_rng(seed), learner.play(new_stream(seed)), 0.0
    for row in means:
        arm, importance = player.draw()
        regret += row[arm] - row.min()
        player.update(arm, importance, float(row[arm] + rng.laplace(0, noise)))
    return regret, player.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("means", "memory", "known", "fresh"),
    [
        (MEANS, None, True, 0.0),
        pytest.param(MEANS, None, False, 0.0, marks=pytest.mark.soak),
        pytest.param(MOVING, 60.0, True, 0.1, marks=pytest.mark.soak),
    ],
)
def test_agrees_with_a_second_implementation(
    means: np.ndarray, memory: float | None, known: bool, fresh: float
) -> None:
    learner = Adaptive(4, ROUNDS if known else None, memory, fresh=fresh)
    ours = np.array([mine(learner, means, 0.15, seed)[0] for seed in range(RUNS)])
    rng = np.random.default_rng(5)
    theirs = [reference.regret(means, 0.15, memory, rng, known, fresh) for _ in range(RUNS)]
    assert_same_mean(ours, np.array(theirs))


def test_distribution_solves_its_equation() -> None:
    player = Adaptive(5).play(new_stream(1))
    for t in range(500):
        arm, importance = player.draw()
        state = player.state_dict()
        chances, rates = np.array(state["chances"]), np.array(state["rates"])
        values = np.array(state["losses"])  # the draw added the predictions
        assert chances.sum() == pytest.approx(1.0)
        lifted = rates / chances - values  # the same for all arms
        np.testing.assert_allclose(lifted, state["solution"][0], rtol=1e-6)
        player.update(arm, importance, math.sin(t * arm) + 0.5)


def regret_met(learner: Adaptive, saved: Any) -> float:
    state = learner.start()
    load_arrays(state, saved)
    regret = learner.report(state).regret
    assert regret is not None
    return regret


@pytest.mark.slow
@pytest.mark.parametrize("memory", [None, 500.0])
@pytest.mark.parametrize("kind", ["gap", "swap", "noise"])
def test_regret_stays_below_what_was_met(memory: float | None, kind: str) -> None:
    """Regret against the best fixed arm, in expectation; and what was met stays below the worst."""
    rounds, noise = 1500, 0.12
    means = np.tile([0.4, 0.5, 0.6, 0.6], (rounds, 1))
    if kind == "swap":
        means[500:] = [1.0, 0.5, 0.6, 0.0]
    if kind == "noise":
        means = np.random.default_rng(0).integers(0, 2, (rounds, 4)).astype(float)
    learner = Adaptive(4, rounds, memory)
    best = float(means.sum(axis=0).min() - means.min(axis=1).sum())
    runs = [mine(learner, means, noise, seed) for seed in range(30)]
    met = [regret_met(learner, state) for _, state in runs]
    assert np.mean([regret - best for regret, _ in runs]) < np.mean(met)
    assert np.mean(met) < adaptive_regret(4, rounds, noise, memory)


def test_a_step_costs_no_more_than_stated() -> None:
    """The stability of one step, maximised over the simplex, against the cost in the state."""
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(2)
    for seed in range(40):
        player = Adaptive(3, 100).play(new_stream(seed))
        for _ in range(int(rng.integers(1, 30))):
            arm, importance = player.draw()
            player.update(arm, importance, float(rng.random() < 0.3 + 0.2 * arm))
        arm, importance = player.draw()
        before = player.state_dict()
        p, rates = np.array(before["chances"]), np.array(before["rates"])
        player.update(arm, importance, float(rng.choice([-0.5, 0.0, 0.5, 1.0, 1.5])))
        after = player.state_dict()
        cost = after["totals"][1] - before["totals"][1]
        estimate = np.array(after["losses"]) - before["losses"]  # predictions came with the draw
        pushed = estimate * (np.arange(3) == arm)

        # The new minimiser solves p' = rate / (rate / p + pushed + y); search for its y.
        def total(
            y: float, rates: np.ndarray = rates, p: np.ndarray = p, g: np.ndarray = pushed
        ) -> float:
            terms = rates / p + g + y
            return float(np.sum(rates / terms) - 1.0) ** 2 if np.all(terms > 0) else 1e9

        low = -float(np.min(rates / p + pushed)) + 1e-12
        y = minimize_scalar(
            total, bounds=(low, low + 20), method="bounded", options={"xatol": 1e-12}
        ).x
        new = rates / (rates / p + pushed + y)
        new /= new.sum()
        ratio = new / p
        stability = float((p - new) @ pushed - rates @ (ratio - 1 - np.log(ratio)))
        assert stability <= cost + 1e-6


def test_higher_orders_are_bounded_closely() -> None:
    for u in (1e-3, 0.1, 0.5, 0.9):
        exact = -2 * (u + math.log1p(-u)) / u**2
        assert exact <= higher_orders(u) <= (1.03 if u <= 0.5 else 1.7) * exact


def test_forgets_and_tracks() -> None:
    """After a change a short memory is soon back on the best arm."""
    learner = Adaptive(4, 2000, memory=100.0, fresh=0.1)
    means = np.tile([0.2, 0.8, 0.8, 0.8], (2000, 1))
    means[1000:] = means[1000:, ::-1]
    regrets = [mine(learner, means, 0.1, seed)[0] for seed in range(10)]
    slow = [mine(Adaptive(4, 2000), means, 0.1, seed)[0] for seed in range(10)]
    assert np.mean(regrets) < 0.6 * np.mean(slow)


def test_how_to_run_it() -> None:
    assert adaptive_batch(1.0, 5) == 4
    assert adaptive_batch(0.001, 5) == 5
    assert adaptive_memory(1.0, 10**6) == 10**6
    assert adaptive_memory(0.1, 1000) > 1000
    assert adaptive_memory(1.0, 3000, changes=10) == 100


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Adaptive(1), "arms"),
        (lambda: Adaptive(2, losses=0), "losses"),
        (lambda: Adaptive(2, memory=0.5), "memory"),
        (lambda: Adaptive(2, memory=math.nan), "memory"),
        (lambda: Adaptive(2, first_rate=0.0), "first_rate"),
        (lambda: Adaptive(2, clamp=-1.0), "clamp"),
        (lambda: Adaptive(2, level=1.5), "level"),
        (lambda: Adaptive(2, fresh=-0.1), "fresh"),
        (lambda: Adaptive(2, doubts=-0.1), "doubts"),
    ],
)
def test_parameters_are_validated(make: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make()

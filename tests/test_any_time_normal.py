"""Intervals at any time by the normal approximation: they cover, and broken ones do not.

Runs have fixed seeds, so that chance decides no test. Each look is an occasion to be wrong: a run
is wrong if any of its looks is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bandanna.any_time_normal import (
    Moments,
    mean_interval,
    one_sided,
    pair_once,
    phase_radius,
    phase_weights,
    still_racing,
)

RUNS, LOOKS = 2000, 24
ALPHA = 0.05


def lab(rng: np.random.Generator, size: Any) -> Any:
    return np.clip(rng.gamma(6.5, 0.055, size), 0.0, 1.0)


def visits(rng: np.random.Generator, size: Any) -> Any:
    return np.minimum(rng.negative_binomial(0.6, 0.175, size), 20) / 20.0


def revenue(rng: np.random.Generator, size: Any) -> Any:
    buys = rng.random(size) < 0.05
    return np.where(buys, np.minimum(rng.lognormal(3.4, 0.9, size), 200.0) / 200.0, 0.0)


def rate(p: float) -> Any:
    return lambda rng, size: (rng.random(size) < p).astype(float)


LAWS: dict[str, Any] = {
    "lab": lab,
    "visits": visits,
    "revenue": revenue,
    "rate .3": rate(0.3),
    "rate .05": rate(0.05),
    "rate .005": rate(0.005),
    "constant": lambda rng, size: np.full(size, 0.3),
}


def looks(draw: Any, epsilon: float, split: float, seed: int, runs: int = RUNS) -> Any:
    """Return by look, arm and run what was released so far: sums, squares; and counts by look."""
    rng = np.random.default_rng(seed)
    sizes = [[50 * split, 50.0], *([0.0, 0.0] for _ in range(LOOKS - 1))]
    total, square = np.zeros((2, runs)), np.zeros((2, runs))
    count = np.zeros(2)
    for look in range(LOOKS):
        more = np.maximum(np.round(0.3 * count), np.array(sizes[look])).astype(int)
        for arm in range(2):
            mean, second = _sums(draw, rng, more[arm], runs)
            total[arm] += mean + rng.laplace(0.0, 1.0 / epsilon, runs)
            square[arm] += second + rng.laplace(0.0, 1.0 / epsilon, runs)
        count = count + more
        yield look + 1, count.copy(), total.copy(), square.copy()


def _sums(draw: Any, rng: np.random.Generator, size: int, runs: int) -> tuple[Any, Any]:
    """Return sums of outcomes and of their squares around 1/2, of every run."""
    pool = draw(rng, 200_000)
    values, chances = np.unique(np.round(pool, 3), return_counts=True)
    hits = rng.multinomial(size, chances / chances.sum(), runs)
    return hits @ values, hits @ (values - 0.5) ** 2


def wrong_share(draw: Any, epsilon: float, split: float, seed: int, noise: float = 1.0) -> float:
    """Return in how many runs two equal arms are told apart at any look."""
    wrong, level = np.zeros(RUNS, dtype=bool), one_sided(ALPHA / 2.0)
    for releases, count, total, square in looks(draw, epsilon, split, seed):
        means = total / count[:, None]
        for run in np.flatnonzero(~wrong):
            a, b = (
                Moments(total[k, run], square[k, run], count[k], noise * releases) for k in (0, 1)
            )
            away = abs(means[0, run] - means[1, run])
            wrong[run] = away > pair_once(a, b, 1.0 / epsilon, False, level)
    return float(wrong.mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("epsilon", "split"), [(0.1, 1.0), (0.5, 1.0), (2.0, 20.0), (8.0, 99.0)])
def test_equal_arms_are_told_apart_in_one_run_of_twenty_at_most(
    name: str, epsilon: float, split: float
) -> None:
    assert wrong_share(LAWS[name], epsilon, split, seed=3) <= ALPHA


def test_equal_arms_in_one_case() -> None:
    assert wrong_share(lab, 0.5, 1.0, seed=5) <= ALPHA


def test_without_the_noise_it_would_be_wrong() -> None:
    """The broken interval leaves the noise of the releases out: the test above would fail."""
    assert wrong_share(lab, 0.5, 1.0, seed=5, noise=0.0) > 2.0 * ALPHA


@pytest.mark.parametrize("name", ["lab", "rate .05"])
def test_means_are_covered_at_all_looks(name: str) -> None:
    draw, runs = LAWS[name], 400
    truth = float(np.mean(draw(np.random.default_rng(0), 4_000_000)))
    missed = np.zeros(runs, dtype=bool)
    for releases, count, total, square in looks(draw, 0.5, 5.0, 7, runs):
        for run in range(runs):
            arms = [Moments(total[k, run], square[k, run], count[k], releases) for k in (0, 1)]
            low, high = mean_interval(arms[1], arms[:1], 2.0, False, ALPHA)
            missed[run] |= not low <= truth <= high
    assert missed.mean() <= ALPHA


def test_nothing_is_said_before_there_are_enough() -> None:
    few = Moments(30.0, 5.0, 80.0, 1.0)
    assert math.isinf(pair_once(few, few, 1.0, False, 3.0))
    assert mean_interval(few, [], 1.0, False, 0.05) == (0.0, 1.0)
    assert still_racing([few, few._replace(total=0.0)], 1.0, False, np.full(2, 0.05)) == [True] * 2


def test_races_agree_with_pairs() -> None:
    rng = np.random.default_rng(2)
    n = rng.integers(150, 4000, 12).astype(float)
    arms = [Moments(n_ * m, n_ * 0.05, n_, 6.0) for n_, m in zip(n, rng.random(12), strict=True)]
    kept = still_racing(arms, 2.0, False, np.full(12, 0.01))
    for k, arm in enumerate(arms):
        beaten = any(
            arm.total / arm.terms - one.total / one.terms
            > pair_once(one, arm, 2.0, False, one_sided(0.01))
            for one in arms
        )
        assert kept[k] is not beaten


def test_an_average_over_phases_is_covered() -> None:
    """Outcomes that are fixed in advance, drift with the phase and differ by arm."""
    rng, scale, phases, runs = np.random.default_rng(4), 2.0, 12, 400
    wrong = 0
    for _ in range(runs):
        counts = rng.integers(40, 400, (phases, 2)).astype(float)
        total, square, truth = np.zeros((phases, 2)), np.zeros((phases, 2)), np.zeros(phases)
        for j in range(phases):
            size = int(counts[j].sum())
            level = 0.3 + 0.2 * math.sin(j)
            world = np.clip(level + 0.1 * rng.standard_normal((size, 2)), 0.0, 1.0)
            order = rng.permutation(size)
            parts = world[order[: int(counts[j, 0])], 0], world[order[int(counts[j, 0]) :], 1]
            total[j] = [part.sum() + rng.laplace(0.0, scale) for part in parts]
            square[j] = [((p - 0.5) ** 2).sum() + rng.laplace(0.0, scale) for p in parts]
            truth[j] = world[:, 1].mean() - world[:, 0].mean()
        missed = False
        for stop in range(1, phases + 1):
            n, s, q = counts[:stop], total[:stop], square[:stop]
            one, two = (
                Moments(s[:, k].sum(), q[:, k].sum(), n[:, k].sum(), float(stop)) for k in (0, 1)
            )
            pair = one, two
            weights, _ = phase_weights(n, pair, scale, False)
            away = s[:, 1] / n[:, 1] - s[:, 0] / n[:, 0]
            apart = float(weights @ (away - truth[:stop]) / weights.sum())
            missed |= abs(apart) > phase_radius(n, pair, scale, False, one_sided(ALPHA / 2.0))
        wrong += missed
    assert wrong / runs <= ALPHA

"""Statements from released totals are right as often as they say, whenever one looks.

Every coverage test counts the runs of 2,000 in which a statement was wrong at any look. A proved
sequence is wrong in at most 5% of runs; the runs are seeded, and measured rates are below 1.5%.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from bandanna.inference import (
    STEEPEST,
    Interval,
    Law,
    Totals,
    _reaches,
    _single,
    difference_interval,
    law_of,
    least_evidence,
    mean_interval,
    most_square,
    point,
    scratch,
    still_racing,
    two_points,
)
from bandanna.one_look import Arm, fixed_difference_interval, fixed_evidence, fixed_mean_interval
from bandanna.phase_evidence import _phase_spread, phase_evidence

RUNS, ALPHA = 2_000, 0.05


def evidence_below(law: Law, a: Totals, b: Totals, margin: float = 0.0) -> float:
    """Return the log evidence that a's mean loss is below b's plus a margin."""
    first, second = (Totals(*map(float, arm)) for arm in (a, b))
    return least_evidence(law, first, second, -margin, scratch())[0]


def is_below(law: Law, a: Totals, b: Totals, alpha: float, margin: float = 0.0) -> bool:
    """Whether a's mean loss is below b's plus a margin, as a race tells it."""
    first, second = (Totals(*map(float, arm)) for arm in (a, b))
    return bool(_reaches(law, first, second, -margin, math.log(1.0 / alpha), scratch()))


def runs_that_miss(
    law: Law,
    mean: float,
    totals: NDArray[np.float64],
    count: NDArray[np.float64],
    *,
    noisy: bool,
    bit: tuple[float, float] = (0.0, 1.0),
) -> float:
    """Return the share of runs in which the interval misses at some look."""
    missed = 0
    for run in totals:
        for look, total in enumerate(run):
            arm = Totals(total, count[look], look + 1 if noisy else 0, *bit)
            low, high = mean_interval(law, arm, ALPHA)
            if not low <= mean <= high:
                missed += 1
                break
    return missed / len(totals)


def noisy_sums(
    mean: float, batch: int, looks: int, scale: float, seed: int = 1
) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    sums = rng.binomial(batch, mean, (RUNS, looks)) + rng.laplace(0.0, 1.0, (RUNS, looks)) * scale
    return sums.cumsum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "epsilon", "batch"), [(0.3, 0.5, 14), (0.02, 1.0, 50)])
def test_laplace_sequences_cover_at_every_look(mean: float, epsilon: float, batch: int) -> None:
    totals = noisy_sums(mean, batch, 40, 1.0 / epsilon)
    count = batch * np.arange(1.0, 41.0)
    assert runs_that_miss(law_of(1.0 / epsilon), mean, totals, count, noisy=True) <= ALPHA


@pytest.mark.slow
def test_plain_sequences_cover_for_losses_of_any_kind() -> None:
    rng = np.random.default_rng(2)
    totals = rng.beta(0.5, 2.0, (RUNS, 40, 10)).sum(axis=2).cumsum(axis=1)
    count = 10.0 * np.arange(1.0, 41.0)
    assert runs_that_miss(law_of(), 0.2, totals, count, noisy=False) <= ALPHA


def test_sequences_of_bits_cover() -> None:
    rng = np.random.default_rng(3)
    base, slope, mean = 0.3, 0.4, 0.6
    totals = (rng.random((RUNS, 60)) < base + slope * mean).cumsum(axis=1).astype(float)
    count = np.arange(1.0, 61.0)
    missed = runs_that_miss(law_of(), mean, totals, count, noisy=False, bit=(base, slope))
    assert missed <= ALPHA
    assert point(Totals(0.5 * 60, 60, 0, base, slope)) == pytest.approx((0.5 - base) / slope)


def test_broken_intervals_do_not_pass_the_same_test() -> None:
    totals, count = noisy_sums(0.3, 14, 40, 2.0), 14.0 * np.arange(1.0, 41.0)
    without_noise = runs_that_miss(law_of(), 0.3, totals, count, noisy=False)
    assert without_noise > 2 * ALPHA
    long = noisy_sums(0.3, 250, 40, 2.0), 250.0 * np.arange(1.0, 41.0)
    off_by_a_batch = runs_that_miss(law_of(2.0), 0.3, long[0], long[1] + 250.0, noisy=True)
    assert off_by_a_batch > 2 * ALPHA
    assert runs_that_miss(law_of(2.0), 0.3, *long, noisy=True) <= ALPHA


@pytest.mark.parametrize(("epsilon", "batch"), [(0.5, 14), (0.5, 200), (0.1, 71), (0.1, 1_000)])
def test_anytime_intervals_are_less_than_twice_as_wide(epsilon: float, batch: int) -> None:
    releases = 20_000 / batch
    low, high = mean_interval(law_of(1.0 / epsilon), Totals(6_000.0, 20_000, releases), ALPHA)
    fixed = 2 * 1.96 * math.sqrt(0.3 * 0.7 * 20_000 + 2 * releases / epsilon**2) / 20_000
    assert high - low <= 1.9 * fixed


@pytest.mark.slow
def test_differences_cover_under_adaptive_play_and_orders_are_right() -> None:
    """Arms and batches are chosen by what was released: the leader is played more."""
    rng = np.random.default_rng(4)
    law, means, wrong = law_of(2.0), (0.30, 0.33), 0
    for _ in range(400):
        arms = [Totals(), Totals()]
        ok = True
        for look in range(25):
            chosen = look % 2
            if look > 3 and rng.random() < 0.8:
                chosen = min((0, 1), key=lambda arm: point(arms[arm]))
            size = 20 + int(0.3 * arms[chosen].terms)
            value = rng.binomial(size, means[chosen]) + rng.laplace(0.0, 2.0)
            old = arms[chosen]
            arms[chosen] = Totals(old.total + value, old.terms + size, old.releases + 1)
            low, high = difference_interval(law, arms[0], arms[1], ALPHA)
            ok = ok and low <= means[1] - means[0] <= high
            ok = ok and evidence_below(law, arms[1], arms[0]) < math.log(1.0 / ALPHA)
        wrong += not ok
    assert wrong <= 400 * ALPHA


def test_difference_and_evidence_agree() -> None:
    law = law_of(2.0)
    a, b = Totals(300.0, 1_000, 8), Totals(420.0, 1_100, 9)
    low, high = difference_interval(law, a, b, ALPHA)
    assert -1.0 <= low < point(b) - point(a) < high <= 1.0
    level = math.log(2.0 / ALPHA)
    assert evidence_below(law, a, b, margin=-low) == pytest.approx(level, abs=1e-4)
    assert evidence_below(law, b, a, margin=high) == pytest.approx(level, abs=1e-4)
    assert difference_interval(law, b, a, ALPHA) == pytest.approx((-high, -low))
    wide = [mean_interval(law, arm, ALPHA) for arm in (a, b)]
    assert high - low < (wide[0].high - wide[0].low) + (wide[1].high - wide[1].low)


def test_an_interval_ends_where_the_evidence_reaches_its_level() -> None:
    law, arm, level = law_of(2.0), Totals(300.0, 1_000, 8), math.log(2.0 / ALPHA)
    low, high = mean_interval(law, arm, ALPHA)

    def against(mean: float, sign: float) -> float:
        return _single(law, arm, mean, sign, scratch())[0]

    assert against(low, 1.0) == pytest.approx(level, abs=1e-6)
    assert against(high, -1.0) == pytest.approx(level, abs=1e-6)
    assert max(against(0.3, 1.0), against(0.3, -1.0)) < level


def test_the_evidence_is_the_least_over_common_means() -> None:
    law, work = law_of(2.0), scratch()
    a, b = Totals(300.0, 1_000.0, 8.0), Totals(420.0, 1_100.0, 9.0)
    grid = np.linspace(0.0, 1.0, 4_001)

    def log_process(arm: Totals, rates: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
        noise = arm.releases * np.log1p(-((rates * 2.0) ** 2))
        moment = arm.terms * np.log1p(mean * np.expm1(rates))
        found: NDArray[np.float64] = rates * arm.total - moment + noise
        return found

    least = math.inf
    for mean in grid:
        pairs = log_process(a, -law.rates, mean)[:, None] + log_process(b, law.rates, mean)[None, :]
        least = min(least, float(np.logaddexp.reduce((pairs + np.log(law.pairs)).ravel())))
    assert least_evidence(law, a, b, 0.0, work)[0] == pytest.approx(least, abs=1e-3)
    assert law.pairs.sum() == pytest.approx(1.0)
    assert np.exp(law.weights).sum() == pytest.approx(1.0)


def test_nothing_is_known_before_the_first_release() -> None:
    law = law_of(2.0)
    assert mean_interval(law, Totals(), ALPHA) == (0.0, 1.0)
    assert difference_interval(law, Totals(), Totals(3.0, 10, 1), ALPHA) == (-1.0, 1.0)
    low, high = mean_interval(law, Totals(-40.0, 10, 1), ALPHA)
    assert 0.0 <= low <= high <= 1.0


def test_extreme_totals_stay_finite() -> None:
    for scale in (0.0, 1e-3, 1.0, 1e4):
        for total, count in ((0.0, 1e9), (1e9, 1e9), (0.0, 1.0), (1.0, 1.0)):
            low, high = mean_interval(law_of(scale), Totals(total, count, 5), ALPHA)
            assert 0.0 <= low <= high <= 1.0
            assert low - 1e-9 <= total / count <= high + 1e-9


# --- finished logs ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.01, 0.3])
def test_fixed_time_intervals_cover(mean: float) -> None:
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(RUNS // 4):
        arm = Arm(800, rng.binomial(800, mean) + rng.laplace(0.0, 2.0), 200.0, 2.0)
        low, high = fixed_mean_interval(arm, ALPHA)
        missed += not low <= mean <= high
    assert missed <= ALPHA * RUNS // 4


@pytest.mark.slow
def test_fixed_time_differences_cover_and_are_narrower_than_sequences() -> None:
    rng = np.random.default_rng(6)
    missed = 0
    for _ in range(RUNS // 8):
        a = Arm(500, rng.binomial(500, 0.2) + rng.laplace(0.0, 2.0), 125.0, 2.0)
        b = Arm(4_000, rng.binomial(4_000, 0.25) + rng.laplace(0.0, 2.0), 1_000.0, 2.0)
        low, high = fixed_difference_interval(a, b, ALPHA)
        missed += not low <= 0.05 <= high
    assert missed <= ALPHA * RUNS // 8
    first, second = (Totals(arm.total, arm.size, arm.releases) for arm in (a, b))
    looked_at_often = difference_interval(law_of(2.0), first, second, ALPHA)
    assert high - low < looked_at_often.high - looked_at_often.low
    normal = 2 * 1.96 * math.sqrt(0.16 / 500 + 0.1875 / 4_000 + 8.0 / 500**2)
    assert high - low < 1.55 * normal


def test_the_least_favourable_means_are_found() -> None:
    a, b, apart = Arm(500, 120.0, 125.0, 2.0), Arm(4_000, 1_100.0, 1_000.0, 2.0), 0.01
    rates = np.geomspace(1e-3, 200.0, 400)
    least = math.inf
    for mean in np.linspace(0.0, 0.99, 800):
        noise = np.log1p(-((2.0 * rates / 500) ** 2)) + np.log1p(-((2.0 * rates / 4_000) ** 2))
        moment = 4_000 * np.log1p((mean + apart) * np.expm1(rates / 4_000))
        moment += 500 * np.log1p(mean * np.expm1(-rates / 500))
        found = rates * (1_100 / 4_000 - 120 / 500) - moment + noise
        least = min(least, float(found.max()))
    assert fixed_evidence(a, b, apart) == pytest.approx(least, abs=2e-3)
    assert fixed_evidence(a, b, apart, Interval(0.2, 0.3)) >= least - 2e-3


# --- phases -----------------------------------------------------------------------------------


def fixed_losses(kind: str, rounds: int, seed: int) -> NDArray[np.float64]:
    """Return losses of three arms, fixed in advance."""
    time = np.arange(rounds) / rounds
    rng = np.random.default_rng(seed)
    if kind == "trend":
        means = np.stack([0.2 + 0.5 * time + 0.05 * arm for arm in range(3)], axis=1)
    elif kind == "drift":
        means = np.stack([0.5 + 0.3 * np.sin(9 * time + 2 * arm) for arm in range(3)], axis=1)
    else:
        means = np.stack([np.floor(97 * time + arm) % 2 for arm in range(3)], axis=1)
    losses: NDArray[np.float64] = (rng.random(means.shape) < means).astype(float)
    return losses


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["trend", "drift", "adversarial"])
def test_phases_need_no_assumption_about_losses(kind: str) -> None:
    rng = np.random.default_rng(7)
    wrong, ratio = 0, 0.0
    for run in range(200):
        losses, shares = fixed_losses(kind, 6_000, run), np.full(3, 1 / 3)
        counts, sums, effects = [], [], []
        ok = True
        for phase in range(12):
            here = losses[500 * phase : 500 * (phase + 1)]
            arms = rng.choice(3, 500, p=shares)
            counts.append(np.bincount(arms, minlength=3).astype(float))
            played = np.array([here[arms == arm, arm].sum() for arm in range(3)])
            sums.append(played + rng.laplace(0.0, 2.0, 3))
            effects.append(here[:, 1].mean() - here[:, 0].mean())
            shares = np.exp(-6.0 * sums[-1] / counts[-1])
            shares = 0.1 + 0.7 * shares / shares.sum()
            evidence = phase_evidence(np.array(counts), np.array(sums), 0, 1, scale=2.0)
            assert evidence is not None
            low, high = evidence.interval(0.5 * ALPHA)
            weights = precision(np.array(counts))
            ok = ok and low <= float(weights @ effects / weights.sum()) <= high
            ratio = (high - low) / (2 * 1.96 / math.sqrt(weights.sum()))
        wrong += not ok
    assert wrong <= 200 * ALPHA
    assert ratio < 2.0


def precision(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second = counts[:, 0], counts[:, 1]
    spread = _phase_spread(first, second, counts.sum(axis=1))
    found: NDArray[np.float64] = 1.0 / (spread + 8.0 * (first**-2.0 + second**-2.0))
    return found


def test_phases_in_which_an_arm_was_not_played_are_left_out() -> None:
    counts, sums = np.array([[10.0, 0.0], [0.0, 10.0]]), np.array([[3.0, 0.0], [0.0, 5.0]])
    assert phase_evidence(counts, sums, 0, 1, scale=1.0) is None
    evidence = phase_evidence(counts + 10.0, sums + 4.0, 0, 1, scale=1.0)
    assert evidence is not None
    assert evidence.phases == 2
    low, high = evidence.interval(0.5 * ALPHA)
    assert low <= evidence.difference <= high


def test_a_race_in_one_call_is_that_of_all_pairs() -> None:
    rng, law = np.random.default_rng(0), law_of(2.0)
    for _ in range(100):
        count = int(rng.integers(1, 7))
        arms = [
            Totals(float(rng.integers(0, 400)), 400.0 * rng.integers(1, 20), float(times))
            for times in rng.integers(1, 9, count)
        ]
        order = sorted(range(count), key=lambda arm: point(arms[arm]))
        left = set(order)
        for index, a in enumerate(order):
            for b in order[index + 1 :]:
                if {a, b} <= left and is_below(law, arms[a], arms[b], 0.05):
                    left.discard(b)
        kept = still_racing(law, arms, np.full(count, 0.05))
        assert set(np.flatnonzero(kept).tolist()) == left
    nothing = [Totals(), Totals(5.0, 100.0, 1.0)]
    assert still_racing(law, nothing, np.full(2, 0.05)) == [True, True]


@pytest.mark.parametrize("scale", [0.0, 2.0, 10.0])
def test_whether_an_arm_is_better_is_told_as_the_evidence_says(scale: float) -> None:
    law, rng, told = law_of(scale), np.random.default_rng(1), 0
    for _ in range(2_000):
        terms = np.ceil(np.exp(rng.uniform(0.0, 12.0, 2)))
        first = rng.random() ** rng.choice([1.0, 4.0])
        means = first, min(1.0, first + 3.0 * rng.exponential() / np.sqrt(terms.min()))
        releases = rng.integers(1, 6, 2)
        totals = rng.binomial(terms.astype(int), means) + rng.laplace(0.0, scale + 1e-9, 2)
        a, b = (Totals(*map(float, arm)) for arm in zip(totals, terms, releases, strict=True))
        margin, alpha = rng.choice([0.0, 0.02]), rng.choice([0.3, 0.05, 0.001])
        evidence, level = evidence_below(law, a, b, margin), np.log(1.0 / alpha)
        better = is_below(law, a, b, alpha, margin)
        assert better == (evidence >= level) or abs(evidence - level) < 1e-5
        told += better
    assert 200 < told < 1_800


# --- with a bound on how much losses vary -----------------------------------------------------


@pytest.mark.parametrize("square", [0.01, 0.05, 0.12, 0.2, 0.2499])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_moment_bound_grows_with_the_mean_and_is_concave(square: float, sign: float) -> None:
    """What proofs need up to the steepest rate; at a mean square of 1/4 it is that of a coin."""
    ends = 0.5 + math.sqrt(square) * np.array([-1.0, 1.0])
    means = np.linspace(ends[0] + 1e-6, ends[1] - 1e-6, 2001)
    for rate in np.linspace(0.05, STEEPEST, 12).tolist():
        found = np.array([two_points(rate, mean, square, sign) for mean in means.tolist()])
        slopes = np.diff(found[:, 0]) / np.diff(means)
        assert (sign * slopes > 0.0).all()
        assert np.diff(slopes).max() < 1e-7
        apart = slopes - 0.5 * (found[1:, 1] + found[:-1, 1])
        assert np.abs(apart[20:-20]).max() < 1e-3
        coin = two_points(rate, 0.3, 0.25, sign)[0]
        assert coin == pytest.approx(math.log1p(0.3 * math.expm1(sign * rate)), rel=1e-9)


def test_no_loss_with_such_a_mean_square_has_larger_moments() -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        values, chances = rng.random(4), rng.dirichlet(np.ones(4))
        mean, square = float(values @ chances), float((values - 0.5) ** 2 @ chances)
        for rate, sign in ((0.3, 1.0), (STEEPEST, 1.0), (0.9, -1.0), (STEEPEST, -1.0)):
            moment = math.log(float(np.exp(sign * rate * values) @ chances))
            assert moment <= two_points(rate, mean, square, sign)[0] + 1e-12


def test_mean_squares_are_bounded_and_bounds_make_intervals_narrower() -> None:
    rng, scale, low = np.random.default_rng(2), 2.0, 0
    for _ in range(300):
        values = np.clip(rng.gamma(6.5, 0.055, 2000), 0.0, 1.0)
        squares = ((values - 0.5) ** 2).sum() + rng.laplace(0.0, scale)
        bound = most_square(scale, squares, 2000, 1, alpha=0.05)
        low += bound < 0.0408  # the true mean square is 0.0404
    assert low <= 300 * 0.05
    assert bound < 0.08
    law, plain = law_of(scale, STEEPEST), law_of(scale)
    a, b = Totals(700.0, 2000, 4), Totals(900.0, 2000, 4)
    wide = difference_interval(plain, a, b, 0.05)
    found = difference_interval(law, a._replace(square=bound), b._replace(square=bound), 0.05)
    assert wide.low < found.low < 0.1 < found.high < wide.high
    assert is_below(law, a._replace(square=bound), b._replace(square=bound), 0.01)
    far = a._replace(square=0.001), b._replace(square=0.001, total=1990.0)
    assert is_below(law, *far, 1e-9)  # no mean of both is possible

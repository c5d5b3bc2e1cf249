"""What released values say about mean losses, valid at any time one looks.

An arm is known by three totals: the sum of its released values, how many losses (or bits) they
hold, and how many times noise was added. Losses are in [0, 1] with conditional mean ``mu``
whatever was released before. For every rate ``r``

    exp(r total) / ((1 - mu + mu e^r)^terms * (noise's moment generating function at r)^releases)

is a supermartingale. Its average over a fixed set of rates is one too, so by Ville's inequality
it reaches ``1 / alpha`` at any time with probability at most ``alpha``. All means against which
it stays below form a confidence sequence. For two arms the product of their processes is averaged
over pairs of rates. ``docs/theory/answers.md`` has the proofs. For losses that are not
steady there is ``bandanna.phase_evidence``, for finished logs ``bandanna.one_look``.

Everything here is computed from released values and public counts: it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel, once, step

Floats = NDArray[np.float64]

RATES, RATIO, HIGHEST, OF_NOISE = 17, 0.6, 3.0, 0.95
"""Rates in the average, from one to the next; the highest; the same as a share of one over the
noise's scale."""
CENTRE, SPREAD, TOGETHER = 3.0, 2.0, 1.0
"""Weights of the rates, in e-folds below the highest; and how alike two arms' rates are."""
NEWTON, HALVINGS = 80, 40
CLOSE = 1e-10
MOST_SQUARE, STEEPEST = 0.25, 2.0
"""The most a mean square around 1/2 can be; the highest rate where it is known to be less."""


class Totals(NamedTuple):
    """What was released about one arm."""

    total: float = 0.0
    """Sum of the released values: of noisy sums of losses, or of bits."""
    terms: float = 0.0
    """How many losses the sums hold, or how many bits there are."""
    releases: float = 0.0
    """How many times noise was added."""
    base: float = 0.0
    slope: float = 1.0
    """What is summed has mean ``base + slope * mu`` and lies in [0, 1]: for bits not 0 and 1."""
    square: float = MOST_SQUARE
    """The most that the mean square of losses around 1/2 can be: 1/4 if nothing is known."""


class Law(NamedTuple):
    """The noise of releases, with the rates that the evidence is averaged over."""

    scale: float
    """Scale of the Laplace noise, in units of the loss; 0 without noise."""
    rates: Floats
    up: Floats
    down: Floats
    """``e^r - 1`` and ``e^-r - 1``."""
    noise: Floats
    """Minus the logarithm of the noise's moment generating function, or a bound below it."""
    weights: Floats
    """Logarithms of the rates' weights."""
    pairs: Floats
    """Weights of pairs of rates, one row for each rate of the first arm."""


class Interval(NamedTuple):
    """All values that are not refuted."""

    low: float
    high: float


ANY_MEAN = Interval(0.0, 1.0)


def around(value: float, radius: float, low: float, high: float) -> Interval:
    """Return an interval around a value, cut to the range."""
    return Interval(min(max(value - radius, low), high), min(max(value + radius, low), high))


@lru_cache(maxsize=64)
def law_of(scale: float = 0.0, steepest: float = HIGHEST) -> Law:
    """Return the law of sums with Laplace noise of a scale; plain sums and bits have none.

    Parameters
    ----------
    scale
        Scale of the Laplace noise on each released sum, in units of the loss; 0 without noise.
    steepest
        The highest rate.

    Examples
    --------
    >>> law = law_of(scale=2.0)
    >>> low, high = mean_interval(law, Totals(3000.0, 10_000, 40), alpha=0.05)
    >>> round(low, 3), round(high, 3)
    (0.284, 0.317)
    """
    highest = steepest if scale == 0.0 else min(steepest, OF_NOISE / scale)
    steps = np.arange(RATES)
    rates: Floats = highest * np.power(RATIO, steps, dtype=np.float64)
    weights = 1.0 / (1.0 + ((steps * -math.log(RATIO) - CENTRE) / SPREAD) ** 2)
    weights /= weights.sum()
    apart = (steps[:, None] - steps[None, :]) / TOGETHER
    pairs = np.sqrt(weights[:, None] * weights[None, :]) / (1.0 + apart**2)
    pairs /= pairs.sum()
    noise = np.log1p(-((rates * scale) ** 2))
    return Law(
        float(scale), rates, np.expm1(rates), np.expm1(-rates), noise, np.log(weights), pairs
    )


# --- compiled ---------------------------------------------------------------------------------


@step
def two_points(rate: float, mean: float, square: float, sign: float) -> tuple[float, float]:
    """Return what the logarithm of ``E exp(sign rate loss)`` is at most, and its slope in the mean.

    Of all losses in [0, 1] with a mean, and with a variance that their mean square leaves, those at
    the end of the range and at one other point have the largest (Bennett; Hoeffding). It is jointly
    concave in mean and square, and up to the rate ``STEEPEST`` grows with the mean (falls, where
    the sign is negative).
    """
    p = mean if sign > 0.0 else 1.0 - mean  # of losses, or of 1 minus them
    reach = max(1.0 - p, 1e-12)
    spread = min(max(square - (p - 0.5) ** 2, 0.0), p * reach)
    near, far = math.exp(-rate * spread / reach), math.exp(rate * reach)
    whole = reach * reach + spread
    inside = (reach * reach * near + spread * far) / whole
    moved = 1.0 - 2.0 * p  # of the spread, with the mean
    ratio = (moved * reach + spread) / (reach * reach)
    top = -2.0 * reach * near - reach * reach * near * rate * ratio
    top += moved * far - spread * far * rate
    slope = top / (whole * inside) - (moved - 2.0 * reach) / whole
    evidence = rate * p + math.log(inside)
    if sign > 0.0:
        return evidence, rate + slope
    return evidence - rate, -(rate + slope)


@step
def ends_of(arm: Totals) -> tuple[float, float]:
    """Return the means that the mean square leaves possible."""
    if arm.square >= MOST_SQUARE:
        return 0.0, 1.0
    away = math.sqrt(max(arm.square, 0.0))
    return 0.5 - away, 0.5 + away


@step
def _values(law: Law, arm: Totals, mean: float, sign: float, values: Floats) -> float:
    """Fill in the logarithm of the process at every rate; returns the largest.

    A total beyond what any losses add up to is noise: it counts as the end of their range, on the
    side on which that is less evidence.
    """
    p = arm.base + arm.slope * mean
    total = min(arm.total, arm.terms) if sign > 0.0 else max(arm.total, 0.0)
    largest = -math.inf
    for k in range(law.rates.size):
        change = law.up[k] if sign > 0.0 else law.down[k]
        if arm.square < MOST_SQUARE:
            moment, _ = two_points(law.rates[k], p, arm.square, sign)
        else:
            moment = math.log1p(p * change)
        value = sign * law.rates[k] * total - arm.terms * moment
        values[k] = value + arm.releases * law.noise[k]
        largest = max(largest, float(values[k]))
    return largest


@step
def _slope(law: Law, arm: Totals, mean: float, sign: float, k: int) -> float:
    """Return how the logarithm of the process at a rate changes with the mean."""
    change = law.up[k] if sign > 0.0 else law.down[k]
    p = arm.base + arm.slope * mean
    if arm.square < MOST_SQUARE:
        _, steep = two_points(law.rates[k], p, arm.square, sign)
        return float(-arm.terms * arm.slope * steep)
    return float(-arm.terms * arm.slope * change / (1.0 + p * change))


@step
def _single(law: Law, arm: Totals, mean: float, sign: float, work: Floats) -> tuple[float, float]:
    """Return the log evidence against a mean, and how it changes with it: convex in the mean."""
    values = work[0]
    largest = _values(law, arm, mean, sign, values)
    total, slope = 0.0, 0.0
    for k in range(law.rates.size):
        part = math.exp(values[k] - largest + law.weights[k])
        total += part
        slope += part * _slope(law, arm, mean, sign, k)
    return largest + math.log(total), slope / total


@step
def _double(
    law: Law, a: Totals, b: Totals, mean_a: float, mean_b: float, work: Floats
) -> tuple[float, float, float]:
    """Return the log evidence that a's mean is below ``mean_a`` or b's above ``mean_b``.

    And how it changes with the two: it is convex, growing in the first and falling in the second.
    """
    rates, below, above = law.rates.size, work[0], work[1]
    most_below = _values(law, a, mean_a, -1.0, below)
    most_above = _values(law, b, mean_b, 1.0, above)
    total, slope_a, slope_b = 0.0, 0.0, 0.0
    for k in range(rates):
        below[k] = math.exp(below[k] - most_below)
        above[k] = math.exp(above[k] - most_above)
        work[2, k] = 0.0
    for k in range(rates):
        row = 0.0
        for j in range(rates):
            part = law.pairs[k, j] * above[j]
            row += part
            work[2, j] += part * below[k]
        row *= below[k]
        total += row
        slope_a += row * _slope(law, a, mean_a, -1.0, k)
    for j in range(rates):
        slope_b += work[2, j] * _slope(law, b, mean_b, 1.0, j)
    return most_below + most_above + math.log(total), slope_a / total, slope_b / total


@step
def _end(law: Law, arm: Totals, level: float, sign: float, work: Floats) -> float:
    """Return an end of the interval by Newton's method, from the side that is refuted.

    The evidence is convex in the mean, so every step stays on that side: stopped early, the
    interval is too wide and never too narrow.
    """
    least, most = ends_of(arm)
    mean = least if sign > 0.0 else most
    for _ in range(NEWTON):
        value, slope = _single(law, arm, mean, sign, work)
        if value <= level:
            break
        move = (level - value) / slope
        mean = min(max(mean + move, least), most)
        if abs(move) < CLOSE:
            break
    return mean


@step
def square_bound(
    law: Law, total: float, terms: float, releases: float, level: float, work: Floats
) -> float:
    """Return what the mean square of losses around 1/2 is at most, from what was released of it.

    Squares are from 0 to 1/4. ``law`` is that of noise four times as large, for four times them.
    """
    four = Totals(4.0 * total, terms, releases, 0.0, 1.0, MOST_SQUARE)
    return 0.25 * _end(law, four, level, -1.0, work)


@step
def shared_ends(a: Totals, b: Totals, apart: float) -> tuple[float, float]:
    """Return which means a can have if b's is larger by this."""
    low_a, high_a = ends_of(a)
    low_b, high_b = ends_of(b)
    return max(low_a, low_b - apart), min(high_a, high_b - apart)


@step
def least_evidence(
    law: Law, a: Totals, b: Totals, apart: float, work: Floats
) -> tuple[float, float]:
    """Return the least log evidence over all means with ``b - a = apart``, and its slope.

    Evidence against ``b - a <= apart`` is convex in the common mean: its derivative is bisected,
    and a tangent bounds it from below, so that what is returned is never too large.
    """
    low, high = shared_ends(a, b, apart)
    if low > high:
        return 1e9, -1e9  # no mean of both is possible
    evidence, slope = -math.inf, 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        value, slope_a, slope_b = _double(law, a, b, middle, middle + apart, work)
        bound = value - abs(slope_a + slope_b) * 0.5 * (high - low)
        if bound > evidence:
            evidence, slope = bound, min(slope_b, -slope_a)  # they agree but for the edges
        if value - bound < 1e-7:
            break
        if slope_a + slope_b > 0.0:
            high = middle
        else:
            low = middle
    return evidence, slope


@step
def _most(arm: Totals, mean: float) -> float:
    """Return what the log evidence about an arm never exceeds, whatever the rates.

    At the best rate and without noise it is the losses times the relative entropy of the estimate
    to the mean, which chi-squared bounds.
    """
    p, seen = arm.base + arm.slope * mean, arm.total / arm.terms
    if not 0.0 <= seen <= 1.0 or not 0.0 < p < 1.0:
        return math.inf
    spread = p * (1.0 - p)
    if arm.square < MOST_SQUARE:
        spread = max(min(spread, arm.square - (p - 0.5) ** 2), 1e-12)
    return arm.terms * (seen - p) ** 2 / spread


@step
def _reaches(law: Law, a: Totals, b: Totals, apart: float, level: float, work: Floats) -> bool:
    """Whether ``least_evidence`` reaches a level: known sooner, mostly at the first mean tried."""
    low, high = shared_ends(a, b, apart)
    if low > high:
        return True  # no mean of both is possible
    mean_a = (a.total / a.terms - a.base) / a.slope
    mean_b = (b.total / b.terms - b.base) / b.slope - apart
    middle = (a.terms * mean_a + b.terms * mean_b) / (a.terms + b.terms)
    middle = min(max(middle, low), high)
    if _most(a, middle) + _most(b, middle + apart) < level:
        return False  # as for most pairs
    for _ in range(HALVINGS):
        value, slope_a, slope_b = _double(law, a, b, middle, middle + apart, work)
        slope = slope_a + slope_b
        least = value + slope * ((low if slope > 0.0 else high) - middle)
        if value < level or least >= level:
            return least >= level
        if slope > 0.0:
            high = middle
        else:
            low = middle
        middle = 0.5 * (low + high)
    return False


@step
def _lower_difference(law: Law, a: Totals, b: Totals, level: float, work: Floats) -> float:
    """Return below which value ``b - a`` is refuted: Newton's method, again from that side."""
    apart = max(-1.0, ends_of(b)[0] - ends_of(a)[1])
    for _ in range(NEWTON):
        value, slope = least_evidence(law, a, b, apart, work)
        if value <= level or slope >= 0.0:
            break
        move = (level - value) / slope
        apart = min(apart + move, 1.0)
        if move < 1e-7 or apart >= 1.0:
            break
    return apart


@kernel
def _mean_ends(law: Law, arm: Totals, level: float, work: Floats) -> tuple[float, float]:
    return _end(law, arm, level, 1.0, work), _end(law, arm, level, -1.0, work)


@kernel
def _race(law: Law, known: Floats, levels: Floats, left: NDArray[np.bool_], work: Floats) -> None:
    """Let arms leave that an arm with a smaller mean is better than; they come by their means."""
    for i in range(known.shape[0]):
        if left[i]:
            one = known[i]
            a = Totals(one[0], one[1], one[2], one[3], one[4], one[5])
            for j in range(i + 1, known.shape[0]):
                if left[j]:
                    one = known[j]
                    b = Totals(one[0], one[1], one[2], one[3], one[4], one[5])
                    left[j] = not _reaches(law, a, b, 0.0, max(levels[i], levels[j]), work)


_square_bound = once(square_bound)
_difference = once(_lower_difference)


# --- what is asked ----------------------------------------------------------------------------


def scratch() -> Floats:
    """Return room for the compiled functions to work in."""
    return np.empty((3, RATES))


def point(arm: Totals) -> float:
    """Return the estimated mean loss: without bias, so noise may take it out of [0, 1]."""
    return (arm.total / arm.terms - arm.base) / arm.slope


def estimate(arm: Totals) -> float:
    """Return the estimated mean loss, at most as far as losses go: it is in its interval."""
    return min(max(point(arm), 0.0), 1.0)


def mean_interval(law: Law, arm: Totals, alpha: float) -> Interval:
    """Return the means that are not refuted, at all times together with probability 1 - alpha."""
    if arm.terms <= 0.0:
        return Interval(0.0, 1.0)
    return Interval(*_mean_ends(law, _floats(arm), math.log(2.0 / alpha), scratch()))


def most_square(scale: float, total: float, terms: float, releases: float, alpha: float) -> float:
    """Return what the mean square of losses around 1/2 is at most, at all times together.

    ``total`` is the sum of squares, with noise of this scale for each of the releases.
    """
    if terms <= 0.0:
        return MOST_SQUARE
    told = float(total), float(terms), float(releases)
    bound = _square_bound(law_of(4.0 * scale), *told, math.log(1.0 / alpha), scratch())
    return min(max(float(bound), 0.0), MOST_SQUARE)


def still_racing(law: Law, arms: Sequence[Totals], alphas: Floats) -> list[bool]:
    """Return which arms no arm with a smaller mean is better than.

    All pairs are told in one call; ``alphas`` has the error probability of a pair by its newer arm.
    """
    seen = [k for k, arm in enumerate(arms) if arm.terms > 0.0]
    some = [arms[k] for k in seen]

    def race(known: Floats, levels: Floats, left: NDArray[np.bool_]) -> None:
        _race(law, known, levels, left, scratch())

    kept = iter(by_means(race, some, [point(arm) for arm in some], -np.log(alphas[seen])))
    return [next(kept) if arm.terms > 0.0 else True for arm in arms]


def by_means(
    race: Callable[[Floats, Floats, NDArray[np.bool_]], None],
    arms: Sequence[tuple[float, ...]],
    means: Sequence[float],
    levels: Floats,
) -> list[bool]:
    """Return which arms are left by a race, which takes them and their levels by their means."""
    left = np.ones(len(arms), dtype=np.bool_)
    order = np.argsort(means, kind="stable")
    if len(arms) > 1:
        race(np.array(arms, dtype=np.float64)[order], levels[order], left)
    kept: list[bool] = left[np.argsort(order)].tolist()
    return kept


def difference_interval(law: Law, a: Totals, b: Totals, alpha: float) -> Interval:
    """Return the values of ``b - a`` that are not refuted, at all times together."""
    if min(a.terms, b.terms) <= 0.0:
        return Interval(-1.0, 1.0)
    first, second = _floats(a), _floats(b)
    level, work = math.log(2.0 / alpha), scratch()
    low = _difference(law, first, second, level, work)
    return Interval(low, -_difference(law, second, first, level, work))


def _floats(arm: Totals) -> Totals:
    return Totals(*map(float, arm))

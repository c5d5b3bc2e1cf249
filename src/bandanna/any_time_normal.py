"""What released sums and squares say at any time, by the normal approximation.

An arm is known by its released sum, the squares beside it, how many losses they hold and how often
noise was added. What its sum exceeds its mean by is a martingale, whose variance so far (its
*clock*) is that of the losses and of the noise. For a normal martingale and a normal law of rates
the average of ``exp(rate * sum - rate^2 clock / 2)`` is known in closed form (Robbins 1970), and so
is what it refutes at any time. Sums of many losses are as good as normal and their variance as good
as known: then the same holds in the limit (Waudby-Smith and others, arXiv 2103.06476). Below
``FEWEST`` losses what is proved must do, for a part of the error probability.
``docs/theory/answers.md`` has the steps.

Two arms' sums have two clocks and two rates, whose law is normal too: with opposite signs, alike as
``ALIKE`` says. The mean that both may have in common is the one that fits best: in closed form.

Everything here is computed from released values and public counts: it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel, once, step
from bandanna.inference import Interval, around, by_means

FEWEST = 200.0
"""With fewer losses in both arms, or half of it in one, nothing is said by the normal law."""
EARLY = 0.1
"""Part of the error probability for what is proved from the range alone until then."""
ALIKE, APART = 0.95, 0.05
"""How alike the rates of two arms are, in the law that they are averaged over; and the part of the
error probability for rates that are not alike, which tell more of arms of very unequal size."""
OF_NOISE, OF_LOSSES = 8.0, 80.0
"""What the clock is compared with: so many squares of the noise's scale, and so many losses."""
STEEPEST = 0.95
"""Where rates come near one over the scale of the noise its tails count as Laplace's, up to this.
"""
HARDLY = 1e-9

Floats = NDArray[np.float64]


class Moments(NamedTuple):
    """What was released of an arm."""

    total: float = 0.0
    """The sum of losses, with noise."""
    square: float = 0.0
    """The sum of their squares around 1/2, with noise."""
    terms: float = 0.0
    """How many losses they hold."""
    releases: float = 0.0
    """How many times noise was added."""


@step
def variance_of(arm: Moments, scale: float, binary: bool) -> float:
    """Return how much losses of an arm vary, with one standard deviation of its noise on top."""
    mean = min(max(arm.total / arm.terms, 0.0), 1.0)
    tilt = 2.0 * mean - 1.0
    noise = math.sqrt(2.0 * arm.releases) * scale / arm.terms
    if binary:
        variance = mean * (1.0 - mean) + noise * abs(tilt)
    else:
        variance = arm.square / arm.terms - (mean - 0.5) ** 2 + noise * math.sqrt(1.0 + tilt * tilt)
    return float(min(max(variance, HARDLY), 0.25))


@step
def together(a: Moments, b: Moments, scale: float, binary: bool) -> float:
    """Return how much losses of two arms vary within them."""
    terms = a.terms + b.terms
    own = a.terms * variance_of(a, scale, binary) + b.terms * variance_of(b, scale, binary)
    return float(own / terms)


@step
def tails_at(steep: float) -> float:
    """Return by how much the tails of Laplace noise exceed a normal law's, at a rate."""
    square = min(steep, STEEPEST) ** 2
    return -math.log1p(-square) / square if square > 1e-6 else 1.0


@step
def heavier(noise: float, rest: float, scale: float, level: float) -> float:
    """Return the variance of Laplace noise, larger where it matters how heavy its tails are.

    At the rate at which something of this variance is refuted, noise counts as much as its moment
    generating function says.
    """
    rate = math.sqrt(2.0 * level / max(noise + rest, 1e-300))
    return noise * tails_at(rate * scale)


@step
def _radius(
    a: Moments, b: Moments, scale: float, binary: bool, level: float, alike: float
) -> float:
    """Return the same for rates that are so much alike."""
    if a.terms + b.terms < FEWEST or min(a.terms, b.terms) < 2.0:
        return math.inf
    common = together(a, b, scale, binary)
    own_a = max(variance_of(a, scale, binary), common)
    own_b = max(variance_of(b, scale, binary), common)
    noise_a, noise_b = 2.0 * a.releases * scale * scale, 2.0 * b.releases * scale * scale
    clock_a, clock_b = a.terms * own_a + noise_a, b.terms * own_b + noise_b
    start = OF_NOISE * scale * scale + OF_LOSSES * common
    x, y = clock_a / start, clock_b / start
    spread = (1.0 + x) * (1.0 + y) - (alike * alike) * x * y
    prior = a.terms**-2.0 + b.terms**-2.0 - 2.0 * alike / (a.terms * b.terms)
    prior *= start / (1.0 - alike * alike)
    whole = level + 0.5 * math.log(spread)
    sampling = own_a / a.terms + own_b / b.terms
    tails = heavier(noise_a / a.terms**2, sampling + noise_b / b.terms**2, scale / a.terms, whole)
    tails += heavier(noise_b / b.terms**2, sampling + noise_a / a.terms**2, scale / b.terms, whole)
    return math.sqrt(2.0 * whole * (sampling + tails + prior))


@step
def pair_radius(a: Moments, b: Moments, scale: float, binary: bool, level: float) -> float:
    """Return from how far on a difference of two means is refuted, at a level of log evidence."""
    alike = _radius(a, b, scale, binary, level - math.log(1.0 - APART), ALIKE)
    return min(alike, _radius(a, b, scale, binary, level - math.log(APART), 0.0))


@step
def pair_evidence(a: Moments, b: Moments, scale: float, binary: bool, apart: float) -> float:
    """Return the log evidence that ``b - a`` is above ``apart``; at most what a level takes."""
    away = b.total / b.terms - a.total / a.terms - apart
    if away <= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while high < 1e6 and pair_radius(a, b, scale, binary, high) <= away:
        low, high = high, 2.0 * high
    if high == 1.0 and pair_radius(a, b, scale, binary, 0.0) > away:
        return 0.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        if pair_radius(a, b, scale, binary, middle) <= away:
            low = middle
        else:
            high = middle
    return low


@step
def mean_radius(arm: Moments, variance: float, scale: float, level: float) -> float:
    """Return from how far on a mean is refuted, on either side, at a level of log evidence."""
    if arm.terms < 0.5 * FEWEST:
        return math.inf
    noise = 2.0 * arm.releases * scale * scale
    clock, start = arm.terms * variance + noise, OF_NOISE * scale * scale + OF_LOSSES * variance
    whole = level + 0.5 * math.log1p(clock / start)
    tails = heavier(noise, arm.terms * variance, scale, whole)
    return math.sqrt(2.0 * whole * (arm.terms * variance + tails + start)) / arm.terms


pair_once = once(pair_radius)
"""``pair_radius``, from Python."""
_variance_once = once(variance_of)
_mean_once = once(mean_radius)


@kernel
def _race(
    known: Floats, scale: float, binary: bool, levels: Floats, left: NDArray[np.bool_]
) -> None:
    """Let arms leave that an arm with a smaller mean is better than; they come by their means."""
    for i in range(known.shape[0]):
        if left[i]:
            a = Moments(known[i, 0], known[i, 1], known[i, 2], known[i, 3])
            for j in range(i + 1, known.shape[0]):
                if left[j]:
                    b = Moments(known[j, 0], known[j, 1], known[j, 2], known[j, 3])
                    away = b.total / b.terms - a.total / a.terms
                    level = max(levels[i], levels[j])
                    left[j] = away <= 0.0 or away < pair_radius(a, b, scale, binary, level)


def still_racing(arms: Sequence[Moments], scale: float, binary: bool, errors: Floats) -> list[bool]:
    """Return which arms no arm with a smaller mean is better than.

    ``errors`` has the error probability of a pair by its newer arm.
    """

    def race(known: Floats, levels: Floats, left: NDArray[np.bool_]) -> None:
        _race(known, scale, binary, levels, left)

    levels = -np.log(np.minimum(2.0 * (1.0 - EARLY) * errors, 1.0))
    return by_means(race, arms, [arm.total / arm.terms for arm in arms], levels)


def mean_interval(
    arm: Moments, others: Sequence[Moments], scale: float, binary: bool, alpha: float
) -> Interval:
    """Return the means that are not refuted, at all times together, with both sides' alpha.

    An arm's losses vary at least as much as those of all arms do.
    """
    every = [one for one in (arm, *others) if one.terms >= 2.0]
    own = [(one.terms, _variance_once(one, scale, binary)) for one in every]
    common = sum(n * v for n, v in own) / max(sum(n for n, _ in own), 1.0)
    variance = max(own[0][1] if arm.terms >= 2.0 else 0.25, common)
    return around(
        arm.total / max(arm.terms, 1.0),
        _mean_once(arm, variance, scale, -math.log((1.0 - EARLY) * alpha)),
        0.0,
        1.0,
    )


def phase_radius(
    counts: Floats, arms: tuple[Moments, Moments], scale: float, binary: bool, level: float
) -> float:
    """Return from how far on an average of differences within phases is refuted.

    ``counts`` has a row for each phase in which both arms were played. Given the counts, the
    rounds of an arm are drawn without replacement from the phase, which varies no more than rounds
    that are drawn anew (Neyman). Each phase counts by how precisely it tells the difference.
    """
    n_a, n_b = counts[:, 0], counts[:, 1]
    if counts.sum() < FEWEST or min(arms[0].terms, arms[1].terms) < 2.0:
        return math.inf
    weights, start = phase_weights(counts, arms, scale, binary)
    whole = level + 0.5 * math.log1p(weights.sum() / start)
    rate = math.sqrt(2.0 * whole / weights.sum()) * weights
    more = np.zeros_like(weights)
    for n in (n_a, n_b):
        tails = rate * scale / n
        _to_tails(tails)
        more += 2.0 * (scale / n) ** 2 * (tails - 1.0)
    clock = float((weights + weights**2 * more).sum())
    return math.sqrt(2.0 * whole * (clock + start)) / float(weights.sum())


def phase_weights(
    counts: Floats, arms: tuple[Moments, Moments], scale: float, binary: bool
) -> tuple[Floats, float]:
    """Return one over the variance of each phase's difference, and what the clock starts from."""
    own = [_variance_once(arm, scale, binary) for arm in arms]
    common = sum(v * arm.terms for v, arm in zip(own, arms, strict=True))
    common /= sum(arm.terms for arm in arms)
    n_a, n_b = counts[:, 0], counts[:, 1]
    noise = 2.0 * scale**2 * (n_a**-2.0 + n_b**-2.0)
    weights: Floats = 1.0 / (max(own[0], common) / n_a + max(own[1], common) / n_b + noise)
    return weights, float(weights[0]) / 4.0


@kernel
def _to_tails(steep: Floats) -> None:
    """Put ``tails_at`` in place of each rate."""
    for i in range(steep.size):
        steep[i] = tails_at(steep[i])


def one_sided(error: float) -> float:
    """Return the level for an error probability on each side: both sides share one mixture."""
    return -math.log(min(2.0 * (1.0 - EARLY) * error, 1.0))

"""What the released sums of a finished log say when they are looked at once, at a fixed time.

A *statistic* is a weighted sum of arms' means: one arm's mean, or the difference of two. It has a
value, a variance from sampling, and noise that was added on purpose: Laplace noise of known scales.
Whatever is asked of it is asked of these three alone.

- The *normal* interval takes sampling errors as normal and the noise as it is. It is wider where
  few people have skewed outcomes.
- The *proved* one holds for any outcomes in the range and any number of people.
- The *exact* one is for outcomes that are 0 or 1.

Outcomes are in [0, 1] here. ``docs/theory/answers.md`` has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.inference import ANY_MEAN, HALVINGS, Interval, around

Floats = NDArray[np.float64]

FEWEST = 20
"""With fewer people in an arm the normal approximation is not used."""
SURELY = 15.0
"""Where the size of an arm has noise: nor with fewer than so many scales of it."""
MOST_SKEW = 4.0
"""A statistic's skewness counts as at most this, which is far beyond what the expansion is for."""
SPARE, BEYOND = 1e-13, 32.0
"""What is left out of a distribution, and how many scales of Laplace noise that is."""
OF_VARIANCE, OF_MEANS = 0.15, 0.03
"""Parts of the error probability of a proved interval: for the variance, and for the means that the
variance is taken around."""
RATES, TURNS = 240, 6
"""Rates that Chernoff's bound is minimised over; how often the variance is bounded again."""
STEEPEST = 30.0
"""The highest of these rates, where only sums were released and noise is small."""


class Arm(NamedTuple):
    """What was released of one arm, with outcomes in [0, 1]."""

    size: float
    """People, or rows: public."""
    total: float
    """Sum of outcomes, with noise."""
    square: float
    """Sum of squares around 1/2, with noise of the same scale."""
    scale: float
    """Scale of the Laplace noise."""
    releases: float = 1.0
    """How many times noise was added: an arm's cells are released one by one."""
    present: bool = False
    """Whether who is in the log is hidden: ``size`` has noise, and all three follow from the sums
    of ``bandanna.privacy.presence``."""

    @property
    def mean(self) -> float:
        """The released mean."""
        return self.total / self.size

    @property
    def variance(self) -> float:
        """An estimate of how much outcomes vary between people; noise may take it below 0."""
        spread = self.square / self.size - (self.mean - 0.5) ** 2
        return spread * self.size / max(self.size - 1.0, 1.0)

    @property
    def blur(self) -> float:
        """The standard deviation of the noise in ``variance``."""
        tilt = min(abs(2.0 * self.mean - 1.0), 1.0)
        spread = 1.0 + tilt**2
        if self.present:
            mean = min(max(self.mean, 0.0), 1.0)
            spread = mean**4 + (mean * (1.0 - mean)) ** 2 + (1.0 - mean) ** 4
        return math.sqrt(2.0 * self.releases * spread) * self.scale / self.size

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in ``mean``."""
        moved = math.sqrt(2.0 * self.releases * sum(move**2 for move in self.moves))
        return moved * self.scale / self.size

    @property
    def deviation(self) -> float:
        """The standard deviation of ``mean``, where the size is exact."""
        spread = min(max(self.variance, 1e-9), 0.25)
        return math.sqrt(spread / self.size + 2.0 * self.releases * (self.scale / self.size) ** 2)

    @property
    def third(self) -> float:
        """The least third moment around the mean that outcomes in [0, 1] can have, with a sign.

        It follows from mean and variance: where nearly all outcomes are 0, a few are large.
        """
        spread = math.sqrt(min(max(self.variance, 0.0) + self.blur, 0.25))
        if spread <= 0.0:
            return 0.0
        mean, blur = min(max(self.mean, 0.0), 1.0), self.noise
        least = [
            spread / away - away / spread
            for away in (max(mean + blur, 1e-300), max(1.0 - mean + blur, 1e-300))
        ]
        return (max(least[0], 0.0) - max(least[1], 0.0)) * spread**3

    @property
    def moves(self) -> tuple[float, ...]:
        """How far the noises of one release move the mean, each in parts of ``scale / size``.

        With a noisy size: by how much a sum of ``y - mean`` moves, to first order in the noise.
        """
        if not self.present:
            return (1.0,)
        mean = min(max(self.mean, 0.0), 1.0)
        return mean, abs(0.5 - mean), 1.0 - mean

    @property
    def fewest(self) -> float:
        """Below how many people the normal approximation is not used."""
        if not self.present:
            return FEWEST
        return max(FEWEST, SURELY * self.scale * math.sqrt(self.releases))


def together(arms: Sequence[Arm]) -> Arm:
    """Return arms as one, with the variance within them and not between."""
    count = sum(arm.size for arm in arms)
    total = sum(arm.total for arm in arms)
    within = sum(arm.size * arm.variance for arm in arms) / count * max(count - 1.0, 1.0) / count
    square = count * (within + (total / count - 0.5) ** 2)
    releases = sum(arm.releases for arm in arms)
    return Arm(count, total, square, arms[0].scale, releases, arms[0].present)


class Term(NamedTuple):
    """An arm and what its mean is multiplied by."""

    weight: float
    arm: Arm


class Statistic(NamedTuple):
    """A weighted sum of means: its released value, its variance from sampling, and its noise."""

    value: float
    variance: float
    """Of sampling, estimated with one standard deviation of its noise on top."""
    noises: tuple[tuple[float, float], ...]
    """Scales of the Laplace noises in it, and how often each was added."""
    freedom: float
    """Degrees of freedom of the variance (Welch)."""
    own: float
    """The same from arms' own variances alone, which may have missed rare outcomes."""
    third: float
    """The least third moment that arms' outcomes can have, from their means and variances."""

    def radius(self, alpha: float) -> float:
        """Return how far from the truth the value is with probability alpha at most.

        Where outcomes are skewed the mean and its estimated variance are small together: to first
        order each tail is as large as it should be if the radius is wider by so much (Hall 1992).
        """
        from scipy.special import ndtri  # loaded when first used

        noise = sum(2.0 * times * b**2 for b, times in self.noises)
        own, whole = self.own + noise, self.variance + noise
        size = radius(self.variance, self.noises, self.freedom, alpha)
        if own <= 0.0 or self.third == 0.0:
            return size
        z = -float(ndtri(alpha / 2.0))
        skew = min(abs(self.third) / own**1.5, MOST_SKEW)
        wider = 1.0 + skew * (2.0 * z * z + 1.0) / (6.0 * z)
        return float(size * max(wider * math.sqrt(own / whole), 1.0))


def statistic(terms: Sequence[Term], others: Sequence[Arm] = ()) -> Statistic:
    """Return a weighted sum of means.

    Its variance is the larger of two estimates: from each arm's own variance, and from the one that
    all arms (with ``others``) have in common. They agree where arms are of one size; where one is
    small it may have met, by chance, none of the rare outcomes that others have.
    """
    arms = [term.arm for term in terms]
    weights = [term.weight**2 / term.arm.size for term in terms]
    own = sum(w * arm.variance for w, arm in zip(weights, arms, strict=True))
    own += math.sqrt(sum((w * arm.blur) ** 2 for w, arm in zip(weights, arms, strict=True)))
    pool = together([*arms, *others])
    common = sum(weights) * (pool.variance + pool.blur)
    most = sum(weights) / 4.0
    parts = [
        w * min(max(arm.variance + arm.blur, 1e-12), 0.25)
        for w, arm in zip(weights, arms, strict=True)
    ]
    freedom = sum(parts) ** 2 / sum(
        part**2 / max(arm.size - 1.0, 1.0) for part, arm in zip(parts, arms, strict=True)
    )
    own = min(max(own, 0.0), most)
    return Statistic(
        sum(term.weight * term.arm.mean for term in terms),
        min(max(own, common, 0.0), most),
        tuple(
            (abs(term.weight) * move * term.arm.scale / term.arm.size, term.arm.releases)
            for term in terms
            for move in term.arm.moves
        ),
        freedom,
        own,
        sum(term.weight**3 * term.arm.third / term.arm.size**2 for term in terms),
    )


def radius(
    variance: float, noises: Sequence[tuple[float, float]], freedom: float, alpha: float
) -> float:
    """Return r with ``P(|sampling error + noise| > r) = alpha``.

    The sampling error is normal, wider as Student's t where there are few people, and the noise is
    a sum of Laplace noises. The law of their sum is computed from its characteristic function.

    Examples
    --------
    >>> round(radius(1.0, [], math.inf, 0.05), 4), round(radius(0.0, [(1.0, 1)], 9.0, 0.05), 4)
    (1.96, 2.9957)
    """
    from scipy.optimize import brentq  # loaded when first used
    from scipy.special import ndtri, stdtrit

    z = -float(ndtri(alpha / 2.0))
    t = z if math.isinf(freedom) else -float(stdtrit(freedom, alpha / 2.0))
    spread, noise = variance * (t / z) ** 2, sum(2.0 * times * b**2 for b, times in noises)
    if noise <= 1e-18 * spread:
        return z * math.sqrt(spread)
    spread = max(spread, 1e-6 * noise)
    deviation, largest = math.sqrt(spread + noise), max(b for b, _ in noises)
    far = 9.0 * deviation + BEYOND * largest
    step = math.pi / far
    points = (np.arange(math.ceil(8.0 / math.sqrt(spread) / step)) + 0.5) * step
    logs = -0.5 * spread * points**2
    for b, times in noises:
        logs -= times * np.log1p((b * points) ** 2)
    weights = np.exp(logs) / points * (2.0 * step / math.pi)

    def beyond(x: float) -> float:
        return 1.0 - float(weights @ np.sin(points * x)) - alpha

    return float(brentq(beyond, 0.0, far, xtol=1e-9 * far, rtol=1e-9))


# --- proved: any outcomes, any number of people -----------------------------------------------


def _curve(z: Floats) -> Floats:
    """Return ``(e^z - 1 - z) / z^2``, which grows with z, from 1/2."""
    small = np.abs(z) < 1e-4
    safe = np.where(small, 1.0, z)
    curve: Floats = np.where(small, 0.5 + z / 6.0, (np.expm1(safe) - safe) / safe**2)
    return curve


def _rates(highest: float) -> Floats:
    rates: Floats = np.geomspace(highest * 1e-6, 0.999 * highest, RATES)
    return rates


def proved_radius(terms: Sequence[Term], alpha: float) -> float:
    """Return how far from the truth a weighted sum of means is, with probability alpha at most.

    Bennett's bound with a variance that is itself bounded from what was released: for independent
    outcomes in [0, 1], whatever else they are.
    """
    arms = [term.arm for term in terms]
    weights = np.array([term.weight**2 / term.arm.size for term in terms])
    variance = float(weights.sum()) / 4.0
    away = np.ones(len(terms))
    for _ in range(TURNS):
        for k, arm in enumerate(arms):
            own = min(variance / weights[k], 0.25) / arm.size
            level = OF_MEANS * alpha / (2.0 * len(terms))
            away[k] = min(away[k], _chernoff([Term(1.0, arm)], own, np.ones(1), level))
        variance = min(variance, _variance_bound(terms, weights, away, OF_VARIANCE * alpha))
    left = (1.0 - OF_VARIANCE - OF_MEANS) * alpha / 2.0
    ends = []
    for sign in (1.0, -1.0):  # how far an outcome can be from its mean, on the side that matters
        up = np.array([sign * term.weight > 0.0 for term in terms])
        means = np.array([arm.mean for arm in arms])
        reach = np.where(up, 1.0 - (means - away), means + away)
        ends.append(_chernoff(terms, variance, np.clip(reach, 0.0, 1.0), left))
    return max(ends)


def _chernoff(terms: Sequence[Term], variance: float, reach: Floats, level: float) -> float:
    """Return x with ``P(statistic - truth >= x) <= level``, given a bound on its variance."""
    sizes = np.array([abs(term.weight) / term.arm.size for term in terms])
    scales = sizes * np.array([term.arm.scale for term in terms])
    farthest = max(float((sizes * reach).max()), 1e-300)
    noise = float(scales.max())
    rates = _rates(1.0 / noise if noise > 0.0 else 60.0 / farthest)
    rates = rates[rates * farthest < 60.0]
    price = rates**2 * variance * _curve(rates * farthest)
    for term, scale in zip(terms, scales, strict=True):
        price -= term.arm.releases * np.log1p(-((rates * scale) ** 2))
    return float(((price - math.log(level)) / rates).min())


def _variance_bound(terms: Sequence[Term], weights: Floats, away: Floats, level: float) -> float:
    """Return what the variance of the statistic is at most, if means are no farther than ``away``.

    Chernoff's bound for the sums of squares around the true means.
    """
    arms = [term.arm for term in terms]
    counts = np.array([arm.size for arm in arms])
    means = np.array([arm.mean for arm in arms])
    tilt = np.minimum(np.abs(1.0 - 2.0 * means) + 2.0 * away, 1.0)
    span = np.minimum(0.5 + np.abs(0.5 - means) + away, 1.0) ** 2
    each = weights / counts
    spread = np.array([arm.square for arm in arms]) / counts - (means - 0.5) ** 2 + away**2
    scales = each * np.array([arm.scale for arm in arms])
    noise = float(scales.max())
    rates = _rates(1.0 / noise if noise > 0.0 else 60.0 / float((each * span).max()))
    lost = np.array([-np.expm1(-rates * a * b) / (a * b) for a, b in zip(each, span, strict=True)])
    price = rates * float((weights * spread).sum()) - math.log(level)
    for arm, scale, part in zip(arms, scales, tilt, strict=True):
        price -= arm.releases * np.log1p(-((rates * scale) ** 2))
        price -= arm.releases * np.log1p(-((rates * scale * part) ** 2))
    return max(float((price / lost.min(axis=0)).min()), 0.0)


# --- proved from sums alone --------------------------------------------------------------------


def fixed_mean_interval(arm: Arm, alpha: float) -> Interval:
    """Return the means that are not refuted by a noisy sum that is looked at once.

    Chernoff's bound with the best of many rates for each mean: valid for any number of rows,
    and about 1.4 times as wide as an interval by the normal approximation.

    Examples
    --------
    >>> low, high = fixed_mean_interval(Arm(10_000, 3000.0, 0.0, 2.0), alpha=0.05)
    >>> round(low, 3), round(high, 3)
    (0.288, 0.313)
    """
    rates = _rates_within(arm.scale)
    noise = arm.releases * np.log1p(-((rates * arm.scale) ** 2))
    level = math.log(2.0 / alpha)

    def refuted(mean: float, sign: float) -> bool:
        moment = arm.size * np.log1p(mean * np.expm1(sign * rates))
        return bool((sign * rates * arm.total - moment + noise).max() >= level)

    return Interval(
        _last(lambda mean: refuted(mean, 1.0), 0.0, 1.0),
        _last(lambda mean: refuted(mean, -1.0), 1.0, 0.0),
    )


def fixed_difference_interval(a: Arm, b: Arm, alpha: float) -> Interval:
    """Return the values of ``b - a`` that are not refuted when looked at once.

    A tenth of alpha goes into intervals for the two means, outside of which the least favourable
    pair is not looked for.
    """
    of_a, of_b = (fixed_mean_interval(arm, 0.05 * alpha) for arm in (a, b))
    estimate = min(max(b.mean - a.mean, -1.0), 1.0)
    low = _last(lambda apart: _refuted(a, b, apart, of_a, of_b, alpha), -1.0, estimate)
    high = _last(lambda apart: _refuted(b, a, apart, of_b, of_a, alpha), -1.0, -estimate)
    return Interval(low, -high)


def _refuted(a: Arm, b: Arm, apart: float, of_a: Interval, of_b: Interval, alpha: float) -> bool:
    """Whether ``b - a <= apart`` is refuted on its side of a two-sided interval."""
    low, high = max(of_a.low, of_b.low - apart), min(of_a.high, of_b.high - apart)
    if low > high:
        return b.mean - a.mean > apart
    level = math.log(2.0 / (0.9 * alpha))
    return fixed_evidence(a, b, apart, Interval(low, high)) >= level


def fixed_evidence(a: Arm, b: Arm, apart: float, means: Interval = ANY_MEAN) -> float:
    """Return the log evidence against ``b - a <= apart`` by noisy sums that are looked at once.

    Chernoff's bound for the difference of the two released means, with the best rate for each
    ``apart``; for each rate the least favourable mean of a has a closed form.
    """
    rates = _rates_within(a.scale) * min(a.size, b.size)
    up, down = np.expm1(rates / b.size), np.expm1(-rates / a.size)
    noise = b.releases * np.log1p(-((b.scale * rates / b.size) ** 2))
    noise += a.releases * np.log1p(-((a.scale * rates / a.size) ** 2))
    worst = -(a.size * down * (1.0 + apart * up) + b.size * up) / (a.size + b.size)
    ends = max(means.low, -apart), min(means.high, 1.0 - apart)
    mean = np.clip(worst / (up * down), *ends)
    evidence = rates * (b.mean - a.mean) + noise
    evidence -= b.size * np.log1p((mean + apart) * up) + a.size * np.log1p(mean * down)
    return float(evidence.max())


def _rates_within(scale: float) -> Floats:
    return _rates(STEEPEST if scale == 0.0 else min(STEEPEST, 1.0 / scale))


def _last(refuted: Callable[[float], bool], start: float, stop: float) -> float:
    """Return the last value from ``start`` towards ``stop`` that is still refuted, by halving."""
    if not refuted(start):
        return start
    for _ in range(HALVINGS):
        middle = 0.5 * (start + stop)
        if refuted(middle):
            start = middle
        else:
            stop = middle
    return start


# --- exact: outcomes that are 0 or 1 ----------------------------------------------------------


@lru_cache(maxsize=1024)
def exact_interval(arm: Arm, alpha: float) -> Interval:
    """Return the rates that are not refuted by a noisy count, each side with half of alpha.

    The chance of a count is the binomial one, convolved with that of the noise (Awan and
    Slavkovic 2018): the interval of Clopper and Pearson, for a noisy count.

    Examples
    --------
    >>> low, high = exact_interval(Arm(1000, 50.0, 0.0, 1.0), 0.05)
    >>> round(low, 4), round(high, 4)
    (0.0375, 0.0651)
    """
    from scipy.optimize import brentq  # loaded when first used

    def evidence(rate: float, above: bool) -> float:
        return math.log(max(_tail(arm, rate, above=above), 1e-300) / (alpha / 2.0))

    ends = []
    for stop, above in ((0.0, True), (1.0, False)):
        if evidence(stop, above) >= 0.0:
            ends.append(stop)  # even the end of all rates is not refuted
            continue
        inside = min(max(arm.mean, 0.0), 1.0)
        if evidence(inside, above) <= 0.0:
            ends.append(inside)  # every rate is: noise took the count far out
            continue
        ends.append(float(brentq(evidence, inside, stop, args=(above,), xtol=1e-9)))
    return Interval(min(ends), max(ends))


def _tail(arm: Arm, rate: float, *, above: bool) -> float:
    """Return the chance of a noisy count at least, or at most, as large as the one released."""
    from scipy.stats import binom  # loaded when first used

    count = int(arm.size)
    spread = 9.0 * math.sqrt(count * rate * (1.0 - rate)) + 40.0
    low, high = max(0, int(count * rate - spread)), min(count, int(count * rate + spread) + 1)
    hits = np.arange(low, high + 1)
    away = (arm.total - hits) if above else (hits - arm.total)
    chances = binom.pmf(hits, count, rate)
    return float(chances @ noise_tail(away.astype(float), arm.scale, int(arm.releases)))


def noise_tail(x: Floats, scale: float, times: int) -> Floats:
    """Return the chance that a sum of so many Laplace noises is at least x.

    Examples
    --------
    >>> noise_tail(np.array([0.0, 2.0]), 1.0, 3).round(4).tolist()
    [0.5, 0.1861]
    """
    far = np.abs(x) / scale
    if times == 1:
        tail = 0.5 * np.exp(-far)
    else:  # a polynomial times an exponential, by the gamma laws that the sum is a difference of
        from scipy.special import gammaincc, gammaln

        k = np.arange(times)
        logs = gammaln(times + k) - gammaln(times) - gammaln(k + 1.0) - (times + k) * math.log(2.0)
        tail = (np.exp(logs)[:, None] * gammaincc(times - k[:, None], far[None, :])).sum(axis=0)
    chance: Floats = np.where(x >= 0.0, tail, 1.0 - tail)
    return chance


# --- what a finished log says -----------------------------------------------------------------

Kind = Literal["normal", "proved", "exact"]

HOW: dict[Kind, str] = {
    "normal": "by the normal approximation, with the noise as it is",
    "proved": "proved for any outcomes in the range and any number of them",
    "exact": "exact for each arm, as outcomes are 0 or 1",
}


class OneLook(NamedTuple):
    """Intervals of a finished log: of arms' means and of their differences, of one kind."""

    arms: tuple[Arm, ...]
    kind: Kind
    binary: bool = False
    """Whether outcomes are 0 or 1, and no squares were released."""

    def mean(self, arm: int, alpha: float) -> Interval:
        """Return the interval of an arm's mean."""
        one = self.arms[arm]
        if one.size <= 0.0:
            return Interval(0.0, 1.0)
        if self.kind == "exact":
            return exact_interval(one, alpha)
        if self.binary:
            return fixed_mean_interval(one, alpha)
        others = [*self.arms[:arm], *self.arms[arm + 1 :]]
        return self._around([Term(1.0, one)], alpha, 0.0, others)

    def apart(self, a: int, b: int) -> float:
        """Return the estimate of b's mean minus a's."""
        if min(self.arms[a].size, self.arms[b].size) <= 0.0:
            return 0.0
        return min(max(self.arms[b].mean - self.arms[a].mean, -1.0), 1.0)

    def difference(self, a: int, b: int, alpha: float) -> Interval:
        """Return the interval of b's mean minus a's."""
        first, second = self.arms[a], self.arms[b]
        if min(first.size, second.size) <= 0.0:
            return Interval(-1.0, 1.0)
        if self.kind == "exact":
            return _squared_and_added(first, second, alpha)
        if self.binary:
            return fixed_difference_interval(first, second, alpha)
        return self._around([Term(-1.0, first), Term(1.0, second)], alpha, -1.0)

    def between(self, a: int, b: int, alpha: float) -> tuple[float, Interval]:
        """Return the estimate of b's mean minus a's, no further than its interval, and that."""
        interval = self.difference(a, b, alpha)
        return min(max(self.apart(a, b), interval.low), interval.high), interval

    def _around(
        self, terms: Sequence[Term], alpha: float, lowest: float, others: Sequence[Arm] = ()
    ) -> Interval:
        """Return the interval of a sum of means, which is from ``lowest`` to 1."""
        least = [arm.fewest if arm.present else 1e-9 for arm in others]
        some = [arm for arm, size in zip(others, least, strict=True) if arm.size >= size]
        if self.kind == "normal" and any(term.arm.size < term.arm.fewest for term in terms):
            return Interval(lowest, 1.0)  # too few for the approximation: nothing is said
        sum_of_means = statistic(terms, some)
        size = proved_radius(terms, alpha) if self.kind == "proved" else sum_of_means.radius(alpha)
        return around(sum_of_means.value, size, lowest, 1.0)


def _squared_and_added(a: Arm, b: Arm, alpha: float) -> Interval:
    """Return an interval for b's rate minus a's from their exact ones (Newcombe 1998, method 10).

    How far each rate may be on the side that matters is squared and added.
    """
    of_a, of_b = exact_interval(a, alpha), exact_interval(b, alpha)
    p, q = (min(max(arm.mean, 0.0), 1.0) for arm in (a, b))
    p, q = min(max(p, of_a.low), of_a.high), min(max(q, of_b.low), of_b.high)
    return Interval(
        q - p - math.hypot(q - of_b.low, of_a.high - p),
        q - p + math.hypot(of_b.high - q, p - of_a.low),
    )

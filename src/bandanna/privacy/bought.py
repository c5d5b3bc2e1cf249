"""What is bought with shares of epsilon before sums are released: a range, and a slope.

Every share is a fixed part of epsilon. All of it is found from people's values by the two
mechanisms of ``bandanna.privacy.log_release``; ``docs/theory/answers.md`` says why they cost what
they cost. The constants were chosen on normal, exponential, lognormal and uniform outcomes, some in
bounds ten or a hundred times too wide, and on outcomes of which nine in ten are 0. ``WORTH`` and
one share were also compared on the trial of ``benchmarks.sharp``: its rows with a range or a slope
that was found are not a judgement on data kept aside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import UNITS, LossRange
from bandanna._core.scale import Scale
from bandanna._core.types import InputError, at_most, plain
from bandanna.counted import Integers
from bandanna.privacy.composition import float_below
from bandanna.privacy.log_release import SideRelease

Floats = NDArray[np.float64]

ZEROS, RANGE, CUT, SLOPE, BACK = 0.02, 0.13, 0.04, 0.05, 0.03
"""Shares of epsilon: for how many are not 0, the range, whom it cuts, the slope, and the slope
back, which says what an adjustment gains."""

WORTH, BEND = 40.0, 15.0
"""How many scales of the noise the whole width of the bounds is worth, against people cut; and how
much more the first parts of it are worth."""

ENOUGH, LEAST = 1.5, 4.0
"""People who are not 0, over what the width is worth; and the least worth that tells anything."""

STEPS, TENTHS, DECADES = 40, 8, 3
"""Where ends of a range may be: so many equal steps, and so many to a tenfold, so often."""

FLATTEST, STEEPEST, SLOPES = -0.5, 1.5, 41
"""Slopes that are tried: so many, from one to the other."""


WRONG_CUT = math.log(10.0)
"""Scales of Laplace noise that are exceeded, on one side, with probability 5%. Whole noise is not
below minus their next whole number with more than that: half of a tenth, at most."""

TELLING = 5.0
"""How many scales of the noise there must be pairs of people, to say what an adjustment gained."""


PAIRING = 20_261_118
"""People are put into pairs at random, the same way whatever their outcomes are."""


class Sides(NamedTuple):
    """How many values are below, and how many above, each of some points. Private."""

    below: Integers
    above: Integers


def sides_of(values: Floats, points: Floats) -> Sides:
    """Count values on either side of points; one value more or less moves each count by 1."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, points, side="left")
    above = ordered.size - np.searchsorted(ordered, points, side="right")
    return Sides(below.astype(np.int64), above.astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """What a range and a slope are found from. Private, but for arms."""

    units: Integers
    """Outcomes in grid units of their range."""
    arms: Integers
    loss_range: LossRange
    before: Floats | None = None
    """What was known of each before."""

    @property
    def size(self) -> int:
        """How many there are: public."""
        return int(self.units.size)

    def values(self, slope: float = 0.0) -> Floats:
        """Return outcomes, with a slope times what was known before subtracted."""
        low, high = self.loss_range
        outcomes: Floats = low + (high - low) * (self.units / UNITS)
        return outcomes if self.before is None else outcomes - slope * self._before

    @property
    def _before(self) -> Floats:
        assert self.before is not None, "nothing is known of before"
        return np.clip(self.before, *self.loss_range)

    def sides(self, points: Floats, slope: float = 0.0) -> Sides:
        """Count outcomes on either side of points."""
        return sides_of(self.values(slope), points)

    def pair_slopes(self, points: Floats, *, backwards: bool = False) -> Sides:
        """Count, on either side of points, the slopes of lines through pairs of people.

        Everyone is in one pair, of two who met the same arm where that is possible.
        ``backwards`` takes the slopes of what was known before on the outcome.
        """
        order = np.random.default_rng(PAIRING).permutation(self.size)
        order = order[np.argsort(self.arms[order], kind="stable")]
        first, second = order[0 : order.size - 1 : 2], order[1::2]
        outcome, before = self.values(), self._before
        up, along = outcome[second] - outcome[first], before[second] - before[first]
        if backwards:
            up, along = along, up
        there = along != 0.0
        return sides_of(up[there] / along[there], points)


@dataclass(frozen=True)
class Bought:
    """What was bought, and what for."""

    scale: Scale
    parts: tuple[SideRelease, ...] = ()
    bounds: LossRange | None = None
    """What a range was chosen within."""
    cut: float | None = None
    """Share of the people whose outcomes were cut: a private estimate."""
    cut_noise: float = 0.0
    """The scale of its noise."""
    size: int = 0
    """Of how many people it is a share."""
    adjusted: str = ""
    """The column that was subtracted."""
    related: float | None = None
    """The squared correlation with it: a private estimate."""
    kept: bool = False
    """Whether the bounds were kept, because too few people are not 0."""

    def left(self, epsilon: float) -> float:
        """Return what is left of epsilon for the sums."""
        spent = sum((Fraction(part.epsilon) for part in self.parts), Fraction(0))
        return float_below(Fraction(epsilon) - spent)


def buy(
    sample: Sample,
    epsilon: float,
    *,
    auto: bool,
    adjust: str | None,
    slope: float | None,
    adjusted_range: LossRange | None,
) -> Bought:
    """Find what is not given."""
    bounds, parts, related = sample.loss_range, [], None
    if adjust is not None:
        there = SideRelease("slope", "choice", SLOPE * epsilon)
        back = SideRelease("slope back", "choice", BACK * epsilon)
        if slope is None:
            slope = _middle(sample.pair_slopes(_slopes()), there)
            parts.append(there)
        returned = _middle(sample.pair_slopes(_slopes(), backwards=True), back)
        parts.append(back)
        if sample.size > 2.0 * TELLING * back.scale:
            related = min(max(slope * returned, 0.0), 0.99)
    slope = 0.0 if adjust is None or slope is None else slope
    if adjust is not None:
        bounds = adjusted_bounds(bounds, slope)
    if adjusted_range is not None:
        low, high = adjusted_range
        return Bought(Scale(low, high, slope), tuple(parts), adjusted=adjust or "", related=related)
    if not auto and adjust is None:
        return Bought(Scale(*bounds, slope), tuple(parts))
    return _with_range(sample, epsilon, bounds, slope, parts, adjust or "", related)


def shares_of_whole(epsilon: float, *, adjust: bool, slope: float | None) -> float:
    """Return of which epsilon the shares for a range, and what goes with it, come to a whole one.

    Examples
    --------
    >>> round(shares_of_whole(1.0, adjust=False, slope=None), 6)
    5.263158
    """
    return epsilon * (1.0 - 1e-12) / sum(_shares(adjust=adjust, slope=slope).values())


def planned_parts(epsilon: float, *, adjust: bool, slope: float | None) -> tuple[SideRelease, ...]:
    """Return all that may be released for a range, in the order of the alphabet."""
    kinds = {"range": "choice", "slope": "choice", "slope back": "choice"}
    shares = _shares(adjust=adjust, slope=slope)
    return tuple(
        SideRelease(what, kinds.get(what, "count"), shares[what] * epsilon)
        for what in sorted(shares)
    )


def _shares(*, adjust: bool, slope: float | None) -> dict[str, float]:
    shares = {"people who are not 0": ZEROS, "range": RANGE, "people who are cut": CUT}
    if adjust:
        shares["slope back"] = BACK
    return shares | ({"slope": SLOPE} if adjust and slope is None else {})


def _with_range(
    sample: Sample,
    epsilon: float,
    bounds: LossRange,
    slope: float,
    parts: list[SideRelease],
    adjust: str,
    related: float | None,
) -> Bought:
    zeros = SideRelease("people who are not 0", "count", ZEROS * epsilon)
    chosen = SideRelease("range", "choice", RANGE * epsilon)
    counted = SideRelease("people who are cut", "count", CUT * epsilon)
    at = np.array([min(max(0.0, bounds[0]), bounds[1])])
    some = zeros.count(int(sum(side[0] for side in sample.sides(at, slope))))
    worth = min(WORTH * chosen.scale, max(some - 2.0 * zeros.scale, 0.0) / ENOUGH)
    ends, kept = bounds, worth < LEAST * chosen.scale
    if not kept:
        points = candidate_ends(bounds)
        ends = _range(sample.sides(points, slope), points, bounds, worth, chosen)
    sides = sample.sides(np.array(ends), slope)
    cut = counted.count(int(sides.below[0] + sides.above[1])) if not kept else 0
    bought = (zeros, counted, chosen) if not kept else (zeros,)
    return Bought(
        Scale(*ends, slope),
        (*parts, *bought),
        None if kept and not adjust else sample.loss_range,
        None if kept else min(max(cut / sample.size, 0.0), 1.0),
        counted.scale / sample.size,
        sample.size,
        adjust,
        related,
        kept,
    )


def cut_words(cut: float, noise: float, size: int) -> tuple[str, str]:
    """Return how many in a hundred of so many people were cut, and 95% sure how many at most.

    Examples
    --------
    >>> cut_words(0.01, 0.004, 1000), cut_words(1.0, 0.004, 1000)
    (('1', '2'), ('100', '100'))
    """
    most = 100.0 * (cut + math.ceil(WRONG_CUT * noise * size) / size)
    return plain(float(f"{100.0 * cut:.2g}")), at_most(min(most, 100.0))


def candidate_ends(bounds: LossRange) -> Floats:
    """Return where an end of a range may be: equal steps, and finer ones towards 0."""
    low, high = bounds
    origin = min(max(0.0, low), high)
    ends = {low, origin, high, *np.linspace(low, high, STEPS + 1).tolist()}
    for end in (low, high):
        steps = 10.0 ** (-np.arange(TENTHS * DECADES + 1) / TENTHS)
        ends |= set((origin + (end - origin) * steps).tolist())
    rounded = {low, high, *(float(f"{point:.2g}") for point in ends)}
    return np.array(sorted(point for point in rounded if low <= point <= high))


def _range(
    sides: Sides, points: Floats, bounds: LossRange, worth: float, chosen: SideRelease
) -> LossRange:
    """Choose the range: a person who is cut counts against it, and so does its width."""
    first, second = np.triu_indices(points.size, 1)
    width = (points[second] - points[first]) / (bounds[1] - bounds[0])
    price = worth * np.log1p(BEND * width) / math.log1p(BEND)
    scores = -(sides.below[first] + sides.above[second]) - np.rint(price).astype(np.int64)
    best = chosen.choose(scores)
    return float(points[first[best]]), float(points[second[best]])


def adjusted_bounds(bounds: LossRange, slope: float) -> LossRange:
    """Return between what an outcome lies once a slope times what was known is subtracted."""
    low, high = bounds
    far = sorted((slope * low, slope * high))
    return float(f"{low - far[1]:.10g}"), float(f"{high - far[0]:.10g}")


def _slopes() -> Floats:
    return np.linspace(FLATTEST, STEEPEST, SLOPES)


def _middle(sides: Sides, part: SideRelease) -> float:
    """Choose the slope with as many pairs on one side as on the other (Theil and Sen)."""
    scores = -(np.abs(sides.below - sides.above) // 2)
    return float(_slopes()[part.choose(scores)])


def check_asked(
    *,
    auto: bool,
    bounds: LossRange | None,
    adjust: str | None,
    slope: float | None,
    adjusted_range: LossRange | None,
    binary: bool,
) -> None:
    """Refuse what does not go together."""
    if auto or bounds is not None:
        checks.range_within("auto" if auto else (math.nan, math.nan), bounds)
    if slope is not None:
        checks.slope(slope)
    checks.check_adjusted(adjust, slope, adjusted_range, binary=binary)
    if binary and auto:
        raise InputError("an outcome that is 0 or 1 has a range already, and is not adjusted.")

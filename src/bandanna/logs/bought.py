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

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import LossRange
from bandanna._core.scale import Scale
from bandanna._core.types import InputError
from bandanna.logs.rows import Rows, Sides
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


TELLING = 5.0
"""How many scales of the noise there must be pairs of people, to say what an adjustment gained."""


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
    rows: Rows,
    epsilon: float,
    *,
    auto: bool,
    adjust: str | None,
    slope: float | None,
    adjusted_range: LossRange | None,
) -> Bought:
    """Find what is not given."""
    bounds, parts, related = rows.log.loss_range, [], None
    if adjust is not None:
        there = SideRelease("slope", "choice", SLOPE * epsilon)
        back = SideRelease("slope back", "choice", BACK * epsilon)
        if slope is None:
            slope = _middle(rows.pair_slopes(_slopes()), there)
            parts.append(there)
        returned = _middle(rows.pair_slopes(_slopes(), backwards=True), back)
        parts.append(back)
        if rows.log.size > 2.0 * TELLING * back.scale:
            related = min(max(slope * returned, 0.0), 0.99)
    slope = 0.0 if adjust is None or slope is None else slope
    if adjust is not None:
        bounds = adjusted_bounds(bounds, slope)
    if adjusted_range is not None:
        low, high = adjusted_range
        return Bought(Scale(low, high, slope), tuple(parts), adjusted=adjust or "", related=related)
    if not auto and adjust is None:
        return Bought(Scale(*bounds, slope), tuple(parts))
    return _with_range(rows, epsilon, bounds, slope, parts, adjust or "", related)


def _with_range(
    rows: Rows,
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
    some = zeros.count(int(sum(side[0] for side in rows.sides(at, slope))))
    worth = min(WORTH * chosen.scale, max(some - 2.0 * zeros.scale, 0.0) / ENOUGH)
    ends, kept = bounds, worth < LEAST * chosen.scale
    if not kept:
        points = candidate_ends(bounds)
        ends = _range(rows.sides(points, slope), points, bounds, worth, chosen)
    sides = rows.sides(np.array(ends), slope)
    cut = counted.count(int(sides.below[0] + sides.above[1])) if not kept else 0
    bought = (zeros, counted, chosen) if not kept else (zeros,)
    return Bought(
        Scale(*ends, slope),
        (*parts, *bought),
        None if kept and not adjust else rows.log.loss_range,
        None if kept else min(max(cut / rows.log.size, 0.0), 1.0),
        counted.scale / rows.log.size,
        adjust,
        related,
        kept,
    )


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
    if auto and bounds is None:
        raise InputError(
            "a range that is found privately needs bounds that surely hold all outcomes, known "
            "without looking at them: bounds=(low, high) or --bounds LOW,HIGH."
        )
    if not auto and bounds is not None:
        raise InputError('bounds are for a range that is found: loss_range="auto", --range auto.')
    if slope is not None:
        checks.slope(slope)
    checks.check_adjusted(adjust, slope, adjusted_range, binary=binary)
    if binary and auto:
        raise InputError("an outcome that is 0 or 1 has a range already, and is not adjusted.")

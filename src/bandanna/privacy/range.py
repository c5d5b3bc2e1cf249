"""A range for losses, bought from people's own values with a part of the privacy budget.

An end of the range is chosen by OpenDP's private quantile. A candidate point's score is how far
``(1 - alpha)`` times the values below it is from ``alpha`` times those above: one value put in or
taken out moves every score by at most ``max(alpha, 1 - alpha)``, and one replaced by twice that.
The point with the best score after noise of some scale is released, which costs twice what a score
moves over the scale. Both ends have the same scale, as ``alpha`` and ``1 - alpha`` move scores
alike, and their costs add up. The certificate of a policy with a bought range says what it cost,
which is derived anew from scale and tail (``check_bought``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from bandanna._core import checks
from bandanna._core.checks import MAX_EPSILON, MIN_EPSILON
from bandanna._core.grid import LossRange, check_range
from bandanna._core.private_inputs import private_inputs
from bandanna._core.types import JSON, Guarantee, InaccurateWarning, InputError, plain
from bandanna.privacy.composition import float_above
from bandanna.privacy.mechanism import Finding, float_of, is_range
from bandanna.privacy.parts import added_up
from bandanna.privacy.statements import range_assumed

if TYPE_CHECKING:
    from opendp.mod import Measurement


RANGE_ENTRIES = (
    *("range_epsilon", "range_scale", "range_tail", "range_bound_low", "range_bound_high"),
    *("range_assumptions", "epsilon_with_range"),
)
"""Entries of a certificate whose range was bought; others have none of them."""

PARTS = 10_000
"""Quantiles are counted in these."""

REPLACED = 2
"""Distance of two data sets, by values taken out or put in, that differ in one person's value."""


def cost_of_range(tail: int, scale: float) -> Fraction:
    """Return what both ends cost together, for a tail in ten-thousandths and a scale.

    Examples
    --------
    >>> float(cost_of_range(100, 16.0))
    0.495
    """
    moved = REPLACED * Fraction(PARTS - tail, PARTS)
    return 2 * 2 * moved / Fraction(scale)


def range_assumptions(low: float, high: float) -> list[str]:
    """Return what the promise about a range rests on."""
    return [
        f"the bounds, {low} to {high}, were known without looking at the values",
        "each person has one value behind the range",
    ]


def impossible_range(data: JSON) -> Iterator[Finding]:
    """Numbers that no bought range has."""
    for key in ("range_epsilon", "range_scale", "epsilon_with_range"):
        if type(data[key]) not in (int, float) or not 0.0 < float_of(data[key]) < float("inf"):
            yield Finding(key, False, "must be a number above 0")
    if not MIN_EPSILON <= float_of(data["range_epsilon"]) <= MAX_EPSILON:
        yield Finding("range_epsilon", False, f"must be from {MIN_EPSILON:g} to {MAX_EPSILON:g}")
    if type(data["range_tail"]) is not int or not 1 <= data["range_tail"] <= PARTS // 4:
        yield Finding("range_tail", False, f"must be a whole number from 1 to {PARTS // 4}")
    if not is_range([data["range_bound_low"], data["range_bound_high"]]):
        yield Finding("range_bound_low", False, "must be numbers, the smaller one first")


def check_bought(data: JSON) -> Iterator[Finding]:
    """Prove what the range cost, and what it and the policy cost someone who is in both."""
    own, scale, tail = data["range_epsilon"], data["range_scale"], data["range_tail"]
    cost = cost_of_range(tail, scale)
    yield Finding(
        "range_epsilon",
        cost <= Fraction(own),
        f"two quantiles with noise of scale {scale:g} cost {float(cost):.6g} when one value is "
        f"replaced, in exact fractions",
    )
    low, high = data["range_bound_low"], data["range_bound_high"]
    inside = low <= data["loss_low"] and data["loss_high"] <= high
    yield Finding("range_bound_low", inside, f"the range is one within {low} to {high}")
    stated = data["range_assumptions"] == range_assumptions(low, high)
    yield Finding("range_assumptions", stated, "both are stated")
    both = added_up([own, data["epsilon"]])
    same = data["epsilon_with_range"] == both
    yield Finding("epsilon_with_range", same, f"range and policy cost {both:g} together")


POINTS, FINEST = 1000, 1e-6
"""How many points, and how near to 0 the first of them is, as a share of the bounds."""

UNSURE, COARSE = 0.05, 0.1
"""How often an end may be farther off than said, and from which share of the values that is said
in a warning."""


@dataclass(frozen=True)
class PrivateRange:
    """A range that holds most of some values, and what releasing it promises."""

    low: float
    high: float
    guarantee: Guarantee
    bounds: LossRange
    tail: int
    """What is meant to be left out at either end, in ten-thousandths of the values."""
    scale: float
    """Scale of the noise on the candidates' scores."""
    off_by: int = 0
    """By how many values an end may be off, at most; with probability 95% for both ends."""

    @property
    def loss_range(self) -> LossRange:
        """The pair that policies take; give them ``clip=True`` as well."""
        return self.low, self.high

    def entries(self, epsilon: float) -> JSON:
        """Return its entries in the certificate of a policy with an epsilon."""
        low, high = self.bounds
        own = self.guarantee.epsilon
        return {
            "range_epsilon": own,
            "range_scale": self.scale,
            "range_tail": self.tail,
            "range_bound_low": low,
            "range_bound_high": high,
            "range_assumptions": range_assumptions(low, high),
            "epsilon_with_range": added_up([own, epsilon]),
        }

    def together(self, policy: Guarantee) -> Guarantee:
        """Return what holds for someone whose value is here and whose feedback is there.

        Examples
        --------
        >>> import bandanna as bd
        >>> found = bd.private_range(range(10_000), epsilon=0.1, bounds=(0, 10_000))
        >>> policy = bd.PrivateBandit(2, epsilon=0.4, loss_range=found.loss_range, clip=True)
        >>> round(found.together(policy.guarantee).epsilon, 6)
        0.5
        """
        if not policy.private:
            return policy
        own, mine = self.guarantee, policy.epsilon
        both = added_up([own.epsilon, mine])
        policy = self.said_of(policy).at_epsilon(both)
        curve, group = policy.curve, policy.group

        def added(size: int, spent: float) -> float:
            return float_above(size * Fraction(own.epsilon) + Fraction(spent))

        return replace(
            policy,
            protects=f"{policy.protects}; and the same person's value behind the range, against "
            f"everyone who sees the range",
            model="central",  # computing the range needs the values
            mechanism=f"{own.mechanism}; then {policy.mechanism}",
            because=f"{own.because}; {policy.because}; both by basic composition",
            assumptions=tuple(dict.fromkeys(own.assumptions + policy.assumptions)),
            facts={},
            curve=None if curve is None else lambda delta: added(1, curve(delta)),
            # Each round of a group may be of another person.
            group=None if group is None else lambda size, delta: added(size, group(size, delta)),
        )

    def said_of(self, policy: Guarantee) -> Guarantee:
        """Return a policy's promise, whose range was bought and not fixed without looking."""
        fixed, bought = (
            range_assumed(self.low, self.high, clip=True, bought=one) for one in (False, True)
        )
        said = tuple(bought if one == fixed else one for one in policy.assumptions)
        return replace(policy, assumptions=said)


@private_inputs
def private_range(
    values: Iterable[float],
    epsilon: float,
    *,
    bounds: LossRange,
    share: float = 0.98,
) -> PrivateRange:
    """Choose a range that holds most of some people's values, privately.

    The noise of a bandit is as large as its range is wide, so a range that is ten times too wide
    costs more than any algorithm can make good. Two quantiles, each with half of ``epsilon``, are
    released by OpenDP's mechanism, which chooses among some thousand points between the bounds.

    Parameters
    ----------
    values
        One for each person, such as last year's, some thousands of them; not the losses that
        the bandit will see, unless the two are added up (``together``).
    epsilon
        What may be spent.
    bounds
        A range that surely holds all values, known without looking at them; it may be generous.
    share
        Of the values that the range is to hold, from 0.5 to below 1.

    Raises
    ------
    InputError
        If there are so few values, at this epsilon, that the ends would be noise alone. Nothing
        is released then. If an end may be off by more than a tenth of the values, an
        ``InaccurateWarning`` says so; ``off_by`` of the result always does.

    Examples
    --------
    >>> import bandanna as bd
    >>> found = bd.private_range(range(20_000), epsilon=1.0, bounds=(0, 1_000_000))
    >>> 19_000 <= found.high <= 21_000, found.guarantee.epsilon
    (True, 1.0)
    """
    checks.epsilon(epsilon)
    low, high = check_range(bounds)
    if not 0.5 <= checks.as_float(share) < 1.0:
        raise InputError(f"share must be a number from 0.5 to below 1; got {share!r}.")
    try:
        numbers = np.array(list(values), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("values must be numbers; they are not repeated here.") from None
    if numbers.ndim != 1 or np.isnan(numbers).any():
        raise InputError("values must be a list of numbers, none missing.")
    clipped = np.clip(numbers, low, high).tolist()
    points = _points(low, high)
    tail = max(1, round((1.0 - share) / 2.0 * PARTS))
    scale = _scale(points, tail, epsilon)
    off_by = _off_by(len(numbers), len(points), scale, epsilon)
    ends = sorted(_quantile(clipped, points, part, scale) for part in (tail, PARTS - tail))
    if ends[0] == ends[1]:  # noise, or one value alone; a range has two ends
        index = min(points.index(ends[0]), len(points) - 2)
        ends = points[index : index + 2]
    promise = _promise(epsilon, tail, scale, (low, high))
    return PrivateRange(ends[0], ends[1], promise, (low, high), tail, scale, off_by)


def _off_by(values: int, points: int, scale: float, epsilon: float) -> int:
    """Return by how many values an end may be off, and say so where that is much.

    A point with b of n values below it has score ``|b - alpha n|``, and is chosen with a
    probability at most ``exp(-(score - best) / scale)``: by a union bound over the points, either
    end is farther off with probability at most half of ``UNSURE``.
    """
    off_by = math.ceil(scale * math.log(points / (UNSURE / 2.0)))
    if off_by >= values:
        raise InputError(
            f"{values} values at epsilon {epsilon:g} cannot tell a range: noise may move its ends "
            f"past {off_by:,} values. Give more than {off_by:,} values, ten times as many for a "
            f"good range, or a larger epsilon."
        )
    if off_by > COARSE * values:
        message = (
            f"an end of the range may be off by {off_by:,} of the {values:,} values at epsilon "
            f"{epsilon:g}; more values or a larger epsilon make it sharper."
        )
        warnings.warn(message, InaccurateWarning, stacklevel=4)
    return off_by


def _points(low: float, high: float) -> list[float]:
    """Return where an end of the range may be: a per cent or two apart, counted from 0.

    Bounds are generous, and among points at equal distances none might be near the values.
    """
    origin = min(max(0.0, low), high)
    points = {low, origin, high}
    for end in (low, high):
        if end != origin:
            steps = np.geomspace(abs(end - origin) * FINEST, abs(end - origin), POINTS)
            points |= {float(origin + np.sign(end - origin) * step) for step in steps}
    return sorted(point for point in points if low <= point <= high)


def _scale(points: list[float], tail: int, epsilon: float) -> float:
    """Return the least noise with which OpenDP proves half of epsilon for either end."""
    from opendp.mod import binary_search_param  # loaded when first used

    scale = float(
        binary_search_param(lambda scale: _made(points, tail, scale), REPLACED, epsilon / 2.0)
    )
    while cost_of_range(tail, scale) > Fraction(epsilon):  # a rounding error of OpenDP's search
        scale = math.nextafter(scale, math.inf)
    ends = (_made(points, part, scale) for part in (tail, PARTS - tail))
    if any(end.map(REPLACED) > epsilon / 2.0 for end in ends):
        raise InputError("OpenDP could not certify the range within epsilon.")
    return scale


def _quantile(values: list[float], points: list[float], part: int, scale: float) -> float:
    """Return one quantile, in ten-thousandths."""
    return float(_made(points, part, scale)(values))


def _made(points: list[float], part: int, scale: float) -> Measurement:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_private_quantile
    from opendp.measures import max_divergence
    from opendp.metrics import symmetric_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T=float, nan=False)), symmetric_distance()
    where = points, part / PARTS, scale
    return make_private_quantile(*space, max_divergence(), *where)


def _promise(epsilon: float, tail: int, scale: float, bounds: LossRange) -> Guarantee:
    spent = float(cost_of_range(tail, scale))
    ends = f"{plain(bounds[0])} to {plain(bounds[1])}"
    return Guarantee(
        epsilon=epsilon,
        delta=0.0,
        protects="the value of any one person, against everyone who sees the range",
        model="central",
        mechanism=f"OpenDP's private quantile at {tail / PARTS:g} and {1 - tail / PARTS:g}, among "
        f"points from {ends}",
        because=f"OpenDP's privacy map proves {spent:.6g} for both together when one value is "
        f"replaced, by basic composition",
        assumptions=(
            f"the bounds, {ends}, were known without looking at the values",
            "each person has one value",
        ),
        unit="value",
    )

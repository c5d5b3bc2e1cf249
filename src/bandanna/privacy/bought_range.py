"""A range bought from people's values, in a certificate: what it costs, derived anew.

An end of the range is chosen by OpenDP's private quantile. A candidate point's score is how far
``(1 - alpha)`` times the values below it is from ``alpha`` times those above: one value put in or
taken out moves every score by at most ``max(alpha, 1 - alpha)``, and one replaced by twice that.
The point with the best score after noise of some scale is released, which costs twice what a score
moves over the scale. Both ends have the same scale, as ``alpha`` and ``1 - alpha`` move scores
alike, and their costs add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from bandanna._core.checks import MAX_EPSILON, MIN_EPSILON
from bandanna._core.grid import check_range
from bandanna._core.types import JSON, InputError
from bandanna.privacy.composition import float_above
from bandanna.privacy.mechanism import Finding, float_of

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
    ends = data["range_bound_low"], data["range_bound_high"]
    try:
        if {type(end) for end in ends} - {int, float}:
            raise InputError("the bounds must be numbers.")
        check_range(ends)
    except InputError as error:
        yield Finding("range_bound_low", False, str(error))


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
    both = float_above(Fraction(own) + Fraction(data["epsilon"]))
    same = data["epsilon_with_range"] == both
    yield Finding("epsilon_with_range", same, f"range and policy cost {both:g} together")

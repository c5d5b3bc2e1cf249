"""Composition for people: what holds for everything one person contributes, in several slots.

A person's slot in a batch is one contribution to one release, which is ``(e, d)``-private for it.
At most ``slots`` of them, each in a batch of its own, are a composition of so many mechanisms,
also when each is chosen by what the earlier ones published. The best that can be said of it, for
every epsilon, is (Kairouz, Oh, Viswanath 2017, Theorem 3.3)

    delta = 1 - (1 - d)**slots * (1 - E[(1 - exp(epsilon - L))+]),   L = (2 X - slots) e,

with X binomial of chance ``exp(e) / (1 + exp(e))``: that of randomised response, the worst
mechanism there is with parameter e. ``docs/theory/people.md`` has the argument for batches.

Everything is rounded so that what is returned holds: deltas and epsilons up, a slot's epsilon
down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.checks import MAX_EPSILON, MAX_SLOTS, MIN_EPSILON
from bandanna._core.types import InputError

ULP = 2.0**-53
FEW = 16.0
"""Rounding errors of a logarithmic binomial, in units of the last digit of its largest term."""


HARDLY = 1e-9
"""By how much, relatively, a person's epsilon may exceed what their slots cost."""


class Slot(NamedTuple):
    """What one slot may cost."""

    epsilon: float
    delta: float


def check_slots(slots: object) -> int:
    """Require a number of slots a person may have."""
    return checks.whole("per_person", slots, at_least=1, at_most=MAX_SLOTS)


def composed_delta(epsilon: float, each: Slot, slots: int) -> float:
    """Return the smallest delta at an epsilon for someone in several slots, rounded up.

    Examples
    --------
    >>> round(composed_delta(1.0, Slot(1.0, 0.0), slots=2), 6)
    0.337835
    """
    import numpy as np  # loaded when first used: a plan for rounds needs neither
    from scipy.special import gammaln

    top = slots * each.epsilon
    if top == 0.0:
        return min(1.0, -math.expm1(slots * math.log1p(-each.delta)) * (1.0 + FEW * ULP))
    below = epsilon - 4.0 * ULP * top  # delta falls in epsilon: rounding of losses is covered
    spread = 0.0
    if below < top:
        least = min(slots, max(0, math.floor((below / each.epsilon + slots) / 2.0)))
        x = np.arange(least, slots + 1, dtype=np.float64)
        logs = gammaln(slots + 1.0) - gammaln(x + 1.0) - gammaln(slots - x + 1.0)
        logs += x * each.epsilon - slots * float(np.logaddexp(0.0, each.epsilon))
        beyond = np.minimum(below - (2.0 * x - slots) * each.epsilon, 0.0)
        size = 3.0 * float(gammaln(slots + 1.0)) + 2.0 * slots * (each.epsilon + 1.0)
        spread = math.fsum(np.exp(logs) * -np.expm1(beyond)) * math.exp(FEW * ULP * size)
    if spread >= 1.0:
        return 1.0
    if each.delta == 0.0:
        return spread
    missed = slots * math.log1p(-each.delta) + math.log1p(-spread)
    return min(1.0, -math.expm1(missed) * (1.0 + FEW * ULP))


@lru_cache(maxsize=256)
def composed_epsilon(each: Slot, slots: int, delta: float) -> float:
    """Return the smallest epsilon at a delta for someone in several slots, rounded up.

    Examples
    --------
    >>> round(composed_epsilon(Slot(0.1, 0.0), slots=100, delta=1e-6), 3)
    4.775
    >>> composed_epsilon(Slot(0.5, 0.0), slots=3, delta=0.0)
    1.5
    """
    top = float_above(slots * Fraction(each.epsilon))
    if delta == 0.0 and each.delta == 0.0:
        return top
    if composed_delta(top, each, slots) > delta:
        raise InputError(f"{slots} slots of delta {each.delta:g} cost more than delta {delta:g}.")
    return _bisect(lambda epsilon: composed_delta(epsilon, each, slots) <= delta, 0.0, top)


@lru_cache(maxsize=256)
def slot_for(epsilon: float, delta: float, slots: int, *, spend_delta: bool = False) -> Slot:
    """Return what each slot may cost for a person's epsilon and delta: the inverse of the above.

    Parameters
    ----------
    epsilon, delta
        The person's.
    slots
        How many the person may have.
    spend_delta
        Whether the mechanism needs a delta of its own: half of the person's is then shared out
        among the slots. Otherwise all of it pays for composition.

    Examples
    --------
    >>> round(slot_for(1.0, 1e-6, 100).epsilon, 4), slot_for(1.0, 0.0, 4).epsilon
    (0.024, 0.25)
    """
    pure = float_below(Fraction(epsilon) / slots)
    if delta == 0.0:
        return _checked(Slot(pure, 0.0), epsilon, slots)
    own = delta / (2.0 * slots) if spend_delta else 0.0

    def good(each: float) -> bool:
        return composed_delta(epsilon, Slot(each, own), slots) <= delta

    most = min(2.0 * pure, MAX_EPSILON)
    while most < MAX_EPSILON and good(most):
        most = min(2.0 * most, MAX_EPSILON)
    found = most if good(most) else -_bisect(lambda each: good(-each), -most, -pure)
    return _checked(Slot(found, own), epsilon, slots)


def keeps(epsilon: float, delta: float, each: Slot, slots: int) -> bool:
    """Whether this many slots keep the person's epsilon and delta."""
    if delta == 0.0:
        return each.delta == 0.0 and slots * Fraction(each.epsilon) <= Fraction(epsilon)
    return composed_delta(epsilon, each, slots) <= delta


def costs(epsilon: float, delta: float, each: Slot, slots: int) -> bool:
    """Whether this many slots cost just this epsilon at this delta: they keep it and no less."""
    less = epsilon * (1.0 - HARDLY)
    return keeps(epsilon, delta, each, slots) and not keeps(less, delta, each, slots)


def slots_for(epsilon: float, delta: float, each: Slot) -> int:
    """Return how many slots of a given cost a person's epsilon and delta allow; 0 if none.

    Examples
    --------
    >>> slots_for(1.0, 1e-6, Slot(0.024, 0.0)), slots_for(1.0, 0.0, Slot(0.25, 0.0))
    (100, 4)
    """
    low, high = 0, 1
    while high <= MAX_SLOTS and keeps(epsilon, delta, each, high):
        low, high = high, 2 * high
    high = min(high, MAX_SLOTS + 1)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(epsilon, delta, each, middle) else (low, middle)
    return low


def float_above(number: Fraction) -> float:
    """Return the smallest float that is not below a fraction."""
    found = float(number)
    return found if Fraction(found) >= number else math.nextafter(found, math.inf)


def float_below(number: Fraction) -> float:
    """Return the largest float that is not above a fraction."""
    found = float(number)
    return found if Fraction(found) <= number else math.nextafter(found, -math.inf)


def _checked(each: Slot, epsilon: float, slots: int) -> Slot:
    if each.epsilon < MIN_EPSILON:
        raise InputError(
            f"epsilon {epsilon:g} for {slots} slots leaves {each.epsilon:.3g} for each, below "
            f"the smallest, {MIN_EPSILON:g}; allow fewer slots, or a larger epsilon or delta."
        )
    return each


def _bisect(good: Callable[[float], bool], low: float, high: float) -> float:
    """Return a number that is good, hardly above the smallest; ``high`` must be good."""
    if good(low):
        return low
    while True:
        middle = low + (high - low) / 2.0
        if middle in (low, high) or abs(high - low) <= 1e-13 * abs(high):
            return high
        low, high = (low, middle) if good(middle) else (middle, high)

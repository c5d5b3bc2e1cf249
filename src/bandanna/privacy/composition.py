"""Composition for people: what holds for everything one person contributes.

A person's slot in a batch is one contribution to one release, which is ``(e, d)``-private for it.
At most ``slots`` of them, each in a batch of its own, are a composition of so many mechanisms,
also when each is chosen by what the earlier ones published. The best that can be said of it, for
every epsilon, is (Kairouz, Oh, Viswanath 2017, Theorem 3.3)

    delta = 1 - (1 - d)**slots * (1 - E[(1 - exp(epsilon - L))+]),   L = (2 X - slots) e,

with X binomial of chance ``exp(e) / (1 + exp(e))``: that of randomised response, the worst
mechanism there is with parameter e. ``docs/theory/people.md`` has the argument for batches.

Everything is rounded so that what is returned holds: deltas and epsilons up, a slot's epsilon
down.

Without a rule for people, a group of ``size`` rounds may share batches or not. j of them together
in a batch cost ``j e`` with the Laplace release and ``ln(1 + j (exp(e) - 1))`` with the one-bit
release, whose probability they move from ``a / D`` to at most ``(a + b j M) / D``. Which split is
worst depends on delta, so all are tried, also those that look at what was released before.

A certificate of a person's guarantee is checked by this arithmetic and by dp-accounting's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.checks import MAX_EPSILON, MAX_SLOTS, MIN_EPSILON
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.privacy.mechanism import TOLERANCE, Finding, Mechanism, float_of, worst_loss
from bandanna.privacy.statements import PERSON_ENTRIES, composition_of, protected_person

ULP = 2.0**-53
FEW = 16.0
"""Rounding errors of a logarithmic binomial, in units of the last digit of its largest term."""


HARDLY = 1e-9
"""By how much, relatively, a person's epsilon may exceed what their slots cost."""


class SlotCost(NamedTuple):
    """What one slot may cost."""

    epsilon: float
    delta: float


def check_slots(slots: object) -> int:
    """Require a number of slots a person may have."""
    return checks.whole("per_person", slots, at_least=1, at_most=MAX_SLOTS)


def composed_delta(epsilon: float, each: SlotCost, slots: int) -> float:
    """Return the smallest delta at an epsilon for someone in several slots, rounded up.

    Examples
    --------
    >>> round(composed_delta(1.0, SlotCost(1.0, 0.0), slots=2), 6)
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
def composed_epsilon(each: SlotCost, slots: int, delta: float) -> float:
    """Return the smallest epsilon at a delta for someone in several slots, rounded up.

    Examples
    --------
    >>> round(composed_epsilon(SlotCost(0.1, 0.0), slots=100, delta=1e-6), 3)
    4.775
    >>> composed_epsilon(SlotCost(0.5, 0.0), slots=3, delta=0.0)
    1.5
    """
    top = float_above(slots * Fraction(each.epsilon))
    if delta == 0.0 and each.delta == 0.0:
        return top
    if composed_delta(top, each, slots) > delta:
        raise InputError(f"{slots} slots of delta {each.delta:g} cost more than delta {delta:g}.")
    return _bisect(lambda epsilon: composed_delta(epsilon, each, slots) <= delta, 0.0, top)


@lru_cache(maxsize=256)
def slot_for(epsilon: float, delta: float, slots: int, *, spend_delta: bool = False) -> SlotCost:
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
        return _checked(SlotCost(pure, 0.0), epsilon, slots)
    own = delta / (2.0 * slots) if spend_delta else 0.0

    def good(each: float) -> bool:
        return composed_delta(epsilon, SlotCost(each, own), slots) <= delta

    most = min(2.0 * pure, MAX_EPSILON)
    while most < MAX_EPSILON and good(most):
        most = min(2.0 * most, MAX_EPSILON)
    cost = most if good(most) else -_bisect(lambda each: good(-each), -most, -pure)
    return _checked(SlotCost(cost, own), epsilon, slots)


def keeps(epsilon: float, delta: float, each: SlotCost, slots: int) -> bool:
    """Whether this many slots keep the person's epsilon and delta."""
    if delta == 0.0:
        return each.delta == 0.0 and slots * Fraction(each.epsilon) <= Fraction(epsilon)
    return composed_delta(epsilon, each, slots) <= delta


def costs(epsilon: float, delta: float, each: SlotCost, slots: int) -> bool:
    """Whether this many slots cost just this epsilon at this delta: they keep it and no less."""
    less = epsilon * (1.0 - HARDLY)
    return keeps(epsilon, delta, each, slots) and not keeps(less, delta, each, slots)


def slots_for(epsilon: float, delta: float, each: SlotCost) -> int:
    """Return how many slots of a given cost a person's epsilon and delta allow; 0 if none.

    Examples
    --------
    >>> slots_for(1.0, 1e-6, SlotCost(0.024, 0.0)), slots_for(1.0, 0.0, SlotCost(0.25, 0.0))
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
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def float_below(number: Fraction) -> float:
    """Return the largest float that is not above a fraction."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)


def _checked(each: SlotCost, epsilon: float, slots: int) -> SlotCost:
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


LARGEST = 400
"""Rounds up to which splits are searched; beyond, the sum of epsilons is what is promised."""

STEPS = 24
"""Grid steps of the search in one round's epsilon."""


def one_bit_group(each: float, size: int, batch: int, delta: float) -> float:
    """Return an epsilon at a delta for any ``size`` rounds of a one-bit release, rounded up.

    Let ``V_m(u)`` be the largest delta that m further rounds can reach when the privacy loss so
    far exceeds epsilon by u. Randomised response is the worst mechanism with a given epsilon, so
    with ``e_j = ln(1 + j (exp(e) - 1))`` and ``p_j = exp(e_j) / (1 + exp(e_j))``

        V_0(u) = (1 - exp(-u))+,   V_m(u) = max_j p_j V_{m-j}(u + e_j) + (1 - p_j) V_{m-j}(u - e_j)

    over j from 1 to ``min(m, batch)``. ``V_m`` grows in u; on the grid, of which e is a multiple,
    every other ``e_j`` is rounded up, which only adds to the loss of a worse mechanism.

    Examples
    --------
    >>> round(one_bit_group(0.1, size=20, batch=1, delta=1e-6), 3)
    1.789
    >>> round(one_bit_group(0.1, size=20, batch=50, delta=1e-6), 3) >= 1.789
    True
    """
    top = float_above(size * Fraction(each))
    if delta == 0.0 or size > LARGEST:
        return top
    if batch == 1:
        return composed_epsilon(SlotCost(each, 0.0), size, delta)
    import numpy as np  # loaded when first used: a plan needs no arrays

    step = each / STEPS
    most = min(size, batch)
    jumps = [math.ceil(math.log1p(j * math.expm1(each)) / step - 1e-9) for j in range(1, most + 1)]
    chances = [1.0 / (1.0 + math.exp(-jump * step)) for jump in jumps]
    half = size * STEPS
    losses = step * np.arange(-2 * half, 2 * half + 1)
    values = [np.maximum(0.0, -np.expm1(-losses))]
    for rounds in range(1, size + 1):
        best = np.zeros_like(losses)
        for j in range(1, min(rounds, most) + 1):
            later, jump, chance = values[rounds - j], jumps[j - 1], chances[j - 1]
            split = np.empty_like(best)
            split[:-jump] = chance * later[jump:]
            split[-jump:] = chance  # no delta is above 1
            split[jump:] += (1.0 - chance) * later[:-jump]
            split[:jump] += (1.0 - chance) * later[0]
            np.maximum(best, split, out=best)
        values.append(best)
    # The delta at epsilon = -u, for u on the grid from -2 size e to 0.
    deltas = values[size][: 2 * half + 1] * (1.0 + 1e-9)
    good = int(np.searchsorted(deltas, delta, side="right")) - 1
    return min(top, -float(losses[good])) if good >= 0 else top


def laplace_group(each: float, size: int, batch: int, step: float, delta: float) -> float:
    """Return an epsilon at a delta for any ``size`` rounds of a Laplace release, rounded up.

    Where batches hold several rounds, all in one is the worst split. The trade-off curve of a
    Laplace law moved by j is that of a move by 1 composed j times with itself, and no mechanism
    that keeps the curve of a move by 1 for each of j people has a worse one for all j together
    (Dong, Roth, Su 2022, Theorem 2.14): so also a product of Laplace laws, each moved by its
    share. ``step`` is the distance between the losses of the discrete law, as for one round.
    """
    top = float_above(size * Fraction(each))
    together = max(0.0, min(top, top + 2.0 * math.log1p(-delta) + size * step))
    if batch > 1 or size == 1:
        return together
    return min(together, composed_epsilon(SlotCost(each, 0.0), size, delta))


SMALLEST_SECOND = 1e-12
"""Below this delta, what dp-accounting leaves out of its tails is not small any more."""


def for_person(promise: Guarantee, epsilon: float, delta: float, slots: int) -> Guarantee:
    """Return what a release promises to someone with a number of slots.

    ``promise`` is what holds for one slot; epsilon and delta are what the person was to be
    promised, and are refused if the slots cost more. Where they cost less, that is promised.
    """
    each = SlotCost(promise.epsilon, promise.delta)
    if not keeps(epsilon, delta, each, slots):
        raise InputError(
            f"{slots} slots of epsilon {each.epsilon:g} and delta {each.delta:g} cost more than "
            f"epsilon {epsilon:g} and delta {delta:g}."
        )
    exact = costs(epsilon, delta, each, slots)
    return replace(
        promise,
        epsilon=epsilon if exact else composed_epsilon(each, slots, delta),
        delta=delta,
        protects=protected_person(slots),
        model="central",  # averaging and counting slots needs feedback
        because=f"{promise.because}; {composition_of(slots, delta)}",
        facts=promise.facts
        | {"slots": slots, "slot_epsilon": each.epsilon, "slot_delta": each.delta},
        curve=lambda at: composed_epsilon(each, slots, at),
        group=None,
        unit="person",
    )


def impossible_slots(data: JSON) -> Iterator[Finding]:
    """Numbers that no certificate for persons has."""
    slots, epsilon, delta = (data[key] for key in PERSON_ENTRIES)
    if type(slots) is not int or not 1 <= slots <= MAX_SLOTS:
        yield Finding("slots", False, f"must be a whole number from 1 to {MAX_SLOTS}")
    if type(epsilon) not in (int, float) or not MIN_EPSILON <= float_of(epsilon) <= MAX_EPSILON:
        yield Finding("slot_epsilon", False, f"must be from {MIN_EPSILON:g} to {MAX_EPSILON:g}")
    if type(delta) not in (int, float) or not 0.0 <= float_of(delta) < 1.0:
        yield Finding("slot_delta", False, "must be a number from 0 to below 1")


def check_person_slots(mechanism: Mechanism, data: JSON) -> Iterator[Finding]:
    """Prove what one slot costs, and that all of a person's keep epsilon and delta."""
    slots, each = data["slots"], SlotCost(data["slot_epsilon"], data["slot_delta"])
    for finding in mechanism.check(*each):
        renamed = finding.entry in SlotCost._fields
        yield finding._replace(entry=f"slot_{finding.entry}") if renamed else finding
    epsilon, delta = data["epsilon"], data["delta"]
    holds = costs(epsilon, delta, each, slots)
    how = "in exact fractions" if delta == 0 else "by optimal composition"
    yield Finding("epsilon", holds, f"is what {slots} slots cost together, {how}")
    if holds and delta >= SMALLEST_SECOND:
        least = worst_loss(*each, slots).get_delta_for_epsilon(epsilon)
        why = f"dp-accounting finds delta {least:.6g} for {slots} slots together"
        yield Finding("delta", bool(least <= delta * (1.0 + TOLERANCE)), why)

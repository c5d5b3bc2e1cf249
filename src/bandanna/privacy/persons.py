"""A release's promise for one slot, made a promise for everything one person contributes.

And how a certificate of it is checked: what a slot costs, and that all of a person's together
cost no more than is promised, by our own arithmetic and by dp-accounting's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bandanna._core.checks import MAX_EPSILON, MAX_SLOTS, MIN_EPSILON
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.privacy.composition import Slot, composed_epsilon, costs, keeps
from bandanna.privacy.mechanism import TOLERANCE, Finding, Mechanism, PrivacyLoss, float_of
from bandanna.privacy.statements import PERSON_ENTRIES, composition_of, protected_person

SMALLEST_SECOND = 1e-12
"""Below this delta, what dp-accounting leaves out of its tails is not small any more."""


def for_person(promise: Guarantee, epsilon: float, delta: float, slots: int) -> Guarantee:
    """Return what a release promises to someone with a number of slots.

    ``promise`` is what holds for one slot; epsilon and delta are what the person was to be
    promised, and are refused if the slots cost more. Where they cost less, that is promised.
    """
    each = Slot(promise.epsilon, promise.delta)
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


def check_slots(mechanism: Mechanism, data: JSON) -> Iterator[Finding]:
    """Prove what one slot costs, and that all of a person's keep epsilon and delta."""
    slots, each = data["slots"], Slot(data["slot_epsilon"], data["slot_delta"])
    for finding in mechanism.check(*each):
        renamed = finding.entry in Slot._fields
        yield finding._replace(entry=f"slot_{finding.entry}") if renamed else finding
    epsilon, delta = data["epsilon"], data["delta"]
    holds = costs(epsilon, delta, each, slots)
    how = "in exact fractions" if delta == 0 else "by optimal composition"
    yield Finding("epsilon", holds, f"is what {slots} slots cost together, {how}")
    if holds and delta >= SMALLEST_SECOND:
        found = composed_loss(each, slots).get_delta_for_epsilon(epsilon)
        why = f"dp-accounting finds delta {found:.6g} for {slots} slots together"
        yield Finding("delta", bool(found <= delta * (1.0 + TOLERANCE)), why)


def composed_loss(each: Slot, slots: int) -> PrivacyLoss:
    """Return dp-accounting's privacy loss of so many slots; losses are multiples of epsilon."""
    from dp_accounting.pld import common  # loaded when first used
    from dp_accounting.pld import privacy_loss_distribution as pld

    worst = common.DifferentialPrivacyParameters(each.epsilon, each.delta)
    single: PrivacyLoss = pld.from_privacy_parameters(
        worst, value_discretization_interval=each.epsilon
    )
    return single.self_compose(slots)

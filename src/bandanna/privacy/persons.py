"""A release's promise for one place, made a promise for everything one person contributes.

And how a certificate of it is checked: what a place costs, and that all of a person's together
cost no more than is promised, by our own arithmetic and by dp-accounting's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bandanna._core.checks import MAX_EPSILON, MAX_SLOTS, MIN_EPSILON
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.privacy.composition import Place, composed_epsilon, costs, keeps
from bandanna.privacy.mechanism import TOLERANCE, Finding, Mechanism, PrivacyLoss, float_of
from bandanna.privacy.statements import composition_of, protected_person

PERSON_ENTRIES = ("places", "place_epsilon", "place_delta")
"""Entries of a certificate that protects persons; others have none of them."""

SMALLEST_SECOND = 1e-12
"""Below this delta, what dp-accounting leaves out of its tails is not small any more."""


def for_person(promise: Guarantee, epsilon: float, delta: float, places: int) -> Guarantee:
    """Return what a release promises to someone with a number of slots.

    ``promise`` is what holds for one place; epsilon and delta are what the person was to be
    promised, and are refused if the places cost more. Where they cost less, that is promised.
    """
    each = Place(promise.epsilon, promise.delta)
    if not keeps(epsilon, delta, each, places):
        raise InputError(
            f"{places} places of epsilon {each.epsilon:g} and delta {each.delta:g} cost more than "
            f"epsilon {epsilon:g} and delta {delta:g}."
        )
    exact = costs(epsilon, delta, each, places)
    return replace(
        promise,
        epsilon=epsilon if exact else composed_epsilon(each, places, delta),
        delta=delta,
        protects=protected_person(places),
        model="central",  # whoever averages and counts places sees feedback
        because=f"{promise.because}; {composition_of(places, delta)}",
        facts=promise.facts
        | {"places": places, "place_epsilon": each.epsilon, "place_delta": each.delta},
        curve=lambda at: composed_epsilon(each, places, at),
        group=None,
        unit="person",
    )


def impossible_places(data: JSON) -> Iterator[Finding]:
    """Numbers that no certificate for persons has."""
    places, epsilon, delta = (data[key] for key in PERSON_ENTRIES)
    if type(places) is not int or not 1 <= places <= MAX_SLOTS:
        yield Finding("places", False, f"must be a whole number from 1 to {MAX_SLOTS}")
    if type(epsilon) not in (int, float) or not MIN_EPSILON <= float_of(epsilon) <= MAX_EPSILON:
        yield Finding("place_epsilon", False, f"must be from {MIN_EPSILON:g} to {MAX_EPSILON:g}")
    if type(delta) not in (int, float) or not 0.0 <= float_of(delta) < 1.0:
        yield Finding("place_delta", False, "must be a number from 0 to below 1")


def check_places(mechanism: Mechanism, data: JSON) -> Iterator[Finding]:
    """Prove what one place costs, and that all of a person's keep epsilon and delta."""
    places, each = data["places"], Place(data["place_epsilon"], data["place_delta"])
    for finding in mechanism.check(*each):
        renamed = finding.entry in Place._fields
        yield finding._replace(entry=f"place_{finding.entry}") if renamed else finding
    epsilon, delta = data["epsilon"], data["delta"]
    holds = costs(epsilon, delta, each, places)
    how = "in exact fractions" if delta == 0 else "by optimal composition"
    yield Finding("epsilon", holds, f"is what {places} places cost together, {how}")
    if holds and delta >= SMALLEST_SECOND:
        found = composed_loss(each, places).get_delta_for_epsilon(epsilon)
        why = f"dp-accounting finds delta {found:.6g} for {places} places together"
        yield Finding("delta", bool(found <= delta * (1.0 + TOLERANCE)), why)


def composed_loss(each: Place, places: int) -> PrivacyLoss:
    """Return dp-accounting's privacy loss of so many slots; losses are multiples of epsilon."""
    from dp_accounting.pld import common  # loaded when first used
    from dp_accounting.pld import privacy_loss_distribution as pld

    worst = common.DifferentialPrivacyParameters(each.epsilon, each.delta)
    single: PrivacyLoss = pld.from_privacy_parameters(
        worst, value_discretization_interval=each.epsilon
    )
    return single.self_compose(places)

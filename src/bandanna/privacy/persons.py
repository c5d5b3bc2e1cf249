"""A release's promise for one place, made a promise for everything one person contributes."""

from __future__ import annotations

from dataclasses import replace

from bandanna.privacy.composition import Place, composed_epsilon, keeps
from bandanna.privacy.statements import composition_of, protected_person
from bandanna.types import Guarantee, InputError


def for_person(promise: Guarantee, epsilon: float, delta: float, places: int) -> Guarantee:
    """Return what a release promises to someone with so many places.

    ``promise`` is what holds for one place; epsilon and delta are what is promised to the person,
    and are refused if the places cost more.
    """
    each = Place(promise.epsilon, promise.delta)
    if not keeps(epsilon, delta, each, places):
        raise InputError(
            f"{places} places of epsilon {each.epsilon:g} and delta {each.delta:g} cost more than "
            f"epsilon {epsilon:g} and delta {delta:g}."
        )
    return replace(
        promise,
        epsilon=epsilon,
        delta=delta,
        protects=protected_person(places),
        because=f"{promise.because}; {composition_of(places, delta)}",
        facts=promise.facts
        | {"places": places, "place_epsilon": each.epsilon, "place_delta": each.delta},
        curve=lambda at: composed_epsilon(each, places, at),
    )

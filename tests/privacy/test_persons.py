"""What a release promises to a person with several slots."""

from __future__ import annotations

import pytest

from bandanna._core.checks import MAX_EPSILON, MAX_SLOTS, MIN_EPSILON
from bandanna._core.types import InputError
from bandanna.privacy import LaplaceRelease, OneBitRelease
from bandanna.privacy.composition import (
    SlotCost,
    composed_delta,
    composed_epsilon,
    for_person,
    impossible_slots,
    slot_for,
    slots_for,
)

SLOT = LaplaceRelease(0.25, 4).guarantee()


def test_a_person_is_promised_what_their_slots_cost_and_told_why() -> None:
    person = for_person(SLOT, 1.0, 0.0, 4)
    assert (person.epsilon, person.delta, person.unit, person.model) == (
        1.0,
        0.0,
        "person",
        "central",
    )
    assert person.facts["slots"] == 4
    assert (person.facts["slot_epsilon"], person.facts["slot_delta"]) == (0.25, 0.0)
    assert "all feedback of one person" in person.protects
    assert person.because.startswith(SLOT.because)
    assert "composition" in person.because.lower().removeprefix(SLOT.because.lower())
    assert person.at_delta(1e-6).epsilon == composed_epsilon(SlotCost(0.25, 0.0), 4, 1e-6)
    assert for_person(OneBitRelease(0.25, 1).guarantee(), 1.0, 0.0, 4).model == "central"


def test_slots_that_cost_less_than_was_asked_for_promise_less() -> None:
    person = for_person(SLOT, 3.0, 1e-6, 4)
    assert person.epsilon == composed_epsilon(SlotCost(0.25, 0.0), 4, 1e-6) < 3.0
    exactly = for_person(SLOT, person.epsilon, 1e-6, 4)
    assert exactly.epsilon == person.epsilon


def test_slots_that_cost_more_are_refused() -> None:
    with pytest.raises(InputError, match=r"5 slots of epsilon 0\.25 and delta 0 cost more than"):
        for_person(SLOT, 1.0, 0.0, 5)


@pytest.mark.parametrize("slots", [2, 20, 300])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_the_smallest_epsilon_is_found_to_the_last_digits(slots: int, delta: float) -> None:
    each = SlotCost(0.1, 0.0)
    found = composed_epsilon(each, slots, delta)
    assert composed_delta(found, each, slots) <= delta
    assert composed_delta(found * (1.0 - 1e-11), each, slots) > delta


@pytest.mark.parametrize(("epsilon", "slots"), [(1.0, 1), (1.0, 7), (0.3, 3), (2.0, 1000)])
def test_as_many_slots_as_fit_and_not_one_more(epsilon: float, slots: int) -> None:
    each = slot_for(epsilon, 1e-6, slots)
    assert slots_for(epsilon, 1e-6, each) == slots
    assert slots_for(epsilon, 0.0, SlotCost(epsilon * 1.001, 0.0)) == 0
    assert slots_for(epsilon, 0.0, SlotCost(epsilon / MAX_SLOTS / 2, 0.0)) == MAX_SLOTS
    assert slots_for(1.0, 0.0, SlotCost(1.0 / MAX_SLOTS, 0.0)) == MAX_SLOTS


def test_a_slot_may_cost_the_smallest_epsilon_there_is() -> None:
    assert slot_for(4 * MIN_EPSILON, 0.0, 4).epsilon == MIN_EPSILON
    assert slot_for(1.0, 0.0, 4).epsilon == 0.25


POSSIBLE = [("slots", 1), ("slots", MAX_SLOTS), ("slot_delta", 0.0), ("slot_delta", 0.5)]
POSSIBLE += [("slot_epsilon", MIN_EPSILON), ("slot_epsilon", MAX_EPSILON)]
IMPOSSIBLE: list[tuple[str, object]] = [
    ("slots", one) for one in (0, MAX_SLOTS + 1, 2.0, True, "2")
]
IMPOSSIBLE += [("slot_epsilon", one) for one in (0.0, 1.01 * MAX_EPSILON, None, True)]
IMPOSSIBLE += [("slot_delta", one) for one in (-1e-9, 1.0, 1.5, "0")]


@pytest.mark.parametrize(("entry", "value"), [*POSSIBLE, *IMPOSSIBLE])
def test_certificates_have_possible_slots(entry: str, value: object) -> None:
    data = {"slots": 4, "slot_epsilon": 0.25, "slot_delta": 0.0, entry: value}
    findings = list(impossible_slots(data))
    if (entry, value) in POSSIBLE and value is not True:
        assert findings == []
    else:
        assert [(found.entry, found.holds) for found in findings] == [(entry, False)]
        assert "must be" in findings[0].why

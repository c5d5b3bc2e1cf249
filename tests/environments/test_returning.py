"""Places of people who come back, in the simulator."""

from __future__ import annotations

from fractions import Fraction

import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna.environments import Returning, make_environment
from bandanna.environments.base import sum_losses_once
from tests.laws import assert_mean


def losses(people: Returning, arm: int, count: int, seed: int = 0) -> list[int]:
    stream = new_stream(seed)
    return [
        sum_losses_once(people.params(), people.memory(), arm, slot, slot + 1, stream)
        for slot in range(count)
    ]


@pytest.mark.parametrize("visits", [1, 3, 6])
def test_a_slot_is_the_mean_of_its_visits_on_the_grid(visits: int) -> None:
    allowed = {round(Fraction(bad * UNITS, visits)) for bad in range(visits + 1)}
    found = losses(Returning(2, 100, visits=visits), 0, 100)
    assert set(found) <= allowed


def test_more_visits_leave_means_and_take_spread_away() -> None:
    for people in (Returning([0.3, 0.7], 2000, returning=0.6), Returning([0.3, 0.7], 2000)):
        for arm, mean in enumerate((0.3, 0.7)):
            found = [loss / UNITS for loss in losses(people, arm, 2000, seed=arm)]
            assert_mean(found, mean)


def test_it_can_be_asked_for_by_name_and_bad_input_is_refused() -> None:
    people = make_environment("returning", 3, 500, returning=0.3)
    assert (people.arms, people.rounds) == (3, 500)
    with pytest.raises(bd.InputError, match="returning= or visits="):
        Returning(2, 100, returning=0.3, visits=2)
    with pytest.raises(bd.InputError, match="returning must be"):
        Returning(2, 100, returning=1.0)
    with pytest.raises(bd.InputError, match="visits must be"):
        Returning(2, 100, visits=0)

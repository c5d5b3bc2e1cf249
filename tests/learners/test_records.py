"""Numbers with names are the same numbers as before they had them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandanna._core.compiled import once
from bandanna.learners.adaptive import SOLUTION, TOTALS
from bandanna.learners.base import aligned_zeros, dump_arrays, load_arrays
from bandanna.learners.phased import Phased
from bandanna.learners.phased_state import PHASE, PhasedState
from bandanna.learners.race import ANSWER
from bandanna.learners.records import record_of
from bandanna.learners.stationarity import GUARD


@pytest.mark.parametrize(
    ("record", "names"),
    [
        (
            PHASE,
            "opened rounds records length left lead tests closest alarms since look adaptive safe "
            "batch noise losses budget handed",
        ),
        (TOTALS, "updates cost rates variance doubted bound switched rate"),
        (SOLUTION, "root slope"),
        (GUARD, "tests alarm closest arm after old new allowed added"),
        (ANSWER, "winner when"),
    ],
)
def test_documents_have_the_numbers_in_this_order(record: np.dtype[Any], names: str) -> None:
    assert record.names == tuple(names.split())


def test_a_state_is_saved_as_plain_lists_and_read_again() -> None:
    learner = Phased(3, 0.5)
    state, other = learner.start(), learner.start()
    state.phase[0].rounds, state.phase[0].handed = 7.0, 9.0
    state.totals[0].cost = 2.5
    saved = dump_arrays(state)
    assert saved["phase"] == [0.0, 7.0, *[0.0] * 15, 9.0]
    assert saved["totals"][1] == 2.5
    load_arrays(other, saved)
    assert dump_arrays(other) == saved
    assert other.phase[0].rounds == 7.0


def _one_more(state: PhasedState) -> float:
    phase = state.phase[0]
    phase.rounds += 1.0
    return phase.rounds


def test_a_record_changes_in_place_compiled_or_not() -> None:
    state = Phased(3, 0.5).start()
    assert _one_more(state) == 1.0
    assert once(_one_more)(state) == 2.0
    assert state.phase[0].rounds == 2.0


def test_records_lie_beside_arrays() -> None:
    first, record, last = aligned_zeros(3, SOLUTION, 2)
    record[0].root, record[0].slope = 1.0, 2.0
    assert record.shape == (1,)
    assert not first.any()
    assert not last.any()


def test_a_name_that_numpy_has_is_refused() -> None:
    class Sized:
        size: float

    with pytest.raises(AssertionError):
        record_of(Sized)

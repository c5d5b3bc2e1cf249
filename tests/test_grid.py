from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandanna._core.grid import UNITS, array_to_units, check_range, to_units
from bandanna._core.types import InputError


@given(st.floats(0, 1))
def test_a_loss_is_rounded_to_the_grid(loss: float) -> None:
    units = to_units("loss", loss, (0.0, 1.0))
    assert 0 <= units <= UNITS
    assert abs(units / UNITS - loss) <= 0.5 / UNITS


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1))
def test_other_ranges_are_rescaled(low: float, width: float, share: float) -> None:
    loss_range = check_range((low, low + width))
    value = min(max(low + share * width, loss_range[0]), loss_range[1])
    assert 0 <= to_units("loss", value, loss_range) <= UNITS


@pytest.mark.parametrize(
    ("loss", "loss_range", "units"),
    [
        (np.float16(0.1), (0.1, 25.7), None),  # just below the range, equal to it in half precision
        (np.float32(0.7), (0.7, 0.7125), None),
        (np.float16(0.7), (0.5, 0.7), None),
        (np.float16(0.5), (0.0, 1.0), UNITS // 2),
        (np.int8(1), (0.0, 1.0), UNITS),
        (Fraction(1, 2), (0.0, 1.0), UNITS // 2),
        (True, (0.0, 1.0), UNITS),
        (np.False_, (0.0, 1.0), 0),
    ],
)
def test_small_numpy_floats_are_compared_in_full(
    loss: object, loss_range: tuple[float, float], units: int | None
) -> None:
    if units is None:
        with pytest.raises(InputError):
            to_units("loss", loss, loss_range)
    else:
        assert to_units("loss", loss, loss_range) == units


@pytest.mark.parametrize("loss", [math.nan, math.inf, -0.001, 1.001, "0.5", None, 1j])
def test_what_is_no_loss_is_refused_without_being_repeated(loss: object) -> None:
    with pytest.raises(InputError, match="number from 0 to 1") as caught:
        to_units("loss", loss, (0.0, 1.0))
    assert repr(loss) not in str(caught.value) or loss is None


@pytest.mark.parametrize(
    "bad",
    [
        (1, 0),
        (0, 0),
        (0, math.inf),
        (math.nan, 1),
        3,
        (0, 1, 2),
        None,
        (2**53, 2**53 + 1),
        (0, 10**400),
    ],
)
def test_ranges_that_are_none_are_refused(bad: object) -> None:
    with pytest.raises(InputError, match="loss_range"):
        check_range(bad)


@pytest.mark.parametrize(
    ("losses", "reason"),
    [
        ([0.1, 0.2], "shape"),
        (np.zeros((3, 1)), "shape"),
        (np.zeros((0, 2)), "shape"),
        ([[0.1, math.nan]], "round 1, arm 2"),
        ([[0.1, 0.2], [1.5, 0.2]], "round 2, arm 1"),
        ([["a", "b"]], "table of numbers"),
        ([[0.1], [0.1, 0.2]], "table of numbers"),
    ],
)
def test_bad_tables_are_refused_with_the_position(losses: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        array_to_units(losses)

"""Advice is checked at the edge, and stored in the layout compiled code reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandanna._core.advice import TOLERANCE, as_advice_table, check_advice, vote_type
from bandanna._core.types import InputError


@given(st.integers(1, 8), st.integers(2, 6), st.integers(0, 2**32))
def test_distributions_are_scaled_to_one_and_turned(experts: int, arms: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(arms), experts)
    shares *= 1.0 + rng.uniform(-0.9, 0.9, (experts, 1)) * TOLERANCE
    stored = check_advice(shares, experts, arms)
    assert stored.shape == (arms, experts)
    assert stored.flags["C_CONTIGUOUS"]
    np.testing.assert_allclose(stored.sum(axis=0), 1.0, rtol=1e-14)
    np.testing.assert_allclose(stored.T, shares, rtol=2 * TOLERANCE)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_votes_take_a_byte_each(votes: list[int]) -> None:
    for given_as in (votes, np.array(votes), np.array(votes, dtype=float)):
        stored = check_advice(given_as, len(votes), 5)
        assert stored.dtype == np.uint8
        assert stored.tolist() == votes


def test_many_arms_take_two_bytes() -> None:
    assert vote_type(256) is np.uint8
    assert vote_type(257) is np.uint16
    assert check_advice([299, 0], 2, 300).dtype == np.uint16


@pytest.mark.parametrize(
    ("advice", "reason"),
    [
        ([0, 1], "shape"),
        ([[0.5, 0.5]], "shape"),
        (0, "shape"),
        ([0, 1, 2], "index of an arm, 0 to 1.*expert 2"),
        ([0, -1, 1], "index of an arm.*expert 1"),
        ([0, 0.5, 1], "index of an arm.*0.5"),
        ([0, float("nan"), 1], "index of an arm"),
        ([[0.5, 0.5], [0.5, 0.4], [1, 0]], "add up to 1.*expert 1"),
        ([[0.5, 0.5], [1.5, -0.5], [1, 0]], "from 0 to 1.*expert 1"),
        ([[0.5, 0.5], [float("nan"), 0.5], [1, 0]], "expert 1"),
        ([[0.5, 0.5], [1e308, 1e308], [1, 0]], "expert 1 adds up to inf"),
        ([[0.5, 0.5], [float("inf"), 0.5], [1, 0]], "expert 1"),
        ([["a", "b"]] * 3, "table of numbers"),
        (["red", "blue", "green"], "names an unknown arm, 'green'; there are 'red', 'blue'"),
        (["red", 1, "blue"], "names an unknown arm, 1"),
        ([[1, 0], [1]], "table of numbers"),
        (None, "table of numbers"),
        ([True, False, True], "table of numbers"),
    ],
)
def test_what_is_no_advice_is_refused(advice: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_advice(advice, 3, 2, ("red", "blue"))


def test_arms_may_be_named() -> None:
    assert check_advice(["blue", "red", "blue"], 3, 2, ("red", "blue")).tolist() == [1, 0, 1]


def test_an_error_shows_the_sum_and_a_part_of_a_long_row() -> None:
    rows = np.full((2, 100), 0.02)
    with pytest.raises(InputError, match=r"expert 0 adds up to 2: \[0.02, .*, \.\.\.\]"):
        check_advice(rows, 2, 100)


@pytest.mark.parametrize("shape", [(9, 3), (10,), (10, 3, 4), (10, 0), (10, 3, 2, 1)])
def test_tables_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="rounds, experts"):
        as_advice_table(np.zeros(shape), rounds=10, arms=2)

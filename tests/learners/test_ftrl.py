"""The solver behind HTINF and Tsallis-INF, against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from bandanna.learners.ftrl import TOLERANCE, solve

gap_lists = st.lists(st.floats(0, 1e12), min_size=1, max_size=30)


@settings(deadline=None)
@given(gap_lists, st.floats(1e-3, 1e5), st.floats(0, 1e8), st.floats(1.02, 2.0))
def test_solution_is_the_distribution(
    gaps: list[float], c: float, start: float, alpha: float
) -> None:
    losses = np.array([0.0, *gaps])
    p = alpha / (alpha - 1)
    chances = np.empty_like(losses)
    root = solve(losses, chances, c, start, p)
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    exact = brentq(
        lambda y: ((c / (losses + y)) ** p).sum() - 1, c, c * losses.size, xtol=1e-300, rtol=1e-14
    )
    assert root == pytest.approx(exact, rel=10 * TOLERANCE)
    if alpha == 2.0:
        powers = np.empty_like(losses)
        solve(losses, powers, c, start, math.nextafter(2.0, 3.0))
        np.testing.assert_allclose(powers, chances, rtol=1e-6)


def test_a_warm_start_on_the_wrong_side_does_no_harm() -> None:
    losses, c = np.array([0.0, 3.0, 40.0]), 2.0
    results = []
    for start in (0.0, 2.0, 5.0, 1e9):
        chances = np.empty(3)
        solve(losses, chances, c, start, 2.0)
        results.append(chances)
    for chances in results:
        np.testing.assert_allclose(chances, results[0], rtol=1e-8)
    assert math.isclose(results[0].sum(), 1.0)

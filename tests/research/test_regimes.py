"""The paper's Table of regimes, checked by arithmetic of its own."""

from __future__ import annotations

import math

import pytest
from research.regime_map import OURS, RATES, REGIMES, RegimeMap, cell_of, rates, regime_map

from bandanna.planner.plan import plan
from bandanna.spec import Constants, Problem


@pytest.fixture(scope="module")
def found() -> RegimeMap:
    return regime_map()


def test_rates_cross_where_the_paper_says() -> None:
    """HTINF and local EXP4 at eps = K/N; local and batched EXP4 at eps = (NT)^(-1/4)."""
    for experts in (100, 10_000):
        border = rates(Problem(10, 10**9, 10 / experts, experts))
        assert border["htinf"] == pytest.approx(border["local-exp4"])
        crossing = (experts * 10**9) ** -0.25
        at = rates(Problem(10, 10**9, crossing, experts))
        second = math.sqrt(experts) / crossing
        assert at["batched-exp4"] - second == pytest.approx(at["local-exp4"])


@pytest.mark.slow
def test_the_smallest_rate_and_the_recommendation(found: RegimeMap) -> None:
    """The first line holds everywhere on the grid. The third does not: with N = 100 and K = 10 the
    HTINF conversion has the smaller rate wherever any is below T."""
    few, low_privacy, high_privacy = found.findings
    assert few.smallest_rate == few.points > 0
    assert 0 < high_privacy.smallest_rate < high_privacy.points
    assert low_privacy.smallest_rate > 0.9 * low_privacy.points
    third = REGIMES[2]
    small = [c for c in found.cells if c.problem.experts == 100 and third.contains(c.problem)]
    assert {cell.by_rate for cell in small} == {None, "htinf"}
    for cell in found.cells:
        at = rates(cell.problem)
        assert (cell.by_rate is None) == (min(at.values()) >= cell.problem.horizon("a rate"))
        if cell.by_rate:
            assert at[cell.by_rate] <= min(at.values()) * (1 + 1e-8)


def test_the_best_in_numbers_is_the_planners(found: RegimeMap) -> None:
    for cell in found.cells[::29]:
        best = plan(cell.problem).best
        assert cell.best == (None if best.share >= 1.0 else best.algorithm)
    names = {cell.best for cell in found.cells}
    assert None in names
    assert not names & set(RATES)  # with its own constants, none of the paper's is ever the best


def test_verdicts_count_what_they_say(found: RegimeMap) -> None:
    for finding in found.findings:
        assert finding.best + sum(finding.winners.values()) == finding.guaranteed
        assert finding.promises <= finding.guaranteed <= finding.points


def test_a_new_algorithm_of_the_planner_is_on_the_map() -> None:
    problem = Problem(10, 10**8, 0.1, experts=100, delta=1e-6)
    cases: tuple[tuple[Constants, str], ...] = ("paper", ""), ("ours", OURS)
    for constants, mark in cases:
        rows = plan(problem, constants=constants).rows
        proved = [row for row in rows if row.bound and row.model != "none"]
        planned = {row.algorithm + mark * (row.entry.constants == "ours") for row in proved}
        assert set(cell_of(problem).shares) >= planned

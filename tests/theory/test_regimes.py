"""The paper's Table of regimes, checked by arithmetic of its own."""

from __future__ import annotations

import json
import math

import pytest

from bandanna.theory.planner import plan
from bandanna.theory.regimes import RATES, REGIMES, Problem, RegimeMap, cell_of, regime_map


@pytest.fixture(scope="module")
def found() -> RegimeMap:
    return regime_map()


def test_rates_cross_where_the_paper_says() -> None:
    """HTINF and local EXP4 at eps = K/N; local and batched EXP4 at eps = (NT)^(-1/4)."""
    for experts in (100, 10_000):
        border = Problem(10, experts, 10**9, 10 / experts)
        assert RATES["htinf-conversion"](border) == pytest.approx(RATES["local-exp4"](border))
        crossing = (experts * 10**9) ** -0.25
        at = Problem(10, experts, 10**9, crossing)
        second = math.sqrt(experts) / crossing
        assert RATES["batched-exp4"](at) - second == pytest.approx(RATES["local-exp4"](at))


def test_the_smallest_rate_and_the_recommendation(found: RegimeMap) -> None:
    """The first line holds everywhere on the grid. The third does not: with N = 100 and K = 10 the
    HTINF conversion has the smaller rate wherever any is below T."""
    few, low_privacy, high_privacy = found.verdicts
    assert few.smallest_rate == few.points > 0
    assert 0 < high_privacy.smallest_rate < high_privacy.points
    assert low_privacy.smallest_rate > 0.9 * low_privacy.points
    third = REGIMES[2]
    small = [c for c in found.cells if c.problem.experts == 100 and third.contains(c.problem)]
    assert {cell.by_rate for cell in small} == {None, "htinf-conversion"}
    for cell in found.cells:
        rates = sorted(rate(cell.problem) for rate in RATES.values())
        assert (cell.by_rate is None) == (rates[0] >= cell.problem.rounds)
        if cell.by_rate:
            assert RATES[cell.by_rate](cell.problem) <= rates[0] * (1 + 1e-8)


def test_the_best_in_numbers_is_the_planners(found: RegimeMap) -> None:
    for cell in found.cells[::29]:
        p = cell.problem
        best = plan(p.arms, p.rounds, p.epsilon, experts=p.experts, delta=found.delta).best
        assert best.bound is not None
        vacuous = best.bound.regret >= p.rounds
        assert cell.best == (None if vacuous else best.algorithm)
    names = {cell.best for cell in found.cells}
    assert None in names
    assert not names & set(RATES)  # with its own constants, none of the paper's is ever the best


def test_verdicts_count_what_they_say(found: RegimeMap) -> None:
    for verdict in found.verdicts:
        assert verdict.best + sum(verdict.winners.values()) == verdict.guaranteed
        assert verdict.promises <= verdict.guaranteed <= verdict.points
        assert verdict.example is not None
        assert verdict.regime.contains(verdict.example.problem)
        assert verdict.example.best in verdict.winners


def test_a_new_algorithm_of_the_planner_is_on_the_map() -> None:
    cell = cell_of(Problem(10, 100, 10**8, 0.1), delta=1e-6)
    rows = plan(10, 10**8, 0.1, experts=100, delta=1e-6).rows
    assert set(cell.shares) == {r.algorithm for r in rows if r.bound and r.model != "none"}


def test_the_map_is_json(found: RegimeMap) -> None:
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(data["cells"]) == len(found.cells)
    assert [line["algorithm"] for line in data["regimes"]] == [r.algorithm for r in REGIMES]

"""The figures of reproductions can be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from research.charts import figure_chart
from research.exp3_leakage import Leakage, exp3_leakage, paper_construction
from research.regime_map import RegimeMap, cell_of

from bandanna.learners import Exp3
from bandanna.report.charts import save_chart
from bandanna.spec import Problem

CELLS = [
    cell_of(Problem(10, rounds, epsilon, experts, 1e-6))
    for experts in (5, 100)
    for rounds in (10**3, 10**9)
    for epsilon in (1e-5, 1.0)
]
FIGURES: dict[str, Leakage | RegimeMap] = {
    "P'(2)": exp3_leakage(Exp3(2, 0.01, 0.01), *paper_construction(3000)),
    "nothing guaranteed": RegimeMap(10, 1e-6, CELLS),
}


@pytest.mark.parametrize("label", FIGURES)
def test_figures_are_drawn(label: str, tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    save_chart(figure_chart(FIGURES[label]), path)
    assert label in path.read_text()

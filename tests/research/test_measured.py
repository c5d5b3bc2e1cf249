"""What is chosen for a world follows from what the study of algorithms found."""

from __future__ import annotations

import json

import pytest
from research.algorithms import runs_in

from bandanna.algorithms import ALGORITHMS, find
from tests.pages import ROOT

FOUND = json.loads((ROOT / "research" / "results" / "algorithms.json").read_text("utf-8"))


@pytest.mark.parametrize("losses", ALGORITHMS)
def test_what_runs_in_a_world_is_the_best_there(losses: str) -> None:
    best = next(row["algorithm"] for row in FOUND["rows"] if row["losses"] == losses)
    assert best == runs_in(losses)
    same, measured = (
        find(name, with_experts=False).learner
        for name in (ALGORITHMS[losses][0], runs_in(losses).partition(",")[0])
    )
    assert same == measured
    assert FOUND["holds"]

"""What a plan says is to be expected is what the study found; what is chosen follows from it."""

from __future__ import annotations

import json

import pytest

from bandanna.algorithms import ALGORITHMS, find
from bandanna.planner.plan import expected, runs_in, standings
from tests.pages import ROOT

FOUND = json.loads((ROOT / "research" / "results" / "algorithms.json").read_text("utf-8"))


@pytest.mark.parametrize("losses", ALGORITHMS)
def test_the_numbers_are_those_that_were_measured(losses: str) -> None:
    rows = {row["algorithm"]: row for row in FOUND["rows"] if row["losses"] == losses}
    assert list(standings(losses)) == list(rows)
    for name, found in standings(losses).items():
        shown = [rows[name][heading] for heading in ("mean", "90%", "worst", "where")]
        assert [f"{number:.2f}" for number in found[:3]] == shown[:3]
        assert found.where == shown[3]


@pytest.mark.parametrize("losses", ALGORITHMS)
def test_what_runs_in_a_world_is_the_best_there(losses: str) -> None:
    assert next(iter(standings(losses))) == runs_in(losses)
    same, measured = (
        find(name, with_experts=False).learner
        for name in (ALGORITHMS[losses][0], runs_in(losses).partition(",")[0])
    )
    assert same == measured
    assert FOUND["holds"]


def test_what_was_not_measured_is_not_made_up() -> None:
    assert expected("ftpl", "any") is None
    assert expected("adaptive", "changing") == standings("changing")["adaptive, changes"].mean

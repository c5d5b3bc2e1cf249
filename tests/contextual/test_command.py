"""``bandanna simulate --context``: tables, logs with a model or by replay, and the report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from bandanna.cli import app

FEATURES = ("--feature", "plan=bronze,gold,silver", "--feature", "age=18,90")
SIZE = ("--rounds", "2000", "--replicates", "2", "--epsilon", "5", "--delta", "1e-6")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["simulate", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    plan = rng.choice(["bronze", "gold", "silver"], 600)
    arm = rng.choice(["x", "y", "z"], 600)
    best = np.array([{"bronze": "x", "gold": "y", "silver": "z"}[one] for one in plan])
    frame = pl.DataFrame(
        {
            "plan": plan,
            "age": rng.integers(18, 90, 600),
            "best": best,
            "arm": arm,
            "visits": 20.0 * (arm == best),
            "chance": np.full(600, 1 / 3),
            **{name: (best == name).astype(float) for name in ("x", "y", "z")},
        }
    )
    path = tmp_path / "people.csv"
    frame.write_csv(path)
    return path


def test_a_table_with_labels_or_outcomes(people: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    table = ("--context", str(people), *FEATURES, *SIZE)
    shown = run(*table, "--label", "best", "--html", str(report))
    for text in ("context and feedback", "no privacy", "best single arm", "the right one earns 1"):
        assert text in shown
    page = report.read_text()
    assert "Reward over rounds" in page
    assert "joint differential privacy" in page
    assert "https://cdn" not in page
    by_label = json.loads(run(*table, "--label", "best", "--json"))
    by_outcome = json.loads(run(*table, "--outcomes", "x,y,z", "--json"))
    assert [row["last_fifth"] for row in by_label["rows"]] == [
        row["last_fifth"] for row in by_outcome["rows"]
    ]
    rows = {row["protects"]: row for row in by_label["rows"]}
    assert rows["feedback"]["last_fifth"] > 0.6 > by_label["single"]
    assert len(rows["no privacy"]["curve"]) == 25


def test_a_log_by_a_model_and_by_replay(people: Path) -> None:
    columns = ("--arm", "arm", "--outcome", "visits", "--range", "0,20", "--reward")
    log = ("--context", str(people), *FEATURES, *SIZE, *columns)
    modelled = run(*log)
    assert "The log is a sample" in modelled
    assert "a linear model of the reward, fitted to the log" in modelled
    replayed = " ".join(run(*log, "--replay", "--propensity", "chance").split())
    assert re.search(
        r"Replay: [\d,]+ of the log's [\d,]+ rounds count, those where the policy played", replayed
    )
    rows = json.loads(run(*log, "--replay", "--json"))["rows"]
    assert [row["protects"] for row in rows] == ["feedback", "context and feedback"]
    assert 120 < rows[0]["matched"] < 280 < rows[0]["rows"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--label", "best"), "go with --context"),
        (("--context", "digits", "--label", "best"), "leave out others"),
        (("--context", "people.csv", *FEATURES), "say what arms earn"),
        (("--context", "people.csv", "--label", "best"), "declare features"),
        (("--context", "p.csv", "--label", "best", "--feature", "age"), "its range or categories"),
        (("--context", "digits", "--log", "x.csv"), "leave out --log"),
    ],
)
def test_what_is_missing_is_said(arguments: tuple[str, ...], said: str) -> None:
    from bandanna._core.types import InputError

    done = CliRunner().invoke(app, ["simulate", *arguments])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)

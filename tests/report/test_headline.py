"""A report's first line: the arm, the price, and whether anything was learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna.cli import app
from bandanna.report.headline import arms_as_released, leads
from bandanna.report.study_report import write_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log")
    rng = np.random.default_rng(0)
    plan = rng.choice(["none", "letter", "nurse"], 20_000)
    mean = np.select([plan == "none", plan == "letter"], [6.0, 5.0], 2.0)
    visits = np.minimum(rng.poisson(mean), 20)
    pl.DataFrame({"plan": plan, "visits": visits}).write_csv(path / "visits.csv")
    return path


@pytest.mark.slow
def test_three_commands_from_a_log_to_a_report(folder: Path) -> None:
    study, results, report = (str(folder / name) for name in ("study.toml", "r", "report.html"))
    columns = ["--arm", "plan", "--outcome", "visits", "--range", "0,20"]
    for command in (
        ["study", "new", str(folder / "visits.csv"), *columns, "-o", study],
        ["study", "run", study, "-o", results, "--workers", "1"],
        ["study", "report", results, "-o", report],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    page = Path(report).read_text()
    assert "nurse is the best of 3 arms, and " in page
    assert " visits per 1,000 rounds at epsilon 0.5 in 20,000 rounds" in page
    assert "What the releases tell of the arms" in page
    assert "resampling within arms, 20,000 rows" in page
    (lead,) = leads(bd.StudyResults.read(results))
    assert lead.plain is not None
    assert lead.same is not None
    strongest = f"the strongest learner without privacy ({lead.plain['ran']}), and "
    assert f", compared with {strongest}" in lead.words
    assert " compared with the same algorithm without privacy. Choosing at random" in lead.words
    assert lead.same["algorithm"] == f"{lead.best['algorithm']}-no-privacy"
    assert lead.best["found"] > 0.9
    rows = {row[0]: row for row in arms_as_released(bd.StudyResults.read(results), lead)}
    assert abs(float(rows["nurse"][1]) - 2.0) < 0.3  # the arm that is played most is known well


def run(tmp_path: Path, **grid: Any) -> bd.StudyResults:
    return bd.Study(grid, replicates=10).run(tmp_path / "r", workers=1)


def test_a_hopeless_study_says_so_first(tmp_path: Path) -> None:
    results = run(
        tmp_path,
        algorithm=["one-bit", "no-privacy"],
        environment=[{"name": "bernoulli", "gap": 0.3}],
        epsilon=[0.05],
        arms=[10],
        rounds=[2000],
    )
    (lead,) = leads(results)
    assert not lead.learned
    assert lead.words.startswith("Nothing is learned at epsilon 0.05 in 2,000 rounds: no private")
    page = write_report(results, tmp_path / "r.html")[0].read_text()
    assert '<div class="answer"><p>Nothing is learned' in page


@pytest.mark.slow
def test_environments_have_a_sentence_each_and_experts_too(tmp_path: Path) -> None:
    results = run(
        tmp_path,
        algorithm=["one-bit", "no-privacy"],
        environment=["trial", "switching"],
        epsilon=[5.0],
        rounds=[500],
        arms=[4],
    )
    page = write_report(results, tmp_path / "r.html")[0].read_text()
    assert "On trial: " in page
    assert "On switching: " in page
    assert "; its regret is " not in page  # never in one range for two environments
    advised = run(
        tmp_path / "e",
        algorithm=["one-bit", "no-privacy"],
        environment=["one-good"],
        epsilon=[5.0],
        experts=[3],
        rounds=[500],
    )
    (lead,) = leads(advised)
    assert lead.best["best_arm"] is None
    assert lead.words.startswith("expert 1 is the best of 3 experts, and one-bit has")
    assert arms_as_released(advised, lead) == []


def test_changes_guards_and_the_strongest_baseline_are_shown(tmp_path: Path) -> None:
    results = run(
        tmp_path,
        algorithm=["dp-klucb", "no-privacy"],
        environment=["switching"],
        epsilon=[5.0],
        rounds=[4000],
        arms=[2],
    )
    table = results.table()
    plain = table.filter(algorithm="no-privacy")
    assert plain["ran"].item() in ("kl-ucb", "thompson", "adaptive", "tsallis-inf")
    assert plain["alarms"].item() is None
    assert table.filter(algorithm="dp-klucb")["alarms"].item() == 1.0
    ahead = table["segment_mean"] - table["mean"]
    np.testing.assert_allclose(ahead, 0.8 * 2000, rtol=1e-5)  # half of the rounds, by the gap
    page = write_report(results, tmp_path / "r.html")[0].read_text()
    assert f"no privacy ({plain['ran'].item()})" in page
    assert "<th>against segments</th>" in page
    assert "On switching the best arm changes: 4,000 rounds have 2 segments, and" in page
    assert "its guard raised an alarm in 100.0% of the runs" in page

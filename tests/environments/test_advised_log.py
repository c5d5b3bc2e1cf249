"""Logs in which experts advised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna.cli import app
from bandanna.environments import Logged
from bandanna.report.headline import leads
from bandanna.report.study_report import write_report

COLUMNS: dict[str, Any] = {"arm": "arm", "outcome": "loss"}
EXPERTS = ["doctor", "always b", "coin"]


def made(rows: int = 6000, *, favours: float = 0.5) -> pl.DataFrame:
    """People of two kinds, for whom different arms are good; the doctor knows which."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, rows)
    chance = np.where(kind == 1, favours, 1.0 - favours)  # of arm b
    arm = (rng.random(rows) < chance).astype(int)
    loss = (rng.random(rows) < np.where(arm == kind, 0.1, 0.6)).astype(int)
    names = np.array(["a", "b"])
    coin = rng.integers(0, 2, rows)
    return pl.DataFrame(
        {
            "arm": names[arm],
            "loss": loss,
            "doctor": names[kind],
            "always b": np.repeat("b", rows),
            "coin": names[coin],
            "chance": np.where(arm == 1, chance, 1.0 - chance),
        }
    )


def expert_losses(environment: bd.environments.ExpertEnvironment) -> Any:
    total = np.zeros(environment.experts)
    for chunk in environment.chunks():
        votes = np.asarray(chunk.advice, dtype=np.int64)
        total += np.take_along_axis(chunk.losses, votes, axis=1).sum(axis=0)
    return total / (environment.rounds * UNITS)


@pytest.mark.parametrize("options", [{}, {"propensity": "chance"}])
def test_experts_lose_what_they_would_have_lost(options: dict[str, Any]) -> None:
    # Within rows that are advised alike, who got which arm is random or weighed by its chance.
    favours = 0.8 if options else 0.5
    log = Logged(made(favours=favours), **COLUMNS, advice=EXPERTS, rounds=40_000, **options)
    environment = log.as_environment()
    assert isinstance(environment, bd.environments.AdvisedLog)
    assert (environment.experts, environment.arms) == (3, 2)
    assert environment.expert_names == tuple(EXPERTS)
    assert "outcomes from rows with the same arm and advice, but for 0.0%" in environment.about
    # 40 000 draws from means of at least 500 rows: six standard deviations are below 0.15.
    assert expert_losses(environment) == pytest.approx([0.1, 0.35, 0.35], abs=0.05)


@pytest.mark.slow
def test_a_private_policy_learns_whom_to_follow() -> None:
    log = Logged(made(), **COLUMNS, advice=EXPERTS, rounds=20_000)
    policies = {
        "private": bd.PrivateExperts(3, 2, 2.0, rounds=20_000),
        "again": bd.PrivateExperts(3, 2, 2.0, rounds=20_000),
    }
    results = bd.simulate(policies, log, replicates=3)
    assert results.best_expert == 0
    assert results.expert_names == tuple(EXPERTS)
    assert results.regret("private").mean() < 0.4 * results.uniform_regret[-1]
    assert "data: resampling rows and their advice" in repr(results)


def test_rounds_follow_time_and_missing_cells_are_said() -> None:
    frame = made(2000).with_row_index("when")
    worse = frame.with_columns(loss=pl.when(pl.col("when") < 1000).then(0).otherwise(1))
    environment = Logged(
        worse, **COLUMNS, advice=["doctor"], time="when", blocks=2, rounds=100
    ).as_environment()
    assert isinstance(environment, bd.environments.AdvisedLog)
    losses = environment.make(0, 0, 100)[0]
    assert losses[:50].max() == 0
    assert losses[50:].min() == UNITS
    rare = frame.with_columns(
        doctor=pl.when(pl.col("when") == 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    )
    lone = Logged(rare, **COLUMNS, advice=["doctor"]).as_environment()
    assert "in 2 blocks" in environment.about
    assert "but for 0.0%" in lone.about  # one row of 4000 pairs
    assert expert_losses(environment).shape == (1,)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"advice": "doctor"}, "must be a list of columns"),
        ({"advice": ["nurse"]}, "has no column 'nurse'"),
        (
            {"advice": ["loss"]},
            "expert 'loss' advises an arm that was never played",
        ),
        ({"advice": ["doctor"], "how": "replay"}, "replay goes without experts"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(bd.InputError, match=reason):
        Logged(made(200), **COLUMNS, **options)


@pytest.mark.slow
def test_from_a_log_with_advice_to_a_report_that_names_the_expert(tmp_path: Path) -> None:
    made(4000).write_csv(tmp_path / "log.csv")
    study, results = str(tmp_path / "s.toml"), str(tmp_path / "r")
    columns = ["--arm", "arm", "--outcome", "loss", "--set", "advice=doctor, always b,coin"]
    for command in (
        ["study", "new", str(tmp_path / "log.csv"), *columns, "-o", study, "--epsilon", "2"],
        ["study", "run", study, "-o", results, "--workers", "1"],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    found = bd.StudyResults.read(results)
    (lead,) = leads(found)
    assert lead.words.startswith("doctor is the best of 3 experts, and ")
    assert "doctor is the best" in write_report(found, tmp_path / "r.html")[0].read_text()
    asked = ["simulate", str(tmp_path / "log.csv"), *columns, "--replicates", "2"]
    shown = CliRunner().invoke(app, [*asked, "--algorithms", "one-bit-exp4", "--epsilon", "2"])
    assert "The best expert, doctor, has a reward of" in shown.output

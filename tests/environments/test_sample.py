"""Logs are samples: no arm is called best because of a few rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna.cli import app
from bandanna.environments import Logged
from bandanna.environments.log import UNPROTECTED


def clicks(counts: dict[str, tuple[int, int]]) -> dict[str, np.ndarray]:
    arms = np.concatenate([np.repeat(name, rows) for name, (_, rows) in counts.items()])
    hits = [np.arange(rows) < clicked for clicked, rows in counts.values()]
    return {"item": arms, "click": np.concatenate(hits).astype(float)}


def logged(counts: dict[str, tuple[int, int]]) -> Logged:
    return Logged(clicks(counts), arm="item", outcome="click", reward=True)


def test_two_clicks_in_179_rows_are_not_clearly_best() -> None:
    sample = logged({"10": (4, 900), "20": (3, 700), "50": (2, 179)}).sample
    assert sample.best == "50"
    assert not sample.clearly
    assert "50 has the best mean in the log, but not clearly" in sample.sentence
    assert [arm.rows for arm in sample.arms] == [900, 700, 179]
    assert sample.arms[2].mean == pytest.approx(2 / 179)
    assert sample.arms[2].error == pytest.approx(0.0095, abs=0.001)


def test_a_difference_beyond_the_errors_is_clear() -> None:
    sample = logged({"A": (300, 1_000), "B": (400, 1_000)}).sample
    assert (sample.best, sample.clearly, sample.near) == ("B", True, ())
    assert sample.sentence == "B has the best mean in the log, clearly."
    assert sample.arms[0].error == pytest.approx(np.sqrt(0.21 / 1_000), rel=0.02)


def test_no_headline_rests_on_an_arm_with_few_rows() -> None:
    sample = logged({"A": (300, 1_000), "B": (320, 1_000), "typo": (3, 3)}).sample
    assert sample.best == "B"
    assert sample.few == ("typo",)
    assert not sample.clearly
    assert "typo has few rows: mistyped names" in sample.sentence


def test_logs_without_a_difference_are_hardly_ever_called_clear() -> None:
    """500 logs of three equal arms: 5% may be called clear, by the normal approximation."""
    rng, clear = np.random.default_rng(0), 0
    for _ in range(500):
        hits = rng.binomial(1_000, 0.1, 3)
        clear += logged(
            {name: (int(hit), 1_000) for name, hit in zip("ABC", hits, strict=True)}
        ).sample.clearly
    assert clear <= 45  # at 5% more have probability below 1e-4; measured 3%


def test_everything_made_from_a_log_begins_with_its_table(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "clicks.csv"
    polars.DataFrame(clicks({"10": (4, 900), "20": (3, 700), "50": (2, 179)})).write_csv(path)
    columns = ["--arm", "item", "--outcome", "click", "--reward"]
    few = ["--algorithms", "one-bit", "--replicates", "2", "--epsilon", "1"]
    ran = CliRunner().invoke(app, ["simulate", str(path), *columns, *few])
    assert ran.exit_code == 0, ran.output
    assert ran.output.startswith("The log is a sample")
    assert "but not clearly" in ran.output
    assert "The best arm is" not in ran.output
    assert "do not publish them" in " ".join(ran.output.split())
    ran = CliRunner().invoke(app, ["simulate", str(path), *columns, *few, "--json"])
    assert json.loads(ran.output)["log"]["clearly"] is False
    results = bd.simulate(
        bd.PrivateBandit(3, 1.0, 1_000),
        logged({"10": (4, 900), "20": (3, 700), "50": (2, 179)}),
        replicates=2,
        progress=False,
    )
    assert any(UNPROTECTED in note for note in results.notes)
    assert results.sample is not None

"""``bandanna study``, as a whole program."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.test_cli import bandanna

STUDY = """
[study]
question = "Who <b>wins</b> & why?"
replicates = 20
[grid]
algorithm = ["one-bit", "htinf", "exp3", "no-privacy"]
epsilon = [1.0, 0.1]
rounds = [20, "1e3", "1e4"]
environment = ["trial", "bernoulli"]
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_run_and_run_again(study: Path, tmp_path: Path) -> None:
    command = ("study", "run", str(study), "-o", str(tmp_path / "results"))
    first = bandanna(*command)
    assert first.returncode == 0, first.stderr
    assert "skipped: algorithm exp3, environment trial, epsilon 0.1, rounds 20" in first.stdout
    assert "smallest rounds that works" in first.stdout
    assert "40 cells run, 0 already there, 2 cannot apply" in first.stdout
    again = bandanna(*command)
    assert "0 cells run, 40 already there" in again.stdout
    assert pl.read_parquet(tmp_path / "results" / "*.parquet")["cell"].n_unique() == 40


def test_ctrl_c_leaves_finished_cells_whole(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY.replace("20\n", "300\n").replace('"1e4"', '"3e5"'))
    results = tmp_path / "results"
    command = [sys.executable, "-m", "bandanna", "study", "run", str(study), "-o", str(results)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 100
    while len(list(results.glob("*.parquet"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    finished = list(results.glob("*.parquet"))
    assert 2 <= len(finished) < 40
    assert all(pl.read_parquet(path).height > 0 for path in finished)
    assert not [path for path in results.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("run", "nowhere.toml", "-o", "r"), "cannot read nowhere.toml"),
        (("report", "nowhere", "-o", "r.html"), "nowhere holds no results of a study"),
        (("run", "STUDY", "-o", "STUDY"), "is a file; results need a folder"),
        (("run", "STUDY", "-o", "r", "--workers", "0"), "workers"),
    ],
)
def test_mistakes_get_a_sentence(arguments: tuple[str, ...], reason: str, study: Path) -> None:
    done = bandanna("study", *(str(study) if part == "STUDY" else part for part in arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr


def test_the_demos_study_is_one() -> None:
    from bandanna.studies.study import Study

    study = Study.read(Path(__file__).parents[1] / "examples" / "trial.toml")
    assert len(study.cells) == 51
    assert not study.skipped

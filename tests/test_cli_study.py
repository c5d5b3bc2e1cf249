"""``bandanna study``, as a whole program."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from tests.command import bandanna

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


MANY_CELLS = """
[study]
replicates = 20
[grid]
algorithm = ["one-bit"]
epsilon = [EPSILONS]
rounds = ["1e5", "2e5"]
environment = ["trial"]
""".replace("EPSILONS", ", ".join(f"{k / 10}" for k in range(1, 32)))


def test_ctrl_c_leaves_finished_cells_whole(study: Path, tmp_path: Path) -> None:
    study.write_text(MANY_CELLS)
    results = tmp_path / "results"
    command = [sys.executable, "-m", "bandanna", "study", "run", str(study), "-o", str(results)]
    command += ["--workers", "1"]
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
    assert 2 <= len(finished) < 62
    assert all(pl.read_parquet(path).height > 0 for path in finished)
    assert not [path for path in results.iterdir() if path.name.startswith(".")]


LONG = """
[study]
replicates = 40
[grid]
algorithm = ["no-privacy"]
rounds = ["ROUNDS"]
environment = ["bernoulli"]
"""


@contextmanager
def started(study: Path, rounds: str, results: Path) -> Iterator[subprocess.Popen[str]]:
    study.write_text(LONG.replace("ROUNDS", rounds))
    command = [sys.executable, "-m", "bandanna", "study", "run", str(study), "-o", str(results)]
    command += ["--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def running(folder: Path) -> bool:
    """Whether a process is there and not only waiting to be taken note of."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_long_study_says_so_and_takes_its_workers_along(study: Path, tmp_path: Path) -> None:
    with started(study, "1e12", tmp_path / "results") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "this may take about 69 days, by a rough guess\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + 60
        while len(children.read_text().split()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = [Path("/proc") / child for child in children.read_text().split()]
        assert len(workers) >= 3  # the two, and who cleans up after them
        time.sleep(2)  # they are at it
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    deadline = time.monotonic() + 20
    while any(map(running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(running, workers))


@pytest.mark.slow
def test_ctrl_c_keeps_the_finished_runs_of_a_cell(study: Path, tmp_path: Path) -> None:
    parts = tmp_path / "results" / "parts"
    with started(study, "2e7", tmp_path / "results") as process:
        deadline = time.monotonic() + 100
        while len(list(parts.glob("*.npz"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert "0 of 1 cells are finished" in said
    assert len(list(parts.glob("*.npz"))) >= 2


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
    assert len(study.cells) == 57
    assert not study.skipped

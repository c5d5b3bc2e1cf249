"""Speed of studies: what scheduling costs, and what a second worker brings."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from bandanna.environments.tables import LossFile
from bandanna.studies import run as run_study
from bandanna.studies.cell import Shard
from bandanna.studies.play import Played, play
from bandanna.studies.study import Study

CELL_SECONDS, CELLS = 10.0, 6
ROOT = Path(__file__).parents[1]
TIMES = ROOT / "build" / "times.txt"


def timed_play(part: Shard, losses: LossFile | None) -> tuple[str, Played]:
    """Play where it is, and note how long that took."""
    start = time.perf_counter()
    found = play(part, losses)
    with TIMES.open("a", encoding="utf-8") as file:
        file.write(f"{time.perf_counter() - start}\n")
    return found


def scheduling() -> tuple[float, float]:
    """Return the overhead of two workers, and how much faster they are than one."""
    one_run = _seconds_of_a_run()
    study = _study(replicates=max(1, round(CELL_SECONDS / one_run)))
    walls, computed = {}, {}
    for workers in (1, 2):
        # The first study starts the workers and loads the compiled code; it does not count.
        _run(_study(replicates=1), workers)
        walls[workers], computed[workers] = _run(study, workers)
    overhead = 2 * walls[2] / computed[2] - 1
    return overhead, walls[1] / walls[2]


def _study(replicates: int) -> Study:
    grid = {
        "algorithm": ["no-privacy"],
        "environment": [{"name": "bernoulli", "gap": 0.1 + 0.05 * cell} for cell in range(CELLS)],
        "rounds": [100_000],
    }
    return Study(grid, replicates=replicates)  # type: ignore[arg-type]


def _seconds_of_a_run() -> float:
    part = Shard(_study(replicates=100).cells[0], 0, 100)
    play(part, None)
    start = time.perf_counter()
    play(part, None)
    return (time.perf_counter() - start) / 100


def _run(study: Study, workers: int) -> tuple[float, float]:
    """Return wall time, and the time all cells took where they were played."""
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text("", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with mock.patch.object(run_study, "play", timed_play):
            study.run(Path(folder) / "results", workers=workers)
        wall = time.perf_counter() - start
    return wall, sum(map(float, TIMES.read_text(encoding="utf-8").split()))


def reproduce_rates() -> float:
    """Return how long ``bandanna reproduce rates --quick`` takes; not all it measures holds."""
    return _command("reproduce", "rates", "--quick", allowed=(0, 1))


def demo() -> float:
    """Return how long the commands of ``make demo`` take."""
    with tempfile.TemporaryDirectory() as folder:
        results, audit = f"{folder}/results", Path(folder) / "audit.json"
        taken = _command("plan", "--arms", "4", "--rounds", "1e5", "--epsilon", "0.1")
        taken += _command("study", "run", "examples/trial.toml", "-o", results)
        claims = ("--epsilon", "0.1,0.3,1", "--draws", "2e5", "--json")
        taken += _command("audit", *claims, output=audit)
        shown = ("--audit", str(audit), "-o", f"{folder}/report.html")
        return taken + _command("study", "report", results, *shown)


def _command(*arguments: str, output: Path | None = None, allowed: tuple[int, ...] = (0,)) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bandanna", *arguments], check=False, capture_output=True, cwd=ROOT
    )
    if done.returncode not in allowed:
        raise RuntimeError(done.stderr.decode())
    if output is not None:
        output.write_bytes(done.stdout)
    return time.perf_counter() - start

"""``python -m benchmarks.walks``: functions and files of ours that three journeys pass through.

Distinct Python functions are counted, each once; compiled steps are not seen. The journeys: a loss
that completes a batch, and the next arm; a reward over HTTP until it is durable; a study from its
file to its report. ``docs/architecture.md`` names the steps of each that matter.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import bandanna as bd

PACKAGE = Path(bd.__file__).parent

STUDY = """
[study]
title = "a walk"
replicates = 2
[grid]
algorithm = ["one-bit", "no-privacy"]
environment = ["bernoulli"]
epsilon = [0.5, 1.0]
rounds = [1000]
arms = [3]
"""


class Passed(NamedTuple):
    """A function of the package."""

    file: str
    name: str
    line: int


@contextmanager
def watched() -> Iterator[set[Passed]]:
    """Note which functions of the package are called, in all threads that start meanwhile."""
    seen: set[Passed] = set()
    package = str(PACKAGE)

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package) and code.co_name[0] != "<":
            file = Path(code.co_filename).relative_to(package).as_posix()
            seen.add(Passed(file, code.co_name, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def a_loss(folder: Path) -> set[Passed]:
    """Observe a loss that completes a batch, and decide again."""
    policy = bd.PrivateBandit(3, 1.0, 10_000, "one-bit", batch=1)
    for _ in range(3):
        policy.observe(policy.decide(), loss=0.5)
    decision = policy.decide()
    with watched() as seen:
        policy.observe(decision, loss=0.5)
        policy.decide()
    return seen


def a_reward(folder: Path) -> set[Passed]:
    """Post a reward that completes a batch."""
    from tests.service.running import Here

    with watched() as seen:  # the service starts in it, so that its threads are watched
        here = Here(folder)
        with here.http:
            experiment = here.create(arms=["a", "b"], rounds=10_000, algorithm="one-bit")
            for _ in range(3):
                here.reward(here.decide(experiment)["event_id"], loss=0.5)
            event = here.decide(experiment)["event_id"]
            seen.clear()
            here.reward(event, loss=0.5)
            passed = set(seen)
    return passed


def a_study(folder: Path) -> set[Passed]:
    """Read a study, run it and write its report."""
    from bandanna.report.study_report import write_report

    (folder / "study.toml").write_text(STUDY)
    with watched() as seen:
        study = bd.Study.read(folder / "study.toml")
        results = study.run(folder / "results", workers=1)
        write_report(results, folder / "report.html")
    return seen


WALKS: dict[str, Callable[[Path], set[Passed]]] = {
    "A loss, to the next arm": a_loss,
    "A reward, to the disk": a_reward,
    "A study, to its report": a_study,
}


def main() -> None:
    """Print a line for each journey."""
    for name, walk in WALKS.items():
        with tempfile.TemporaryDirectory() as folder:
            seen = walk(Path(folder))
        print(f"{name}: {len(seen)} functions in {len({one.file for one in seen})} files")


if __name__ == "__main__":
    main()

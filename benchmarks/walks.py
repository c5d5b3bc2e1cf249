"""``python -m benchmarks.walks``: functions and files of ours that three journeys pass through.

Distinct Python functions are counted, each once; compiled steps are not seen. The journeys: a loss
that completes a batch, and the next arm; a reward over HTTP until it is durable; a study from its
file to its report.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import bandanna as bd

PACKAGE = str(Path(bd.__file__).parent)

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


def passed(journey: Callable[[], object]) -> tuple[int, int]:
    """Return how many functions and files of the package a journey passes, in all threads."""
    seen: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            seen.add((code.co_filename, code.co_name, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        journey()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    named = {one for one in seen if not one[1].startswith("<")}
    return len(named), len({file for file, _, _ in named})


def a_loss() -> tuple[int, int]:
    """Observe a loss that completes a batch, and decide again."""
    policy = bd.PrivateBandit(3, 1.0, 10_000, "one-bit", batch=1)
    for _ in range(3):
        policy.observe(policy.decide(), loss=0.5)
    decision = policy.decide()

    def journey() -> None:
        policy.observe(decision, loss=0.5)
        policy.decide()

    return passed(journey)


def a_reward(folder: Path) -> tuple[int, int]:
    """Post a reward that completes a batch."""
    from tests.service.running import Here

    counted: list[tuple[int, int]] = []

    def journey() -> None:  # the service starts in it, so that its threads are watched
        here = Here(folder)
        with here.http:
            experiment = here.create(arms=["a", "b"], rounds=10_000, algorithm="one-bit")
            for _ in range(3):
                here.reward(here.decide(experiment)["event_id"], loss=0.5)
            event = here.decide(experiment)["event_id"]
            watched.clear()
            here.reward(event, loss=0.5)
            named = {one for one in watched if not one[1].startswith("<")}
            counted.append((len(named), len({file for file, _, _ in named})))

    watched: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            watched.add((code.co_filename, code.co_name, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        journey()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counted[0]


def a_study(folder: Path) -> tuple[int, int]:
    """Read a study, run it and write its report."""
    from bandanna.report.study_report import write_report

    (folder / "study.toml").write_text(STUDY)

    def journey() -> None:
        study = bd.Study.read(folder / "study.toml")
        results = study.run(folder / "results", workers=1)
        write_report(results, folder / "report.html")

    return passed(journey)


def main() -> None:
    """Print a line for each journey."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, (functions, files) in (
            ("a loss, and the next arm", a_loss()),
            ("a reward over HTTP, until it is durable", a_reward(folder)),
            ("a study, from its file to its report", a_study(folder)),
        ):
            print(f"{name}: {functions} functions in {files} files")


if __name__ == "__main__":
    main()

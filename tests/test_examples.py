"""The examples run, at small sizes, and show what they promise."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.soak import mostly_slow

EXAMPLES = ROOT / "examples"
SHOWN = {
    # name: (small sizes, what must be among the output)
    "answer_log": (["4000"], ["epsilon 1: ", "epsilon 0.01: Too close to tell"]),
    "ab_test": (["2000"], ["2,000 visitors at epsilon 0.5", "700 purchases are still to be"]),
    "audit_mechanism": (
        ["100000"],
        ["too_little_noise FAILED", "float_noise FAILED: ", "lowest bit", "whole_noise passed"],
    ),
    "clinical_trial": (["500", "5"], ["no privacy   mean", "%  zidovudine + didanosine"]),
    "cluster_study": (
        ["1000", "3"],
        ["6 cells on tcp://127.0.0.1:", "the same numbers without the cluster"],
    ),
    "contextual": (["2000"], ["protects context and feedback, 2000 decided", "offers taken"]),
    "prompts": (["1000"], ["users content, at epsilon 1", "86.7% expected of: a prompt for each"]),
    "returning_people": (["100"], ["all feedback of one person", "2 arms"]),
    "river_bandit": (["300", "3"], ["epsilon = 0.5, delta = 0", "river, private"]),
}
STARTS_PROCESSES = {"cluster_study"}


def test_every_example_is_run() -> None:
    assert sorted(SHOWN) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", mostly_slow(sorted(SHOWN), SHOWN.keys() - STARTS_PROCESSES))
def test_it_runs_and_is_short(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES / f"{name}.py"
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < 60
    assert f"\npython examples/{name}.py [" in text  # says how to run it
    sizes, expected = SHOWN[name]
    if name in STARTS_PROCESSES:
        printed = run_alone(path, sizes, tmp_path)
    else:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(path), *sizes])
        runpy.run_path(str(path), run_name="__main__")
        printed = capsys.readouterr().out
    for part in expected:
        assert part in printed


def run_alone(path: Path, sizes: list[str], folder: Path) -> str:
    """Run a program whose own processes import it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), *sizes],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

"""What people expect of a project they may rely on is there, and says what is so."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bandanna._core.types import JSON
from bandanna.version import __version__
from tests import notebooks
from tests.pages import ROOT

NOTEBOOKS = sorted(set((ROOT / "examples").glob("*.ipynb")) - {notebooks.TUTORIAL})


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {__version__}\n" in text
    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert f"license: {data['project']['license']}\n" in text


def test_the_workflow_runs_what_we_run() -> None:
    assert "run: .ci/run\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_what_make_test_leaves_out_is_run_before_anything_lands() -> None:
    assert "\nmake test SLOW=1\n" in (ROOT / ".ci" / "run").read_text("utf-8")
    targets = (ROOT / "Makefile").read_text("utf-8").split("\n\n")
    for name in ("test", "coverage"):
        (recipe,) = (target for target in targets if f"\n{name}: " in target)
        assert '-m "not soak"' in recipe
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    assert '-m "not slow and not soak"' in options["ini_options"]["addopts"]


def test_every_commit_is_looked_at_as_make_lint_does() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    (recipe,) = (
        target
        for target in (ROOT / "Makefile").read_text("utf-8").split("\n\n")
        if target.startswith("lint: ")
    )
    commands = [line.strip().split() for line in recipe.splitlines()[1:]]
    assert len(commands) == hooks.count("- id:") == 4
    for program, *rest in commands:
        words = [word for word in rest if word != "."]
        assert " ".join([program.replace("$(BIN)", "entry: .venv/bin"), *words]) in hooks


def test_numba_has_a_ceiling_below_which_it_is_tried() -> None:
    """Its internals are subclassed: a version that nobody tried may compile something else."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    (numba,) = (Requirement(one) for one in needed if one.startswith("numba"))
    locked = re.search(r"^numba==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.M)
    assert locked is not None
    assert numba.specifier.contains(locked[1])
    major, minor, *_ = map(int, locked[1].split("."))
    assert not numba.specifier.contains(f"{major}.{minor + 1}.0")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_offline_and_shows_what_it_did(path: Path) -> None:
    kept = json.loads(path.read_text("utf-8"))
    assert "cdn." not in path.read_text("utf-8")
    for before, now in zip(kept["cells"], notebooks.run(path)["cells"], strict=True):
        if before["cell_type"] == "code":
            assert before["execution_count"]
            assert printed(now) == printed(before)


def test_the_tutorial_is_a_notebook_too() -> None:
    """Its code is run as that of the page is, and what it prints has new noise every time."""
    kept = json.loads(notebooks.TUTORIAL.read_text("utf-8"))["cells"]
    made = notebooks.of_page(notebooks.TUTORIAL_PAGE)["cells"]
    assert [cell["source"] for cell in kept] == [cell["source"] for cell in made]
    assert all(cell["execution_count"] for cell in kept if cell["cell_type"] == "code")


def printed(cell: JSON) -> str:
    streams = [part for part in cell["outputs"] if part["output_type"] == "stream"]
    return "".join("".join(part["text"]) for part in streams)

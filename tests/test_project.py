"""What people expect of a project they may rely on is there, and says what is so."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from bandanna._core.types import JSON
from bandanna.version import __version__
from tests import notebooks
from tests.pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {__version__}\n" in text
    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert f"license: {data['project']['license']}\n" in text


def test_the_workflow_runs_what_we_run() -> None:
    assert "run: .ci/run\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_offline_and_shows_what_it_did(path: Path) -> None:
    kept = json.loads(path.read_text("utf-8"))
    assert "cdn." not in path.read_text("utf-8")
    for before, now in zip(kept["cells"], notebooks.run(path)["cells"], strict=True):
        if before["cell_type"] == "code":
            assert before["execution_count"]
            assert printed(now) == printed(before)


def printed(cell: JSON) -> str:
    streams = [part for part in cell["outputs"] if part["output_type"] == "stream"]
    return "".join("".join(part["text"]) for part in streams)

"""What people expect of a project they may rely on is there, and says what is so."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from bandanna.version import __version__
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
def test_a_notebook_was_executed_and_says_the_same_again(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace: dict[str, object] = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["execution_count"]
        exec("".join(cell["source"]), namespace)
        shown = [part for part in cell["outputs"] if part["output_type"] == "stream"]
        assert capsys.readouterr().out == "".join("".join(part["text"]) for part in shown)
    assert "certificate" in namespace

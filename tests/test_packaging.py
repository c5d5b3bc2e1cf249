"""What is published, and how it is checked before."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import hatch_build
import pytest
from release import check_wheels, ready, requirements
from typer.testing import CliRunner

from bandanna.cli import app, doctor
from bandanna.version import __version__
from tests.pages import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_lock_names_everything_that_is_asked_for() -> None:
    names = {re.split(r"[\[>=<]", text)[0].lower() for text in requirements.requirements()}
    locked = {re.split(r"[\[=]", text)[0].lower() for text in check_wheels.locked()}
    assert {"numba", "fastapi", "pytest"} <= names
    assert names <= locked
    assert not any(text.startswith("bandanna") for text in requirements.requirements())


def test_wheels_are_looked_for_in_the_versions_we_name() -> None:
    assert check_wheels.versions() == ["3.12", "3.13", "3.14"]
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"


def test_a_release_is_refused_until_everything_agrees(tmp_path: Path) -> None:
    root, dist = tmp_path / "root", tmp_path / "dist"
    for folder in (root / "src/bandanna", root / "clients/python", dist):
        folder.mkdir(parents=True)
    (root / "src/bandanna/version.py").write_text('__version__ = "1.2.3"\n')
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "clients/python/pyproject.toml").write_text('[project]\nversion = "1.2.2"\n')
    (root / "CITATION.cff").write_text("version: 1.2.2\n")
    (root / "CHANGELOG.md").write_text("## 1.2.3, not released yet\n")
    git(root, "init", "-q")
    found = "\n".join(ready.problems(dist, root))
    for part in ("1.2.2, not 1.2.3", "CITATION.cff", "not released yet", "lacks", "not committed"):
        assert part in found
    assert found.count("pyproject.toml has no [project.urls]") == 2
    assert "git tag -s v1.2.3" in found
    urls = '[project.urls]\nHomepage = "https://bandanna.example"\n'
    (root / "pyproject.toml").write_text(f"[project]\n{urls}")
    (root / "clients/python/pyproject.toml").write_text(f'[project]\nversion = "1.2.3"\n{urls}')
    (root / "CITATION.cff").write_text("version: 1.2.3\n")
    (root / "CHANGELOG.md").write_text("## 1.2.3, 2030-01-31\n")
    for name in ("bandanna", "bandanna_client"):
        (dist / f"{name}-1.2.3-py3-none-any.whl").touch()
        (dist / f"{name}-1.2.3.tar.gz").touch()
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")
    git(root, "tag", "v1.2.3")
    assert list(ready.problems(dist, root)) == []


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def test_the_bill_of_materials_names_dependencies_and_data() -> None:
    pinned = dict(text.split("==") for text in check_wheels.locked() if "[" not in text)
    bill = hatch_build.bill_of("bandanna", "1.0", PYPROJECT["project"]["dependencies"], pinned)
    names = {part["name"]: part for part in bill["components"]}
    assert names["opendp"]["purl"] == f"pkg:pypi/opendp@{pinned['opendp']}"
    assert names["actg175"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert len(bill["dependencies"]) == len(names) + 1


def test_workflows_publish_nothing_by_themselves() -> None:
    for name in ("publish", "platforms"):
        text = (ROOT / ".github/workflows" / f"{name}.yml").read_text("utf-8")
        assert "workflow_dispatch:" in text
        assert not re.search(r"^\s+(push|schedule|release|pull_request):", text, re.MULTILINE)


def test_the_recipe_and_the_paper_agree_with_the_project() -> None:
    recipe = (ROOT / "release/conda/recipe.yaml").read_text("utf-8")
    assert f'version: "{__version__}"' in recipe
    for text in PYPROJECT["project"]["dependencies"]:
        name, _, least = text.partition(">=")
        assert f"- {name} >={least}\n" in recipe
    paper = (ROOT / "release/paper/paper.md").read_text("utf-8")
    cited = set(re.findall(r"@(\w+)", paper))
    known = re.findall(r"@\w+\{(\w+),", (ROOT / "release/paper/paper.bib").read_text("utf-8"))
    assert cited == set(known)


def test_doctor_says_what_is_there_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"bandanna {__version__}, CPython {sys.version_info.major}.")
    assert "machine code: compiled in" in done.output
    assert "extra report: ready" in done.output
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)
    assert found["packages"]["opendp"]["good"]
    monkeypatch.setattr(doctor, "_required", lambda: {"numba": "999.0", "no-such": None})
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert "NEEDED: >=999.0" in done.output
    assert "PROBLEM: no-such is not installed" in done.output


def test_the_shell_can_complete_commands() -> None:
    asked = "import os, sys; sys.argv = ['bandanna']; from bandanna.cli import main; main()"
    environment = {
        "_BANDANNA_COMPLETE": "complete_bash",
        "COMP_WORDS": "bandanna do",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["doctor"], done.stderr

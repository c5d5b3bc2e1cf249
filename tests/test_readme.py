"""The README does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_its_python_runs_and_prints_what_it_shows(capsys) -> None:  # type: ignore[no-untyped-def]
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    namespace: dict[str, object] = {}
    shown = [body for language, body in blocks if language == ""]
    printed = ""
    for language, body in blocks:
        if language == "python":
            exec(compile(body, str(README), "exec"), namespace)
            printed += capsys.readouterr().out
    assert shown
    for output in shown:
        assert output in printed


@pytest.mark.parametrize("page", sorted(README.parent.glob("docs/**/*.md")), ids=lambda p: p.name)
def test_the_docs_python_runs(page: Path) -> None:
    namespace: dict[str, object] = {}
    for body in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
        exec(compile(body, str(page), "exec"), namespace)


@pytest.mark.parametrize(
    "page", [README, *sorted(README.parent.glob("docs/**/*.md"))], ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_it_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150

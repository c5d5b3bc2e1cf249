"""The README does what it says."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_it_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150

"""Help on the command line: one screen, an example, plain words."""

from __future__ import annotations

import pytest
import typer.main
from typer.testing import CliRunner

from bandanna.cli import app
from bandanna.cli.help import QUESTIONS


def commands() -> list[tuple[str, ...]]:
    """Return every command, with the groups that have some."""
    found: list[tuple[str, ...]] = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        found += [(name, below) for below in getattr(command, "commands", {})] or [(name,)]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_is_one_screen_with_an_example(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"]).output
    assert len(shown.splitlines()) <= 40
    assert f"  bandanna {' '.join(command)}" in shown.partition("Example")[2]
    assert max(map(len, shown.splitlines())) <= 90


def test_commands_are_laid_out_by_question() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Which option is best?\n  answer " in shown
    listed = [name for names in QUESTIONS.values() for name in names]
    assert sorted(listed) == sorted({name for name, *_ in commands()})
    assert "..." not in shown.partition("Which option is best?")[2]


def test_help_all_shows_the_other_options_too() -> None:
    short = CliRunner().invoke(app, ["simulate", "--help"]).output
    everything = CliRunner().invoke(app, ["simulate", "--help-all"]).output
    assert "--spread" not in short
    assert "--spread" in everything
    listed = CliRunner().invoke(app, ["simulate", "--algorithms", "list"]).output
    assert "with experts: auto, " in listed

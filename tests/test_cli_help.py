"""Help on the command line: one screen, an example, plain words."""

from __future__ import annotations

import re

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


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_a_command_has_at_most_a_dozen_options(command: tuple[str, ...]) -> None:
    found = typer.main.get_command(app)
    for name in command:
        found = found.commands[name]  # type: ignore[attr-defined]
    shown = [
        one
        for one in found.params
        if one.param_type_name == "option" and not getattr(one, "hidden", False)
    ]
    assert len(shown) <= 12, [one.name for one in shown]


def test_names_for_comparison_are_listed_apart() -> None:
    listed = CliRunner().invoke(app, ["simulate", "--algorithms", "list"]).output
    assert "with experts: auto, " in listed
    # Another test of the same process may have made prior work known.
    assert re.search("for comparison: ldp-exp3, (dp-exp3-lap, )?uniform", listed)

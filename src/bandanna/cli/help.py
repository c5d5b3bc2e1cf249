"""Help that fits one screen: commands by question, an example of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

QUESTIONS = {
    "Which option is best?": ("answer",),
    "How many people does it take, and which algorithm is right?": (
        *("size", "plan", "simulate", "study"),
    ),
    "How do I run it where my data and my flags are?": ("phases",),
    "How do I run it for a team?": ("serve", "keys", "db"),
    "How can others check what is promised?": ("ledger", "verify", "card", "audit", "certificate"),
    "Does the paper's theory hold?": ("reproduce",),
    "Is it installed correctly?": ("doctor",),
}
"""The commands, by what one wants to know."""

FromClick = Any
"""What the library below Typer hands over; Typer does not say which version of it that is."""


class ByQuestion(TyperGroup):
    """A group of commands whose help has a section for each question."""

    def format_commands(self, ctx: FromClick, formatter: FromClick) -> None:
        """Write what each command does in full, below the question it answers."""
        for question, names in QUESTIONS.items():
            formatter.write(f"\n{question}\n")
            with formatter.indentation():
                formatter.write_dl(
                    [(f"{name:11}", self.commands[name].get_short_help_str(66)) for name in names]
                )


class WithExamples(TyperCommand):
    """A command whose help ends with examples as they are typed."""

    examples: tuple[str, ...] = ()

    def format_epilog(self, ctx: FromClick, formatter: FromClick) -> None:
        """Write the examples as they are typed."""
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for line in self.examples:
                formatter.write(f"  {line}\n")


ABOUT = (
    "Run experiments and bandits on people's data, and say which option is best, without giving "
    "any one person's feedback away. Every command has --help with an example."
)

app = typer.Typer(
    cls=ByQuestion,
    help=ABOUT,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
"""The command line, to which each module of this package adds its commands."""


def group(name: str, about: str) -> typer.Typer:
    """Add a group of commands."""
    made = typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(made, name=name)
    return made


def command(
    *examples: str, of: typer.Typer = app, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a command, with examples at the end of its help."""
    kind = type("Command", (WithExamples,), {"examples": examples})

    return of.command(name, cls=kind)

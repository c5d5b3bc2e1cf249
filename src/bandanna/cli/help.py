"""Help that fits one screen: commands by question, the usual options, an example of each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from bandanna.cli.options import option, options_of, with_options

QUESTIONS = {
    "Which option is best?": ("answer",),
    "How many people does it take, and which algorithm is right?": ("plan", "simulate", "study"),
    "How do I run it where my data and my flags are?": ("phases",),
    "How do I run it for a team?": ("serve", "keys", "db"),
    "How can others check what is promised?": ("ledger", "verify", "card", "audit", "certificate"),
    "Does the paper's theory hold?": ("reproduce",),
    "Is it installed correctly?": ("doctor",),
}
"""The commands, by what one wants to know."""

FromClick = Any
"""What the library below Typer hands over; Typer does not say which version of it that is."""

ALWAYS = ("help", "help_all")


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


class OneScreen(TyperCommand):
    """A command whose ``--help`` shows the usual options; ``--help-all`` shows the others too."""

    usual: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def format_options(self, ctx: FromClick, formatter: FromClick) -> None:
        """Write arguments and options; those that are not usual only if all were asked for."""
        rare: list[FromClick] = [
            one for one in self.params if self._rare(one) and not ctx.meta.get("help_all")
        ]
        for one in rare:
            one.hidden = True
        try:
            super().format_options(ctx, formatter)
        finally:
            for one in rare:
                one.hidden = False

    def format_epilog(self, ctx: FromClick, formatter: FromClick) -> None:
        """Write the examples as they are typed."""
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for line in self.examples:
                formatter.write(f"  {line}\n")

    def _rare(self, one: FromClick) -> bool:
        option = one.param_type_name == "option" and not one.hidden
        return bool(self.usual) and option and one.name not in (*self.usual, *ALWAYS)


def one_screen(
    app: typer.Typer, *examples: str, usual: str = "", name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a command to an app, with examples at the end of its help.

    ``usual`` names the options that ``--help`` shows, by their parameters, separated by spaces; by
    default it shows all.
    """
    kind = type("Command", (OneScreen,), {"usual": tuple(usual.split()), "examples": examples})

    def add(command: Callable[..., None]) -> Callable[..., None]:
        app.command(name, cls=kind)(_with_help_all(command) if usual else command)
        return command

    return add


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta["help_all"] = True
        typer.echo(context.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show all options."),
]


def _with_help_all(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option ``--help-all``."""

    @functools.wraps(command)
    def called(*, help_all: bool, **given: object) -> None:
        del help_all
        command(**given)

    return with_options(called, [*options_of(command), option("help_all", HelpAll, False)])

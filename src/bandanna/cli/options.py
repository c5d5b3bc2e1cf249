"""Parsing of command-line options."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable
from typing import Annotated

import typer

from bandanna._core import checks
from bandanna._core.types import WEAK_EPSILON, Guarantee, InputError, weakness
from bandanna.spec import parameters


def whole_number(option: str, text: str, most: float = 1e15) -> int:
    """Read a count that may be written as 1e6."""
    number = checks.as_float(checks.spelled(text))
    if not (1 <= number <= most and number.is_integer()):
        raise InputError(
            f"{option} must be a whole number from 1 to {most:g}, such as 100000 or 1e6; "
            f"got {text!r}."
        )
    return int(number)


def numbers(option: str, text: str) -> list[float]:
    """Read a comma-separated list of numbers."""
    values = [checks.as_float(checks.spelled(part)) for part in text.split(",") if part.strip()]
    if not values or any(math.isnan(value) for value in values):
        raise InputError(f"{option} must be numbers separated by commas; got {text!r}.")
    return values


LONG = 60.0
"""Seconds of work that are announced."""


def announce(seconds: float) -> None:
    """Say before long work how long it may take, unless quiet was asked for."""
    if seconds > LONG and not os.environ.get("BANDANNA_QUIET"):
        typer.echo(f"this may take {duration(seconds)}, by a rough guess", err=True)


def note_weak(epsilon: float | None, *, quiet: bool = False) -> None:
    """Say before anything is planned that an epsilon is weak, unless quiet was asked for."""
    quiet = quiet or bool(os.environ.get("BANDANNA_QUIET"))
    if not quiet and epsilon is not None and WEAK_EPSILON < epsilon <= checks.MAX_EPSILON:
        promise = Guarantee(epsilon, 0.0, "", "central", "", "")
        typer.echo(f"note: epsilon {epsilon:g} is weak: {weakness(promise)}", err=True)


Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars and no estimates of time.")]


def be_quiet(quiet: bool) -> None:
    """Let this process, and those it starts, work without saying how far they are."""
    if quiet:
        os.environ["BANDANNA_QUIET"] = "1"


def can_be_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that may take long the option ``--quiet``."""

    @functools.wraps(command)
    def called(*, quiet: bool, **given: object) -> None:
        be_quiet(quiet)
        command(**given)

    return with_options(called, [*options_of(command), option("quiet", Quiet, False)])


def option(name: str, kind: object, default: object) -> inspect.Parameter:
    """Return an option that a command does not declare itself."""
    kinds = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kinds, default=default, annotation=kind)


def options_of(command: Callable[..., None]) -> list[inspect.Parameter]:
    """Return what a command is called with, all by name."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    return [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]


def with_options(
    command: Callable[..., None], options: list[inspect.Parameter]
) -> Callable[..., None]:
    """Let a command that takes anything by name say which options it has."""
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return command


def takes_spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each parameter of a policy that is declared to have one.

    The command gets those that were given, checked, as ``policy_options``.
    """
    declared = {name: one for name, one in parameters().items() if one.option}

    @functools.wraps(command)
    def called(**given: object) -> None:
        texts = {name: given.pop(name) for name in declared}
        values = {
            name: declared[name].check(checks.spelled(text))
            for name, text in texts.items()
            if text is not None
        }
        command(**given, policy_options=values)

    added = [
        option(name, Annotated[str | None, typer.Option(help=one.help)], None)
        for name, one in declared.items()
    ]
    options = []
    for own in options_of(command):
        options += added if own.name == "policy_options" else [own]
    return with_options(called, options)


def duration(seconds: float) -> str:
    """Say a time in the unit that suits it."""
    for unit, size in (("years", 3.2e7), ("days", 86400), ("hours", 3600)):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:,.0f} {unit}"
    return f"about {seconds / 60:.0f} minutes"


def without_nan(value: object) -> object:
    """Replace what JSON cannot say, NaN, by null."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value

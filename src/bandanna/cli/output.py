"""What is printed in the terminal: tables, notes and durations."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from bandanna._core import checks
from bandanna._core.types import WEAK_EPSILON, Guarantee, weakness

if TYPE_CHECKING:
    from bandanna.environments.log import LogSample


PLAIN_WIDTH = 110
MOST_ARMS = 30


def print_table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str
) -> None:
    """Print a table; the first column is words, the others numbers where they look like it."""
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for column, heading in enumerate(headings):
        numeric = all(_looks_numeric(row[column]) for row in rows)
        table.add_column(heading, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*row)
    console = Console(width=None if sys.stdout and sys.stdout.isatty() else PLAIN_WIDTH)
    # Rather long lines than numbers cut short.
    needed = Measurement.get(console, console.options.update(width=10_000), table).maximum
    console.width = max(console.width, needed)
    console.print(table)


def print_sample(sample: LogSample) -> None:
    """Print what a log says about its arms, before anything that is made from it."""
    from bandanna.environments.log import AS_TRUE, UNPROTECTED

    print_table(
        "The log is a sample",
        ["arm", "rows", f"mean {sample.outcome}".strip(), "standard error"],
        sample.rows[:MOST_ARMS],
        f"{UNPROTECTED}\n{AS_TRUE}",
    )
    typer.echo(sample.sentence)


def _looks_numeric(text: str) -> bool:
    return text[:1] in "+-0123456789." and text != ""


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


def duration(seconds: float) -> str:
    """Say a time in the unit that suits it."""
    for unit, size in (("years", 3.2e7), ("days", 86400), ("hours", 3600)):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:,.0f} {unit}"
    return f"about {seconds / 60:.0f} minutes"


def print_json(document: object) -> None:
    """Print a document; NaN and infinity, which JSON cannot say, are null."""
    typer.echo(json.dumps(_sayable(document), indent=2, allow_nan=False))


def _sayable(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Tables printed in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bandanna.environments.sample import LogSample

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
    from bandanna.environments.sample import AS_TRUE, UNPROTECTED

    print_table(
        "The log is a sample",
        ["arm", "rows", f"mean {sample.outcome}".strip(), "standard error"],
        sample.rows[:MOST_ARMS],
        f"{UNPROTECTED}\n{AS_TRUE}",
    )
    typer.echo(sample.sentence)


def _looks_numeric(text: str) -> bool:
    return text[:1] in "+-0123456789." and text != ""

"""Tables people read."""

from __future__ import annotations

import sys
from collections.abc import Sequence

PLAIN_WIDTH = 110


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


def _looks_numeric(text: str) -> bool:
    return text[:1] in "+-0123456789." and text != ""

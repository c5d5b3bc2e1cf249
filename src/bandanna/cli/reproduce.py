"""``bandanna reproduce``: what the paper claims, measured."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.types import InputError
from bandanna.cli.options import announce

if TYPE_CHECKING:
    from bandanna.reproduce import Reproduction


def reproduce(
    name: Annotated[str, typer.Argument(help="What to reproduce; see --list.")] = "",
    list_names: Annotated[bool, typer.Option("--list", help="List the claims.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller version that takes seconds.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option(help="Write the figure: .html, .svg, .png or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure a claim of the paper and say whether it holds."""
    from bandanna.reproduce import REPRODUCTIONS, WITHOUT_FIGURE, expected_seconds
    from bandanna.reproduce import reproduce as measure

    if list_names:
        for known, claim in REPRODUCTIONS.items():
            typer.echo(f"{known:10} {claim}")
        return
    if chart is not None and name in WITHOUT_FIGURE:
        raise InputError(f"{name} has no figure.")
    announce(expected_seconds(name, quick=quick) / (os.cpu_count() or 1))
    result = measure(name, quick=quick)
    if chart is not None and result.figure is not None:
        from bandanna.report.charts import figure_chart, save_chart

        save_chart(figure_chart(result.figure), chart)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        _print(result)
    raise typer.Exit(0 if result.holds else 1)


def _print(result: Reproduction) -> None:
    from bandanna.cli.tables import print_table

    lines = [
        f"{'holds' if verdict.holds else 'DOES NOT HOLD'}: {verdict.claim}: {verdict.measured} "
        f"(tolerance: {verdict.tolerance})"
        for verdict in result.verdicts
    ]
    print_table(result.claim, result.headings, result.rows, "\n".join(lines))

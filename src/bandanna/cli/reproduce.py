"""``bandanna reproduce``: measures what the paper claims, with the ``research`` of a clone."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.types import InputError
from bandanna.cli.help import command
from bandanna.cli.options import Json
from bandanna.cli.output import announce, print_json, print_table

if TYPE_CHECKING:
    from research import Reproduction


@command(
    "bandanna reproduce --list",
    "bandanna reproduce one-bit --quick --chart bound.html",
)
def reproduce(
    name: Annotated[str, typer.Argument(help="What to reproduce; see --list.")] = "",
    list_names: Annotated[bool, typer.Option("--list", help="List the claims.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller version that takes seconds.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option(help="Write the figure: .html, .svg, .png or .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a claim of the paper and say whether it holds."""
    research = of_a_clone()
    if list_names:
        for key, claim in research.REPRODUCTIONS.items():
            typer.echo(f"{key:10} {claim}")
        return
    if chart is not None:
        if name in research.WITHOUT_FIGURE:
            raise InputError(f"{name} has no figure.")
        from bandanna.report.charts import check_chart, save_chart

        check_chart(chart)  # before the work, not after it
    announce(research.expected_seconds(name, quick=quick) / (os.cpu_count() or 1))
    result = research.reproduce(name, quick=quick)
    if chart is not None:
        save_chart(import_module("research.charts").figure_chart(result.figure), chart)
    if as_json:
        print_json(result.to_dict())
    else:
        _print_reproduction(result)
    raise typer.Exit(0 if result.holds else 1)


def of_a_clone() -> ModuleType:
    """Return ``research`` of the clone that this package is run from, or of this folder."""
    beside = Path(__file__).parents[3]
    for clone in (beside, Path.cwd()):
        if (clone / "research" / "settings").is_dir() and (clone / "src" / "bandanna").is_dir():
            sys.path.insert(0, str(clone))
            return import_module("research")
    raise InputError(
        "reproductions stand beside the package, in the folder research of its repository, and are "
        "not installed with it. Clone the repository, and run bandanna reproduce in the clone."
    )


def _print_reproduction(result: Reproduction) -> None:
    lines = [
        f"{'holds' if verdict.holds else 'DOES NOT HOLD'}: {verdict.claim}: {verdict.measured} "
        f"(tolerance: {verdict.tolerance})"
        for verdict in result.verdicts
    ]
    print_table(result.claim, result.headings, result.rows, "\n".join(lines))

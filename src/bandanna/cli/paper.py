"""``bandanna reproduce`` and ``bandanna regimes``: whether the paper's theory holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.types import InputError
from bandanna.cli.options import whole_number
from bandanna.cli.output import announce, print_table

if TYPE_CHECKING:
    from bandanna.planner.regimes import Finding, RegimeMap
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
        _print_reproduction(result)
    raise typer.Exit(0 if result.holds else 1)


def _print_reproduction(result: Reproduction) -> None:
    from bandanna.cli.output import print_table

    lines = [
        f"{'holds' if verdict.holds else 'DOES NOT HOLD'}: {verdict.claim}: {verdict.measured} "
        f"(tolerance: {verdict.tolerance})"
        for verdict in result.verdicts
    ]
    print_table(result.claim, result.headings, result.rows, "\n".join(lines))


HEADINGS = (
    "regime",
    "where",
    "the paper's choice",
    "problems",
    "smallest rate",
    "says something",
    "smallest bound",
    "anything does",
)


def regimes(
    arms: Annotated[str | None, typer.Option(help="Number of arms.", show_default="10")] = None,
    delta: Annotated[
        float, typer.Option(help="Second privacy parameter.", show_default="1e-6")
    ] = 0.0,
    chart: Annotated[
        Path | None, typer.Option(help="Write a map: .html, .svg, .png or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check the paper's advice on algorithms for experts, by size."""
    from bandanna.planner.regimes import ARMS, DELTA, regime_map

    size = ARMS if arms is None else whole_number("--arms", arms)
    if chart is not None:
        from bandanna.report.charts import check_chart

        check_chart(chart)  # before the work, not after it
    found = regime_map(size, delta or DELTA)
    if chart is not None:
        from bandanna.report.charts import regimes_chart, save_chart

        save_chart(regimes_chart(found), chart)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        _print_regimes(found)


def _print_regimes(found: RegimeMap) -> None:
    findings = found.findings
    rows = [
        [
            finding.regime.name,
            finding.regime.condition,
            finding.regime.algorithm,
            *(
                f"{count:,}"
                for count in (
                    finding.points,
                    finding.smallest_rate,
                    finding.promises,
                    finding.best,
                    finding.guaranteed,
                )
            ),
        ]
        for finding in findings
    ]
    without = sum(
        not any(finding.regime.contains(cell.problem) for finding in findings)
        for cell in found.cells
        if cell.by_rate
    )
    print_table(
        f"The paper's regimes, {found.arms:,} arms, delta {found.delta:g}: problems of a grid over "
        f"N/K, epsilon and T",
        HEADINGS,
        rows,
        "problems: any of the paper's three rates is below T; smallest rate: the paper's choice "
        "has it;\nsays something: its guarantee with the paper's constants is below T; smallest "
        "bound: of all algorithms;\nanything does: some algorithm's guarantee is below T. The "
        f"paper recommends nothing for {without:,} problems more.",
    )
    for finding in findings:
        typer.echo(_regime_sentence(finding))


def _regime_sentence(finding: Finding) -> str:
    """Say where the recommendation is not the best, in numbers."""
    regime = finding.regime
    start = f"{regime.name}: {regime.algorithm} "
    if finding.example is None:
        return f"{start}has the smallest guarantee wherever there is one."
    beaten = finding.guaranteed - finding.best
    winners = ", ".join(f"{name} ({count})" for name, count in finding.winners.items())
    problem, shares = finding.example.problem, finding.example.shares
    _, rounds, epsilon = problem.size
    theirs = shares.get(regime.algorithm)
    instead = "it does not apply" if theirs is None else f"it guarantees {theirs * rounds:,.0f}"
    larger = finding.times_larger
    median = "" if larger is None else f" Its bound is {larger:,.0f} times the best, in the median."
    return (
        f"{start}is not the best at {beaten:,} of the {finding.guaranteed:,} problems for which "
        f"anything is guaranteed. Best: {winners}.{median} For example at N = {problem.experts:,}, "
        f"T = {rounds:,}, epsilon = {epsilon:.2g} {instead}, "
        f"{finding.example.best} {min(shares.values()) * rounds:,.0f}."
    )

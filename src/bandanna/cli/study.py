"""``bandanna study``: a grid of simulations described in a file, and its report."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import bandanna as bd
from bandanna._core.documents import write_whole
from bandanna._core.types import JSON
from bandanna.algorithms import AUTO
from bandanna.cli.help import command, group
from bandanna.cli.options import (
    OF_A_LOG,
    Arm,
    Clip,
    Outcome,
    Range,
    Reward,
    read_log,
    read_range,
    setting,
    settings,
)
from bandanna.cli.output import announce

if TYPE_CHECKING:
    from bandanna.studies.cell import Skipped

WITHOUT = ("adaptive", "phased", "ab-test", "dp-klucb", "one-bit-exp3")
WITH_EXPERTS = ("auto", "adaptive", "dp-klucb", "one-bit-exp4")
"""What a new study compares: with each other, with the same without privacy, and with the
strongest without privacy."""

commands = group("study", "Compare algorithms over many settings, and write a report.")


@command(
    "bandanna study new visits.csv --arm plan --outcome visits --range 0,20 -o visits.toml",
    of=commands,
)
def new(
    log: Annotated[Path, typer.Argument(help="A log: one row for each decision made.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The TOML file to write.")],
    arm: Arm = None,
    outcome: Outcome = None,
    loss_range: Range = None,
    reward: Reward = False,
    clip: Clip = False,
    epsilon: Annotated[float, typer.Option(help="Privacy parameter to ask about.")] = 0.5,
    further: Annotated[
        list[str] | None,
        setting("bd.environments.Logged: person=patient, how=replay, advice=doctor,nurse"),
    ] = None,
) -> None:
    """Write a study of a log: which arm is best, and what privacy costs."""
    from bandanna.simulation.baselines import NO_PRIVACY, SAME

    more = settings(further, OF_A_LOG) | ({"clip": True} if clip else {})
    read_log(log, arm, outcome, loss_range, reward=reward, **more)
    output.parent.mkdir(parents=True, exist_ok=True)
    source: JSON = {"log": os.path.relpath(log, output.parent)}
    source |= {"arm": arm, "outcome": outcome, "range": list(read_range(loss_range))}
    source |= ({"reward": True} if reward else {}) | more
    private = WITH_EXPERTS if "advice" in more else WITHOUT
    same = [f"{name}{SAME}" for name in private if name != AUTO]
    asked = bd.Study(
        {
            "algorithm": [*private, *same, NO_PRIVACY],
            "epsilon": [float(f"{epsilon * factor:.4g}") for factor in (0.2, 1.0, 5.0)],
            "environment": [source],
        },
        title=f"{log.stem}, rehearsed",
        question=f"Which {arm} is best by {outcome}, and what does privacy cost?",
        folder=output.parent,
    )
    write_whole(output, asked.to_toml())
    typer.echo(f"wrote {output}; next: bandanna study run {output} -o results")


@command("bandanna study run visits.toml -o results", of=commands)
def run(
    study: Annotated[Path, typer.Argument(help="A TOML file with [study] and [grid].")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")],
    cluster: Annotated[
        str | None, typer.Option(help="A Dask scheduler, such as tcp://host:8786.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine; by default one a core.")
    ] = None,
) -> None:
    """Run what has not been run yet. Ctrl-C keeps what is finished."""
    from bandanna.studies.results import ResultsFolder

    asked = bd.Study.read(study)
    there = sum(ResultsFolder(output).has(cell.key) for cell in asked.cells)
    seconds = 0.0 if cluster else asked.estimate(output, workers=workers)
    announce(seconds)
    try:
        results = asked.run(output, cluster=cluster, workers=workers)
    except KeyboardInterrupt:
        done = sum(ResultsFolder(output).has(cell.key) for cell in asked.cells)
        typer.echo(
            f"stopped: {done} of {len(asked.cells)} cells are finished and kept in {output}, and "
            f"parts of others; the same command goes on.",
            err=True,
        )
        raise
    for line in _reasons(results.skipped):
        typer.echo(line)
    typer.echo(
        f"{len(asked.cells) - there} cells run, {there} already there, "
        f"{len(results.skipped)} cannot apply; results in {output}"
    )


@command("bandanna study report results -o report.html", of=commands)
def report(
    results: Annotated[Path, typer.Argument(help="The folder of a study's results.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    audit: Annotated[
        Path | None, typer.Option(help="What bandanna audit --json printed, to be shown too.")
    ] = None,
    charts: Annotated[
        str | None, typer.Option(help="Also write every chart by itself: svg, png or pdf.")
    ] = None,
) -> None:
    """Write the report: one HTML file that works offline."""
    from bandanna.report.headline import leads
    from bandanna.report.study_report import said, write_report

    results_read = bd.StudyResults.read(results)
    written = write_report(results_read, output, audit=audit, charts=charts)
    for path in written:
        typer.echo(f"wrote {path}")
    for sentence in said(leads(results_read)):
        typer.echo(sentence)


def _reasons(skipped: list[Skipped]) -> list[str]:
    """Say once for each reason what cannot apply."""
    counts = Counter(item.reason for item in skipped)
    first = {item.reason: item.values for item in reversed(skipped)}
    lines = []
    for reason, count in counts.items():
        example = ", ".join(f"{name} {value}" for name, value in first[reason].items())
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"skipped: {example}{more}: {reason}")
    return lines

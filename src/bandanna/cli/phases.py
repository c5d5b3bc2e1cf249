"""``bandanna phases``: an experiment without a server; others decide, a table is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bandanna as bd
from bandanna._core.documents import to_text, write_whole
from bandanna.cli.help import command, group
from bandanna.cli.options import Json
from bandanna.cli.output import print_json, print_table

commands = group("phases", "Let flag SDKs decide by published shares, and count a table.")

File = Annotated[Path, typer.Argument(help="The TOML file that says what the experiment is.")]
Now = Annotated[
    str | None, typer.Option(help="What time to take it for, such as 2026-01-31T09:30. UTC.")
]


@command("bandanna phases start experiment.toml", of=commands)
def start(experiment: File, now: Now = None) -> None:
    """Open the first phase, and publish its shares."""
    typer.echo(bd.PhasedExperiment(experiment).start(now).sentence)


@command(
    "bandanna phases next experiment.toml    # from cron, Airflow, or a GitHub action", of=commands
)
def next(experiment: File, now: Now = None) -> None:  # noqa: A001
    """Do what is due: count and release, open the next phase. Before its time: nothing."""
    typer.echo(bd.PhasedExperiment(experiment).next(now).sentence)


@command("bandanna phases show experiment.toml", of=commands)
def show(
    experiment: File,
    as_json: Json = False,
    certificate: Annotated[
        Path | None, typer.Option(help="Write a certificate that bandanna verify checks.")
    ] = None,
) -> None:
    """Show what was published and released, and what it says."""
    running = bd.PhasedExperiment(experiment)
    if certificate is not None:
        write_whole(certificate, to_text(running.certificate()))
    answer, promise, waits = running.answer(), running.guarantee, running.waits
    if as_json:
        document = {
            "name": running.definition.name,
            "epsilon": promise.epsilon,
            "protects": promise.protects,
            "waits": waits and waits.isoformat(),
            "phases": running.phases,
            "answer": answer.to_dict(),
        }
        print_json(document)
        return
    arms = running.definition.arms
    rows = []
    for one in running.phases:
        seen = one["released"]
        cells = [
            f"{one['parts'][k] / 100:.4g}%"
            + (f" {seen['means'][arm]:.4g}" if seen and arm in seen["means"] else "")
            for k, arm in enumerate(arms)
        ]
        people = (
            f"{sum(seen['counts'].values()):,}" if seen else "open" if not one["until"] else "-"
        )
        rows.append([str(one["number"]), one["since"][:16], people, *cells])
    print_table(
        f"{running.definition.name}: shares, and released means of {answer.units.noun}",
        ["phase", "since", "people", *arms],
        rows,
        f"epsilon = {promise.epsilon:g}; protects {promise.protects}.",
    )
    typer.echo(answer.sentence)
    typer.echo(
        f"Next at {waits.isoformat(timespec='minutes')}." if waits else "The experiment is over."
    )

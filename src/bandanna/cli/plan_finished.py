"""``bandanna plan --answer``: how many people one look at a finished log takes."""

from __future__ import annotations

import json

import typer

from bandanna._core.types import InputError
from bandanna.cli.options import read_range, whole_number
from bandanna.cli.output import print_table


def print_finished_plan(
    *,
    arms: str | None,
    people: str | None,
    epsilon: float | None,
    gap: float | None,
    base_rate: float | None,
    sd: float | None,
    loss_range: str | None,
    correlation: float,
    confidence: float,
    as_json: bool,
) -> None:
    """Print how many people tell a gap, or which gap so many people tell."""
    from bandanna.planner.finished import POWERS, FinishedProblem, plan_finished

    if epsilon is None:
        raise InputError("--answer needs --epsilon, such as 0.5.")
    problem = FinishedProblem(
        epsilon,
        sd,
        read_range(loss_range),
        base_rate,
        correlation,
        2 if arms is None else whole_number("--arms", arms),
        confidence,
    )
    size = None if people is None else float(whole_number("--rounds", people))
    found = plan_finished(problem, gap=gap, people=size)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    write = "{:,.0f}" if gap is not None else "{:.4g}"
    print_table(
        f"{'People who tell the gap' if gap is not None else 'The gap that is told'}, "
        f"{100 * confidence:.4g}% sure",
        ["how", *(f"{100 * power:g}% of the time" for power in POWERS)],
        [
            [how, *("-" if value is None else write.format(value) for value in values)]
            for how, values in found.rows
        ],
        "one look at a finished log with arms of one size; for looking at any time: --goal answer",
    )
    typer.echo(found.sentence)

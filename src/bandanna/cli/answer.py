"""``bandanna answer``: the private A/B test on a log that exists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.types import InputError
from bandanna.cli.options import columns_of, read_range
from bandanna.cli.output import print_table
from bandanna.cli.sources import (
    Arms,
    Asked,
    Facts,
    InTable,
    Log,
    Shown,
    ShowSql,
    Time,
    Unit,
    Window,
)

if TYPE_CHECKING:
    from bandanna.logs import LogAnswer


def answer(
    arm: Annotated[str, typer.Option(help="Column with the arm.")],
    outcome: Annotated[str, typer.Option(help="Column with the outcome.")],
    epsilon: Annotated[float, typer.Option(help="The privacy parameter; 0.1 to 1 is common.")],
    log: Log = None,
    loss_range: Annotated[
        str | None,
        typer.Option("--range", help="Smallest and largest outcome, such as 0,20; or auto."),
    ] = None,
    bounds: Annotated[
        str | None, typer.Option(help="What surely holds all outcomes; for --range auto.")
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Count outcomes outside the range as its nearer end.")
    ] = False,
    reward: Annotated[
        bool, typer.Option("--reward", help="Large outcomes are good; otherwise losses.")
    ] = False,
    binary: Annotated[
        bool, typer.Option("--binary", help="Outcomes are the ends of the range: exact intervals.")
    ] = False,
    adjust: Annotated[
        str | None,
        typer.Option(help="Column to subtract: what was known beforehand."),
    ] = None,
    slope: Annotated[
        float | None, typer.Option(help="Times this; else found with a part of epsilon.")
    ] = None,
    adjusted_range: Annotated[
        str | None, typer.Option(help="The range of what is left, where the slope is given.")
    ] = None,
    control: Annotated[
        str | None, typer.Option(help="The arm to compare others with, fixed beforehand.")
    ] = None,
    interval: Annotated[str, typer.Option(help="normal (an approximation) or proved.")] = "normal",
    person: Annotated[
        str | None, typer.Option(help="Column with whose row it is: everyone counts once.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Does deciding by these columns pay? Needs --values.")
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(help="Categories or edges of bins of a column: age=18,40,65,90. Repeat it."),
    ] = None,
    table: InTable = None,
    exposures: Shown = None,
    facts: Facts = None,
    unit: Unit = None,
    time: Time = None,
    window: Window = None,
    arms: Arms = None,
    show_sql: ShowSql = False,
    confidence: Annotated[float, typer.Option(help="Confidence of the answer.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the answer as a page.")] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write a certificate that bandanna verify checks.")
    ] = None,
) -> None:
    """Say which arm of a finished log is best, and how sure that is.

    Sums of outcomes and of their squares are released once for each arm, with noise.
    """
    from bandanna.logs import answer as answer_log

    source = Asked(log, table, exposures, facts, unit, time, window, arms).source()
    declared = _declared(columns_of(by), values or [])
    if show_sql:
        known = bounds if loss_range == "auto" else loss_range
        _print_sql(source, arm, outcome, read_range(known), person, declared)
        return
    found = answer_log(
        source,
        arm=arm,
        outcome=outcome,
        epsilon=epsilon,
        loss_range="auto" if loss_range == "auto" else read_range(loss_range),
        bounds=None if bounds is None else read_range(bounds, "--bounds"),
        clip=clip,
        reward=reward,
        binary=binary or None,
        person=person,
        adjust=adjust,
        slope=slope,
        adjusted_range=None
        if adjusted_range is None
        else read_range(adjusted_range, "--adjusted-range"),
        control=control,
        interval=interval,  # type: ignore[arg-type]
        by=declared,
        confidence=confidence,
    )
    if html is not None:
        html.write_text(found.html(), encoding="utf-8")
    if certificate is not None:
        from bandanna._core.documents import to_text, write_whole

        assert found.certificate is not None, "answers from logs have one"
        write_whole(certificate, to_text(found.certificate))
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        _print(found)


def _print_sql(
    source: object,
    arm: str,
    outcome: str,
    loss_range: tuple[float, float],
    person: str | None,
    by: dict[str, list[str]],
) -> None:
    from bandanna.warehouse import Bins, sql_of

    bins = [Bins.of(column, declared) for column, declared in by.items()]
    asked = {"arm": arm, "outcome": outcome, "person": person, "bins": bins}
    typer.echo(sql_of(source, loss_range=loss_range, **asked))  # type: ignore[arg-type]


def _declared(columns: list[str], values: list[str]) -> dict[str, list[str]]:
    """Read the categories of columns, as --values gives them."""
    given: dict[str, list[str]] = {}
    for text in values:
        column, equals, listed = text.partition("=")
        if not equals:
            raise InputError(
                f"--values is a column and its categories or edges, such as "
                f"plan=basic,gold or age=18,40,65,90; got {text!r}."
            )
        given[column.strip()] = [part.strip() for part in listed.split(",")]
    for column in columns:
        if column not in given:
            raise InputError(
                f"--by {column} needs its categories, or the edges of its bins, declared and not "
                f"read off people's data: add --values {column}=first,second or --values "
                f"{column}=18,40,65,90."
            )
    if set(given) - set(columns):
        raise InputError(
            f"--values is for columns of --by; got {sorted(set(given) - set(columns))}."
        )
    return {column: given[column] for column in columns}


def _print(found: LogAnswer) -> None:
    units, promise = found.units, found.guarantee
    assert promise is not None, "answers from logs have one"
    rows = [
        [str(arm.name), f"{arm.rounds:,}", *found.cells(arm), "yes" if arm.racing else "no"]
        for arm in found.arms
    ]
    better = "more is better" if units.reward else "less is better; --reward if more is"
    interval = f"{100 * found.confidence:.4g}% interval"
    print_table(
        f"Private means of {units.noun} ({better})",
        ["arm", units.per, "private mean", interval, "may be best"],
        rows,
        f"epsilon = {promise.epsilon:g}; protects {promise.protects}.",
    )
    typer.echo(found.sentence)
    for note in found.notes:
        typer.echo(note)
    for one in found.shown:
        typer.echo(one.sentence)
    for gain in found.gains:
        typer.echo(gain.sentence)
    if found.dropped:
        typer.echo(f"{found.dropped:,} rows were left out: everyone counts once, with one arm.")
    if found.warning:
        typer.echo(found.warning)
    typer.echo(found.looks)

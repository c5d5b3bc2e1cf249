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
    from bandanna._core.types import ArmName
    from bandanna.ledger import Ledger
    from bandanna.logs import LogAnswer
    from bandanna.logs.compare import Outcome
    from bandanna.scorecard.card import Scorecard


def answer(
    log: Log = None,
    arm: Annotated[str | None, typer.Option(help="Column with the arm.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy parameter; 0.1 to 1 is common.")
    ] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(help="Column with the outcome; several with --control, to compare."),
    ] = None,
    ratio: Annotated[
        list[str] | None,
        typer.Option(help="One column over another, revenue/visits, each with its --range."),
    ] = None,
    loss_range: Annotated[
        list[str] | None,
        typer.Option("--range", help="Smallest and largest outcome, 0,20 or visits=0,20; or auto."),
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
    guardrail: Annotated[
        list[str] | None,
        typer.Option(help="How much more of an outcome than with the control: refunds=0.01."),
    ] = None,
    shares: Annotated[
        str | None, typer.Option(help="How people were meant to be divided: A=1,B=1.")
    ] = None,
    interval: Annotated[str, typer.Option(help="normal (an approximation) or proved.")] = "normal",
    person: Annotated[
        str | None, typer.Option(help="Column with whose row it is: everyone counts once.")
    ] = None,
    protects: Annotated[
        str, typer.Option(help="outcomes, or presence: who is in the log too; needs --arms.")
    ] = "outcomes",
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
    ledger: Annotated[
        str | None, typer.Option(help="Write what it costs there first: bandanna ledger start.")
    ] = None,
    population: Annotated[str, typer.Option(help="About whom, in the ledger.")] = "everyone",
    confidence: Annotated[float, typer.Option(help="Confidence of the answer.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the answer as a page.")] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write a certificate that bandanna verify checks.")
    ] = None,
) -> None:
    """Say which arm of a finished log is best, and how sure that is."""
    if log is not None and log.endswith(".toml"):
        _refuse_beside_phases(locals())
        card = _of_phases(log, control, confidence)
        _write(card, None, html, certificate, as_json=as_json)
        if not as_json:
            typer.echo("It rests on what was released before: it cost nothing.")
        return
    from bandanna.logs import answer as answer_log

    if arm is None or epsilon is None:
        raise InputError("a log needs --arm COLUMN and --epsilon NUMBER.")
    alone = protects == "presence" and exposures is None
    named = None if alone else arms
    source = Asked(log, table, exposures, facts, unit, time, window, named).source()
    declared = _declared(columns_of(by), values or [])
    parts = _numbers("--shares", shares.split(",") if shares else [])
    planned: dict[ArmName, float] = dict(parts.items())
    kept = None
    if ledger is not None:
        from bandanna.ledger import Ledger

        kept = Ledger(ledger)
    outcome, ratios = outcome or [], ratio or []
    if not outcome and not ratios:
        raise InputError("name what is to be answered about: --outcome COLUMN, or --ratio A/B.")
    if len(outcome) > 1 or guardrail or ratios:
        limits = _numbers("--guardrail", guardrail or [])
        asked = _outcomes(outcome, ratios, loss_range or [], limits, clip=clip, reward=reward)
        if control is None or adjust is not None or show_sql or protects != "outcomes":
            raise InputError(
                "several outcomes, guardrails and ratios are compared with a control, one by one, "
                "as they are: give --control, and leave out --adjust, --protects and --show-sql."
            )
        from bandanna.logs.compare import compare

        if kept is not None:
            what = f"how arms by {arm} compare in {', '.join(asked)}"
            kept.spend(epsilon, what=what, population=population)
        card = compare(
            source,
            arm=arm,
            outcomes=asked,
            epsilon=epsilon,
            control=control,
            person=person,
            by=declared,
            shares=planned or None,
            confidence=confidence,
        )
        _write(card, None, html, certificate, as_json=as_json)
        _tell(kept, population, as_json=as_json)
        return
    one = _range_of(outcome[0], loss_range or [])
    if show_sql:
        known = bounds if one == "auto" else one
        _print_sql(source, arm, outcome[0], read_range(known), person, declared)
        return
    found = answer_log(
        source,
        arm=arm,
        outcome=outcome[0],
        epsilon=epsilon,
        loss_range="auto" if one == "auto" else read_range(one),
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
        ledger=kept,
        population=population,
        protects=protects,  # type: ignore[arg-type]
        arms=(columns_of(arms) or None) if alone else None,
    )
    _write(found.scorecard(shares=planned or None), found, html, certificate, as_json=as_json)
    _tell(kept, population, as_json=as_json)


OF_PHASES = {"log", "control", "confidence", "as_json", "html", "certificate"}


def _refuse_beside_phases(options: dict[str, object]) -> None:
    """Refuse options that say what to count: of an experiment in phases it has been counted."""
    unset = (None, False, "normal", "everyone", "outcomes")
    given = [name for name, one in options.items() if name not in OF_PHASES and one not in unset]
    if given:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(
            f"an experiment in phases is answered from what it has released, as its file says; "
            f"leave out {named}."
        )


def _of_phases(path: str, control: str | None, confidence: float) -> Scorecard:
    from bandanna.phases import PhasedExperiment

    return PhasedExperiment(path).scorecard(control, confidence)


def _tell(kept: Ledger | None, population: str, *, as_json: bool) -> None:
    """Say what asking again costs."""
    if as_json:
        return
    if kept is None:
        typer.echo("It is in no ledger: asking again costs epsilon again.")
    else:
        typer.echo(f"In the ledger: {kept.left_for(population):.4g} is left for {population}.")


def _write(
    card: Scorecard,
    found: LogAnswer | None,
    html: Path | None,
    certificate: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the page and the certificates, and print the answer."""
    if html is not None:
        html.write_text(card.html(), encoding="utf-8")
    if certificate is not None:
        from bandanna._core.documents import to_text, write_whole

        for number, one in enumerate(card.certificates, start=1):
            name = certificate.stem if number == 1 else f"{certificate.stem}-{number}"
            write_whole(certificate.with_stem(name), to_text(one))
    if as_json:
        shown = card.to_dict() if found is None else found.to_dict()
        typer.echo(json.dumps(shown, indent=2, allow_nan=False))
    elif found is None or found.control is not None:
        typer.echo(str(card))
    else:
        _print(found)


def _range_of(outcome: str, ranges: list[str]) -> str | None:
    """Return the range that is given for an outcome, by name or for all."""
    named = dict(one.split("=", 1) for one in ranges if "=" in one)
    plain = [one for one in ranges if "=" not in one]
    return named.get(outcome, plain[0] if plain else None)


def _outcomes(
    names: list[str],
    ratios: list[str],
    ranges: list[str],
    limits: dict[str, float],
    *,
    clip: bool,
    reward: bool,
) -> dict[str, Outcome]:
    """Return the options of each outcome; those without a range are 0 or 1."""
    known = {*names, *(part for ratio in ratios for part in ratio.rpartition("/")[::2])}
    named = {one.split("=", 1)[0] for one in ranges if "=" in one}
    for option, wrong in (
        ("--range", named - known),
        ("--guardrail", set(limits) - {*names, *ratios}),
    ):
        if wrong:
            raise InputError(f"{option} is for outcomes; got {sorted(wrong)}.")
    found: dict[str, Outcome] = {}
    for name in names:
        ends = _range_of(name, ranges)
        options: Outcome = {"reward": reward}
        if ends is None:
            options["binary"] = True
        else:
            options["loss_range"], options["clip"] = read_range(ends), clip
        found[name] = options
    for ratio in ratios:
        top, _, bottom = ratio.rpartition("/")
        both = [
            next((one for one in ranges if one.split("=")[0] == name), None)
            for name in (top, bottom)
        ]
        if None in both:
            raise InputError(
                f"--ratio {ratio} needs the range of both columns, known without looking at them: "
                f"--range {top}=0,200 --range {bottom}=0,20."
            )
        over, under = (read_range(str(one).split("=", 1)[1]) for one in both)
        found[ratio] = {"loss_range": over, "over_range": under, "reward": reward}
    for name, limit in limits.items():
        found[name]["limit"] = limit
    return found


def _numbers(option: str, given: list[str]) -> dict[str, float]:
    """Read numbers by name."""
    found = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"{option} is a name and a number, such as A=0.5; got {text!r}.")
    return found


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
        f"epsilon = {promise.epsilon:g}; protects {found.protects}.",
    )
    typer.echo(found.bare(found.sentence))
    for note in found.notes:
        typer.echo(note)
    for one in found.shown:
        typer.echo(found.bare(one.sentence))
    for gain in found.gains:
        typer.echo(gain.sentence)
    for check in found.checks():
        if not check.good:
            typer.echo(check.text)
    typer.echo(found.together)

"""``bandanna answer``: the private A/B test on a log that exists."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

import bandanna as bd
from bandanna._core.documents import to_text, write_whole
from bandanna._core.types import JSON, InputError, at_least
from bandanna.cli.help import command
from bandanna.cli.options import Clip, Json, Reward, read_range, setting, settings
from bandanna.cli.output import print_json, print_table

if TYPE_CHECKING:
    from bandanna.logs import LogAnswer
    from bandanna.logs.compare import Outcome
    from bandanna.scorecard.card import Scorecard


@command(
    "bandanna answer visits.csv --arm plan --outcome visits --range 0,20 --clip \\",
    "  --epsilon 0.5 --reward",
)
def answer(
    log: Annotated[
        str | None,
        typer.Argument(
            help="A file (.csv, .csv.gz, .parquet), a folder or pattern of such, or the address of "
            "a database, such as duckdb:///shop.duckdb; or an experiment in phases (.toml)."
        ),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Column with the arm.")] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(help="Column, or a ratio of two, revenue/visits. Several with --control."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy parameter; 0.1 to 1 is common.")
    ] = None,
    loss_range: Annotated[
        list[str] | None,
        typer.Option("--range", help="Smallest and largest outcome, 0,20 or visits=0,20; or auto."),
    ] = None,
    clip: Clip = False,
    reward: Reward = False,
    control: Annotated[
        str | None, typer.Option(help="The arm to compare others with, fixed beforehand.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Column with whose row it is: everyone counts once.")
    ] = None,
    further: Annotated[
        list[str] | None,
        setting(
            "bd.answer, bd.compare, bd.Table or bd.Exposures: adjust=cd40, bounds=0,1000, "
            "ledger=customers.ledger, table=visits, by.age=18,40,65,90, outcomes.refunds.limit=0.01"
        ),
    ] = None,
    as_json: Json = False,
    html: Annotated[Path | None, typer.Option(help="Write the answer as a page.")] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write a certificate that bandanna verify checks.")
    ] = None,
) -> None:
    """Say which arm of a finished log is best, and how sure that is."""
    if log is not None and log.endswith(".toml"):
        others = {"--arm": arm, "--outcome": outcome, "--epsilon": epsilon, "--range": loss_range}
        others |= {"--clip": clip, "--reward": reward, "--person": person}
        card = _of_phases(log, control, others, settings(further, ["confidence"]))
        cost = "It rests on what was released before: it cost nothing."
        _write(card, None, cost, html, certificate, as_json=as_json)
        return
    if arm is None or epsilon is None:
        raise InputError("a log needs --arm COLUMN and --epsilon NUMBER.")
    places = {one.name for kind in (bd.Table, bd.Exposures) for one in fields(kind)} - {"place"}
    known = {*signature(bd.answer).parameters, *signature(bd.compare).parameters, *places}
    more = settings(further, known - set(signature(answer).parameters))
    if "exposures" not in more:
        places -= {"arms"}  # these are of bd.answer, where presence is hidden
    source = _source(log, {name: more.pop(name) for name in places & set(more)})
    kept = None
    if "ledger" in more:
        kept = bd.Ledger(more.pop("ledger"))
    population = str(more.pop("population", "everyone"))
    common: JSON = {"arm": arm, "epsilon": epsilon, "person": person, "control": control}
    names = list(dict.fromkeys([*(outcome or []), *more.get("outcomes", {})]))
    if not names:
        raise InputError("name what is to be answered about: --outcome COLUMN, or a ratio, A/B.")
    if len(names) > 1 or "outcomes" in more or "/" in names[0]:
        if control is None or {"adjust", "protects"} & set(more):
            raise InputError(
                "several outcomes, guardrails and ratios are compared with a control, one by one, "
                "as they are: give --control, and leave out adjust and protects."
            )
        asked = _outcomes(names, loss_range or [], clip=clip, reward=reward)
        for name, options in more.pop("outcomes", {}).items():
            asked[name] |= options
        _for(bd.compare, more)
        if kept is not None:
            what = f"how arms by {arm} compare in {', '.join(asked)}"
            kept.spend(epsilon, what=what, population=population)
        card = bd.compare(source, outcomes=cast("dict[str, Outcome]", asked), **common, **more)
        _write(card, None, _cost(kept, population), html, certificate, as_json=as_json)
        return
    shares = more.pop("shares", None)
    _for(bd.answer, more)
    answered = bd.answer(
        source,
        outcome=names[0],
        loss_range=_ends(_range_of(names[0], loss_range or [])),
        clip=clip,
        reward=reward,
        ledger=kept,
        population=population,
        **common,
        **more,
    )
    card, cost = answered.scorecard(shares=shares), _cost(kept, population)
    _write(card, answered, cost, html, certificate, as_json=as_json)


def _for(function: object, more: JSON) -> None:
    """Refuse what belongs to another way to ask."""
    taken = signature(function).parameters  # type: ignore[arg-type]
    if wrong := [name for name in more if name not in taken]:
        raise InputError(f"{wrong[0]} does not go with these outcomes; leave it out.")


def _source(log: str | None, places: JSON) -> object:
    """Return where to count: a table, or exposures and facts."""
    if "exposures" in places or "facts" in places:
        needed = ("exposures", "facts", "unit", "time", "window", "arms")
        if missing := [name for name in needed if name not in places]:
            raise InputError(f"exposures and facts also need {', '.join(missing)}.")
        return bd.Exposures(**places, address=log)
    if extra := sorted(set(places) - {"table", "time"}):
        raise InputError(f"{', '.join(extra)} goes with exposures and facts.")
    if log is None:
        raise InputError(
            "name a log: a file, or the address of a database with --set table=; or give "
            "--set exposures= and --set facts=."
        )
    return bd.Table(log, **places)


def _of_phases(path: str, control: str | None, others: JSON, more: JSON) -> Scorecard:
    """Answer from an experiment in phases; refuse what says what to count: it has been counted."""
    if given := [name for name, value in others.items() if value]:
        raise InputError(
            f"an experiment in phases is answered from what it has released, as its file says; "
            f"leave out {', '.join(given)}."
        )
    return bd.PhasedExperiment(path).scorecard(control, **more)


def _cost(kept: bd.Ledger | None, population: str) -> str:
    """Say what asking again costs."""
    if kept is None:
        return "It is in no ledger: asking again costs epsilon again."
    return f"In the ledger: {at_least(kept.left_for(population))} is left for {population}."


def _write(
    card: Scorecard,
    answered: LogAnswer | None,
    cost: str,
    html: Path | None,
    certificate: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the page and the certificates, and print the answer."""
    if html is not None:
        html.write_text(card.html(), encoding="utf-8")
    if certificate is not None:
        for number, one in enumerate(card.certificates, start=1):
            name = certificate.stem if number == 1 else f"{certificate.stem}-{number}"
            write_whole(certificate.with_stem(name), to_text(one))
    if as_json:
        print_json((answered or card).to_dict())
        return
    if answered is None or answered.control is not None:
        typer.echo(str(card))
    else:
        _print(answered)
    typer.echo(cost)


def _range_of(outcome: str, ranges: list[str]) -> str | None:
    """Return the range that is given for an outcome, by name or for all."""
    named = dict(one.split("=", 1) for one in ranges if "=" in one)
    plain = [one for one in ranges if "=" not in one]
    return named.get(outcome, plain[0] if plain else None)


def _ends(text: str | None) -> tuple[float, float] | Literal["auto"]:
    return "auto" if text == "auto" else read_range(text)


def _outcomes(names: list[str], ranges: list[str], *, clip: bool, reward: bool) -> dict[str, JSON]:
    """Return the options of each outcome; those without a range are 0 or 1."""
    columns = {part for name in names for part in (name, *name.rpartition("/")[::2])}
    wrong = {one.split("=", 1)[0] for one in ranges if "=" in one} - columns
    if wrong:
        raise InputError(f"--range is for outcomes; got {sorted(wrong)}.")
    options: dict[str, JSON] = {}
    for name in names:
        top, ratio, bottom = name.rpartition("/")
        if ratio:
            ends = [_range_of(column, ranges) for column in (top, bottom)]
            if None in ends:
                raise InputError(
                    f"{name} needs the range of both columns, known without looking at them: "
                    f"--range {top}=0,200 --range {bottom}=0,20."
                )
            over, under = map(read_range, ends)
            options[name] = {"loss_range": over, "over_range": under, "reward": reward}
        elif (own := _range_of(name, ranges)) is None:
            options[name] = {"reward": reward, "binary": True}
        else:
            options[name] = {"reward": reward, "loss_range": _ends(own), "clip": clip}
    return options


def _print(answered: LogAnswer) -> None:
    units, promise = answered.units, answered.guarantee
    rows = [
        [str(arm.name), f"{arm.rounds:,}", *answered.cells(arm), "yes" if arm.racing else "no"]
        for arm in answered.arms
    ]
    better = "more is better" if units.reward else "less is better; --reward if more is"
    interval = f"{100 * answered.confidence:.4g}% interval"
    print_table(
        f"Private means of {units.noun} ({better})",
        ["arm", units.per, "private mean", interval, "may be best"],
        rows,
        f"epsilon = {promise.epsilon:g}; protects {answered.protects}.",
    )
    typer.echo(answered.bare(answered.sentence))
    for note in answered.notes:
        typer.echo(note)
    for one in answered.shown:
        typer.echo(answered.bare(one.sentence))
    for gain in answered.gains:
        typer.echo(gain.sentence)
    for check in answered.checks():
        if not check.good:
            typer.echo(check.text)
    typer.echo(answered.together)

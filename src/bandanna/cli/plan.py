"""``bandanna plan``: what is guaranteed, before the first decision."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, InputError
from bandanna.cli.data import NO_COLUMNS, LogColumns, read_log, takes_log_columns, without_log
from bandanna.cli.options import whole_number
from bandanna.cli.plan_answers import MOST, answered, check_world, for_people
from bandanna.cli.plan_tables import print_expected, print_outlook, print_plan
from bandanna.cli.regimes import check_alone, show_regimes

if TYPE_CHECKING:
    from bandanna.cli.outlook import Ahead
    from bandanna.environments import Logged
    from bandanna.planner.plan import Plan


@takes_log_columns
def plan(
    arms: Annotated[str | None, typer.Option(help="Number of arms.")] = None,
    rounds: Annotated[str | None, typer.Option(help="Decisions, such as 1e6.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter.")] = None,
    experts: Annotated[
        str | None, typer.Option(help="Number of experts, if any; 'most' asks for it.")
    ] = None,
    delta: Annotated[float, typer.Option(help="What may be spent of it.")] = 0.0,
    delay: Annotated[
        str | None, typer.Option(help="Rounds by which feedback may be late; in order without.")
    ] = None,
    per_person: Annotated[
        str | None,
        typer.Option(
            help="Protect persons: places each may have, epsilon and delta for all of them; "
            "'most' asks for it. Rounds are then places."
        ),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(help="With --per-person, instead of --rounds: how many people take them all."),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Only what people's own devices can feed, and the like.")
    ] = False,
    losses: Annotated[
        str, typer.Option(help="What losses are like: any, steady or changing.")
    ] = "any",
    changes: Annotated[
        str | None, typer.Option(help="With --losses changing: how often the best arm does.")
    ] = None,
    regret: Annotated[
        float | None,
        typer.Option(help="A target, as a share of the rounds; asks for what is left out."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show the best terms, and from when on bounds say something."
        ),
    ] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Also say what to expect, by simulation.")
    ] = False,
    gap: Annotated[
        float | None,
        typer.Option(help="Losses like yours: how much more often the best arm succeeds."),
    ] = None,
    base_rate: Annotated[
        float | None, typer.Option(help="With --gap: how often the other arms succeed.")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="Losses like those of a log, .csv or .parquet.")
    ] = None,
    columns: LogColumns = NO_COLUMNS,
    regimes: Annotated[
        bool,
        typer.Option("--regimes", help="Check the paper's regimes for expert advice instead."),
    ] = False,
    chart: Annotated[
        Path | None, typer.Option(help="With --regimes, a map: .html, .svg, .png or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare guarantees; with --regret, leave out rounds, epsilon or arms to be told them."""
    if regimes:
        others = {"--rounds": rounds, "--epsilon": epsilon, "--experts": experts}
        others |= {"--per-person": per_person, "--people": people, "--delay": delay}
        others |= {"--regret": regret, "--explain": explain or None, "--simulate": simulate or None}
        others |= {"--local": local or None}
        check_alone([name for name, value in others.items() if value is not None])
        show_regimes(None if arms is None else whole_number("--arms", arms), delta, chart, as_json)
        return
    if chart is not None:
        raise InputError("--chart goes with --regimes; a plan has no chart.")
    log = None
    if like is not None:
        log = read_log(like, columns)
        arms, rounds = arms or str(log.arms), rounds or str(log.rounds)
        if whole_number("--arms", arms) != log.arms:
            raise InputError(f"{like.name} has {log.arms} arms; got --arms {arms}.")
    elif any(columns):
        raise without_log("--like")
    given = {
        "arms": None if arms is None else whole_number("--arms", arms),
        "rounds": None if rounds is None else whole_number("--rounds", rounds, MAX_ROUNDS),
        "epsilon": epsilon,
        "experts": whole_number("--experts", experts) if experts not in (None, MOST) else None,
        "delta": delta,
        "changes": check_world(losses, changes),
        "delay": 0 if delay is None else whole_number("--delay", delay, MAX_ROUNDS),
    }
    if simulate and delay is not None:
        raise InputError("--simulate plays with feedback in order; leave it out, or --delay.")
    found, answer = (
        answered(given, regret, experts == MOST, local=local)
        if per_person is None and people is None
        else for_people(given, regret, per_person, people, local=local)
    )
    found = replace(found, losses=losses)
    expected = _expected(found) if simulate else None
    ahead = _ahead(found, gap, base_rate, log)
    if as_json:
        shown = {**found.to_dict(), "answer": answer}
        if expected:
            shown["expected"], shown["not_simulated"] = expected
        if ahead is not None:
            more = {"range_advice": ahead.range_advice, "least_private": ahead.least}
            shown["outlook"] = ahead.outlook.to_dict() | more
        typer.echo(json.dumps(shown, indent=2, allow_nan=False))
        return
    if ahead is not None:
        print_outlook(ahead)
    if answer:
        typer.echo(answer)
    print_plan(found, explain)
    if expected:
        print_expected(*expected, experts=found.problem.advised)


def _ahead(
    found: Plan, gap: float | None, base_rate: float | None, log: Logged | None
) -> Ahead | None:
    """Return what to expect, if losses were described."""
    from bandanna.cli.outlook import by_log, by_rates

    if log is not None:
        if (gap, base_rate) != (None, None):
            raise InputError("give either --like or --gap and --base-rate.")
        return by_log(found.problem, log)
    if (gap, base_rate) == (None, None):
        return None
    return by_rates(found.problem, gap, base_rate)


def _expected(found: Plan) -> tuple[list[JSON], dict[str, str]]:
    from bandanna.simulation.expect import expected_regret

    rows, left_out = expected_regret(found.best.problem, local=found.local)
    return [row._asdict() for row in rows], left_out

"""bandanna plan: what each algorithm guarantees, and the questions asked backwards."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import bandanna as bd
from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, InputError
from bandanna.cli.forecast import look_ahead
from bandanna.cli.help import command
from bandanna.cli.options import OF_A_LOG, Json, read_log, setting, settings, whole_number
from bandanna.cli.output import note_weak, print_json, print_sample, print_table
from bandanna.planner.plan import percent

if TYPE_CHECKING:
    from bandanna.planner.plan import Plan, Row
    from bandanna.simulation.forecast import Forecast


def print_forecast(expected: Forecast, planned: Plan, everything: bool) -> None:
    """Print what is to be expected beside what is guaranteed."""
    from bandanna.simulation.forecast import short

    if expected.range_advice:
        typer.echo(expected.range_advice)
    guaranteed = {row.algorithm: _guaranteed(row) for row in planned.rows if row.entry.private}
    unit = f" {expected.unit}" if expected.unit else ""
    captions = [expected.world] if expected.world else []
    captions.append(
        f"Regret per 1,000 rounds{unit and f', in{unit}'}; choosing at random loses "
        f"{short(expected.uniform)}. The guarantee is a share of the rounds, for any losses."
    )
    best = next(row.regret for row in expected.rows if row.algorithm == expected.best)
    if everything and expected.least_private is not None:
        each = 1000.0 * expected.least_private / expected.rounds
        if each < best:
            captions.append(
                f"Over long runs no private algorithm that is good on all steady losses loses less "
                f"than {short(each)}."
            )
    if not everything:
        captions.append("--all compares more algorithms and says why.")
    print_table(
        f"To expect in {planned.problem}",
        ["algorithm", "regret", "s.e.", "best arm found", "regret guaranteed"],
        [
            [
                expected.shown(row.algorithm),
                short(row.regret),
                short(row.error),
                f"{row.found:.0%}",
                guaranteed.get(row.algorithm, "-"),
            ]
            for row in expected.rows
        ],
        "\n".join(captions),
    )


def _guaranteed(row: Row) -> str:
    if row.bound is None:
        return "none proved"
    return "none" if row.vacuous else f"at most {percent(row.share)}"


def print_plan(planned: Plan, everything: bool) -> None:
    """Print the choice in a sentence, then the table: its main rows, or all with reasons.

    With all rows come the terms of the best bound, and from where on each says something.
    """
    typer.echo(planned.why)
    for sentence in filter(None, (planned.default, planned.worlds)):
        typer.echo(sentence)
    headings = ["algorithm", "privacy", "delta", "batch", "regret at most", "of the rounds"]
    title, captions = f"Guaranteed regret after {planned.problem}", []
    if everything:
        headings.append("says something from")
        rows = [[*_cells(row), _start(row)] for row in planned.rows if row.bound is not None]
        captions = _left_out(planned)
    else:
        rows = [_cells(row) for row in planned.shown]
        if len(rows) < len(planned.rows):
            captions.append(f"--all shows {len(planned.rows) - len(rows)} more.")
    if planned.per_person is not None:
        title += f" for all of a person's {planned.per_person:,} slots"
    print_table(title, headings, rows, "\n".join([*captions, planned.condition]))
    if everything and planned.best.bound is not None:
        typer.echo(f"{planned.best.algorithm}: {planned.best.bound.source}")
        for term, value in planned.best.bound.terms.items():
            typer.echo(f"  {value:>16,.1f}  {term}")
        for name, value in planned.best.bound.settings.items():
            typer.echo(f"  {value:>16.6g}  {name.replace('_', ' ')} to run it with")


def _cells(row: Row) -> list[str]:
    """Return a row of the table."""
    spent = "-" if row.model == "none" else f"{row.delta:g}"
    cells = [row.algorithm, row.model, spent]
    if row.bound is None:
        return [*cells, "-", "-", "none proved"]
    regret = "-" if row.vacuous else f"{row.regret:,.0f}"
    return [*cells, f"{row.bound.batch:,}", regret, row.verdict]


def _left_out(planned: Plan) -> list[str]:
    """Say of what has no bound why, once for each reason."""
    names: dict[str, list[str]] = {}
    for row in planned.rows:
        if row.bound is None:
            names.setdefault(row.reason, []).append(row.algorithm)
    return [
        f"{', '.join(those)} {reason if len(those) == 1 else reason.replace('has', 'have', 1)}"
        for reason, those in names.items()
    ]


def _start(row: Row) -> str:
    """Return the rounds from which an algorithm's guarantee is below them, as text."""
    from bandanna.planner.inverse import says_something_from

    start = says_something_from(row.entry, row.problem)
    return "-" if start is None else f"{start:,} rounds"


MOST = "most"
NEEDED = ("arms", "rounds", "epsilon")
ANYTHING: dict[str, JSON] = {
    "arms": {"arms": 2},
    "rounds": {},
    "epsilon": {"epsilon": inf},
    "experts": {},
}
"""What stands for the number that is asked for, until it is known."""
OF_PLAN = ("delay", "people", "local", "losses", "changes", "constants")
"""Parameters of ``bd.plan`` that ``--set`` reaches."""
NOT_ASKED = ("local", "changes", "constants")
"""Those that the questions asked backwards do not know."""
OF_LIKE = ("arm", "outcome", "loss_range", "reward")
"""Parameters of a log whose losses are meant."""


def answered(given: JSON, regret: float | None, more: JSON) -> tuple[Plan, str | None]:
    """Fill in what is asked for; return the plan for it and the answer in words."""
    from bandanna.planner.inverse import ask

    missing = [name for name in NEEDED if given[name] is None]
    if most_experts := given["experts"] == MOST:
        given = given | {"experts": None}
    asked = [*missing, *(["experts"] if most_experts else [])]
    if regret is None:
        if missing:
            options = ", ".join(f"--{name}" for name in missing)
            raise InputError(f"needs {options}; or give --regret and leave out one of them.")
        if most_experts:
            raise InputError(
                f"--experts {MOST} asks how many a target allows; give the target with --regret."
            )
        return bd.plan(**given, **more), None
    if len(asked) != 1:
        options = ", ".join(f"--{name}" for name in asked) or "nothing"
        raise InputError(
            f"with --regret leave out exactly one of --arms, --rounds and --epsilon, the one you "
            f"ask for, or ask by --experts {MOST}; asked for: {options}."
        )
    answer = ask(asked[0], regret, bd.Problem(**{**given, **ANYTHING[asked[0]]}))
    return bd.plan(answer.problem), answer.words


def for_people(
    given: JSON, regret: float | None, per_person: str | None, more: JSON
) -> tuple[Plan, str | None]:
    """Plan for persons; or answer how many slots they may have."""
    from bandanna.planner.inverse import slots_for

    if per_person is None:
        raise InputError("people= goes with --per-person, the slots each may have.")
    asks = per_person == MOST
    if asks != (regret is not None):
        raise InputError(f"give --per-person {MOST} and --regret together, or neither of them.")
    slots = None if asks else whole_number("--per-person", per_person)
    people = more.get("people")
    if people is not None:
        if slots is None or given["rounds"] is not None:
            raise InputError(f"people= is instead of --rounds, and not with {MOST}.")
        more = more | {"people": whole_number("people", str(people), MAX_ROUNDS // slots)}
        given = given | {"rounds": slots * more["people"]}
    missing = [f"--{name}" for name in NEEDED if given[name] is None]
    if missing:
        raise InputError(f"needs {', '.join(missing)} for a plan that protects persons.")
    words = None
    if regret is not None:
        answer = slots_for(regret, bd.Problem(**given))
        slots, words = int(answer.value), answer.words
    return bd.plan(**given, per_person=slots, **more), words


@command(
    "bandanna plan --arms 4 --rounds 1e5 --epsilon 0.5",
    "bandanna plan --arms 4 --epsilon 0.5 --regret 0.05    # how many rounds?",
)
def plan(
    log: Annotated[
        Path | None,
        typer.Argument(help="Expected on losses like this log's: --set arm=plan outcome=visits."),
    ] = None,
    arms: Annotated[str | None, typer.Option(help="Number of arms.")] = None,
    rounds: Annotated[str | None, typer.Option(help="Decisions, such as 1e6.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter; 0.1 to 1 is common.")
    ] = None,
    experts: Annotated[
        str | None, typer.Option(help="Number of experts; 'most': how many for --regret?")
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Second privacy parameter, such as 1e-6; 0 is pure.")
    ] = 0.0,
    per_person: Annotated[
        str | None,
        typer.Option(
            help="Protect persons: slots each may have; 'most': how many for --regret? "
            "Rounds are then slots."
        ),
    ] = None,
    regret: Annotated[
        float | None,
        typer.Option(help="A target, as a share of the rounds: what does it take?"),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(help="Expected: how much more often the best arm succeeds."),
    ] = None,
    base_rate: Annotated[
        float | None, typer.Option(help="With --gap: how often the other arms succeed.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every algorithm, the best bound's terms, and reasons.")
    ] = False,
    further: Annotated[
        list[str] | None, setting("bd.plan, or of the log: delay=50, local=true, people=1e5")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which algorithm to use, and what regret it guarantees.

    With --regret, a target as a share of the rounds, leave out --rounds, --epsilon or --arms to
    find out what it takes.
    """
    note_weak(epsilon, quiet=as_json)
    of_log = (*OF_A_LOG, *OF_LIKE) if log is not None else ()
    more = settings(further, {*OF_PLAN, *of_log})
    named = {name: more.pop(name) for name in of_log if name in more}
    like = None if log is None else _like(log, named, arms)
    if like is not None:
        arms, rounds = arms or str(like.arms), rounds or str(like.rounds)
    given: JSON = {
        "arms": None if arms is None else whole_number("--arms", arms),
        "rounds": None if rounds is None else whole_number("--rounds", rounds, MAX_ROUNDS),
        "epsilon": epsilon,
        "experts": whole_number("--experts", experts) if experts not in (None, MOST) else experts,
        "delta": delta,
    }
    if "delay" in more:
        given["delay"] = whole_number("delay", str(more.pop("delay")), MAX_ROUNDS)
    if regret is not None and (unused := [name for name in NOT_ASKED if more.get(name)]):
        raise InputError(f"{unused[0]} cannot be used with --regret; leave one of them out.")
    planned, answer = (
        answered(given, regret, more)
        if per_person is None and "people" not in more
        else for_people(given, regret, per_person, more)
    )
    planned = replace(planned, losses=more.get("losses"))
    said = (gap, base_rate, like) != (None, None, None)
    asked_otherwise = {"people", "local"} & set(more)
    ordinary = (experts, per_person, regret) == (None, None, None) and not asked_otherwise
    ahead, described = None, (planned.problem, gap, base_rate, like)
    expect = partial(look_ahead, *described, losses=planned.losses, everything=everything)
    if said:
        ahead = expect()
    elif ordinary and not as_json:
        with suppress(InputError):  # too long to simulate
            ahead = expect()
    if as_json:
        shown = {**planned.to_dict(), "answer": answer}
        if ahead is not None:
            shown["forecast"] = ahead.to_dict()
            shown["log"] = None if like is None else like.sample.to_dict()
        print_json(shown)
        return
    if like is not None:
        print_sample(like.sample)
    typer.echo(answer or "", nl=bool(answer))
    if ahead is None or everything:
        print_plan(planned, everything)
    if ahead is not None:
        print_forecast(ahead, planned, everything)
        typer.echo(ahead.advice)


def _like(log: Path, named: JSON, arms: str | None) -> bd.environments.Logged:
    """Read the log whose losses are meant."""
    arm, outcome, ends = (named.pop(name, None) for name in ("arm", "outcome", "loss_range"))
    both = None if ends is None else ",".join(map(str, ends))
    read = read_log(log, arm, outcome, both, **named)
    if arms is not None and whole_number("--arms", arms) != read.arms:
        raise InputError(f"{log.name} has {read.arms} arms; got --arms {arms}.")
    return read

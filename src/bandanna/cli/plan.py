"""bandanna plan: what each algorithm guarantees, and the questions asked backwards."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, InputError
from bandanna.algorithms import DEFAULT
from bandanna.cli.options import (
    NO_COLUMNS,
    LogColumns,
    read_log,
    takes_log_columns,
    whole_number,
    without_log,
)
from bandanna.cli.output import note_weak, print_sample, print_table
from bandanna.cli.plan_finished import print_finished_plan
from bandanna.planner.plan import AB_TEST, FOR_SLOTS, NO_PRIVACY, ORDINARY, percent

if TYPE_CHECKING:
    from bandanna.cli.forecast import Prospect
    from bandanna.environments import Logged
    from bandanna.planner.plan import Plan, Row


def print_expected(rows: list[JSON], left_out: dict[str, str], *, experts: bool = False) -> None:
    """Print what simulation says, and what was left out of it."""
    family = "four simulated environments, 5" if experts else "five simulated environments, 20"
    print_table(
        f"Regret to expect, as a share of the rounds: {family} runs each",
        ["algorithm", "median", "95%", "worst mean", "where"],
        [
            [
                row["algorithm"],
                f"{row['typical']:.2%}",
                f"{row['high']:.2%}",
                f"{row['worst']:.2%}",
                row["worst_environment"],
            ]
            for row in rows
        ],
        "\n".join(f"{name}: {reason}" for name, reason in left_out.items()),
    )


def print_forecast(ahead: Prospect, everything: bool) -> None:
    """Print the answer for losses like people's own, then the algorithms that were tried."""
    from bandanna.simulation.forecast import short

    found = ahead.forecast
    typer.echo(found.words)
    if ahead.range_advice:
        typer.echo(ahead.range_advice)
    if ahead.least is not None:
        each = 1000.0 * ahead.least / found.rounds
        typer.echo(
            f"Over long runs no private algorithm that is good on all steady losses loses less "
            f"than {short(each)} per 1,000 rounds."
        )
    unit = f" {found.unit}" if found.unit else ""
    main = {found.best, DEFAULT, ORDINARY, AB_TEST, NO_PRIVACY}
    rows = [row for row in found.rows if everything or row.algorithm in main]
    print_table(
        f"To expect in {found.rounds:,} rounds: regret per 1,000 rounds{unit and f' in{unit}'}",
        ["algorithm", "regret", "s.e.", "learned", "best arm found"],
        [
            [
                found.shown(row.algorithm),
                short(row.regret),
                short(row.error),
                f"{max(row.learned, 0.0):.0%}",
                f"{row.found:.0%}",
            ]
            for row in rows
        ],
        f"Choosing at random: {short(found.uniform)}. Learned: share of\nthe way from there to "
        f"the best arm. Simulated;\nwhat follows is guaranteed for any losses.",
    )


def print_plan(found: Plan, explain: bool, everything: bool) -> None:
    """Print the choice in a sentence, then the table: its main rows, or all with reasons."""
    typer.echo(found.why)
    for sentence in filter(None, (found.default, found.worlds)):
        typer.echo(sentence)
    headings = ["algorithm", "privacy", "delta", "batch", "regret at most", "of the rounds"]
    rows = []
    shown = found.rows if everything else found.shown
    for row in shown:
        if row.bound is not None or not everything:
            rows.append(_cells(row))
    if explain:
        headings.append("says something from")
        starts = _starts(found)
        for cells in rows:
            cells.append(starts.get(cells[0], "-"))
    left_out = []
    if everything:
        left_out = _left_out(found)
    elif len(shown) < len(found.rows):
        left_out.append(f"--all shows {len(found.rows) - len(shown)} more.")
    title = f"Guaranteed regret after {found.problem}"
    if found.per_person is not None:
        title += f" for all of a person's {found.per_person:,} slots"
    print_table(title, headings, rows, "\n".join([*left_out, *_conditions(found)]))
    if explain and found.best.bound is not None:
        typer.echo(f"{found.best.algorithm}: {found.best.bound.source}")
        for term, value in found.best.bound.terms.items():
            typer.echo(f"  {value:>16,.1f}  {term}")
        for name, value in found.best.bound.settings.items():
            typer.echo(f"  {value:>16.6g}  {name.replace('_', ' ')} to run it with")


def _cells(row: Row) -> list[str]:
    """Return a row of the table."""
    spent = "-" if row.model == "none" else f"{row.delta:g}"
    cells = [row.algorithm, row.model, spent]
    if row.bound is None:
        cells += ["-", "-", "none proved"]
    else:
        verdict = "says nothing" if row.vacuous else percent(row.share)
        regret = "-" if row.vacuous else f"{row.regret:,.0f}"
        cells += [f"{row.bound.batch:,}", regret, verdict]
    return cells


def _conditions(found: Plan) -> list[str]:
    """Say what bounds assume of feedback, and of people's slots."""
    in_order = "Bounds hold for feedback in order; --delay says how late it may be."
    feedback = found.problem.assumed_of_feedback if found.problem.delay else in_order
    return [feedback] if found.per_person is None else [feedback, FOR_SLOTS]


def _left_out(found: Plan) -> list[str]:
    """Say of what has no bound why, once for each reason."""
    names: dict[str, list[str]] = {}
    for row in found.rows:
        if row.bound is None:
            names.setdefault(row.reason, []).append(row.algorithm)
    return [
        f"{', '.join(those)} {reason if len(those) == 1 else reason.replace('has', 'have', 1)}"
        for reason, those in names.items()
    ]


def _starts(found: Plan) -> dict[str, str]:
    """Return the rounds from which each algorithm's guarantee is below them, as text."""
    from bandanna.planner.inverse import says_something_from

    starts = {
        row.algorithm: says_something_from(row.entry, row.problem)
        for row in found.rows
        if row.bound
    }
    return {name: "-" if start is None else f"{start:,} rounds" for name, start in starts.items()}


MOST = "most"
NEEDED = ("arms", "rounds", "epsilon")
ANYTHING: dict[str, JSON] = {
    "arms": {"arms": 2},
    "rounds": {},
    "epsilon": {"epsilon": inf},
    "experts": {},
}
"""What stands for the number that is asked for, until it is known."""


def check_world(losses: str, changes: str | None) -> int | None:
    """Check what was said of losses; returns how often the best arm changes, if that was said."""
    from bandanna.algorithms import CHANGING, check_losses
    from bandanna.theory.exp3 import CHANGES

    check_losses(losses)
    if changes is not None and losses != CHANGING:
        raise InputError(f"--changes goes with --losses {CHANGING}; got --losses {losses}.")
    if changes is None and losses == CHANGING:
        return CHANGES
    return None if changes is None else whole_number("--changes", changes)


def answered(
    given: JSON, regret: float | None, most_experts: bool, *, local: bool
) -> tuple[Plan, str | None]:
    """Fill in what is asked for; return the plan for it and the answer in words."""
    from bandanna.planner.inverse import ask
    from bandanna.planner.plan import plan as make_plan
    from bandanna.spec import Problem

    missing = [name for name in NEEDED if given[name] is None]
    asked = [*missing, *(["experts"] if most_experts else [])]
    if regret is None:
        if missing:
            options = ", ".join(f"--{name}" for name in missing)
            raise InputError(f"needs {options}; or give --regret and leave out one of them.")
        if most_experts:
            raise InputError(
                f"--experts {MOST} asks how many a target allows; give the target with --regret."
            )
        return make_plan(Problem(**given), local=local), None
    if local:
        raise InputError("--local cannot be used with --regret; leave one of them out.")
    if len(asked) != 1:
        options = ", ".join(f"--{name}" for name in asked) or "nothing"
        raise InputError(
            f"with --regret leave out exactly one of --arms, --rounds and --epsilon, the one you "
            f"ask for, or ask by --experts {MOST}; asked for: {options}."
        )
    answer = ask(asked[0], regret, Problem(**{**given, **ANYTHING[asked[0]]}))
    return make_plan(answer.problem), answer.words


def for_people(
    given: JSON,
    regret: float | None,
    per_person: str | None,
    people: str | None,
    *,
    local: bool,
) -> tuple[Plan, str | None]:
    """Plan for persons; or answer how many slots they may have."""
    from bandanna.planner.inverse import slots_for
    from bandanna.planner.plan import plan as make_plan
    from bandanna.spec import Problem

    if per_person is None:
        raise InputError("--people goes with --per-person, the slots each may have.")
    asks = per_person == MOST
    if asks != (regret is not None):
        raise InputError(f"give --per-person {MOST} and --regret together, or neither of them.")
    slots = None if asks else whole_number("--per-person", per_person)
    known = None
    if people is not None:
        if slots is None or given["rounds"] is not None:
            raise InputError(f"--people is instead of --rounds, and not with {MOST}.")
        known = whole_number("--people", people, MAX_ROUNDS // slots)
        given = given | {"rounds": slots * known}
    missing = [f"--{name}" for name in NEEDED if given[name] is None]
    if missing:
        raise InputError(f"needs {', '.join(missing)} for a plan that protects persons.")
    problem, words = Problem(**given), None
    if regret is not None:
        answer = slots_for(regret, problem)
        slots, words = int(answer.value), answer.words
    return make_plan(problem, per_person=slots, people=known, local=local), words


def _log_of(like: Path | None, columns: LogColumns, arms: str | None) -> Logged | None:
    """Read the log whose losses are meant, if there is one."""
    if like is None:
        if any(columns):
            raise without_log("--like")
        return None
    log = read_log(like, columns)
    if arms is not None and whole_number("--arms", arms) != log.arms:
        raise InputError(f"{like.name} has {log.arms} arms; got --arms {arms}.")
    return log


def print_answer_plan(
    goal: str,
    size: tuple[str, str | None],
    epsilon: float | None,
    gap: float | None,
    base_rate: float | None,
    confidence: float,
    *,
    as_json: bool,
) -> None:
    """Print how many people it takes until the best arm is known."""
    if goal != "answer":
        raise InputError(f"--goal can be answer; got {goal!r}.")
    if epsilon is None or gap is None or base_rate is None:
        raise InputError(
            "--goal answer needs --epsilon, --gap and --base-rate, such as --epsilon 0.5 --gap "
            "0.02 --base-rate 0.05; with --rounds it also says which gap and epsilon suffice."
        )
    from bandanna.planner.time_to_answer import AnswerProblem, plan_answer

    arms, people = size
    problem = AnswerProblem(whole_number("--arms", arms), epsilon, gap, base_rate, confidence)
    found = plan_answer(problem, None if people is None else whole_number("--rounds", people))
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    print_table(
        f"People until the best of {problem.arms:,} arms is known, {100 * confidence:.4g}% sure",
        ["how", "mean", "90% by", "wrong"],
        [
            [row.how, f"{row.mean:,.0f}", f"{row.most:,.0f}", f"{row.wrong:.1%}"]
            for row in found.rows
        ],
        f"one arm succeeds {base_rate + gap:.4g} of the time, the others {base_rate:.4g}; epsilon "
        f"{epsilon:g}; 100 simulated runs each; outcomes that do not change over time",
    )
    typer.echo(found.sentence)


@takes_log_columns
def plan(
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
    delay: Annotated[str | None, typer.Option(help="Rounds by which feedback may be late.")] = None,
    per_person: Annotated[
        str | None,
        typer.Option(
            help="Protect persons: slots each may have; 'most': how many for --regret? "
            "Rounds are then slots."
        ),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(help="With --per-person, instead of --rounds: how many people."),
    ] = None,
    local: Annotated[
        bool,
        typer.Option("--local", help="Only what learns from bits of people's devices."),
    ] = False,
    losses: Annotated[
        str, typer.Option(help="What losses are like: any, steady or changing.")
    ] = "any",
    changes: Annotated[
        str | None, typer.Option(help="With --losses changing: how often the best arm changes.")
    ] = None,
    leaves: Annotated[
        str | None,
        typer.Option(help="With contexts: also bound regret against trees with so many leaves."),
    ] = None,
    regret: Annotated[
        float | None,
        typer.Option(help="A target, as a share of the rounds: what does it take?"),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show the terms of the best bound, and where bounds begin to hold."
        ),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every algorithm, not only the main ones.")
    ] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Also simulate what to expect.")
    ] = False,
    gap: Annotated[
        float | None,
        typer.Option(help="Expected: how much more often the best arm succeeds."),
    ] = None,
    base_rate: Annotated[
        float | None, typer.Option(help="With --gap: how often the other arms succeed.")
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(help="answer: how many people until the best arm is known?"),
    ] = None,
    finished: Annotated[
        bool, typer.Option("--answer", help="How many people does a finished log take?")
    ] = False,
    sd: Annotated[
        float | None, typer.Option(help="With --answer: standard deviation of outcomes.")
    ] = None,
    correlation: Annotated[
        float, typer.Option(help="With --answer: with a column that is subtracted.")
    ] = 0.0,
    confidence: Annotated[
        float, typer.Option(help="With --answer, --goal answer: its confidence.")
    ] = 0.95,
    like: Annotated[
        Path | None, typer.Option(help="Expected on losses like a log's; with --arm and --outcome.")
    ] = None,
    columns: LogColumns = NO_COLUMNS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Say which algorithm to use, and what regret it guarantees.

    With --regret, a target as a share of the rounds, leave out --rounds, --epsilon or --arms to
    find out what it takes.
    """
    note_weak(epsilon, quiet=as_json)
    if finished:
        print_finished_plan(
            arms=arms,
            people=people or rounds,
            epsilon=epsilon,
            gap=gap,
            base_rate=base_rate,
            sd=sd,
            loss_range=columns.loss_range,
            correlation=correlation,
            confidence=confidence,
            as_json=as_json,
        )
        return
    if goal is not None:
        size = "2" if arms is None else arms, people or rounds
        print_answer_plan(goal, size, epsilon, gap, base_rate, confidence, as_json=as_json)
        return
    log = _log_of(like, columns, arms)
    if log is not None:
        arms, rounds = arms or str(log.arms), rounds or str(log.rounds)
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
    trees = None if leaves is None else _trees(found, whole_number("--leaves", leaves))
    if as_json:
        shown = {**found.to_dict(), "answer": answer}
        if trees is not None:
            shown["trees"] = trees
        if expected:
            shown["expected"], shown["not_simulated"] = expected
        if ahead is not None:
            more = {"range_advice": ahead.range_advice, "least_private": ahead.least}
            shown["forecast"] = ahead.forecast.to_dict() | more
            shown["log"] = None if log is None else log.sample.to_dict()
        typer.echo(json.dumps(shown, indent=2, allow_nan=False))
        return
    if log is not None:
        print_sample(log.sample)
    if ahead is not None:
        print_forecast(ahead, everything)
    typer.echo(answer or "", nl=bool(answer))
    print_plan(found, explain, everything or explain)
    _print_trees(trees)
    if expected:
        print_expected(*expected, experts=found.problem.with_experts)
    if ahead is not None:
        typer.echo(ahead.forecast.advice)


def _print_trees(trees: JSON | None) -> None:
    """Say what trees of so many leaves guarantee, if that was asked."""
    if trees is None:
        return
    typer.echo(
        f"By context: against every tree of the declared features with {trees['leaves']} "
        f"leaves, algorithm trees has regret at most {trees['regret']:,.0f} "
        f"({percent(trees['share'])} of the rounds)."
    )


def _trees(found: Plan, leaves: int) -> JSON:
    """Return what trees of so many leaves guarantee."""
    from bandanna.theory.exp4 import tree_bound

    problem = found.problem
    if found.per_person is not None or problem.rounds is None:
        raise InputError("--leaves needs rounds, and does not go with --per-person.")
    bound = tree_bound(problem.arms, problem.rounds, problem.epsilon, leaves)
    share = bound.regret / problem.rounds
    return {"leaves": leaves, **bound._asdict(), "share": share}


def _ahead(
    found: Plan, gap: float | None, base_rate: float | None, log: Logged | None
) -> Prospect | None:
    """Return what to expect, if losses were described."""
    from bandanna.cli.forecast import by_log, by_rates

    if log is not None:
        if (gap, base_rate) != (None, None):
            raise InputError("give either --like or --gap and --base-rate.")
        return by_log(found.problem, log)
    if (gap, base_rate) == (None, None):
        return None
    return by_rates(found.problem, gap, base_rate)


def _expected(found: Plan) -> tuple[list[JSON], dict[str, str]]:
    from bandanna.simulation.forecast import expected_regret

    rows, left_out = expected_regret(found.best.problem, local=found.local)
    return [row._asdict() for row in rows], left_out

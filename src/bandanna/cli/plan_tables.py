"""What ``bandanna plan`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from bandanna._core.types import JSON
from bandanna.algorithms import ANY
from bandanna.cli.tables import print_table
from bandanna.planner.plan import percent

if TYPE_CHECKING:
    from bandanna.cli.outlook import Ahead
    from bandanna.planner.plan import Plan


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


def print_outlook(ahead: Ahead) -> None:
    """Print the answer for losses like people's own, then the algorithms that were tried."""
    from bandanna.simulation.outlook import short

    found = ahead.outlook
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
            for row in found.rows
        ],
        f"Choosing at random: {short(found.uniform)}. Learned: share of\nthe way from there to "
        f"the best arm. Simulated;\nwhat follows is guaranteed for any losses.",
    )


def print_plan(found: Plan, explain: bool) -> None:
    """Print the choice in a sentence, then the table; with reasons if asked for."""
    typer.echo(found.why)
    for sentence in filter(None, (found.default, found.worlds)):
        typer.echo(sentence)
    headings = ["algorithm", "privacy", "delta", "batch", "regret at most", "of the rounds"]
    headings += ["expected"] if found.measured else []
    rows = []
    for row in found.rows:
        expected = found.expected(row)
        if row.bound is None and expected is None:
            continue
        spent = "-" if row.model == "none" else f"{row.delta:g}"
        cells = [row.algorithm, row.model, spent]
        if row.bound is None:
            cells += ["-", "-", "none proved"]
        else:
            verdict = "says nothing" if row.vacuous else percent(row.share)
            cells += [f"{row.bound.batch:,}", f"{row.regret:,.0f}", verdict]
        if found.measured:
            cells.append("-" if expected is None else f"{expected:.1f} times")
        rows.append(cells)
    if explain:
        headings.append("says something from")
        starts = _starts(found)
        for cells in rows:
            cells.append(starts.get(cells[0], "-"))
    left_out = [*_said_of_expected(found), *_left_out(found)]
    title = f"Guaranteed regret after {found.problem}"
    if found.per_person is not None:
        title += f" for all of a person's {found.per_person:,} places"
    in_order = "Bounds hold for feedback in order; --delay says how late it may be."
    condition = found.condition if found.problem.delay else in_order
    print_table(title, headings, rows, "\n".join([*left_out, condition]))
    if explain and found.best.bound is not None:
        typer.echo(f"{found.best.algorithm}: {found.best.bound.source}")
        for term, value in found.best.bound.terms.items():
            typer.echo(f"  {value:>16,.1f}  {term}")
        for name, value in found.best.bound.settings.items():
            typer.echo(f"  {value:>16.6g}  {name.replace('_', ' ')} to run it with")


def _said_of_expected(found: Plan) -> list[str]:
    """Say what the numbers are that were measured."""
    if not found.measured:
        return []
    where = "in its worst environment" if found.losses == ANY else "on the whole"
    return [
        f"Expected: mean regret, times the least of all, {where} if losses are "
        f"{found.losses}: bandanna reproduce algorithms."
    ]


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

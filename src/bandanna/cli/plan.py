"""``bandanna plan``: what is guaranteed, before the first decision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bandanna.checks import MAX_ROUNDS
from bandanna.cli.options import whole_number
from bandanna.types import InputError

if TYPE_CHECKING:
    from bandanna.theory.planner import Plan


NOT_YET = "Bandanna does not run algorithms with expert advice yet; these are their bounds."


def plan(
    arms: Annotated[str | None, typer.Option(help="Number of arms.")] = None,
    rounds: Annotated[str | None, typer.Option(help="Decisions, such as 1e6.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter.")] = None,
    experts: Annotated[str | None, typer.Option(help="Number of experts, if any.")] = None,
    delta: Annotated[float, typer.Option(help="What may be spent of it.")] = 0.0,
    regret: Annotated[
        float | None,
        typer.Option(help="A target, as a share of the rounds; asks for what is left out."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the best terms.")] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Also say what to expect, by simulation.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare guarantees; with --regret, leave out rounds, epsilon or arms to be told them."""
    from bandanna.theory import planner

    count = None if arms is None else whole_number("--arms", arms)
    horizon = None if rounds is None else whole_number("--rounds", rounds, MAX_ROUNDS)
    advisers = None if experts is None else whole_number("--experts", experts)
    missing = [
        name
        for name, value in (("--arms", count), ("--rounds", horizon), ("--epsilon", epsilon))
        if value is None
    ]
    answer = None
    if regret is not None:
        if len(missing) != 1:
            raise InputError(
                f"with --regret leave out exactly one of --arms, --rounds and --epsilon, the one "
                f"you ask for; left out: {', '.join(missing) or 'none'}."
            )
        if count is None:
            assert horizon is not None
            assert epsilon is not None
            if advisers is not None:
                raise InputError("with --experts ask for --rounds or --epsilon, not for arms.")
            count = planner.arms_for(regret, horizon, epsilon)
            answer = f"Up to {count:,} arms"
        elif horizon is None:
            assert epsilon is not None
            horizon = planner.rounds_for(regret, count, epsilon, experts=advisers, delta=delta)
            answer = f"From {horizon:,} rounds on"
        else:
            epsilon = planner.epsilon_for(regret, count, horizon, experts=advisers, delta=delta)
            answer = f"From epsilon {epsilon:.4g} on"
        answer += f", regret of at most {regret:g} of the rounds is guaranteed."
    elif missing:
        raise InputError(f"needs {', '.join(missing)}; or give --regret and leave out one of them.")
    assert count is not None
    assert horizon is not None
    assert epsilon is not None
    if simulate and advisers is not None:
        raise InputError("--simulate does not know expert advice yet; leave out --experts.")
    found = planner.plan(count, horizon, epsilon, experts=advisers, delta=delta)
    if as_json:
        shown = {**found.to_dict(), "answer": answer}
        if simulate:
            shown["expected"], shown["not_simulated"] = _expected(count, horizon, epsilon)
        typer.echo(json.dumps(shown, indent=2, allow_nan=False))
        return
    if answer:
        typer.echo(answer)
    _print(found, explain)
    if simulate:
        _print_expected(*_expected(count, horizon, epsilon))


def _expected(
    arms: int, rounds: int, epsilon: float
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from bandanna.simulation.expect import expected_regret

    found, left_out = expected_regret(arms, rounds, epsilon)
    return [row._asdict() for row in found], left_out


def _print_expected(rows: list[dict[str, Any]], left_out: dict[str, str]) -> None:
    from bandanna.cli.tables import print_table

    print_table(
        "Regret to expect, as a share of the rounds: five simulated environments, 20 runs each",
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


def _print(found: Plan, explain: bool) -> None:
    from bandanna.cli.tables import print_table

    typer.echo(found.why)
    rows = []
    for row in found.rows:
        if row.bound is None:
            continue
        share = row.bound.share(found.rounds)
        verdict = "says nothing" if share >= 1 else f"{share:.1%}"
        spent = "-" if row.model == "none" else f"{row.delta:g}"
        cells = [row.algorithm, row.model, spent, f"{row.bound.batch:,}"]
        rows.append([*cells, f"{row.bound.regret:,.0f}", verdict])
    left_out = [f"{row.algorithm} {row.reason}" for row in found.rows if row.bound is None]
    experts = f", {found.experts:,} experts" if found.experts else ""
    print_table(
        f"Guaranteed regret after {found.rounds:,} rounds, {found.arms:,} arms{experts}, "
        f"epsilon {found.epsilon:.4g}",
        ["algorithm", "privacy", "delta", "batch", "regret at most", "of the rounds"],
        rows,
        "\n".join(left_out + ([NOT_YET] if found.experts else [])),
    )
    if explain and found.best.bound is not None:
        typer.echo(f"{found.best.algorithm}: {found.best.bound.source}")
        for term, value in found.best.bound.terms.items():
            typer.echo(f"  {value:>16,.1f}  {term}")
        for name, value in found.best.bound.settings.items():
            typer.echo(f"  {value:>16.6g}  {name.replace('_', ' ')} to run it with")

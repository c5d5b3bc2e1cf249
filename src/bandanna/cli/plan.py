"""``bandanna plan``: what is guaranteed, before the first decision."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bandanna.checks import MAX_ROUNDS
from bandanna.cli.options import whole_number
from bandanna.cli.plan_tables import print_expected, print_plan
from bandanna.types import InputError

if TYPE_CHECKING:
    from bandanna.theory.planner import Plan

MOST = "most"


class Size(NamedTuple):
    """A problem as far as it is given."""

    arms: int | None
    rounds: int | None
    epsilon: float | None

    @property
    def missing(self) -> list[str]:
        """Options left out."""
        return [f"--{name}" for name, value in self._asdict().items() if value is None]


def plan(
    arms: Annotated[str | None, typer.Option(help="Number of arms.")] = None,
    rounds: Annotated[str | None, typer.Option(help="Decisions, such as 1e6.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter.")] = None,
    experts: Annotated[
        str | None, typer.Option(help="Number of experts, if any; 'most' asks for it.")
    ] = None,
    delta: Annotated[float, typer.Option(help="What may be spent of it.")] = 0.0,
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
    size = Size(
        None if arms is None else whole_number("--arms", arms),
        None if rounds is None else whole_number("--rounds", rounds, MAX_ROUNDS),
        epsilon,
    )
    if regimes:
        others = {"--rounds": rounds, "--epsilon": epsilon, "--experts": experts}
        others |= {"--regret": regret, "--explain": explain or None, "--simulate": simulate or None}
        _check_regimes([name for name, value in others.items() if value is not None])
        _show_regimes(size.arms, delta, chart, as_json)
        return
    if chart is not None:
        raise InputError("--chart goes with --regimes; a plan has no chart.")
    found, answer = _answered(size, experts, delta, regret)
    expected = _expected(found) if simulate else None
    if as_json:
        shown = {**found.to_dict(), "answer": answer}
        if expected:
            shown["expected"], shown["not_simulated"] = expected
        typer.echo(json.dumps(shown, indent=2, allow_nan=False))
        return
    if answer:
        typer.echo(answer)
    print_plan(found, explain)
    if expected:
        print_expected(*expected, experts=found.experts is not None)


def _answered(
    size: Size, experts: str | None, delta: float, regret: float | None
) -> tuple[Plan, str | None]:
    """Fill in what is asked for; return the plan for it and the answer in words."""
    from bandanna.theory import inverse
    from bandanna.theory.planner import plan as make_plan

    most_experts = experts == MOST
    count = None if experts is None or most_experts else whole_number("--experts", experts)
    asked = [*size.missing, *(["--experts"] if most_experts else [])]
    if regret is None:
        if size.missing:
            raise InputError(
                f"needs {', '.join(size.missing)}; or give --regret and leave out one of them."
            )
        if most_experts:
            raise InputError(f"--experts {MOST} asks how many a target allows; give it: --regret.")
        arms, rounds, epsilon = size
        assert arms is not None and rounds is not None and epsilon is not None  # noqa: PT018
        return make_plan(arms, rounds, epsilon, experts=count, delta=delta), None
    if len(asked) != 1:
        raise InputError(
            f"with --regret leave out exactly one of --arms, --rounds and --epsilon, the one you "
            f"ask for, or ask by --experts {MOST}; asked for: {', '.join(asked) or 'nothing'}."
        )
    given: dict[str, Any] = {
        **{name: value for name, value in size._asdict().items() if value is not None},
        "delta": delta,
    }
    if not most_experts:
        given["experts"] = count
    question = asked[0].removeprefix("--")
    find: dict[str, Callable[..., float]] = {
        "arms": inverse.arms_for,
        "rounds": inverse.rounds_for,
        "epsilon": inverse.epsilon_for,
        "experts": inverse.experts_for,
    }
    value = find[question](regret, **given)
    more = " and more" if value in (inverse.MOST_ARMS, inverse.MOST_EXPERTS) else ""
    words = {
        "arms": f"Up to {value:,} arms{more}",
        "rounds": f"From {value:,} rounds on",
        "epsilon": f"From epsilon {value:.4g} on",
        "experts": f"Up to {value:,} experts{more}",
    }[question]
    found = make_plan(**{**given, question: value})
    return found, f"{words}, regret of at most {regret:g} of the rounds is guaranteed."


def _check_regimes(given: list[str]) -> None:
    if given:
        raise InputError(
            f"--regimes goes over all sizes; leave out {', '.join(given)}. "
            f"--arms, --delta, --chart and --json go with it."
        )


def _show_regimes(arms: int | None, delta: float, chart: Path | None, as_json: bool) -> None:
    from bandanna.cli.regimes import show_regimes
    from bandanna.theory.regimes import ARMS, DELTA

    show_regimes(ARMS if arms is None else arms, delta or DELTA, chart, as_json)


def _expected(found: Plan) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from bandanna.simulation.expect import expected_regret, expected_regret_with_experts

    size = found.rounds, found.epsilon
    rows, left_out = (
        expected_regret(found.arms, *size)
        if found.experts is None
        else expected_regret_with_experts(found.arms, found.experts, *size, found.delta)
    )
    return [row._asdict() for row in rows], left_out

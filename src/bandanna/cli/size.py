"""bandanna size: how many people it takes to say which arm is best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.types import InputError
from bandanna.cli.help import command
from bandanna.cli.options import Json, Range, read_range, whole_number
from bandanna.cli.output import note_weak, print_json, print_table

if TYPE_CHECKING:
    from bandanna.planner.time_to_answer import AnswerProblem


@command(
    "bandanna size --epsilon 0.5 --gap 30 --sd 145 --range 0,1000",
    "bandanna size --epsilon 0.5 --gap 0.02 --base-rate 0.05 --any-time",
)
def size(
    epsilon: Annotated[float, typer.Option(help="Privacy parameter; 0.1 to 1 is common.")],
    arms: Annotated[str, typer.Option(help="Number of arms.")] = "2",
    gap: Annotated[float | None, typer.Option(help="How much better the best arm is.")] = None,
    people: Annotated[
        str | None, typer.Option(help="How many there are: which gap, or epsilon, is enough?")
    ] = None,
    base_rate: Annotated[
        float | None, typer.Option(help="How often the other arms succeed.")
    ] = None,
    sd: Annotated[
        float | None, typer.Option(help="Standard deviation of outcomes that are no rates.")
    ] = None,
    loss_range: Range = None,
    correlation: Annotated[
        float, typer.Option(help="With a column that is subtracted from the outcome.")
    ] = 0.0,
    confidence: Annotated[float, typer.Option(help="Confidence of the answer.")] = 0.95,
    any_time: Annotated[
        bool, typer.Option("--any-time", help="Looking again and again, until the arm is known.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say how many people it takes to find the best arm."""
    note_weak(epsilon, quiet=as_json)
    known = None if people is None else whole_number("--people", people)
    count, ends = whole_number("--arms", arms), read_range(loss_range)
    if any_time:
        if gap is None or correlation:
            raise InputError(
                "--any-time needs --gap, such as --gap 0.02 --base-rate 0.05, and knows no "
                "--correlation; with --people it also says which gap and epsilon suffice."
            )
        from bandanna.planner.time_to_answer import AnswerProblem

        asked = AnswerProblem(count, epsilon, gap, base_rate, confidence, sd, ends)
        _until_known(asked, known, as_json=as_json)
        return
    from bandanna.planner.finished import POWERS, FinishedProblem, plan_finished

    problem = FinishedProblem(epsilon, sd, ends, base_rate, correlation, count, confidence)
    answered = plan_finished(problem, gap=gap, people=None if known is None else float(known))
    if as_json:
        print_json(answered.to_dict())
        return
    write = "{:,.0f}" if gap is not None else "{:.4g}"
    print_table(
        f"{'People who tell the gap' if gap is not None else 'The gap that is told'}, "
        f"{100 * confidence:.4g}% sure",
        ["how", *(f"{100 * power:g}% of the time" for power in POWERS)],
        [
            [how, *("-" if value is None else write.format(value) for value in values)]
            for how, values in answered.rows
        ],
        "one look at a finished log with arms of one size; for looking again and again: --any-time",
    )
    typer.echo(answered.sentence)


def _until_known(asked: AnswerProblem, people: int | None, *, as_json: bool) -> None:
    """Print how many people it takes until the best arm is known, by looking at any time."""
    from bandanna.planner.time_to_answer import plan_answer

    answered = plan_answer(asked, people)
    if as_json:
        print_json(answered.to_dict())
        return
    if asked.base_rate is None:
        others = f"standard deviation {asked.sd:g}, the best arm {asked.gap:g} ahead"
    else:
        others = f"one arm succeeds {asked.base_rate + asked.gap:.4g} of the time, the others "
        others += f"{asked.base_rate:.4g}"
    print_table(
        f"People until the best of {asked.arms:,} arms is known, "
        f"{100 * asked.confidence:.4g}% sure",
        ["how", "mean", "90% by", "wrong"],
        [
            [row.how, f"{row.mean:,.0f}", f"{row.most:,.0f}", f"{row.wrong:.1%}"]
            for row in answered.rows
        ],
        f"{others}; epsilon {asked.epsilon:g}; 100 simulated runs each; by the normal "
        "approximation; outcomes that do not change over time",
    )
    typer.echo(answered.sentence)

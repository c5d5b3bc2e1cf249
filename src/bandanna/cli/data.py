"""Options about people's own data, the same for every command that takes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna.cli.options import numbers
from bandanna.types import InputError

if TYPE_CHECKING:
    from bandanna.environments import Environment, ExpertEnvironment, Logged

ROUNDS = 100_000
"""Where nothing else says how many."""

ArmColumn = Annotated[str | None, typer.Option("--arm", help="Column of a log with the arm.")]
OutcomeColumn = Annotated[
    str | None, typer.Option("--outcome", help="Column of a log with what came of it.")
]
Range = Annotated[
    str | None,
    typer.Option("--range", help="Smallest and largest possible loss or outcome, such as 0,20."),
]
Reward = Annotated[
    bool, typer.Option("--reward", help="Large outcomes of a log are good; otherwise losses.")
]
Propensity = Annotated[
    str | None, typer.Option(help="Column of a log with the chance its arm had.")
]
Segment = Annotated[str | None, typer.Option(help="Column of a log with a group of people.")]
Time = Annotated[
    str | None, typer.Option(help="Column of a log to order by; keeps what changed over time.")
]
Person = Annotated[
    str | None,
    typer.Option(help="Column with whose row it is: rounds are people's places, means of theirs."),
]
Replay = Annotated[
    bool, typer.Option("--replay", help="Go through a log once, by rejection; or else resample.")
]


def read_range(text: str | None) -> tuple[float, float]:
    """Read a pair of numbers; by default 0 and 1."""
    if text is None:
        return 0.0, 1.0
    ends = numbers("--range", text)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InputError(f"--range is two numbers, the smaller first, such as 0,20; got {text!r}.")
    return ends[0], ends[1]


def read_log(
    path: Path,
    arm: str | None,
    outcome: str | None,
    loss_range: str | None,
    columns: Mapping[str, str | None],
    *,
    reward: bool,
    rounds: int | None = None,
    replay: bool = False,
) -> Logged:
    """Make an environment of a log, or say which options it needs."""
    if arm is None or outcome is None:
        raise InputError(
            f"a log needs --arm and --outcome, the names of its columns, such as --arm plan "
            f"--outcome visits; got {path.name!r} without."
        )
    from bandanna.environments import Logged

    return Logged(
        path,
        arm=arm,
        outcome=outcome,
        loss_range=read_range(loss_range),
        reward=reward,
        rounds=rounds,
        how="replay" if replay else "resample",
        propensity=columns.get("propensity"),
        segment=columns.get("segment"),
        time=columns.get("time"),
        person=columns.get("person"),
    )


def make_place(
    name: str,
    arms: int | None,
    rounds: int | None,
    experts: int | None,
    spread: bool,
    advice: Path | None,
    loss_range: tuple[float, float],
    person: str | None = None,
) -> Environment | ExpertEnvironment:
    """Make an environment by name, or of files."""
    from bandanna.environments import make_environment
    from bandanna.environments.frames import is_table
    from bandanna.environments.loss_file import read_losses

    if is_table(name):
        found = read_losses(Path(name), loss_range, advice, person).environment(rounds)
        for what, asked, own in (("arms", arms, found.arms), ("experts", experts, found.experts)):
            if asked not in (None, own):
                raise InputError(f"{name} has {own or 'no'} {what}; got --{what} {asked}.")
        return found
    if person is not None:
        raise InputError("--person is a column of data; give --log, or a file --environment.")
    if advice is not None:
        raise InputError("--advice goes with a file of losses: --environment losses.csv.")
    if loss_range != (0.0, 1.0):
        raise InputError(f"environment {name!r} has losses from 0 to 1; leave out --range.")
    options = {"spread": True} if spread and experts is not None else {}
    size = ROUNDS if rounds is None else rounds
    return make_environment(name, arms, size, experts, **options)

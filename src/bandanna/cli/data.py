"""Options about people's own data, the same for every command that takes them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from bandanna._core.types import InputError
from bandanna.cli.options import numbers, option, options_of, with_options

if TYPE_CHECKING:
    from bandanna.environments import Environment, ExpertEnvironment, Logged

ROUNDS = 100_000
"""Where nothing else says how many."""


Replay = Annotated[
    bool,
    typer.Option("--replay", help="Go through the log once, by rejection, instead of resampling."),
]


class LogColumns(NamedTuple):
    """Options about a log."""

    arm: Annotated[str | None, typer.Option(help="Column of a log with the arm.")] = None
    outcome: Annotated[str | None, typer.Option(help="Column of a log with the outcome.")] = None
    loss_range: Annotated[
        str | None,
        typer.Option("--range", help="Smallest and largest possible outcome, such as 0,20."),
    ] = None
    reward: Annotated[
        bool, typer.Option("--reward", help="Large outcomes are good; without it they are losses.")
    ] = False
    clip: Annotated[
        bool, typer.Option("--clip", help="Count outcomes outside --range as its nearer end.")
    ] = False
    propensity: Annotated[
        str | None, typer.Option(help="Column with the probability its arm had.")
    ] = None
    segment: Annotated[str | None, typer.Option(help="Column with a group of people.")] = None
    time: Annotated[
        str | None, typer.Option(help="Column to order rows by; keeps changes over time.")
    ] = None
    person: Annotated[
        str | None,
        typer.Option(help="Column with whose row it is; rounds are then people's slots."),
    ] = None


NO_COLUMNS = LogColumns()


def takes_group(
    parameter: str, group: type[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what gives a command an option for each field of a group, a named tuple.

    The command declares ``parameter``, and gets the group there.
    """

    def takes(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**given: object) -> None:
            values = {name: given.pop(name) for name in group._fields}
            command(**given, **{parameter: group(**values)})

        kinds, defaults = get_type_hints(group, include_extras=True), group._field_defaults
        added = [option(name, kinds[name], defaults[name]) for name in group._fields]
        options = []
        for own in options_of(command):
            options += added if own.name == parameter else [own]
        return with_options(called, options)

    return takes


takes_log_columns = takes_group("columns", LogColumns)


def without_log(option: str) -> InputError:
    """Say that columns need their log."""
    return InputError(f"--arm, --outcome and other columns are a log's; give it with {option}.")


AdviceColumns = Annotated[
    str | None,
    typer.Option("--advice", help="Columns of a log with the arm each expert advised."),
]


def columns_of(text: str | None) -> list[str]:
    """Read names of columns, separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


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
    columns: LogColumns,
    *,
    advice: str | None = None,
    rounds: int | None = None,
    replay: bool = False,
) -> Logged:
    """Make an environment of a log, or say which options it needs."""
    if columns.arm is None or columns.outcome is None:
        raise InputError(
            f"a log needs --arm and --outcome, the names of its columns, such as --arm plan "
            f"--outcome visits; got {path.name!r} without."
        )
    from bandanna.environments import Logged

    return Logged(
        path,
        arm=columns.arm,
        outcome=columns.outcome,
        loss_range=read_range(columns.loss_range),
        reward=columns.reward,
        clip=columns.clip,
        rounds=rounds,
        how="replay" if replay else "resample",
        propensity=columns.propensity,
        segment=columns.segment,
        time=columns.time,
        person=columns.person,
        advice=columns_of(advice),
    )


def environment_of(
    name: str,
    arms: int | None,
    rounds: int | None,
    experts: int | None,
    spread: bool,
    advice: str | None,
    loss_range: tuple[float, float],
    person: str | None = None,
) -> Environment | ExpertEnvironment:
    """Make an environment by name, or of files."""
    from bandanna.environments import make_environment
    from bandanna.environments.frames import is_table
    from bandanna.environments.loss_file import read_losses

    if is_table(name):
        said = None if advice is None else Path(advice)
        found = read_losses(Path(name), loss_range, said, person).environment(rounds)
        for what, asked, own in (("arms", arms, found.arms), ("experts", experts, found.experts)):
            if asked not in (None, own):
                raise InputError(f"{name} has {own or 'no'} {what}; got --{what} {asked}.")
        return found
    if person is not None:
        raise InputError("--person is a column of data; give --log, or a file --environment.")
    if advice is not None:
        raise InputError(
            "--advice goes with a file of losses, --environment losses.csv, or a log, --log."
        )
    if loss_range != (0.0, 1.0):
        raise InputError(f"environment {name!r} has losses from 0 to 1; leave out --range.")
    options = {"spread": True} if spread and experts is not None else {}
    size = ROUNDS if rounds is None else rounds
    return make_environment(name, arms, size, experts, **options)

"""Options: how they are read, and groups of them that several commands take."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.spec import parameters

if TYPE_CHECKING:
    from bandanna.environments import Environment, ExpertEnvironment, Logged


def whole_number(option: str, text: str, most: float = 1e15) -> int:
    """Read a count that may be written as 1e6."""
    number = checks.as_float(checks.spelled(text))
    if not (1 <= number <= most and number.is_integer()):
        raise InputError(
            f"{option} must be a whole number from 1 to {most:g}, such as 100000 or 1e6; "
            f"got {text!r}."
        )
    return int(number)


def numbers(option: str, text: str) -> list[float]:
    """Read a comma-separated list of numbers."""
    values = [checks.as_float(checks.spelled(part)) for part in text.split(",") if part.strip()]
    if not values or any(math.isnan(value) for value in values):
        raise InputError(f"{option} must be numbers separated by commas; got {text!r}.")
    return values


Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars and no estimates of time.")]


def be_quiet(quiet: bool) -> None:
    """Let this process, and those it starts, work without saying how far they are."""
    if quiet:
        os.environ["BANDANNA_QUIET"] = "1"


def can_be_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that may take long the option ``--quiet``."""

    @functools.wraps(command)
    def called(*, quiet: bool, **given: object) -> None:
        be_quiet(quiet)
        command(**given)

    return with_options(called, [*options_of(command), option("quiet", Quiet, False)])


def option(name: str, kind: object, default: object) -> inspect.Parameter:
    """Return an option that a command does not declare itself."""
    kinds = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kinds, default=default, annotation=kind)


def options_of(command: Callable[..., None]) -> list[inspect.Parameter]:
    """Return what a command is called with, all by name."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    return [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]


def with_options(
    command: Callable[..., None], options: list[inspect.Parameter]
) -> Callable[..., None]:
    """Let a command that takes anything by name say which options it has."""
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return command


def takes_spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each parameter of a policy that is declared to have one.

    The command gets those that were given, checked, as ``policy_options``.
    """
    declared = {name: one for name, one in parameters().items() if one.option}

    @functools.wraps(command)
    def called(**given: object) -> None:
        texts = {name: given.pop(name) for name in declared}
        values = {
            name: declared[name].check(checks.spelled(text))
            for name, text in texts.items()
            if text is not None
        }
        command(**given, policy_options=values)

    added = [
        option(name, Annotated[str | None, typer.Option(help=one.help)], None)
        for name, one in declared.items()
    ]
    options = []
    for own in options_of(command):
        options += added if own.name == "policy_options" else [own]
    return with_options(called, options)


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


# --- options about people's own data --------------------------------------------------

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


def read_range(text: str | None, option: str = "--range") -> tuple[float, float]:
    """Read a pair of numbers; by default 0 and 1."""
    if text is None:
        return 0.0, 1.0
    ends = numbers(option, text)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InputError(f"{option} is two numbers, the smaller first, such as 0,20; got {text!r}.")
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
    from bandanna.environments.tables import read_losses

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


# --- options about further outcomes ---------------------------------------------------


class OutcomeOptions(NamedTuple):
    """Options about metrics."""

    metric: Annotated[
        list[str] | None,
        typer.Option(help="A further outcome and its range: refund=0,1. Repeat it."),
    ] = None
    metric_means: Annotated[
        list[str] | None,
        typer.Option(help="A metric's mean for each arm: refund=0.02,0.02,0.3. Repeat it."),
    ] = None
    guardrail: Annotated[
        list[str] | None,
        typer.Option(
            help="Retire an arm that is further from --control in a metric: refund=0.02 above it, "
            "negative numbers below it. Repeat it."
        ),
    ] = None

    @property
    def policy(self) -> dict[str, object]:
        """What they say of policies, checked."""
        ranges = _read_named("--metric", self.metric)
        limits = _read_named("--guardrail", self.guardrail)
        found: dict[str, object] = {}
        if ranges:
            found["metrics"] = {name: tuple(ends) for name, ends in ranges.items()}
        if limits:
            if wrong := [name for name, values in limits.items() if len(values) != 1]:
                raise InputError(f"--guardrail takes one number: {wrong[0]}=0.02.")
            found["guardrails"] = {name: values[0] for name, values in limits.items()}
        return {name: parameters()[name].check(value) for name, value in found.items()}

    @property
    def means(self) -> dict[str, list[float]]:
        """The mean of each metric for each arm."""
        return _read_named("--metric-means", self.metric_means)


NO_OUTCOMES = OutcomeOptions()
takes_outcomes = takes_group("outcome_options", OutcomeOptions)
"""Gives a command an option for each of ``OutcomeOptions``, where it has ``outcome_options``."""


def _read_named(option: str, given: list[str] | None) -> dict[str, list[float]]:
    """Read ``name=1,2`` given several times."""
    found: dict[str, list[float]] = {}
    for text in given or []:
        name, equals, values = text.partition("=")
        if not name or not equals:
            raise InputError(
                f"{option} needs a name and numbers, such as refund=0,1; got {text!r}."
            )
        if name in found:
            raise InputError(f"{option} names {name!r} twice.")
        found[name] = numbers(option, values)
    return found

"""Options: how they are read, and ``--set``, which reaches all other parameters by name."""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import bandanna as bd
from bandanna._core import checks
from bandanna._core.types import JSON, InputError


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


def read_range(text: str | None) -> tuple[float, float]:
    """Read a pair of numbers; by default 0 and 1."""
    if text is None:
        return 0.0, 1.0
    ends = numbers("--range", text)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InputError(f"--range is two numbers, the smaller first, such as 0,20; got {text!r}.")
    return ends[0], ends[1]


def columns_of(text: str | None) -> list[str]:
    """Read names, separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


# --- every other parameter, by its name in Python ---------------------------------------------


def setting(what: str) -> object:
    """Return the option ``--set``; ``what`` says whose parameters it reaches."""
    help_text = f"A further parameter of {what}. Repeat it."
    return typer.Option("--set", metavar="NAME=VALUE", help=help_text)


def settings(given: Sequence[str] | None, known: Iterable[str]) -> JSON:
    """Read ``name=value`` given several times; ``a.b=1`` is ``{"a": {"b": 1}}``.

    Names are those of Python. What is not among ``known`` is refused.
    """
    read: JSON = {}
    allowed = sorted(known)
    for text in given or []:
        path, equals, value = text.partition("=")
        name, *below = path.strip().split(".")
        name = name.replace("-", "_")
        if not name or not equals:
            raise InputError(f"--set takes a name and a value, NAME=VALUE; got {text!r}.")
        if name not in allowed:
            close = difflib.get_close_matches(name, allowed, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(allowed)}."
            raise InputError(f"--set knows no {name!r}; {hint}")
        place, key = read, name
        for deeper in below:
            place, key = place.setdefault(key, {}), deeper
        if key in place:
            raise InputError(f"--set gives {path.strip()} twice.")
        place[key] = _value(value)
    return read


def _value(text: str) -> object:
    """Read a number, true or false, a list, or else a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    if "," in text:
        return [_value(part.strip()) for part in text.split(",") if part.strip()]
    return text.strip()


# --- progress -----------------------------------------------------------------------------------


Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars and no estimates of time.")]


def be_quiet(quiet: bool) -> None:
    """Let this process, and those it starts, work without saying how far they are."""
    if quiet:
        os.environ["BANDANNA_QUIET"] = "1"


# --- logs ---------------------------------------------------------------------------------------

Arm = Annotated[str | None, typer.Option(help="Column of a log with the arm.")]
Outcome = Annotated[str | None, typer.Option(help="Column of a log with the outcome.")]
Range = Annotated[
    str | None,
    typer.Option("--range", help="Smallest and largest possible outcome, such as 0,20."),
]
Reward = Annotated[
    bool, typer.Option("--reward", help="Large outcomes are good; without it they are losses.")
]
Clip = Annotated[
    bool, typer.Option("--clip", help="Count outcomes outside --range as its nearer end.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

OF_A_LOG = ("how", "propensity", "segment", "time", "person", "advice", "clip")
"""Parameters of ``bd.environments.Logged`` that ``--set`` reaches."""


def read_log(
    path: Path,
    arm: str | None,
    outcome: str | None,
    loss_range: str | None,
    *,
    reward: bool = False,
    **further: Any,
) -> bd.environments.Logged:
    """Make an environment of a log, or say which options it needs."""
    if arm is None or outcome is None:
        raise InputError(
            f"a log needs --arm and --outcome, the names of its columns, such as --arm plan "
            f"--outcome visits; got {path.name!r} without."
        )
    ends = read_range(loss_range)
    return bd.environments.Logged(
        path, arm=arm, outcome=outcome, loss_range=ends, reward=reward, **further
    )

"""Checks of what callers pass in: each error names the value, the reason and what would work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import TypeGuard

from bandanna._core.types import SMALLEST_DELTA, ArmName, InputError

MAX_ROUNDS = 10**12
"""More losses than this, in grid units, would not fit a 64-bit sum."""

MOST_ARMS_IN_PHASES = 100_000
MAX_ARMS = 10**7
MAX_SLOTS = 10**6
"""More slots than this a person does not have."""

MIN_EPSILON, MAX_EPSILON = 1e-9, 100.0
"""Below the first, noise would not fit 64-bit integers; beyond the second there is hardly any."""


def is_number(value: object) -> TypeGuard[Real]:
    """Whether the value is a real number and not a truth value in disguise."""
    return isinstance(value, Real) and not isinstance(value, bool)


def as_float(value: object) -> float:
    """Return a number as a float, or NaN for what is none or does not fit."""
    try:
        return float(value) if is_number(value) else math.nan
    except OverflowError:
        return math.nan


def spelled(value: object) -> object:
    """Read a number that may be written as text, such as "1e6"; leave the rest as it is."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def positive(name: str, value: object) -> float:
    """Require a finite number above zero."""
    number = as_float(value)
    if not math.isfinite(number) or number <= 0.0:
        raise InputError(f"{name} must be a finite number above 0, such as 0.5; got {value!r}.")
    return number


def within(name: str, value: object, low: float, high: float) -> float:
    """Require a number in the closed interval [low, high]."""
    number = as_float(value)
    if not low <= number <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.")
    return number


def epsilon(value: object) -> float:
    """Require an epsilon that a release can promise."""
    number = positive("epsilon", value)
    if not MIN_EPSILON <= number <= MAX_EPSILON:
        raise InputError(
            f"epsilon must be from {MIN_EPSILON:g} to {MAX_EPSILON:g}; got {value!r}. "
            f"If no privacy is wanted, use bandanna.Bandit."
        )
    return number


def delta(value: object) -> float:
    """Require 0, or a probability that arithmetic can tell from it."""
    number = as_float(value)
    if not (number == 0.0 or SMALLEST_DELTA <= number < 1.0):
        raise InputError(
            f"delta must be 0, for a pure guarantee, or a number from {SMALLEST_DELTA:g} to below "
            f"1, such as 1e-6; got {value!r}."
        )
    return number


def rounds(value: object) -> int:
    """Require a number of rounds whose losses can be summed in 64-bit integers."""
    return whole("rounds", value, at_least=1, at_most=MAX_ROUNDS)


def arms(value: object) -> int:
    """Require a number of arms."""
    return whole("arms", value, at_least=2, at_most=MAX_ARMS)


def loss_range(value: object) -> tuple[float, float]:
    """Require a pair (low, high) of finite numbers with low < high."""
    ends = [as_float(end) for end in value] if isinstance(value, Iterable) else []
    low, high = ends if len(ends) == 2 else (math.nan, math.nan)
    if not (low < high and math.isfinite(high - low)):
        raise InputError(
            f"loss_range must be a pair (low, high) of finite numbers, low below high, "
            f"such as (0, 1); got {value!r}."
        )
    return low, high


def range_or_auto(value: object) -> tuple[float, float] | str:
    """Require a range, or the word for one that is to be found."""
    if isinstance(value, str):
        if value != "auto":
            raise InputError(f'loss_range must be (low, high) or "auto"; got {value!r}.')
        return value
    return loss_range(value)


def range_within(
    given: tuple[float, float] | str, bounds: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the bounds of a range that is to be found, or the range that is given."""
    if isinstance(given, str):
        if bounds is None:
            raise InputError(
                "a range that is found privately needs bounds that surely hold all outcomes, known "
                "without looking at them: bounds=(low, high) or --bounds LOW,HIGH."
            )
        return bounds
    if bounds not in (None, given):
        raise InputError('bounds are for a range that is found: loss_range="auto", --range auto.')
    return given


STEEPEST = 100.0
"""The largest slope that may be given."""


def slope(value: object) -> float:
    """Require a slope with which what was known before may be subtracted."""
    number = as_float(value)
    if not abs(number) <= STEEPEST:
        raise InputError(
            f"slope must be a number from {-STEEPEST:g} to {STEEPEST:g}; got {value!r}. Write what "
            f"was known before in the outcome's units, as a prediction of it."
        )
    return number


def adjust(value: object) -> str:
    """Require the name of what was known before."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise InputError(
            f"adjust must name what was known before, in 1 to {LONGEST_NAME} printable characters; "
            f"got {value!r}."
        )
    return value


def check_adjusted(
    adjust: str | None,
    slope: float | None,
    adjusted_range: tuple[float, float] | None,
    *,
    binary: bool,
) -> None:
    """Refuse what does not go with subtracting what was known before."""
    if adjust is None and (slope is not None or adjusted_range is not None):
        raise InputError("slope and adjusted_range are for a column to subtract: name it, adjust=.")
    if adjusted_range is not None and slope is None:
        raise InputError("an adjusted_range is for a slope that is known: give slope= too.")
    if binary and adjust is not None:
        raise InputError("an outcome that is 0 or 1 has a range already, and is not adjusted.")


def set_fields(thing: object, **values: object) -> None:
    """Store checked values in a frozen dataclass, as plain Python numbers."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def whole(name: str, value: object, at_least: int, at_most: int = 10**18) -> int:
    """Require a whole number in a range; 1e6 counts as one, 2.5 does not."""
    number = _whole_part(value)
    if number is None or not at_least <= number <= at_most:
        limits = f"at least {at_least}" + (f" and at most {at_most:g}" if at_most < 10**18 else "")
        raise InputError(f"{name} must be a whole number, {limits}; got {value!r}.")
    return number


def _whole_part(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


# --- metrics and guardrails -----------------------------------------------------------

MAX_METRICS = 20
LONGEST_NAME = 60

Ranges = Mapping[str, tuple[float, float]]
"""Metrics by name, with the smallest and largest value of each."""
Limits = Mapping[str, float]
"""Metrics by name, with how far an arm may be from the control: above it, or below if negative."""


def check_metrics(value: object) -> Ranges | None:
    """Require metrics by name with their ranges; None and an empty mapping are none."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError(
            f'metrics must be ranges by name, such as {{"refund": (0, 1)}}; got '
            f"{type(value).__name__}."
        )
    if len(value) > MAX_METRICS:
        raise InputError(f"there may be at most {MAX_METRICS} metrics; got {len(value)}.")
    ranges: dict[str, tuple[float, float]] = {}
    for name, ends in value.items():
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise InputError(
                f"the name of a metric must be a text of 1 to {LONGEST_NAME} printable characters; "
                f"got {name!r}."
            )
        try:
            ranges[name] = loss_range(ends)
        except InputError:
            raise InputError(
                f"metric {name!r} must have a range, its smallest and largest value, such as "
                f"(0, 1); got {ends!r}."
            ) from None
    return ranges or None


def check_guardrails(value: object) -> Limits | None:
    """Require limits by the name of a metric; None and an empty mapping are none."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError(
            f'guardrails must be limits by metric, such as {{"refund": 0.02}}; got '
            f"{type(value).__name__}."
        )
    limits = {str(name): as_float(limit) for name, limit in value.items()}
    for name, limit in limits.items():
        if not math.isfinite(limit) or limit == 0.0:
            raise InputError(
                f"the guardrail of {name!r} must be how far an arm may be above the control, a "
                f"number above 0, or how far below it, a number below 0; got {value[name]!r}."
            )
    return limits or None


def check_together(
    metrics: Ranges | None,
    guardrails: Limits | None,
    control: ArmName | None,
    least_share: float,
    arms: tuple[ArmName, ...],
) -> None:
    """Refuse outcomes, guardrails and control that do not fit together."""
    if control is not None and control not in arms:
        choices = ", ".join(map(repr, arms))
        raise InputError(f"control must be one of the arms, {choices}; got {control!r}.")
    if least_share > 0.0 and control is None:
        raise InputError("least_share goes with control=, the arm that keeps this share.")
    for name, limit in (guardrails or {}).items():
        if name not in (metrics or {}):
            choices = ", ".join(map(repr, metrics or {})) or "none"
            raise InputError(f"guardrail {name!r} is not about a metric; there are {choices}.")
        low, high = (metrics or {})[name]
        if abs(limit) >= high - low:
            raise InputError(
                f"the guardrail of {name!r} must be smaller than its range, {high - low:g}; got "
                f"{limit:g}."
            )
    if guardrails and control is None:
        raise InputError("guardrails compare arms with a control: name it with control=.")

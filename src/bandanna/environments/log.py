"""A log of arms and outcomes, read and checked: the data behind ``Logged``."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS, LossRange, check_range
from bandanna._core.types import InputError, plain
from bandanna.environments.frames import Column, read_columns
from bandanna.environments.moments import moments

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Log:
    """One row for each decision that was made, in order of time where that is known."""

    name: str
    arms: Integers
    """Index of the arm of each row."""
    units: Integers
    """Its loss in grid units."""
    arm_names: tuple[str, ...]
    propensity: Floats | None
    """The chance with which each row's arm was chosen, where it is known."""
    people: Integers | None
    """Whose row it is, where that is known."""
    segments: Integers
    """Which segment each row belongs to; all 0 where there are none."""
    ordered: bool
    """Whether the rows are in order of time."""
    loss_range: LossRange
    advice: Integers | None = None
    """The arm that each expert advised, by its index, shape (rows, experts)."""
    expert_names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many rows."""
        return int(self.arms.size)

    def chances(self) -> Floats:
        """Return propensities: as given, or else each arm's share among rows of its segment."""
        if self.propensity is not None:
            return self.propensity
        width = len(self.arm_names)
        cells = np.bincount(self.segments * width + self.arms, minlength=width)
        counts = np.bincount(self.segments)
        shares: Floats = cells[self.segments * width + self.arms] / counts[self.segments]
        return shares

    def content(self) -> str:
        """Return a hash of all that simulations depend on."""
        found = hashlib.sha256(repr((self.arm_names, self.loss_range, self.ordered)).encode())
        columns = [self.arms, self.units, self.segments, self.propensity]
        for column in [*columns, *([] if self.advice is None else [self.advice])]:
            found.update(b"-" if column is None else np.ascontiguousarray(column).tobytes())
        return found.hexdigest()


def read_log(
    source: object,
    *,
    arm: str,
    outcome: str,
    loss_range: LossRange,
    reward: bool = False,
    clip: bool = False,
    propensity: str | None = None,
    person: str | None = None,
    time: str | None = None,
    segment: str | None = None,
    advice: Sequence[str] = (),
) -> Log:
    """Read a log; ``Logged`` says what everything means. Errors do not repeat an outcome."""
    low, high = check_range(loss_range)
    asked = {"arm": arm, "outcome": outcome, "propensity": propensity, "person": person}
    asked |= {"time": time, "segment": segment}
    for what, column in asked.items():
        if column is not None and not isinstance(column, str):
            raise InputError(f"{what} must be the name of a column; got {column!r}.")
    if isinstance(advice, str) or not all(isinstance(column, str) for column in advice):
        raise InputError(f"advice must be a list of columns, one an expert; got {advice!r}.")
    wanted = [column for column in asked.values() if column is not None]
    found = read_columns(source, [*wanted, *advice])
    if found[arm].ndim != 1 or found[arm].size == 0:
        raise InputError("the log has no rows; give one for each decision that was made.")
    codes, names = _codes("arm", arm, found[arm])
    if len(names) < 2:
        raise InputError(f"a log needs at least 2 arms; column {arm!r} has only {names[0]!r}.")
    losses = _outcomes(outcome, found[outcome], (low, high), clip=clip)
    units = np.rint((losses - low) / (high - low) * UNITS).astype(np.int64)
    chances = None if propensity is None else _propensities(propensity, found[propensity])
    people = None if person is None else _codes("person", person, found[person])[0]
    segments = np.zeros_like(codes)
    if segment is not None:
        segments = _codes("segment", segment, found[segment])[0]
    order = np.arange(codes.size)
    if time is not None:
        _refuse_missing("time", time, _missing(found[time]))
        order = np.argsort(moments(time, found[time]), kind="stable")
    name = Path(source).name if isinstance(source, str | Path) else "log"
    return Log(
        name,
        codes[order],
        (UNITS - units if reward else units)[order],
        names,
        None if chances is None else chances[order],
        None if people is None else people[order],
        segments[order],
        time is not None,
        (low, high),
        _advised(advice, found, names)[order] if advice else None,
        tuple(advice),
    )


def _advised(
    columns: Sequence[str], found: Mapping[str, Column], arms: tuple[str, ...]
) -> Integers:
    """Return the arms that experts named, by their indices."""
    indices = {name: index for index, name in enumerate(arms)}
    said = []
    for column in columns:
        codes, named = _codes("advice", column, found[column])
        unknown = [name for name in named if name not in indices]
        if unknown:
            raise InputError(
                f"expert {column!r} advises {unknown[0]!r}, an arm that was never played; there "
                f"are {', '.join(map(repr, arms))}."
            )
        said.append(np.array([indices[name] for name in named], dtype=np.int64)[codes])
    return np.stack(said, axis=1)


def _codes(what: str, column: str, values: Column) -> tuple[Integers, tuple[str, ...]]:
    """Number what a column names, in order of the names."""
    _refuse_missing(what, column, _missing(values))
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    names, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64).ravel(), tuple(str(name) for name in names)


def _outcomes(column: str, values: Column, loss_range: LossRange, *, clip: bool) -> Floats:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"column {column!r} must hold numbers, or true and false.") from None
    _refuse_missing("outcome", column, np.isnan(numbers))
    low, high = loss_range
    if clip:
        return np.clip(numbers, low, high)
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        raise InputError(
            f"some outcomes in column {column!r} are not from {plain(low)} to {plain(high)}. Give "
            f"the smallest and the largest outcome that is possible, --range LOW,HIGH or "
            f"loss_range=(low, high); or count them as the nearer end of this range: --clip or "
            f"clip=True."
        )
    return numbers


def _propensities(column: str, values: Column) -> Floats:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(values.shape, np.nan)
    if not ((numbers > 0.0) & (numbers <= 1.0)).all():
        raise InputError(f"propensities in column {column!r} must be above 0 and at most 1.")
    return numbers


def _missing(values: Column) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        found: NDArray[np.bool_] = np.array([_is_nothing(value) for value in values])
        return found
    kinds = {"f": np.isnan, "M": np.isnat, "m": np.isnat}
    check = kinds.get(values.dtype.kind)
    return np.zeros(values.shape, dtype=bool) if check is None else check(values)


def _refuse_missing(what: str, column: str, missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise InputError(
            f"{int(missing.sum()):,} rows have no {what} in column {column!r}, the first of them "
            f"row {int(missing.argmax()) + 1:,}; leave those rows out."
        )


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))

"""A log of arms and outcomes, read and checked, and what it says about its arms.

Rows are put in order of time. Dates that are written as text sort by the alphabet, which is the
order of time only where the year comes first: 01/02/2024 would come before 31/01/2024. So other
dates are read, and what could be read in two ways is refused. Errors name rows, not what is in
them.

A log is a sample: ``LogSample`` says how surely it tells its arms apart. These numbers are computed
from people's rows as they are. They are for people who may see the log.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS, LossRange, check_range
from bandanna._core.types import JSON, InputError, plain
from bandanna.environments.frames import Column, read_columns

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
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
    boolean: bool = False
    """Whether the column of outcomes holds true and false."""

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

    def blocks(self, count: int) -> tuple[Integers, Integers]:
        """Cut the rows into as many blocks: the edges of these, and the block of each row."""
        edges = np.rint(np.linspace(0, self.size, count + 1)).astype(np.int64)
        return edges, np.searchsorted(edges, np.arange(self.size), side="right") - 1

    def content(self) -> str:
        """Return a hash of all that simulations depend on."""
        digest = hashlib.sha256(repr((self.arm_names, self.loss_range, self.ordered)).encode())
        columns = [self.arms, self.units, self.segments, self.propensity]
        for column in [*columns, *([] if self.advice is None else [self.advice])]:
            digest.update(b"-" if column is None else np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()


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
    columns = read_columns(source, [*wanted, *advice])
    if columns[arm].ndim != 1 or columns[arm].size == 0:
        raise InputError("the log has no rows; give one for each decision that was made.")
    codes, names = _codes("arm", arm, columns[arm])
    if len(names) < 2:
        raise InputError(f"a log needs at least 2 arms; column {arm!r} has one value in all rows.")
    losses = _outcomes(outcome, columns[outcome], (low, high), clip=clip)
    units = np.rint((losses - low) / (high - low) * UNITS).astype(np.int64)
    chances = None if propensity is None else _propensities(propensity, columns[propensity])
    people = None if person is None else _codes("person", person, columns[person])[0]
    segments = np.zeros_like(codes)
    if segment is not None:
        segments = _codes("segment", segment, columns[segment])[0]
    order = np.arange(codes.size)
    if time is not None:
        _refuse_missing("time", time, _missing(columns[time]))
        order = np.argsort(moments(time, columns[time]), kind="stable")
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
        _advised(advice, columns, names)[order] if advice else None,
        tuple(advice),
        columns[outcome].dtype.kind == "b",
    )


def _advised(
    columns: Sequence[str], found: Mapping[str, Column], arms: tuple[str, ...]
) -> Integers:
    """Return the arms that experts named, by their indices."""
    indices = {name: index for index, name in enumerate(arms)}
    said = []
    for column in columns:
        codes, named = _codes("advice", column, found[column])
        unknown = np.array([name not in indices for name in named])[codes]
        if unknown.any():
            raise InputError(
                f"expert {column!r} advises an arm that was never played, first in row "
                f"{int(unknown.argmax()) + 1:,}."
            )
        said.append(np.array([indices[name] for name in named], dtype=np.int64)[codes])
    return np.stack(said, axis=1)


def _codes(what: str, column: str, values: Column) -> tuple[Integers, tuple[str, ...]]:
    """Number what a column names, in order of the names."""
    _refuse_missing(what, column, _missing(values))
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    try:
        names, codes = np.unique(values, return_inverse=True)
    except TypeError:
        names = None
    if names is None:
        raise InputError(
            f"column {column!r} mixes texts, numbers or other things, which have no order; make "
            f"all of its values texts."
        )
    return codes.astype(np.int64).ravel(), tuple(str(name) for name in names)


def _outcomes(column: str, values: Column, loss_range: LossRange, *, clip: bool) -> Floats:
    _refuse_missing("outcome", column, _missing(values))
    numbers = as_numbers(values)
    if numbers is None:
        raise InputError(f"column {column!r} must hold numbers, or true and false.")
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
    numbers = as_numbers(values)
    if numbers is None or not ((numbers > 0.0) & (numbers <= 1.0)).all():
        raise InputError(f"propensities in column {column!r} must be above 0 and at most 1.")
    return numbers


def _missing(values: Column) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        nothing: NDArray[np.bool_] = np.array([_is_nothing(value) for value in values])
        return nothing
    return np.asarray(values != values)  # noqa: PLR0124  # NaN and NaT


def _refuse_missing(what: str, column: str, missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise InputError(
            f"{int(missing.sum()):,} rows have no {what} in column {column!r}, the first of them "
            f"row {int(missing.argmax()) + 1:,}; leave those rows out."
        )


def as_numbers(values: Column) -> Floats | None:
    """Return a column as numbers; None if it holds anything else."""
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_nothing(value: object) -> bool:
    missing = value is None or type(value).__name__ == "NAType"  # of pandas
    return missing or (isinstance(value, float) and math.isnan(value))


YEAR_FIRST = re.compile(r"\d{4}(\D|\d{2,}|$)")
PARTED = re.compile(r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})(?!\d)(.*)", re.DOTALL)
YEAR_LAST = re.compile(
    r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[ T,]+(\d{1,2}:\d{2}(?::\d{2}.*)?))?"
)


def moments(column: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return something that sorts as time does, or refuse what cannot be ordered.

    Examples
    --------
    >>> import numpy as np
    >>> when = np.array(["31/01/2024", "01/02/2024", "15/01/2024"], dtype=object)
    >>> np.argsort(moments("day", when)).tolist()
    [2, 0, 1]
    """
    if values.dtype.kind not in "OUS" or not all(isinstance(v, str | bytes) for v in values):
        return values  # numbers, or dates of Python's own, which sort
    texts = [value.decode() if isinstance(value, bytes) else value.strip() for value in values]
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        pass
    if all(YEAR_FIRST.match(text) for text in texts):
        return np.array([_padded(text) for text in texts])
    parts = [YEAR_LAST.fullmatch(text) for text in texts]
    if None in parts:
        raise InputError(
            f"column {column!r} cannot be put in order of time: row {parts.index(None) + 1:,} has "
            f"neither a number nor a date. Write dates with the year first, such as 2024-01-31."
        )
    dates = [part for part in parts if part]
    days_first = any(int(date[1]) > 12 for date in dates)
    if days_first == any(int(date[2]) > 12 for date in dates):
        raise InputError(
            f"column {column!r} has dates with the year last, and nothing tells days from months. "
            f"Write them with the year first, such as 2024-01-31."
        )
    month, day = (2, 1) if days_first else (1, 2)
    return np.array(
        [
            f"{date[3]}-{int(date[month]):02}-{int(date[day]):02} {_hour(date[4] or '')}"
            for date in dates
        ]
    )


def _padded(text: str) -> str:
    """Write 2024-1-9 as 2024-01-09; leave the rest as it is."""
    date = PARTED.fullmatch(text)
    if date is None:
        return text
    year, month, day, rest = date.groups()
    return f"{year}-{int(month):02}-{int(day):02}{rest}"


def _hour(text: str) -> str:
    """Write 9:30:00 as 09:30:00."""
    return f"0{text}" if text[1:2] == ":" else text


UNPROTECTED = (
    "Numbers from a log are computed from people's rows without protection: do not publish them. "
    "bandanna answer releases private ones."
)
AS_TRUE = "The rehearsal takes the log's means as true; it does not draw them from their errors."
FEWEST, OF_EVEN = 100, 0.02
"""An arm has few rows below this number, or below this share of an even split."""
SURE = 0.05
"""How often the best arm may be called clearly best by chance, about."""


class SampledArm(NamedTuple):
    """An arm as a log has it."""

    name: str
    rows: int
    mean: float
    """Its mean outcome, in the log's units."""
    error: float
    """Standard error of the mean. One row at each end of the range is added for it, so that an arm
    whose few rows are all alike is not taken for certain."""
    few: bool


@dataclass(frozen=True)
class LogSample:
    """What a log says about its arms."""

    arms: tuple[SampledArm, ...]
    best: str
    """The arm with the best mean."""
    clearly: bool
    """Whether it is better than every other arm by more than the errors explain."""
    near: tuple[str, ...]
    """The arms that may be as good."""
    outcome: str = ""

    @property
    def few(self) -> tuple[str, ...]:
        """Arms with few rows."""
        return tuple(arm.name for arm in self.arms if arm.few)

    @property
    def sentence(self) -> str:
        """Which arm is best in the log, and whether that is clear."""
        if self.clearly:
            said = f"{self.best} has the best mean in the log, clearly."
        else:
            said = (
                f"{self.best} has the best mean in the log, but not clearly: "
                f"{_listed(self.near)} may be as good."
            )
        if self.few:
            have = "has" if len(self.few) == 1 else "have"
            said += (
                f" {_listed(self.few)} {have} few rows: mistyped names, or a column of numbers "
                f"taken as arms?"
            )
        return said

    @property
    def rows(self) -> list[list[str]]:
        """The table's rows, as text: arm, rows, mean, standard error."""
        return [
            [arm.name, f"{arm.rows:,}", f"{arm.mean:.4g}", f"{arm.error:.2g}"] for arm in self.arms
        ]

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {
            "arms": [{**arm._asdict(), "standard_error": arm.error} for arm in self.arms],
            "best": self.best,
            "clearly": self.clearly,
            "near": list(self.near),
            "few": list(self.few),
            "sentence": self.sentence,
            "protection": UNPROTECTED,
            "uncertainty": AS_TRUE,
        }


def sample_of(log: Log, *, reward: bool, outcome: str = "") -> LogSample:
    """Return what a log says about its arms.

    Rows are weighed by one over their propensity, as rehearsals weigh them. The best arm is
    clearly best if it is ahead of each other arm by more than the normal quantile for
    ``0.05 / K`` times the error of the difference, and neither has few rows.
    """
    from scipy.special import ndtri  # loaded when first used

    low, high = log.loss_range
    weights, arms = 1.0 / log.chances(), len(log.arm_names)
    least = max(FEWEST, OF_EVEN * log.size / arms)
    sampled, losses, errors = [], np.zeros(arms), np.zeros(arms)
    for arm, name in enumerate(log.arm_names):
        mine = log.arms == arm
        units, weight = log.units[mine] / UNITS, weights[mine]
        mean = min(max(float(weight @ units / weight.sum()), 0.0), 1.0)
        each = float(weight.mean())
        squares = float((weight**2) @ (units - mean) ** 2)
        squares += each**2 * (mean**2 + (1.0 - mean) ** 2)
        losses[arm], errors[arm] = mean, math.sqrt(squares) / (float(weight.sum()) + 2.0 * each)
        shown = high - (high - low) * mean if reward else low + (high - low) * mean
        rows = int(mine.sum())
        sampled.append(SampledArm(name, rows, shown, (high - low) * errors[arm], rows < least))
    solid = [arm for arm in range(arms) if not sampled[arm].few] or list(range(arms))
    best = min(solid, key=lambda arm: losses[arm])
    sure = float(-ndtri(SURE / arms))
    near = [
        arm
        for arm in range(arms)
        if arm != best
        and losses[arm] - losses[best] <= sure * math.hypot(errors[arm], errors[best])
    ]
    clearly = not near and not sampled[best].few
    names = tuple(sampled[arm].name for arm in near)
    return LogSample(tuple(sampled), sampled[best].name, clearly, names, outcome)


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:5])
    if len(names) > 5:
        return f"{', '.join(shown)} and {len(names) - 5} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)

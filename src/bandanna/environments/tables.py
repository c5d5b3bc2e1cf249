"""Tables of losses, one row for each round: arrays, and CSV, Parquet or NumPy files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.grid import UNITS, LossRange, array_to_units, check_range
from bandanna._core.private_inputs import private_inputs
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.environments.base import Environment, Memory, register
from bandanna.environments.experts import ExpertTable
from bandanna.environments.frames import SUFFIXES, read_frame
from bandanna.environments.returning import mean_units, slots_of


class TableParams(NamedTuple):
    """Prefix sums: row t holds every arm's total before round t, in grid units."""

    prefix: NDArray[np.int64]


class LossTable(Environment):
    """A (rounds, arms) table of losses.

    Parameters
    ----------
    losses
        Anything NumPy can turn into such a table.
    loss_range
        Smallest and largest possible loss.
    arm_names
        What the arms are called.

    Examples
    --------
    >>> import numpy as np
    >>> LossTable(np.array([[0.0, 1.0], [0.5, 0.25]])).arm_totals(np.array([1, 2]))
    array([[0.  , 1.  ],
           [0.5 , 1.25]])
    """

    name = "table"
    comparator = "realised"

    def __init__(
        self,
        losses: object,
        loss_range: LossRange = (0.0, 1.0),
        arm_names: Sequence[str] = (),
    ) -> None:
        self.loss_range = check_range(loss_range)
        self.arm_names = tuple(arm_names)
        units = array_to_units(losses, loss_range=self.loss_range)
        self.rounds, self.arms = units.shape
        prefix = np.zeros((self.rounds + 1, self.arms), dtype=np.int64)
        np.cumsum(units, axis=0, out=prefix[1:])
        self._params = TableParams(prefix)

    def params(self) -> TableParams:
        """Return the prefix sums."""
        return self._params

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's total loss before each of the given rounds."""
        return self._params.prefix[stops] / UNITS


@step
def _sum_losses(
    params: TableParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    return params.prefix[stop, arm] - params.prefix[start, arm]  # type: ignore[no-any-return]


register(TableParams, _sum_losses)


@dataclass(frozen=True, eq=False, repr=False)
class LossFile:
    """A (rounds, arms) table of losses, with its file's name and its content's hash."""

    name: str
    losses: NDArray[np.float64]
    arms: tuple[str, ...]
    """The columns' names."""
    content: str
    loss_range: LossRange = (0.0, 1.0)
    advice: NDArray[np.generic] | None = None
    """What experts said: (rounds, experts) indices of arms, or (rounds, experts, arms) shares."""
    expert_names: tuple[str, ...] = ()

    def environment(self, rounds: int | None = None) -> LossTable | ExpertTable:
        """Return the first so many of its rounds as an environment."""
        height = len(self.losses)
        if rounds is not None and rounds > height:
            raise InputError(f"{self.name} has {height} rounds; got rounds {rounds}.")
        losses = self.losses[:rounds]
        if self.advice is None:
            return LossTable(losses, self.loss_range, self.arms)
        advice = self.advice[:rounds]
        return ExpertTable(losses, advice, self.loss_range, self.arms, self.expert_names)


@dataclass(frozen=True, repr=False)
class _Table:
    """What a file holds."""

    losses: NDArray[np.generic]
    arms: tuple[str, ...]
    first_line: int | None = None
    """Where in a text file the first round is."""
    people: NDArray[np.generic] | None = None
    """Whose round each is."""

    def where(self, row: int, column: int) -> str:
        """Say for people where a loss is."""
        line = "" if self.first_line is None else f" (line {row + self.first_line})"
        return f"row {row + 1}{line}, column {self.arms[column]!r}"


@private_inputs
def read_losses(
    path: Path,
    loss_range: LossRange = (0.0, 1.0),
    advice: Path | None = None,
    person: str | None = None,
) -> LossFile:
    """Read a table of losses; the file's name says what it is.

    The first line of a CSV file may name the arms. NumPy files hold one two-dimensional array.

    Parameters
    ----------
    path
        The file.
    loss_range
        Smallest and largest possible loss.
    advice
        A file of what experts said in the same rounds: a column for each expert with the names of
        arms, or their indices from 0; or a NumPy array of (rounds, experts, arms) shares.
    person
        A column with whose round it is. All rounds of a person are then one, their slot, with each
        arm's mean loss: people come back as they do in the file.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"a loss table is a file {', '.join(SUFFIXES)}; got {path.name!r}.")
    low, high = check_range(loss_range)
    try:
        if person is not None and (advice is not None or path.suffix == ".npy"):
            raise InputError("a column of persons goes with .csv and .parquet, without advice.")
        if path.suffix == ".npy":
            array = _load_array(path)
            table = _Table(array, _numbered("arm", array.shape[1] if array.ndim == 2 else 0))
        else:
            table = _read_numbers(path, person)
        units = array_to_units(table.losses, table.where, (low, high))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if table.people is not None:
        units, table = _by_person(units, table, (low, high))
    said, experts = (None, ()) if advice is None else _read_advice(advice, table.arms)
    content = hashlib.sha256(repr(units.shape).encode() + units.tobytes())
    if said is not None:
        content.update(repr(said.shape).encode() + np.ascontiguousarray(said).tobytes())
    losses = np.asarray(table.losses, dtype=np.float64)
    about = path.name, losses, table.arms, content.hexdigest()
    return LossFile(*about, (low, high), said, experts)


def _load_array(path: Path) -> NDArray[np.generic]:
    try:
        array: NDArray[np.generic] = np.load(path, allow_pickle=False)
        return array
    except (ValueError, EOFError):
        raise InputError("not a NumPy array of numbers: write it with numpy.save.") from None


def _by_person(
    units: NDArray[np.int64], table: _Table, loss_range: LossRange
) -> tuple[NDArray[np.int64], _Table]:
    """Make one round of all rounds of a person, where they came first."""
    assert table.people is not None
    _, who = np.unique(table.people, return_inverse=True)
    slot, first = slots_of(who.ravel().astype(np.int64))
    means = np.stack([mean_units(arm, slot, first.size) for arm in units.T], axis=1)
    low, high = loss_range
    return means, replace(table, losses=low + (high - low) * means / UNITS)


def _read_numbers(path: Path, person: str | None) -> _Table:
    import polars as pl
    from polars import selectors

    frame, first_line = read_frame(path)
    people = None
    if person is not None:
        if person not in frame.columns:
            known = ", ".join(map(repr, frame.columns))
            raise InputError(f"there is no column {person!r}; there are {known}.")
        if frame[person].has_nulls():
            raise InputError(f"column {person!r} has missing values: every round needs a person.")
        people, frame = frame[person].to_numpy(), frame.drop(person)
    if first_line == 1:
        names = _numbered("arm", frame.width)
        frame = frame.rename(dict(zip(frame.columns, names, strict=True)))
    if frame.is_empty():
        raise InputError("there are names of arms but no losses; give one row for each round.")
    frame = frame.with_columns(selectors.boolean().cast(pl.Int8))  # clicked or not
    words = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    if words:
        raise InputError(
            f"every column must hold the losses of one arm; not numbers: {', '.join(words)}."
        )
    return _Table(frame.to_numpy(), tuple(frame.columns), first_line, people)


def _read_advice(path: Path, arms: tuple[str, ...]) -> tuple[NDArray[np.generic], tuple[str, ...]]:
    """Read what experts said, as indices of arms or as shares, and the experts' names."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"advice is a file {', '.join(SUFFIXES)}; got {path.name!r}.")
    try:
        if path.suffix == ".npy":
            array = _load_array(path)
            return array, _numbered("expert", array.shape[1] if array.ndim > 1 else 0)
        frame, first_line = read_frame(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    experts = tuple(frame.columns) if first_line != 1 else _numbered("expert", frame.width)
    indices = {name: index for index, name in enumerate(arms)}
    said = np.zeros(frame.shape, dtype=np.int64)
    for column, values in enumerate(frame.iter_columns()):
        if values.dtype.is_integer() and not values.has_nulls():
            said[:, column] = values.to_numpy()
            continue
        unknown = [row for row, arm in enumerate(values, start=1) if str(arm) not in indices]
        if unknown:
            raise InputError(
                f"{path}: expert {experts[column]!r} names an unknown arm in row {unknown[0]:,}; "
                f"there are {', '.join(map(repr, arms))}, or their indices from 0."
            )
        said[:, column] = [indices[str(arm)] for arm in values]
    return said, experts


def _numbered(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what} {index + 1}" for index in range(count))

"""Rows in memory, and what is counted of them: sums, and what a range or a slope is chosen by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS, LossRange
from bandanna._core.scale import Scale
from bandanna._core.types import InputError
from bandanna.counted import Counted
from bandanna.environments.frames import Column, read_columns
from bandanna.environments.log import Log, as_numbers, read_log
from bandanna.environments.returning import mean_units, slots_of
from bandanna.privacy.bought import Sample
from bandanna.warehouse import Bins

MOST_CELLS = 5_000
Floats = NDArray[np.float64]
Categories = Mapping[str, Sequence[object]]


def once_each(log: Log) -> tuple[Log, NDArray[np.int64]]:
    """Return a log in which everyone counts once, and the first row of each person.

    A person counts by the mean of their rows with the arm that they met first.
    """
    assert log.people is not None, "the log does not know its people"
    person, arrival = slots_of(log.people)
    mine = log.arms == log.arms[arrival][person]
    slot, first = slots_of(log.people[mine])
    kept = np.flatnonzero(mine)[first]
    units = mean_units(log.units[mine], slot, first.size)
    return replace(
        log,
        arms=log.arms[kept],
        units=units,
        propensity=None,
        people=log.people[kept],
        segments=log.segments[kept],
    ), kept


def mixed_in(log: Log) -> int:
    """Return how many people met more than one arm."""
    assert log.people is not None, "the log does not know its people"
    met = np.unique(np.stack([log.people, log.arms]), axis=1)[0]
    return int((np.bincount(met) > 1).sum())


def bins_of(by: Categories) -> tuple[Bins, ...]:
    """Read how columns divide rows."""
    if not isinstance(by, Mapping):
        raise InputError(
            f'by must say the categories of each column, such as {{"plan": ["basic", "gold"]}}, or '
            f'the edges of its bins, such as {{"age": [18, 40, 65, 90]}}; got {by!r}.'
        )
    bins = tuple(Bins.of(column, declared) for column, declared in by.items())
    check_cells(2 * math.prod(one.size for one in bins))
    return bins


def check_cells(cells: int) -> None:
    """Refuse to release more sums than say anything."""
    if cells > MOST_CELLS:
        raise InputError(
            f"{cells:,} sums would be released, one for each arm and category of all columns; at "
            f"most {MOST_CELLS:,}. Declare fewer categories, or ask for fewer columns."
        )


def _cells(log: object, bins: Sequence[Bins], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number which category of every column each row belongs to, all columns in one."""
    codes = np.zeros(kept.size, dtype=np.int64)
    columns = read_columns(log, [one.column for one in bins]) if bins else {}
    for one in bins:
        codes = codes * one.size + _codes(one, columns[one.column][kept])
    return codes


def _codes(bins: Bins, values: Column) -> NDArray[np.int64]:
    """Number the declared category, or bin, of each value."""
    other = bins.size - 1
    if bins.edges:
        numbers = as_numbers(values)
        if numbers is None:
            raise InputError(f"column {bins.column!r} must hold numbers, as bins need.")
        codes = np.clip(np.searchsorted(bins.edges, numbers, side="right") - 1, 0, other - 1)
        return np.where(np.isnan(numbers), other, codes).astype(np.int64)
    known = {name: index for index, name in enumerate(bins.categories)}
    names, where = np.unique(values.astype(str), return_inverse=True)
    return np.array([known.get(name, other) for name in names], dtype=np.int64)[where.ravel()]


@dataclass(frozen=True, eq=False)
class Rows:
    """People or rows of a log in memory. Private but for arms, cells and how many there are."""

    log: Log
    bins: tuple[Bins, ...]
    cells: NDArray[np.int64]
    outcome: str
    clip: bool
    mixed: int
    """How many people met more than one arm."""
    before: Floats | None = None
    """What was known of each before."""

    @classmethod
    def read(
        cls,
        log: object,
        *,
        arm: str,
        outcome: str,
        loss_range: LossRange,
        clip: bool,
        person: str | None,
        bins: tuple[Bins, ...],
        adjust: str | None,
    ) -> Rows:
        """Read a log; with a person, everyone once."""
        wanted = [arm, outcome, person, adjust, *(one.column for one in bins)]
        # All at once: a query may give its rows in another order the next time.
        log = read_columns(log, [name for name in wanted if isinstance(name, str)])
        rows = read_log(
            log, arm=arm, outcome=outcome, person=person, loss_range=loss_range, clip=clip
        )
        data, kept = (rows, np.arange(rows.size)) if person is None else once_each(rows)
        alone = len(data.arm_names) - np.unique(data.arms).size
        if alone:
            raise InputError(
                f"nobody is left with {alone} of the {len(data.arm_names)} arms: with person= "
                f"people count with the arm of their first row. Leave out the rows of such arms."
            )
        before = None if adjust is None else _before(adjust, log)[kept]
        mixed = 0 if person is None else mixed_in(rows)
        return cls(data, bins, _cells(log, bins, kept), outcome, clip, mixed, before)

    @property
    def sample(self) -> Sample:
        """What a range and a slope are found from."""
        return Sample(self.log.units, self.log.arms, self.log.loss_range, self.before)

    def counted(self, scale: Scale | None = None, *, clip: bool | None = None) -> Counted:
        """Add up outcomes by arm and cell, on a scale; by default on the log's own."""
        units, ends = self.log.units, self.log.loss_range
        if scale is not None:
            ends = scale.ends
            inside = np.clip(self.sample.values(scale.slope), *ends)
            units = np.rint((inside - ends[0]) / (ends[1] - ends[0]) * UNITS).astype(np.int64)
        return Counted.of_rows(
            self.log.arm_names,
            self.log.arms,
            units,
            cells=self.cells,
            width=math.prod(one.size for one in self.bins),
            outcome_range=ends,
            outcome=self.outcome,
            clip=self.clip if clip is None else clip,
            persons=self.log.people is not None,
            mixed=self.mixed,
        )


def _before(column: str, log: object) -> Floats:
    numbers = as_numbers(read_columns(log, [column])[column])
    if numbers is None:
        raise InputError(f"column {column!r} must hold numbers to be subtracted.")
    if np.isnan(numbers).any():
        raise InputError(
            f"some rows have no value in column {column!r}; fill in the same value for all of "
            f"them, such as the middle of the range."
        )
    return numbers

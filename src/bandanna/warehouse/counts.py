"""Asking: a source, a question, and the few integers that come back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bandanna._core.extras import missing_for
from bandanna._core.grid import LossRange, check_range
from bandanna._core.types import JSON, InputError, plain
from bandanna.counted import Counted
from bandanna.environments.frames import FRAMES, require_names
from bandanna.warehouse.source import (
    Asked,
    Bins,
    Exposures,
    Source,
    Table,
    connected,
    named,
    opened,
)

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

MOST_ROWS = 5_000
"""Arms and cells together that are brought back; more are no arms."""
SUMS = ("count", "total", "squares")


class Found(NamedTuple):
    """What was counted, and what there was to be said of it: public but for the sums."""

    counted: Counted
    other: int = 0
    """Exposures to arms that are not among those there are, or to none."""


def count(
    source: Source,
    *,
    arm: str,
    outcome: str,
    loss_range: LossRange = (0.0, 1.0),
    clip: bool = False,
    person: str | None = None,
    bins: Sequence[Bins] = (),
    arms: Sequence[str] | None = None,
    before: Callable[[], object] = lambda: None,
) -> Found:
    """Count a source where it is.

    Parameters
    ----------
    source
        A table, or exposures and facts.
    arm, outcome
        Names of the columns.
    loss_range, clip
        The smallest and the largest outcome. With ``clip`` outcomes outside count as the nearer
        end, and missing ones as 0; without it they are refused. What facts add up to is always
        moved into the range.
    person
        The column with whose row it is, in one table: then everyone counts once.
    bins
        Columns that divide the rows of one table.
    arms
        The arms there are. Rows of others, or of nobody, are then left out, nothing is refused for
        what rows hold, and arms that nobody met are counted as 0.
    before
        Called when the question can be asked, and before it is: no row has been read.
    """
    named_arms = None if arms is None else tuple(arms)
    ends = check_range(loss_range)
    asked = Asked(arm, outcome, ends, person, source.time, tuple(bins), named_arms)
    with connected(source) as backend:
        question = _question(backend, source, asked).limit(MOST_ROWS + 1)
        before()
        rows = question.to_pyarrow().to_pylist()
    if isinstance(source, Exposures):
        return _of_units(rows, source.arms, outcome, ends)
    return _of_rows(rows, asked, clip=clip)


def sql_of(
    source: Source,
    *,
    arm: str,
    outcome: str,
    loss_range: LossRange = (0.0, 1.0),
    person: str | None = None,
    bins: Sequence[Bins] = (),
) -> str:
    """Return the query that ``count`` would ask, as the engine reads it."""
    asked = Asked(arm, outcome, check_range(loss_range), person, source.time, tuple(bins))
    with connected(source) as backend:
        import ibis

        return str(ibis.to_sql(_question(backend, source, asked), dialect=backend.name))


def source_of(log: object) -> Source | None:
    """Return a source for what is not columns in memory; None for those.

    Where the ``warehouse`` extra is not installed a single file, and a table of Arrow's, are read
    into memory.
    """
    if isinstance(log, Table | Exposures):
        return log
    file = isinstance(log, str | Path)
    if (not file and not hasattr(log, "to_batches")) or isinstance(log, Mapping):
        return None
    in_memory = not file or (Path(log).is_file() and Path(log).suffix in FRAMES)  # type: ignore[arg-type]
    return None if in_memory and missing_for("warehouse") else Table(log)


def _question(backend: ibis.BaseBackend, source: Source, asked: Asked) -> ibis.Table:
    from bandanna.warehouse.query import of_rows

    if isinstance(source, Exposures):
        if asked.person is not None or asked.bins:
            raise InputError("exposures count each unit once, and are not divided by columns.")
        return _exposed(backend, source, asked.arm, asked.outcome, asked.loss_range)
    needed = [asked.arm, asked.outcome, *(one.column for one in asked.bins)]
    needed += [name for name in (asked.person, asked.time) if name is not None]
    for name in needed:
        if not isinstance(name, str):
            raise InputError(f"columns are named by texts; got {name!r}.")
    table = opened(backend, source.place, source.table, needed)
    require_names(needed, table.columns, named(source.place))
    return of_rows(table, asked, ordered=source.table is None)


def _exposed(
    backend: ibis.BaseBackend, source: Exposures, arm: str, outcome: str, loss_range: LossRange
) -> ibis.Table:
    from bandanna.warehouse.query import of_exposures

    units = units_of(backend, source, arm)
    facts = facts_of(backend, source, outcome)
    return of_exposures(units, facts, source, outcome, loss_range)


def check_columns(source: Exposures, arm: str, outcomes: Mapping[str, LossRange]) -> None:
    """Refuse tables that lack a column, or have one that cannot be counted; no row is read."""
    with connected(source) as backend:
        for outcome, ends in outcomes.items():
            _exposed(backend, source, arm, outcome, check_range(ends))


def units_of(backend: ibis.BaseBackend, source: Exposures, arm: str) -> ibis.Table:
    """Return one row a unit that was exposed."""
    from bandanna.warehouse.query import first_exposures

    needed = [source.unit, arm, *(() if source.only is None else source.only[:1])]
    shown = _opened(backend, source, source.exposures, needed)
    require_names([*needed, source.time], shown.columns, "the table of exposures")
    return first_exposures(shown, source, arm)


def facts_of(backend: ibis.BaseBackend, source: Exposures, outcome: str) -> ibis.Table:
    """Return the facts."""
    facts = _opened(backend, source, source.facts, [source.unit, outcome])
    require_names([source.unit, outcome, source.time], facts.columns, "the table of facts")
    return facts


def _opened(
    backend: ibis.BaseBackend, source: Exposures, place: object, texts: Sequence[str]
) -> ibis.Table:
    table = None if source.address is None else str(place)
    return opened(backend, place, table, texts)


def _of_units(
    rows: Sequence[JSON], arms: tuple[str, ...], outcome: str, loss_range: LossRange
) -> Found:
    tables = np.zeros((3, len(arms)), dtype=np.int64)
    for row in rows:
        if row["arm"] >= 0:
            tables[:, row["arm"]] = [int(row[name]) for name in SUMS]
    mixed, other = (sum(int(row[name]) for row in rows) for name in ("mixed", "other"))
    counted = Counted(
        arms,
        *(tables[0], tables[1], tables[2]),
        outcome_range=loss_range,
        outcome=outcome,
        clip=True,
        persons=True,
        mixed=mixed,
    )
    return Found(counted, other)


def _of_rows(rows: Sequence[JSON], asked: Asked, *, clip: bool) -> Found:
    spelled = {str(row["arm"]): arm_name(str(row["arm"])) for row in rows}
    names = list(asked.arms or ())
    if asked.arms is None:
        _refuse_missing(rows, asked, clip=clip)
        names = _in_order(set(spelled.values()))
        if len(names) < 2:
            raise InputError(
                f"a log needs at least 2 arms; column {asked.arm!r} has only {names[0]!r}."
            )
    index = {name: k for k, name in enumerate(names)}
    shape = len(names), math.prod(one.size for one in asked.bins)
    tables = np.zeros((3, *shape), dtype=np.int64)
    for row in rows:
        arm, cell = index[spelled[str(row["arm"])]], int(row["cell"])
        tables[:, arm, cell] += [int(row[name]) for name in SUMS]
    counted = Counted(
        tuple(names),
        *(tables[0], tables[1], tables[2]),
        outcome_range=asked.loss_range,
        outcome=asked.outcome,
        clip=clip,
        persons=asked.person is not None,
        mixed=sum(int(row.get("mixed", 0)) for row in rows),
    )
    return Found(counted)


def _refuse_missing(rows: Sequence[JSON], asked: Asked, *, clip: bool) -> None:
    """Refuse no rows, and rows without an arm; without ``clip`` also those without an outcome."""
    if not rows:
        raise InputError("the log has no rows; give one for each decision that was made.")
    if len(rows) > MOST_ROWS:
        raise InputError(
            f"column {asked.arm!r} has more than {MOST_ROWS:,} different values: a column of "
            f"numbers taken as arms?"
        )
    without = sum(int(row["rows"]) for row in rows if row["arm"] is None)
    if without:
        raise InputError(
            f"{without:,} rows have no arm in column {asked.arm!r}; leave those rows out."
        )
    if any(row.get("nobody", 0) for row in rows):
        raise InputError(f"some rows have nobody in column {asked.person!r}; leave those rows out.")
    if clip:
        return
    if any(row["absent"] for row in rows):
        raise InputError(
            f"some rows have no outcome in column {asked.outcome!r}; leave those rows out, or "
            f"count them as 0: --clip or clip=True."
        )
    if any(row["outside"] for row in rows):
        low, high = asked.loss_range
        raise InputError(
            f"some outcomes in column {asked.outcome!r} are not from {plain(low)} to "
            f"{plain(high)}. Give the smallest and the largest outcome that is possible, --range "
            f"LOW,HIGH or loss_range=(low, high); or count them as the nearer end of this range: "
            f"--clip or clip=True."
        )


def arm_name(text: str) -> str:
    """Return an arm's name as logs have it: whole numbers without a point, True and False."""
    if text in ("true", "false"):
        return text.capitalize()
    try:
        value = float(text)
    except ValueError:
        return text
    return str(int(value)) if value.is_integer() and "." in text else text


def _in_order(names: set[str]) -> list[str]:
    """Put arms in order: as numbers where all of them are."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def count_exposed(source: Exposures, arm: str) -> int:
    """Return how many units were exposed to one of the arms: public, and no fact is read."""
    with connected(source) as backend:
        units = units_of(backend, source, arm)
        return int(units.filter(units.arm >= 0).count().to_pyarrow().as_py())


def count_units(
    source: Exposures,
    who: Callable[[pa.Table], pa.Table],
    arm: str,
    outcomes: Mapping[str, LossRange],
) -> tuple[list[Counted], pa.Table]:
    """Count outcomes of those exposed units that ``who`` chooses; also return these.

    They are fetched first, so that whoever is counted is in the list, whatever happens to the
    table meanwhile.
    """
    import ibis

    from bandanna.warehouse.query import of_exposures

    with connected(source) as backend:
        units = units_of(backend, source, arm)
        chosen = who(units.filter(units.arm >= 0).to_pyarrow())
        units, totals = ibis.memtable(chosen), []
        for outcome, ends in outcomes.items():
            facts = facts_of(backend, source, outcome)
            asked = of_exposures(units, facts, source, outcome, check_range(ends))
            rows = backend.to_pyarrow(asked).to_pylist()
            totals.append(_of_units(rows, source.arms, outcome, ends).counted)
    return totals, chosen

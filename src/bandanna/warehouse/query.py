"""The questions: from rows, or from exposures and facts, to one row an arm.

Which units count, with which arm, and from when on, is decided by exposures alone. Facts enter only
the sums: no fact can create, move or remove anyone, and none makes a query fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import ibis
import numpy as np

from bandanna._core.grid import UNITS, LossRange
from bandanna._core.types import InputError
from bandanna.warehouse.grid import (
    clipped,
    in_parts,
    nearest_to_zero,
    on_grid,
    parts_of,
    rounded,
    square,
)
from bandanna.warehouse.source import Asked, Bins, Exposures, duration

FAR_DIGITS = r"(\.\d{100})\d+"
DIGITS = 100
"""So many digits always fit a floating-point number."""
NUMBER = r"(?i)^[+-]?(0*\d{1,100}(\.\d{0,100})?|\.\d{1,100})(e[+-]?0*1?\d{1,2})?$"
"""A number as texts have it, that is neither too large nor too small for floating point."""
PLAIN, FAR = r"(\d+(\.\d*)?|\.\d+)", r"0*([2-9]\d\d|[1-9]\d{3,})"
LARGE = rf"(inf(inity)?|0*[1-9]\d{{100,}}(\.\d*)?|{PLAIN}e\+?{FAR})$"
STANDS_FOR = {
    rf"(?i)^\+?{LARGE}": "Infinity",
    rf"(?i)^-{LARGE}": "-Infinity",
    rf"(?i)^[+-]?{PLAIN}e-{FAR}$": "0",
}
"""What stands for numbers that are too large or too small for it."""


def spellings(arm: str) -> tuple[str, ...]:
    """Return how engines may write the name of an arm: numbers with a point, and true and false.

    Examples
    --------
    >>> spellings("True"), spellings("1"), spellings("A")
    (('True', 'true'), ('1', '1.0'), ('A',))
    """
    if arm in ("True", "False"):
        return arm, arm.lower()
    return (arm, f"{arm}.0") if arm.lstrip("-").isdecimal() else (arm,)


# --- one table ----------------------------------------------------------------------------------


def of_rows(table: ibis.Table, asked: Asked, *, ordered: bool) -> ibis.Table:
    """Return the counts of a table by arm and cell.

    ``ordered`` says that the rows have an order of their own, as those of files.
    """
    value, missing = number(table[asked.outcome]), nearest_to_zero(asked.loss_range)
    low, high = asked.loss_range
    columns = {
        "arm": text(table[asked.arm]),
        "cell": cell_of(table, asked.bins),
        "value": value,
    }
    if asked.person is not None:
        columns["person"] = text(table[asked.person])
        if asked.time is not None:
            columns["turn"] = moment(table[asked.time])
        elif ordered:
            columns["turn"] = ibis.row_number()
        else:
            raise InputError(
                "rows of a database have no order: name the column with their time, by which a "
                "person's first row is found."
            )
    rows = table.select(**columns)
    if asked.arms is not None:
        rows = rows.filter(rows.arm.isin([text for arm in asked.arms for text in spellings(arm)]))
        if asked.person is not None:
            rows = rows.filter(rows.person.notnull())
    units = on_grid(clipped(rows.value, low, high, missing), asked.loss_range)
    rows = rows.mutate(units=units)
    if asked.person is None:
        rows = rows.mutate(square=square(rows.units))
        return rows.group_by("arm", "cell").agg(
            **_sums(rows), rows=rows.count(), **_refused(rows, asked.loss_range)
        )
    each = rows.group_by("person", "arm").agg(
        turn=rows.turn.min(),
        cell=rows.cell.argmin(rows.turn),
        total=rows.units.sum().cast("int64"),
        visits=rows.count(),
        **_refused(rows, asked.loss_range),
    )
    mine = ibis.window(group_by=each.person)
    first = ibis.window(group_by=each.person, order_by=[each.turn, each.arm])
    each = each.mutate(
        place=ibis.row_number().over(first),
        rows=each.visits.sum().over(mine),
        mixed=flag(each.count().over(mine) > 1),
        outside=each.outside.sum().over(mine),
        absent=each.absent.sum().over(mine),
    )
    each = each.filter(each.place == 0)
    mean = each.total.cast("float64") / each.visits.cast("float64")
    each = each.mutate(units=rounded(mean), nobody=flag(each.person.isnull()))
    each = each.mutate(square=square(each.units))
    return each.group_by("arm", "cell").agg(
        **_sums(each),
        rows=each.rows.sum(),
        mixed=each.mixed.sum(),
        outside=each.outside.sum(),
        absent=each.absent.sum(),
        nobody=each.nobody.sum(),
    )


def _sums(rows: ibis.Table) -> dict[str, ibis.Value]:
    """Add up one row for each that counts."""
    return {"count": rows.count(), "total": rows.units.sum(), "squares": rows.square.sum()}


def _refused(rows: ibis.Table, loss_range: LossRange) -> dict[str, ibis.Value]:
    """Say whether any outcome is outside the range, and how many are missing: not to be shown."""
    low, high = loss_range
    beyond = (rows.value.min() < low) | (rows.value.max() > high)
    return {"outside": flag(beyond), "absent": rows.count() - rows.value.count()}


# --- exposures and facts ------------------------------------------------------------------------


def first_exposures(table: ibis.Table, source: Exposures, arm: str) -> ibis.Table:
    """Return one row a unit: the arm of its first exposure, and when that was.

    Of exposures at the same time the arm that is named first counts. ``arm`` is -1 where a unit met
    none of the arms there are.
    """
    if source.only is not None:
        column, value = source.only
        table = table.filter(text(table[column]) == value)
    rows = table.select(
        unit=text(table[source.unit]), arm=text(table[arm]), time=moment(table[source.time])
    )
    rows = rows.filter(rows.unit.notnull(), rows.time.notnull())
    if source.since is not None:
        rows = rows.filter(rows.time >= instant(source.since))
    if source.until is not None:
        rows = rows.filter(rows.time < instant(source.until))
    met = {f"met_{k}": rows.time.min(where=rows.arm == name) for k, name in enumerate(source.arms)}
    known = rows.arm.isin(source.arms)
    units = rows.group_by("unit").agg(
        **met, time=rows.time.min(where=known), rows=rows.count(), known=flag(known).sum()
    )
    first = ibis.cases(*((units[name] == units.time, k) for k, name in enumerate(met)), else_=-1)
    arms_met = sum(flag(units[name].notnull()) for name in met)
    return units.select(
        "unit",
        "time",
        arm=first.cast("int64"),
        mixed=flag(arms_met > 1),
        other=(units.rows - units.known.fill_null(0)).cast("int64"),
        rows="rows",
    )


def of_exposures(
    units: ibis.Table, facts: ibis.Table, source: Exposures, outcome: str, loss_range: LossRange
) -> ibis.Table:
    """Return the counts of units by arm, with what their facts add up to inside the window."""
    low, high = loss_range
    parts, nothing = parts_of(loss_range), nearest_to_zero(loss_range)
    rows = facts.select(
        unit=text(facts[source.unit]),
        at=moment(facts[source.time]),
        part=in_parts(number(facts[outcome]), parts),
    )
    known = units.filter(units.arm >= 0).select("unit", "arm", "time")
    window = ibis.interval(seconds=math.ceil(duration(source.window).total_seconds()))
    joined = known.mutate(until=known.time + window).inner_join(rows, "unit")
    joined = joined.filter(joined.at >= joined.time, joined.at < joined.until)
    each = joined.group_by("unit", "arm").agg(total=joined.part.sum())
    value = each.total.cast("float64") / parts
    each = each.select("arm", units=on_grid(clipped(value, low, high, nothing), loss_range))
    each = each.mutate(square=square(each.units))
    sums = each.group_by("arm").agg(
        some=each.count(), total=each.units.sum(), squares=each.square.sum()
    )
    counts = units.group_by("arm").agg(
        count=units.count(), mixed=units.mixed.sum(), other=units.other.sum(), rows=units.rows.sum()
    )
    both = counts.left_join(sums, "arm")
    without = both["count"] - both.some.fill_null(0)
    own = int(np.rint((nothing - low) / (high - low) * UNITS))
    own_square = (own - UNITS // 2) ** 2 // UNITS  # both as ``warehouse.grid`` has them
    return both.select(
        "arm",
        "count",
        "mixed",
        "other",
        "rows",
        total=both.total.fill_null(0) + without * own,
        squares=both.squares.fill_null(0) + without * own_square,
    )


# --- columns ------------------------------------------------------------------------------------


def number(column: ibis.Column) -> ibis.Column:
    """Return a column as floating-point numbers; what is none becomes NULL."""
    kind, never_fails = column.type(), _never_fails(column)
    if kind.is_boolean():
        return ibis.cases((column, 1.0), (~column, 0.0)).cast("float64")
    if kind.is_string():
        truth = ibis.cases((column.lower() == "true", "1"), (column.lower() == "false", "0"))
        column = truth.fill_null(column)
        return column.try_cast("float64") if never_fails else _number_of_text(column)
    if not kind.is_numeric():
        raise InputError(f"column {column.get_name()!r} must hold numbers, or true and false.")
    if kind.is_decimal() and not never_fails and (kind.precision or DIGITS + 1) > DIGITS:
        return _number_of_text(column.cast("string"))
    return column.cast("float64")


def _never_fails(column: ibis.Column) -> bool:
    """Whether the engine has a cast that fails for no value."""
    return str(column.get_backend().name) != "postgres"


def _number_of_text(column: ibis.Column) -> ibis.Column:
    """Return texts as numbers where a cast fails for what is none, too large or too small."""
    value = column.strip().re_replace(FAR_DIGITS, r"\1")
    pairs = [(value.re_search(pattern), stands) for pattern, stands in STANDS_FOR.items()]
    return ibis.cases(*pairs, (value.re_search(NUMBER), value)).cast("float64")


def flag(condition: ibis.Value) -> ibis.Value:
    """Return 1 where something holds, else 0."""
    return ibis.ifelse(condition, 1, 0).cast("int64")


def text(column: ibis.Column) -> ibis.Column:
    """Return a column as texts."""
    return column if column.type().is_string() else column.cast("string")


def moment(column: ibis.Column) -> ibis.Column:
    """Return a column as times in UTC; what is none becomes NULL."""
    kind, never_fails = column.type(), _never_fails(column)
    if kind.is_numeric() or (kind.is_string() and not never_fails):
        raise InputError(
            f"column {column.get_name()!r} must hold times or dates, such as 2026-01-31T09:30:00; "
            f"it holds {'texts' if kind.is_string() else 'numbers'}."
        )
    if kind.is_date() and not never_fails:
        column = ibis.cases((column.between("0001-01-01", "9999-12-31"), column))
    if kind.is_string():  # it may name a zone, which a cast to times without one leaves out
        column = column.try_cast("timestamp('UTC')")
    return column.try_cast("timestamp(6)")


def instant(when: str) -> ibis.Value:
    """Return a time in UTC as the engines have it."""
    return ibis.literal(when).cast("timestamp(6)")


def cell_of(table: ibis.Table, bins: Sequence[Bins]) -> ibis.Value:
    """Number the cell of each row, all columns in one number."""
    cell = ibis.literal(0, "int64")
    for one in bins:
        cell = cell * one.size + _part(table[one.column], one)
    return cell


def _part(column: ibis.Column, one: Bins) -> ibis.Value:
    other = one.size - 1
    if one.edges:
        value = number(column)
        inner = [(value < edge, k) for k, edge in enumerate(one.edges[1:-1])]
        last = (value.notnull() & ~value.isnan(), other - 1)
        return ibis.cases((value.isnan(), other), *inner, last, else_=other).cast("int64")
    named = {name: k for k, name in enumerate(one.categories)}
    value = text(column)
    if column.type().is_boolean():
        named |= {name.lower(): k for name, k in named.items()}  # as engines write truth values
    pairs = [(value == name, k) for name, k in named.items()]
    return ibis.cases(*pairs, else_=other).cast("int64")

"""Counting where the data is: files, frames and databases through Ibis, a row an arm back.

``source`` says what can be read and opens it; ``grid`` turns values into integers in the same way
on every engine; ``query`` has the questions; ``counts`` asks them.
"""

from bandanna.warehouse.counts import (
    Found,
    check_columns,
    count,
    count_exposed,
    count_units,
    source_of,
    sql_of,
)
from bandanna.warehouse.source import Bins, Exposures, Table, named

__all__ = [
    "Bins",
    "Exposures",
    "Found",
    "Table",
    "check_columns",
    "count",
    "count_exposed",
    "count_units",
    "named",
    "source_of",
    "sql_of",
]

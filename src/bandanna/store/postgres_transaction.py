"""One transaction in PostgreSQL, in as few round trips as can be.

A statement that waits for its answer waits for the network, for the server, and for Python to run
this thread again, which takes longest while requests keep another thread busy. So statements that
change something are collected, and sent with the next question or with the commit. All rows of a
table go in one statement, as JSON. Locks, checks of versions and the commit are those of every
other store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from sqlalchemy import Boolean, Connection, Executable, Float, Integer, LargeBinary, Table

from bandanna._core.types import JSON
from bandanna.store.contract import Stamp
from bandanna.store.database import EVENTS, SqlResult, exists_already, unavailable
from bandanna.store.rows import Event, EventState, Location
from bandanna.store.secret import Secret
from bandanna.store.sql_transaction import SqlTransaction

_TYPES = ((Boolean, "boolean"), (Integer, "bigint"), (Float, "float8"), (LargeBinary, "bytea"))
"""How columns are called in PostgreSQL; integers of every size are sent as the largest one."""

_EVENTS = f"SELECT {', '.join(EVENTS.c.keys())} FROM events WHERE id = ANY(%s)"  # noqa: S608
_LOCK = """
SELECT number, version, step FROM experiments
WHERE number = ANY(%s::bigint[]) ORDER BY number FOR UPDATE
"""
_MOVE = f"""
UPDATE events SET state = new.state
FROM json_to_recordset(%s::json) AS new (batch bigint, position bigint, state bigint)
WHERE events.experiment = %s AND events.batch = new.batch AND events.position = new.position
AND events.state <> {EventState.VOID.value}
"""  # noqa: S608
_NEWEST = "SELECT coalesce(max(sequence), -1) FROM releases WHERE experiment = %s"
_ERASE = (
    "UPDATE events SET state = 4 WHERE experiment = %s AND batch = ANY(%s::bigint[]) "
    "AND state IN (0, 3)",
    "DELETE FROM feedback WHERE experiment = %s AND batch = ANY(%s::bigint[])",
    "DELETE FROM blocks WHERE experiment = %s AND batch = ANY(%s::bigint[])",
    "DELETE FROM batches WHERE experiment = %s AND number = ANY(%s::bigint[])",
)


@cache
def _insert(table: Table, *, replace: bool) -> str:
    """Return a statement that inserts rows, or replaces what is not their key."""
    names = ", ".join(table.c.keys())
    kinds = (
        next((name for kind, name in _TYPES if isinstance(c.type, kind)), "text") for c in table.c
    )
    columns = ", ".join(f"{c.name} {kind}" for c, kind in zip(table.c, kinds, strict=True))
    query = f"INSERT INTO {table.name} ({names}) SELECT {names} "
    query += f"FROM json_to_recordset(%s::json) AS new ({columns})"
    if not replace:
        return query
    key = ", ".join(column.name for column in table.primary_key)
    new = ", ".join(f"{c.name} = excluded.{c.name}" for c in table.c if not c.primary_key)
    return f"{query} ON CONFLICT ({key}) DO UPDATE SET {new}"


def _plain(value: object) -> object:
    """Write bytes as PostgreSQL does."""
    return f"\\x{value.hex()}" if isinstance(value, bytes) else value


class PostgresTransaction(SqlTransaction):
    """A transaction that ends with ``commit``."""

    def __init__(self, connection: Connection, secret: Secret) -> None:
        super().__init__(connection, secret)
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        self._driver: psycopg.Connection[tuple[Any, ...]] = driver
        self._later: list[tuple[str, Sequence[object]]] = []

    def events(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """Return the events with these ids, in all experiments."""
        wanted = list(ids)
        events: dict[str, list[Event]] = {}
        for row in self._ask(_EVENTS, wanted) if wanted else ():
            event = Event(*row)
            events.setdefault(event.id, []).append(event._replace(state=EventState(event.state)))
        return events

    def lock(self, experiments: Iterable[int]) -> dict[int, Stamp]:
        """Lock experiments in one order everywhere, so that nobody waits in a circle."""
        rows = self._ask(_LOCK, sorted(experiments))
        return self._locked({number: Stamp(*stamp) for number, *stamp in rows})

    def commit(self) -> None:
        """Send what was written, and commit it."""
        with self._together():
            self._send()
            self._driver.commit()

    def _send(self) -> None:
        for statement, values in self._later:
            self._driver.execute(statement, values, prepare=True)
        self._later.clear()

    def _run(self, query: Executable, values: JSON | None = None) -> SqlResult:
        if self._later:
            with self._together():
                self._send()
        return super()._run(query, values)

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Wait once, at the end, for whatever is sent; errors have the names of the contract."""
        try:
            with self._driver.pipeline():
                yield
        except psycopg.IntegrityError:
            raise exists_already() from None
        except psycopg.Error as error:
            raise unavailable(error) from None

    # --- how rows are written -----------------------------------------------------------------

    def _set(self, experiment: int, values: JSON) -> None:
        names = ", ".join(f"{name} = %s" for name in values)
        statement = f"UPDATE experiments SET {names} WHERE number = %s"  # noqa: S608
        self._later.append((statement, [*values.values(), experiment]))

    def _move(self, experiment: int, states: dict[Location, EventState]) -> None:
        rows = [{"batch": b, "position": p, "state": new} for (b, p), new in states.items()]
        self._later.append((_MOVE, [json.dumps(rows), experiment]))

    def _insert(self, table: Table, rows: Sequence[JSON], *, replace: bool = False) -> None:
        if rows:
            text = json.dumps([{k: _plain(value) for k, value in row.items()} for row in rows])
            self._later.append((_insert(table, replace=replace), [text]))

    def _newest(self, experiment: int) -> int:
        ((newest,),) = self._ask(_NEWEST, experiment)
        return int(newest)

    def _erase(self, experiment: int, batches: Iterable[int]) -> None:
        gone = list(batches)
        self._later += [(statement, [experiment, gone]) for statement in _ERASE]

    def _ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query; the first one begins the transaction on its way."""
        with self._together():
            self._send()
            return self._driver.execute(statement, values, prepare=True).fetchall()

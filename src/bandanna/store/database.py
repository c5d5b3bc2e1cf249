"""The tables, and connections: SQLite as durable and as forgetful as it gets, PostgreSQL as it is.

``migrations/`` makes the tables.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Result,
    Row,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from bandanna._core.types import InputError
from bandanna.store.contract import ConflictError, StoreUnavailableError

metadata = MetaData()
SqlRow = Row[*tuple[Any, ...]]
SqlResult = Result[*tuple[Any, ...]]
"""Whatever a query gives; its columns are the tables'."""
NUMBER = BigInteger().with_variant(Integer, "sqlite")

FACTS = Table(
    "facts",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

EXPERIMENTS = Table(
    "experiments",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(100), nullable=False),
    Column("segment", String(200), nullable=False),
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("head", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("stopped", Boolean, nullable=False),
    Column("observed", BigInteger, nullable=False),
    Column("step", String(32), nullable=False, server_default=""),
    Column("resumed", BigInteger, nullable=False, server_default="0"),
    Column("owner", BigInteger, nullable=False, server_default="0"),
    Column("counters", Text, nullable=False, server_default=""),
    UniqueConstraint("id", "segment"),
    Index("experiments_by_name", "name"),
    sqlite_autoincrement=True,  # numbers are never given again
)

DESCRIPTIONS = Table(
    "descriptions",
    metadata,
    Column("experiment", String(100), primary_key=True),  # its id: segments share one
    Column("owner", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("hypothesis", Text, nullable=False),
    Column("starts_on", String(10), nullable=False),
    Column("ends_on", String(10), nullable=False),
    Column("tags", Text, nullable=False),
    Column("shipped_arm", Text),
    Column("shipped_at", Float),
    Column("shipped_by", String(100)),
)


def _only(condition: str) -> dict[str, Any]:
    """Index some rows alone."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


EVENTS = Table(
    "events",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("owner", BigInteger, primary_key=True, autoincrement=False),
    Column("experiment", BigInteger, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("arm", Integer, nullable=False),
    Column("round", BigInteger, nullable=False),
    Column("chance", Float),
    Column("made_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("state", SmallInteger, nullable=False),
    Column("visitor", String(32)),
    Index("events_of_visitors", "owner", "visitor", "round", **_only("visitor IS NOT NULL")),
    Index("events_by_place", "experiment", "batch", "position"),
    Index("events_that_wait", "experiment", "expires_at", "round", **_only("state IN (0, 3)")),
    Index("events_never_shown", "experiment", "batch", **_only("state = 2")),
)

BATCHES = Table(
    "batches",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("choice", Integer, nullable=False),
    Column("importance", Float, nullable=False),
    Column("tally", LargeBinary),
)

FEEDBACK = Table(
    "feedback",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("private", LargeBinary),
    Column("given_up", Boolean, nullable=False),
)

BLOCKS = Table(
    "blocks",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    # The experiment's version that it was written with: one block a batch and transaction.
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

RELEASES = Table(
    "releases",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    # From 0 on: a second release of a batch, of whatever arm, meets the first one's.
    Column("part", Integer, primary_key=True, autoincrement=False, server_default=text("0")),
    Column("choice", Integer, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("value", Text, nullable=False),
    Column("released_at", Float, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("step", String(32), nullable=False, server_default=""),
    Index("releases_in_order", "experiment", "sequence", unique=True),
)

PEOPLE = Table(
    "people",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("person", String(16), primary_key=True),
    Column("places", BigInteger, nullable=False),
)

KEYS = Table(
    "keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("experiment", String(100)),
    Column("created_at", Float, nullable=False),
    Column("revoked_at", Float),
    Column("expires_at", Float),
)

TRAIL = Table(
    "trail",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("who", String(100), nullable=False),
    Column("action", String(100), nullable=False),
    Column("about", String(300), nullable=False),
    Column("details", Text, nullable=False),
    Index("trail_by_about", "about", "number"),
)

STARTS = Table(
    "starts",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("step", String(32), nullable=False, unique=True),
    Column("guard", String(32), nullable=False),
    Column("at", Float, nullable=False),
    Column("confirmed", Boolean, nullable=False),  # the guard knows of it
)

CHALLENGES = Table(
    "challenges",
    metadata,
    Column("nonce", String(32), primary_key=True),
    Column("at", Float, nullable=False),
    Column("answered_by", String(32)),
)


WAIT_SECONDS = 10
WRITER_KILOBYTES, READER_KILOBYTES = 65_536, 8_192
"""Memory that SQLite keeps pages in: for the connection that writes, and for each one that reads.
"""
IDLE_SECONDS = 1.0
"""A connection that was not used for so long is asked first whether it still works."""


def make_engines(address: str) -> tuple[Engine, Engine]:
    """Return an engine for transactions and one for reading, which waits for nobody."""
    try:
        url = make_url(address)
    except ArgumentError:
        raise InputError(
            f"a database is a file, sqlite:///file or postgresql://user@host/name; got {address!r}."
        ) from None
    if url.get_backend_name() == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(
            url, pool_timeout=WAIT_SECONDS, connect_args={"connect_timeout": WAIT_SECONDS}
        )
        _ping_idle(engine)
        return engine, engine
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        raise InputError(f"the database must be a SQLite file or PostgreSQL; got {address!r}.")
    _make_private(Path(url.database))
    writing = _sqlite(str(url), "BEGIN IMMEDIATE", kilobytes=WRITER_KILOBYTES)
    return writing, _sqlite(str(url), "BEGIN")


def _ping_idle(engine: Engine) -> None:
    """Ask connections that were not used for a moment whether they still work."""
    left = "left at"

    @event.listens_for(engine, "checkin")
    def _checkin(_: object, record: ConnectionPoolEntry) -> None:
        record.info[left] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _checkout(connection: DBAPIConnection, record: ConnectionPoolEntry, _: object) -> None:
        if time.monotonic() - record.info.get(left, math.inf) > IDLE_SECONDS:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error:
                raise DisconnectionError from None  # another one is taken


def server_of(engine: Engine) -> int | None:
    """Return the number of the PostgreSQL server that an engine asks, if it may be known."""
    if engine.dialect.name == "sqlite":
        return None
    try:
        with engine.connect() as connection:
            return int(connection.scalar(text("SELECT system_identifier FROM pg_control_system()")))
    except DBAPIError:
        return None


def make_guard_engine(address: str) -> Engine:
    """Return an engine for a rollback guard: a file, or a database of its own.

    A file is not flushed at every commit: after a power failure the guard may know less than the
    database does, which is harmless, never more.
    """
    if address.startswith("postgresql"):
        return make_engines(address)[0]
    _make_private(Path(address))
    return _sqlite(f"sqlite:///{address}", "BEGIN IMMEDIATE", synchronous="NORMAL")


def _make_private(path: Path) -> None:
    """Make the file before SQLite does, for its owner alone; its log takes after it.

    One that exists is not opened: to close it would give up the locks that this process may hold
    on it, and another process that closes the database would take its log away.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreUnavailableError(f"cannot open {path}: {error.strerror}.") from None
    if path.stat().st_mode & 0o077:
        raise InputError(f"others can read {path}, which holds feedback; run: chmod 600 {path}")


def _sqlite(
    url: str, begin: str, synchronous: str = "FULL", kilobytes: int = READER_KILOBYTES
) -> Engine:
    engine = create_engine(url, connect_args={"timeout": WAIT_SECONDS})

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, not the driver
        _write_ahead(connection)
        for setting in (
            f"synchronous = {synchronous}",
            "secure_delete = ON",
            "temp_store = MEMORY",
            f"cache_size = -{kilobytes}",
            "wal_autocheckpoint = 10000",  # tidying comes first, and keeps no commit waiting
        ):
            connection.execute(f"PRAGMA {setting}").close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Keep a write-ahead log; SQLite does not wait for others that change to it just now."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


@contextmanager
def naming_errors() -> Iterator[None]:
    """Give what databases raise the names of the contract; details may hold values: none are."""
    try:
        yield
    except IntegrityError:
        raise exists_already() from None
    except (DBAPIError, sqlite3.Error, PoolTimeoutError, OSError) as error:
        raise unavailable(getattr(error, "orig", None) or error) from None


def exists_already() -> ConflictError:
    """Say that a row exists."""
    return ConflictError("this exists already; nothing was changed.")


def unavailable(cause: BaseException) -> StoreUnavailableError:
    """Say that the database cannot be used, and what kind of error it raised."""
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None)
    kind = type(cause).__name__ if code is None else f"{type(cause).__name__} {code}"
    return StoreUnavailableError(f"the database cannot be used now ({kind}); nothing was changed.")

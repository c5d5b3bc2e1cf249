"""Connections: SQLite as durable and as forgetful as it gets, PostgreSQL as it is."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from bandanna._core.types import InputError
from bandanna.store.contract import ConflictError, StoreUnavailableError

WAIT_SECONDS = 10


def make_engines(address: str) -> tuple[Engine, Engine]:
    """Return an engine for turns and one for looking, which never waits for a turn."""
    try:
        url = make_url(address)
    except ArgumentError:
        raise InputError(
            f"a database is a file, sqlite:///file or postgresql://user@host/name; got {address!r}."
        ) from None
    if url.get_backend_name() == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(
            url,
            pool_pre_ping=True,
            pool_timeout=WAIT_SECONDS,
            connect_args={"connect_timeout": WAIT_SECONDS},
        )
        return engine, engine
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        raise InputError(f"the database must be a SQLite file or PostgreSQL; got {address!r}.")
    _make_private(Path(url.database))
    return _sqlite(str(url), "BEGIN IMMEDIATE"), _sqlite(str(url), "BEGIN")


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
    """Make the file before SQLite does, for its owner alone; its log takes after it."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreUnavailableError(f"cannot open {path}: {error.strerror}.") from None
    if path.stat().st_mode & 0o077:
        raise InputError(f"others can read {path}, which holds feedback; run: chmod 600 {path}")


def _sqlite(url: str, begin: str, synchronous: str = "FULL") -> Engine:
    engine = create_engine(url, connect_args={"timeout": WAIT_SECONDS})

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, not the driver
        for setting in (
            "journal_mode = WAL",
            f"synchronous = {synchronous}",
            "secure_delete = ON",
            "temp_store = MEMORY",
            "cache_size = -65536",
            "wal_autocheckpoint = 10000",  # tidying comes first, and keeps no commit waiting
        ):
            connection.execute(f"PRAGMA {setting}").close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


@contextmanager
def named_trouble() -> Iterator[None]:
    """Give what databases raise the names of the contract; details may hold values: none are."""
    try:
        yield
    except IntegrityError:
        raise ConflictError("this exists already; nothing was changed.") from None
    except (DBAPIError, sqlite3.Error, PoolTimeoutError, OSError) as error:
        cause = getattr(error, "orig", None) or error
        raise StoreUnavailableError(
            f"the database cannot be used now ({type(cause).__name__}); nothing was changed."
        ) from None

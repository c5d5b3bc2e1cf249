"""The database of a service in a long test: what it holds, copies of it, a disk that is full."""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg

from tests.postgres import Postgres

ROOM = 60_000
"""Bytes that a file may have on a full disk."""
Rows = list[tuple[object, ...]]


@contextmanager
def full_disk(process: int) -> Iterator[None]:
    """Let a process write nothing beyond the first bytes of a file; it may end meanwhile."""
    limits = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (ROOM, limits[1]))
    yield
    with suppress(ProcessLookupError):
        resource.prlimit(process, resource.RLIMIT_FSIZE, limits)


class SqliteDatabase:
    """A file, and copies of it beside it."""

    server = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = str(folder / "service.db")

    def copy(self, number: int) -> None:
        """Copy the database while it is used, as of one moment, without saying that it is one."""
        path = self._folder / f"copy-{number}"
        with (
            closing(sqlite3.connect(self.address, timeout=30)) as here,
            closing(sqlite3.connect(path)) as there,
        ):
            here.backup(there)
        path.chmod(0o600)

    def put_back(self, number: int) -> None:
        """Put a copy in the place of the database, which nobody uses."""
        for path in self._folder.glob("service.db*"):
            path.unlink()
        here = Path(self.address)
        here.write_bytes((self._folder / f"copy-{number}").read_bytes())
        here.chmod(0o600)

    def read(self, query: str, copy: int | None = None) -> Rows:
        """Ask the database, or a copy."""
        path = self.address if copy is None else self._folder / f"copy-{copy}"
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            return connection.execute(query).fetchall()


class PostgresDatabase:
    """A database of a server, and copies of it in the same server."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.address = server.new_database()
        self._server, _, self._name = self.address.rpartition("/")

    def copy(self, number: int) -> None:
        """Copy the database while it is used, as of one moment, without saying that it is one."""
        self._wait()
        self.server.copy(self.address, f"{self._name}_{number}")

    def put_back(self, number: int) -> None:
        """Put a copy in the place of the database, which nobody uses."""
        self._wait()
        with psycopg.connect(f"{self._server}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self._name} WITH (FORCE)".encode())
            template = f"{self._name}_{number}"
            connection.execute(f"CREATE DATABASE {self._name} TEMPLATE {template}".encode())

    def read(self, query: str, copy: int | None = None) -> Rows:
        """Ask the database, or a copy."""
        self._wait()
        name = self._name if copy is None else f"{self._name}_{copy}"
        with psycopg.connect(f"{self._server}/{name}") as connection:
            return list(connection.execute(query.encode()).fetchall())

    def _wait(self) -> None:
        """Wait for a server that recovers."""
        end = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(f"{self._server}/postgres").close()
            except psycopg.OperationalError:
                assert time.monotonic() < end, "the server does not recover"
                time.sleep(0.05)
            else:
                return


Database = SqliteDatabase | PostgresDatabase

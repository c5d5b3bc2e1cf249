"""Which of the processes that share a database leads.

One process decides and counts; others stand by and take over when it ends. The lead is a lock that
goes with the life of its holder: a lock on a file beside a SQLite database, or a session's lock in
PostgreSQL, which the server lets go of when the session ends. No clocks are compared.

Nothing depends on this but speed. Two processes that both took themselves for the leader would read
again what the other had changed; row locks and versions protect an experiment whoever writes.
"""

from __future__ import annotations

import os
from contextlib import suppress

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from bandanna.store.database import naming_errors

LEADS = 0x62616E65
"""The lock in PostgreSQL."""

SILENT_SECONDS = 2
"""After so long without a sign of life PostgreSQL asks whether the other machine is there."""


class FileLead:
    """The lead over a SQLite database: a lock on a file beside it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> bool:
        """Lead if nobody else does; returns whether this process leads."""
        if self._file is None:
            with naming_errors():
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:
                pass  # systems without it: whoever asks leads
            except BlockingIOError:
                os.close(file)
                return False
            self._file = file
        return True

    def leave(self) -> None:
        """Let another process lead."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class SessionLead:
    """The lead over a PostgreSQL database: a lock of a session that is used for nothing else."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session: Connection | None = None
        self._holds = False

    def take(self) -> bool:
        """Lead if nobody else does; returns whether this process leads."""
        with naming_errors():
            try:
                if self._session is None:
                    self._session = self._open()
                if self._holds:
                    self._session.execute(text("SELECT 1"))
                else:
                    asked = text(f"SELECT pg_try_advisory_lock({LEADS})")
                    self._holds = bool(self._session.execute(asked).scalar_one())
            except DBAPIError:
                self.leave()
                raise
        return self._holds

    def _open(self) -> Connection:
        session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        session.detach()  # the pool neither tests nor hands it out
        for name, value in (("idle", SILENT_SECONDS), ("interval", 1), ("count", 3)):
            with suppress(DBAPIError):  # not through a local socket
                session.execute(text(f"SET tcp_keepalives_{name} = {value}"))
        return session

    def leave(self) -> None:
        """Let another process lead."""
        session, self._session, self._holds = self._session, None, False
        if session is not None:
            with suppress(DBAPIError):
                session.close()


Lead = FileLead | SessionLead


def lead_over(engine: Engine) -> Lead:
    """Return the lead over a database."""
    if engine.dialect.name == "sqlite":
        return FileLead(f"{engine.url.database}.lead")
    return SessionLead(engine)

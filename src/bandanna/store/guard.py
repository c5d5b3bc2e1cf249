"""The rollback guard: what is known of a database outside of it.

A database that was put back from an older copy does not know what it released since: feedback in
its open batches would be released again, with fresh noise. Nothing inside the database can show
this, so a second record is kept outside: in a file by default, or in another database.

Every start of the service and every transaction with releases draws a random step, which is kept
in the database and in the guard. They are compared in both directions. A database that lacks a
step of the guard is an older copy, or a copy that went on elsewhere. A guard that lacks a start
which it confirmed is itself an older copy. A guard file whose inode changed was copied. In all
these cases, and when a database that was used before meets a guard that has never seen it, the
service refuses to start. With ``accept`` it starts and charges: the guard counts how often each
experiment was resumed, and the guarantee multiplies epsilon by that number plus one. The count is
kept in the guard, so restoring the same copy again raises it again.

What cannot be known: a copy that is run on another machine, with another guard, while this one goes
on. And if the guard is put back together with the database, by a snapshot of both, nothing is left
that could tell. ``bandanna db charge`` counts such a copy by hand.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Float,
    MetaData,
    String,
    Table,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url

from bandanna._core.types import JSON, StateFileError
from bandanna.store.contract import Mark, StoreUnavailableError, new_step
from bandanna.store.database import make_guard_engine, naming_errors, server_of
from bandanna.store.sql import SqlStore

VOUCH_SECONDS = 10.0
"""How long a process with a new guard waits for another process to vouch for the database."""

_metadata = MetaData()
_GUARDED = Table(
    "guarded",
    _metadata,
    Column("identity", String(32), primary_key=True),  # of the database
    Column("guard", String(32), nullable=False),
    Column("inode", BigInteger),  # of the file, if it is one
    Column("start", String(32), nullable=False),
    Column("number", BigInteger, nullable=False),  # of the start, in the database
)
_MARKS = Table(
    "marks",
    _metadata,
    Column("identity", String(32), primary_key=True),
    Column("experiment", String(32), primary_key=True),  # a hash of its id and segment
    Column("sequence", BigInteger, nullable=False),  # -1: no release is expected
    Column("step", String(32), nullable=False),
    Column("resumed", BigInteger, nullable=False),
)
_REVOKED = Table(
    "revoked",
    _metadata,
    Column("identity", String(32), primary_key=True),
    Column("key", String(40), primary_key=True),
    Column("at", Float, nullable=False),
)
NOTHING = Mark(-1, "")
NO_FILE = -1
"""In place of the number of a file that was deleted."""


class RestoredError(StateFileError):
    """The database is not the one that the rollback guard knows: an older copy, or another."""


class _Known(NamedTuple):
    guard: str
    inode: int | None
    start: str
    number: int


class _Row(NamedTuple):
    mark: Mark
    resumed: int


def name_of(experiment: str, segment: str) -> str:
    """Return the name under which the guard knows an experiment or one of its segments."""
    return hashlib.sha256(f"{experiment}\0{segment}".encode()).hexdigest()[:32]


def default_guard(identity: str) -> Path:
    """Return where the guard of a database is kept by default: apart from the database."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "bandanna" / "guards" / identity


class Guard:
    """What is known of one database outside of it.

    Parameters
    ----------
    address
        A file, or ``postgresql://...``: a database other than the one that is guarded.
    store
        The database that is guarded.
    """

    def __init__(self, address: str | Path, store: SqlStore) -> None:
        self.is_file = "://" not in str(address)
        self.address = str(address) if self.is_file else repr(make_url(str(address)))
        """Where it is, without a password."""
        self._store = store
        self._identity = store.identity
        self._path = Path(address)
        self._missed: dict[str, Mark] = {}
        self._starts: set[str] = set()
        """Steps of starts that are known to be in the database."""
        self.guard = ""
        self.marks: dict[str, Mark] = {}
        """The last release of each experiment that this process knows of, by ``name_of``."""
        self.revoked: frozenset[str] = frozenset()
        self.trouble: str | None = None
        """Why the database is no longer trusted, if it is not."""
        if self.is_file:
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise StateFileError(
                    f"cannot make the folder of the rollback guard {self.address}: "
                    f"{error.strerror}. Give another path with --guard-file."
                ) from None
        try:
            self._engine = make_guard_engine(str(address))
            with self._transaction() as connection:
                _metadata.create_all(connection)
        except StoreUnavailableError as error:
            raise StateFileError(f"cannot use the rollback guard {self.address}: {error}") from None

    # --- starting -------------------------------------------------------------------------

    def begin(
        self,
        *,
        accept: bool = False,
        clock: Callable[[], float] = time.time,
        patience: float | None = None,
    ) -> set[int]:
        """Compare a database with the guard, and note a start in both.

        Returns the numbers of experiments that were charged: with ``accept`` all of them.
        """
        patience = VOUCH_SECONDS if patience is None else patience
        known, kept = self._look()
        while not accept and (why := self._why_refused(known, kept, clock, patience)) is not None:
            before, (known, kept) = known, self._look()
            if known == before:
                raise RestoredError(
                    f"{why} Feedback in its open batches may have been released before, and would "
                    f"be released again. Use the newest database and its guard; or start with "
                    f"--accept-restored, which charges it: the guarantee will say so."
                )
            # Another process noted a start between our looks at the guard and at the database.
        counts = self._count_resumptions(kept, more=self._may_release() if accept else set())
        if accept:
            self._store.adopt()
        # The database first: a start that the guard does not know of is not confirmed and harmless.
        # No transaction of one is held while the other is waited for.
        guard, step = secrets.token_hex(16) if known is None else known.guard, new_step()
        number = self._store.add_start(step, guard, clock())
        with self._transaction() as connection:
            start = _Known(guard, self._inode(), step, number)._asdict()
            if accept:
                connection.execute(delete(_GUARDED).where(self._here(_GUARDED)))
                connection.execute(
                    update(_MARKS).where(self._here(_MARKS)).values(NOTHING._asdict())
                )
            # Several processes may start together: the newest start is kept.
            self._keep(connection, _GUARDED, [start], larger="number", changed=tuple(start))
            self.marks = self._last_marks()
            self._write(connection, self.marks)
            self._write_counts(connection, counts)
            kept_keys = self._kept_revocations(connection)
        self._share_revocations(kept_keys)
        self._store.confirm_start(step)
        self.guard = guard
        self._starts.add(step)
        return set(counts) if accept else set()

    def _vouched(self, clock: Callable[[], float], patience: float) -> bool:
        """Ask a process that runs on this database, with a guard that agrees, to vouch for it."""
        nonce, end = secrets.token_hex(16), time.monotonic() + patience
        self._store.challenge(nonce, clock())
        try:
            while time.monotonic() < end:
                if self._store.answered(nonce):
                    return True
                time.sleep(0.1)
            return False
        finally:
            self._store.drop_challenge(nonce)

    def _why_refused(
        self,
        known: _Known | None,
        kept: Mapping[str, _Row],
        clock: Callable[[], float],
        patience: float,
    ) -> str | None:
        if self._store.copied:
            return "this database is a backup."
        if known is None:
            if self._store.last_start() is None:
                return None
            # The guard is told of a start before the database confirms it: look again.
            if self._look()[0] is None and self._vouched(clock, patience):
                return None
            return (
                f"this database was used before, and the rollback guard {self.address} has never "
                f"seen it: it may be a copy."
            )
        return self._why_different(known, kept)

    def _why_different(self, known: _Known, kept: Mapping[str, _Row]) -> str | None:
        if known.inode != self._inode():
            return f"the rollback guard {self.address} was copied, so the database may be a copy."
        mine, confirmed = self._store.start(known.start), self._store.last_start(known.guard)
        if mine is None:
            return f"the database is older than the rollback guard {self.address}, or another copy."
        if confirmed is not None and confirmed.number > mine.number:
            return f"the rollback guard {self.address} is older than the database."
        behind = self._behind(kept)
        if behind:
            return (
                f"the database is older than the rollback guard {self.address}, or another copy: "
                f"{behind} experiments lack releases that were made."
            )
        return None

    def _behind(self, kept: Mapping[str, _Row]) -> int:
        """Return how many experiments lack a release that the guard knows of."""
        marks = {name: row.mark for name, row in kept.items() if row.mark != NOTHING}
        if not marks:
            return 0
        numbers = {name: number for number, name in self._names().items()}
        lost = [name for name in marks if name not in numbers]
        here = {numbers[name]: mark for name, mark in marks.items() if name in numbers}
        return len(lost) + len(self._store.missing(here))

    # --- while the service runs -----------------------------------------------------------

    @contextmanager
    def noting(self) -> Iterator[Callable[[Mapping[str, Mark]], None]]:
        """Give a function that notes releases; they are kept when the context ends well.

        It is called just before the database commits, and refuses if another copy of the database
        was started meanwhile. If the guard cannot be written after the database has committed, the
        releases are noted before the next ones, which wait for it.
        """
        opened: list[Connection] = []
        noted: dict[str, Mark] = {}

        def note(marks: Mapping[str, Mark]) -> None:
            if marks:
                noted.update(self._missed | dict(marks))
                with naming_errors():
                    opened.append(self._engine.connect())
                    self._lock(opened[0])
                    self._check_start(opened[0])
                    self._write(opened[0], noted)

        try:
            yield note
            try:  # the database has committed: whatever happens here must not look like a failure
                for connection in opened:
                    connection.commit()
                    self._missed = {}
            except Exception:  # noted before the next release, which waits for it
                self._missed = noted
            self.marks |= noted
        finally:
            for connection in opened:
                connection.close()

    def watch(self) -> None:
        """Look whether another copy was started, and vouch for the database where asked to."""
        with self._transaction() as connection:
            self._check_start(connection)
        asked = self._store.unanswered()
        if asked and self.trouble is None and not self._behind(self._look()[1]):
            self._store.answer(asked, self.guard)

    def sync(self) -> None:
        """Write everything to the disk; until then a power failure can lose it."""
        if self.is_file:
            with naming_errors(), closing(self._engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def refuse(self, why: str) -> RestoredError:
        """Trust the database no longer; returns the error that says so."""
        self.trouble = why
        return RestoredError(why)

    def is_restored_together(self) -> bool:
        """Whether it is in the database's own server, which a restore to a moment puts back."""
        server = server_of(self._engine)
        return server is not None and server == self._store.server()

    # --- charging, and keys that were revoked ---------------------------------------------

    def charge(self, experiments: Iterable[int]) -> None:
        """Count one more resumption of experiments, in the guard and in the database."""
        counts = self._count_resumptions(self._look()[1], more=set(experiments))
        with self._transaction() as connection:
            self._write_counts(connection, counts)

    def forget(self, names: Iterable[str]) -> None:
        """Expect no release any more of experiments that were erased, by ``name_of``."""
        gone = list(names)
        here = self._here(_MARKS) & _MARKS.c.experiment.in_(gone)
        with self._transaction() as connection:
            connection.execute(update(_MARKS).where(here).values(NOTHING._asdict()))
        for name in gone:
            self.marks.pop(name, None)
            self._missed.pop(name, None)

    def remember_revoked(self, keys: Iterable[str]) -> None:
        """Keep the ids of revoked keys, so that an older copy does not revive them."""
        new = frozenset(keys) - self.revoked
        if new:
            query = self._insert(_REVOKED).on_conflict_do_nothing()
            rows = [{"identity": self._identity, "key": key, "at": time.time()} for key in new]
            with self._transaction() as connection:
                connection.execute(query, rows)
            self.revoked |= new

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    # --- how it works ---------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with naming_errors(), self._engine.begin() as connection:
            self._lock(connection)
            yield connection

    def _lock(self, connection: Connection) -> None:
        """Begin a transaction that no other process can begin for the same database."""
        connection.execute(select(1))
        if not self.is_file:
            key = int(self._identity[:15], 16)
            connection.execute(select(func.pg_advisory_xact_lock(key)))

    def _here(self, table: Table) -> ColumnElement[bool]:
        return table.c.identity == self._identity

    def _known(self, connection: Connection) -> _Known | None:
        of = _GUARDED.c
        query = select(of.guard, of.inode, of.start, of.number)
        row = connection.execute(query.where(self._here(_GUARDED))).one_or_none()
        return None if row is None else _Known(*row)

    def _inode(self) -> int | None:
        """Return the number of the guard's file, if it is there: a copy of it has another."""
        try:
            return self._path.stat().st_ino if self.is_file else None
        except FileNotFoundError:
            return NO_FILE

    def _check_start(self, connection: Connection) -> None:
        """Refuse to go on if a start is noted here that is not in the database."""
        known = self._known(connection)
        if known is None or known.inode != self._inode():
            raise self.refuse(f"the rollback guard {self.address} was deleted or replaced.")
        if known.start not in self._starts:
            if self._store.start(known.start) is None:
                raise self.refuse(
                    f"another copy of this database was started with the same rollback guard "
                    f"{self.address}: this one is no longer used."
                )
            self._starts.add(known.start)

    def _look(self) -> tuple[_Known | None, dict[str, _Row]]:
        """Return what is known of the database, as of one moment."""
        with self._transaction() as connection:
            return self._known(connection), self._all_marks(connection)

    def _all_marks(self, connection: Connection) -> dict[str, _Row]:
        rows = connection.execute(select(_MARKS).where(self._here(_MARKS)))
        return {row.experiment: _Row(Mark(row.sequence, row.step), row.resumed) for row in rows}

    def _write(self, connection: Connection, marks: Mapping[str, Mark]) -> None:
        """Keep marks, unless another process has noted later ones."""
        rows = [mark._asdict() | {"experiment": name, "resumed": 0} for name, mark in marks.items()]
        self._keep(connection, _MARKS, rows, larger="sequence", changed=Mark._fields)

    def _keep(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[JSON],
        *,
        larger: str,
        changed: Sequence[str],
    ) -> None:
        """Insert rows; of those that are there change some columns, where one becomes larger."""
        query = self._insert(table)
        new = query.excluded
        query = query.on_conflict_do_update(
            index_elements=list(table.primary_key),
            set_={name: new[name] for name in changed},
            where=new[larger] > table.c[larger],
        )
        if rows:
            connection.execute(query, [{"identity": self._identity} | row for row in rows])

    def _insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        return sqlite.insert(table) if self.is_file else postgresql.insert(table)

    def _last_marks(self) -> dict[str, Mark]:
        """Return the last release of every experiment, as the database has it."""
        marks = self._store.last_marks()
        names = self._names() if marks else {}
        return {names[number]: mark for number, mark in marks.items()}

    def _names(self) -> dict[int, str]:
        """Return the names of experiments here, by their numbers in the database."""
        return {one.number: name_of(one.id, one.segment) for one in self._store.listed()}

    def _may_release(self) -> set[int]:
        """Return the experiments that may release anything: not those stopped without a batch."""
        return {one.number for one in self._store.listed() if one.open or not one.stopped}

    def _count_resumptions(self, kept: Mapping[str, _Row], more: set[int]) -> dict[int, int]:
        """Count one more resumption of some experiments; never fewer than the guard knows of."""
        counts: dict[int, int] = {}
        if not more and not any(row.resumed for row in kept.values()):
            return counts
        for one in self._store.listed():
            known = kept.get(name_of(one.id, one.segment), _Row(NOTHING, 0)).resumed
            resumed = max(known, one.resumed) + (one.number in more)
            if resumed > one.resumed:
                self._store.charge(one.number, resumed)
                counts[one.number] = resumed
        return counts

    def _write_counts(self, connection: Connection, counts: Mapping[int, int]) -> None:
        names = self._names() if counts else {}
        rows = [
            NOTHING._asdict() | {"experiment": names[number], "resumed": resumed}
            for number, resumed in counts.items()
        ]
        self._keep(connection, _MARKS, rows, larger="resumed", changed=("resumed",))

    def _kept_revocations(self, connection: Connection) -> dict[str, float]:
        """Return the keys that the guard knows to be revoked, and when they were."""
        rows = connection.execute(select(_REVOKED.c.key, _REVOKED.c.at).where(self._here(_REVOKED)))
        return {row.key: row.at for row in rows}

    def _share_revocations(self, kept: Mapping[str, float]) -> None:
        """Revoke here what the guard knows to be revoked, and tell the guard what is here."""
        keys = self._store.all_keys()
        for key in keys:
            if key.revoked_at is None and key.id in kept:
                self._store.revoke_key(key.id, kept[key.id])
        self.revoked = frozenset(kept)
        self.remember_revoked(key.id for key in keys if key.revoked_at is not None)

"""A store in SQLite or PostgreSQL."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Update,
    case,
    delete,
    func,
    insert,
    inspect,
    literal,
    or_,
    select,
    text,
    update,
)

from bandanna._core.types import JSON, InputError, StateFileError
from bandanna.store.contract import ConflictError, KeyRow, Mark, Stamp, new_step
from bandanna.store.database import (
    BATCHES,
    BLOCKS,
    CHALLENGES,
    DESCRIPTIONS,
    EVENTS,
    EXPERIMENTS,
    FACTS,
    FEEDBACK,
    KEYS,
    PEOPLE,
    RELEASES,
    STARTS,
    TRAIL,
    WAIT_SECONDS,
    SqlRow,
    make_engines,
    naming_errors,
    server_of,
)
from bandanna.store.descriptions import (
    Description,
    Shipped,
    description_row,
    matching,
    read_descriptions,
    shipped_ones,
    write_description,
)
from bandanna.store.lead import lead_over
from bandanna.store.rows import (
    Committed,
    EventState,
    Experiment,
    Gauges,
    Listed,
    Outline,
    ReleaseRow,
    Snapshot,
    StartRow,
    TrailRow,
)
from bandanna.store.secret import Secret, read_secret
from bandanna.store.sql_transaction import SqlTransaction, experiment_of, missing_marks, row_of
from bandanna.store.totals import ReleaseTotals, read_totals

ADVISORY = 0x62616E64
"""Keeps two processes from making tables, or noting facts, in PostgreSQL at the same time."""

READER_SECONDS = 0.02
"""How long emptying SQLite's log waits for readers, while nobody can write."""

GATHER_SECONDS = 0.001
AT_ONCE = 400
"""Experiments that are named one by one in a query; of more, all are read."""

TOLD = "told "
"""Before the id of an experiment, among the facts."""


def is_used(address: str) -> bool:
    """Whether there is a database that somebody has used; nothing is made."""
    if address.startswith("sqlite:///") and not Path(address.removeprefix("sqlite:///")).exists():
        return False
    engine, other = make_engines(address)
    with naming_errors(), other.connect() as connection:
        there = inspect(connection).has_table("facts")
    engine.dispose()
    other.dispose()
    return there


def open_store(address: str, secret: Path) -> SqlStore:
    """Open a database with the secret in a file; a new one gets a new secret."""
    if not secret.exists() and is_used(address):
        raise StateFileError(
            f"the secret {secret} is not there, and this database was made with one: give its path "
            f"with --secret-file."
        )
    return SqlStore(address, read_secret(secret))


class SqlStore:
    """Experiments in a database; feedback that waits is encrypted with the secret.

    Parameters
    ----------
    address
        ``sqlite:///file`` or ``postgresql://user@host/name``.
    secret
        Kept outside the database; the same for every process that shares it.
    """

    def __init__(self, address: str, secret: Secret) -> None:
        from bandanna.store.migrations import upgrade

        self.secret = self._secret = secret
        self._writing, self._reading = make_engines(address)
        self.sqlite = self._writing.dialect.name == "sqlite"
        self.gather_seconds = 0.0 if self.sqlite else GATHER_SECONDS
        """How long the writer waits for others, where several tasks came together the last time: a
        transaction that costs round trips is best shared by many."""
        self._lead = lead_over(self._writing)
        self._alone_writing: AbstractContextManager[object] = (
            threading.RLock() if self.sqlite else nullcontext()
        )
        """Threads that write to SQLite wait here: its own way to wait is to sleep and try again."""
        with naming_errors(), self._writing.begin() as connection:
            self._alone_at_start(connection)
            upgrade(connection)
            known = dict(map(tuple, connection.execute(select(FACTS))))
            if "identity" not in known:
                known = {"identity": secrets.token_hex(16), "secret": secret.fingerprint}
                rows = [{"name": name, "value": value} for name, value in known.items()]
                connection.execute(insert(FACTS), rows)
        self.identity: str = known["identity"]
        """Identity of the database, made with it: 32 hexadecimal digits."""
        self.copied = "copied" in known
        """Whether this is a copy that ``backup`` made, used for the first time."""
        if known["secret"] != secret.fingerprint:
            self.close()
            raise StateFileError("this database was made with another secret; use that one.")

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        """Begin a transaction; it is durable when the context ends without an error."""
        with self._change() as connection:
            if self.sqlite:
                yield SqlTransaction(connection, self._secret)
            else:
                from bandanna.store.postgres_transaction import PostgresTransaction

                transaction = PostgresTransaction(connection, self._secret)
                yield transaction
                transaction.commit()

    def snapshot(self, experiment: int) -> Snapshot:
        """Return an experiment with all open batches, as of one moment, while others write."""
        with naming_errors(), self._reading.connect() as connection:
            if not self.sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ")
            return SqlTransaction(connection, self._secret).read(experiment)

    def create(self, parts: Sequence[Experiment], said: Description | None = None) -> list[int]:
        """Add an experiment, all segments or none, and what is said of it.

        Returns their numbers, which are never given again.
        """
        query = insert(EXPERIMENTS).returning(EXPERIMENTS.c.number)
        try:
            with self._change() as connection:
                rows = (row_of(part) for part in parts)
                numbers = [int(connection.execute(query, row).scalar_one()) for row in rows]
                mine = EXPERIMENTS.c.number.in_(numbers)
                connection.execute(update(EXPERIMENTS).where(mine).values(owner=numbers[0]))
                if said is not None:
                    row = description_row(parts[0].id, said)
                    connection.execute(insert(DESCRIPTIONS).values(row))
                return numbers
        except ConflictError:
            raise ConflictError(f"there is an experiment {parts[0].id!r} already.") from None

    def experiments(self, identity: str | None = None) -> list[Experiment]:
        """Return experiments, segments one by one, in the order of their making: all, or one."""
        query = select(EXPERIMENTS).order_by(EXPERIMENTS.c.number)
        if identity is not None:
            query = query.where(EXPERIMENTS.c.id == identity)
        return [experiment_of(row) for row in self._rows(query)]

    def named(self, name: str) -> list[tuple[str, bool]]:
        """Return the ids of experiments of a name, and whether they are stopped; newest first."""
        one = EXPERIMENTS.c
        query = select(one.id, one.stopped).where(one.name == name, one.number == one.owner)
        return [(row.id, row.stopped) for row in self._rows(query.order_by(one.number.desc()))]

    def overview(
        self,
        after: str | None = None,
        limit: int = 1_000_000,
        *,
        running: bool = False,
        ended: bool = False,
        shipped: bool = False,
        newest: bool = False,
        search: str | None = None,
        owner: str | None = None,
        tag: str | None = None,
        only: str | None = None,
    ) -> list[Experiment]:
        """Return experiments with all their segments, without what was learned.

        In the order of their making or the newest first, after the one with an id, at most so many.
        ``shipped`` adds those to the running ones of which an arm was shipped.
        """
        one = EXPERIMENTS.c
        first = select(one.number).where(one.number == one.owner)
        if after is not None:
            begin = select(func.max(one.owner)).where(one.id == after).scalar_subquery()
            first = first.where(one.number < begin if newest else one.number > begin)
        if running:
            first = first.where(or_(~one.stopped, shipped_ones()) if shipped else ~one.stopped)
        if ended:
            first = first.where(one.stopped)
        if only is not None:
            first = first.where(one.id == only)
        first = first.where(*matching(search, owner, tag))
        first = first.order_by(one.number.desc() if newest else one.number).limit(limit)
        light = case((one.counters == "", one.head), else_="{}").label("head")
        columns = [light if column.name == "head" else column for column in EXPERIMENTS.columns]
        order = one.owner.desc() if newest else one.owner
        query = select(*columns).where(one.owner.in_(first)).order_by(order, one.number)
        return [experiment_of(row) for row in self._rows(query)]

    def measured(self, limit: int = 2_000) -> list[Gauges]:
        """Return numbers of running experiments, the newest first."""
        one = EXPERIMENTS.c
        query = select(EXPERIMENTS, _open_since()).where(~one.stopped, one.counters != "")
        gauges = []
        for row in self._rows(query.order_by(one.number.desc()).limit(limit)):
            counters = json.loads(row.counters)
            counts = counters["rounds"], row.observed, counters["released"], row.resumed
            gauges.append(Gauges(row.id, row.name, *counts, row.open_since))
        return gauges

    def note(self, who: str, action: str, about: str, details: JSON, at: float) -> None:
        """Note who changed what."""
        row = {"at": at, "who": who, "action": action, "about": about}
        self._write(insert(TRAIL).values(row | {"details": json.dumps(details)}))

    def trail(self, after: int = 0, limit: int = 1000, about: str | None = None) -> list[TrailRow]:
        """Return what was noted after an entry, in its order; all, or about one experiment."""
        query = select(TRAIL).where(TRAIL.c.number > after).order_by(TRAIL.c.number).limit(limit)
        if about is not None:
            query = query.where(TRAIL.c.about == about)
        rows = (row._mapping for row in self._rows(query))
        return [TrailRow(**{**row, "details": json.loads(row["details"])}) for row in rows]

    def numbers(self, after: int = 0) -> list[int]:
        """Return the numbers of experiments, or of those with a number larger than ``after``."""
        number = EXPERIMENTS.c.number
        return [row.number for row in self._rows(select(number).where(number > after))]

    def outlines(self, *texts: str, after: int = 0) -> list[Outline]:
        """Return what experiments with a number larger than ``after`` were made as.

        Only those whose settings, as JSON, contain one of these texts, and perhaps others.
        """
        one = EXPERIMENTS.c
        query = select(one.number, one.id, one.settings).where(one.number > after)
        query = query.where(or_(*(one.settings.contains(text, autoescape=True) for text in texts)))
        rows = self._rows(query.order_by(one.number))
        return [Outline(row.number, row.id, json.loads(row.settings)) for row in rows]

    def next_deadlines(self, experiments: Sequence[int]) -> dict[int, float]:
        """Return when the first deadline passes in experiments; those without are left out."""
        event = EVENTS.c
        query = select(event.experiment, func.min(event.expires_at).label("first"))
        query = query.where(text("state IN (0, 3)"), event.expires_at.isnot(None))
        if len(experiments) <= AT_ONCE:
            query = query.where(event.experiment.in_(experiments))
        rows = self._rows(query.group_by(event.experiment))
        wanted = set(experiments)
        return {row.experiment: row.first for row in rows if row.experiment in wanted}

    def listed(self) -> list[Listed]:
        """Return what is quickly known of all experiments."""
        one, batch = EXPERIMENTS.c, BATCHES.c
        waits = select(batch.number).where(batch.experiment == one.number).exists()
        query = select(one.number, one.id, one.segment, one.stopped, one.resumed, waits)
        return [Listed(*row) for row in self._rows(query.order_by(one.number))]

    def stop(self, identity: str) -> None:
        """Take no more decisions in an experiment, in any segment. Feedback is still taken."""
        self._write(_changing(EXPERIMENTS.c.id == identity, stopped=True))

    def ship(self, identity: str, shipped: Shipped) -> None:
        """Take no more decisions, and note the arm that everyone gets instead."""
        running = (EXPERIMENTS.c.id == identity) & ~EXPERIMENTS.c.stopped
        with self._change() as connection:
            connection.execute(_changing(running, stopped=True))
            write_description(connection, identity, {"shipped": shipped})

    def describe(self, identity: str, changed: JSON) -> None:
        """Change some of what is said of an experiment."""
        with self._change() as connection:
            write_description(connection, identity, changed)

    def descriptions(self, ids: Sequence[str]) -> dict[str, Description]:
        """Return what is said of experiments; those of which nothing is said are left out."""
        with naming_errors(), self._reading.connect() as connection:
            return read_descriptions(connection, ids)

    def stamp(self, experiment: int) -> tuple[Stamp, int] | None:
        """Return an experiment's version and step, and how often it was resumed, if it is one."""
        one = EXPERIMENTS.c
        rows = self._rows(
            select(one.version, one.step, one.resumed).where(one.number == experiment)
        )
        return (Stamp(rows[0].version, rows[0].step), rows[0].resumed) if rows else None

    def committed(self, experiment: int) -> Committed:
        """Return an experiment as of one moment, without waiting for anybody who writes."""
        one, batch, person = EXPERIMENTS.c, BATCHES.c, PEOPLE.c
        feedback, release = FEEDBACK.c, RELEASES.c
        newest = select(release.released_at).where(release.experiment == one.number)
        missed = select(func.count()).where(feedback.experiment == one.number, feedback.given_up)
        queries = {
            "open": select(func.count()).where(batch.experiment == one.number),
            "slots": select(func.sum(person.places)).where(person.experiment == one.number),
            "given_up": missed,
            "released_at": newest.order_by(release.sequence.desc()).limit(1),
        }
        columns = [query.scalar_subquery().label(name) for name, query in queries.items()]
        query = select(EXPERIMENTS, _open_since(), *columns).where(one.number == experiment)
        row = self._rows(query)[0]
        counts = row.open, int(row.slots or 0), row.given_up
        return Committed(experiment_of(row), *counts, row.open_since, row.released_at)

    def totals(self, experiment: int) -> ReleaseTotals:
        """Return what the releases of an experiment add up to."""
        with naming_errors(), self._reading.connect() as connection:
            return read_totals(connection, experiment)

    def forget_events(self, experiment: int, before: float) -> int:
        """Forget events decided before a moment whose batch is released; returns how many."""
        event, batch = EVENTS.c, BATCHES.c
        opened = select(batch.number).where(batch.experiment == experiment)
        query = delete(EVENTS).where(event.experiment == experiment, event.made_at < before)
        with self._change() as connection:
            return int(connection.execute(query.where(event.batch.not_in(opened))).rowcount)

    def erase_event(self, owner: int, name: str) -> bool:
        """Forget the id of an event; returns whether there was one.

        In an open batch its position is kept, under a random name: the feedback that it may hold is
        released with the batch.
        """
        event, batch = EVENTS.c, BATCHES.c
        here = (event.owner == owner) & (event.id == name)
        opened = select(batch.number).where(batch.experiment == event.experiment)
        with self._change() as connection:
            gone = connection.execute(delete(EVENTS).where(here, event.batch.not_in(opened)))
            new = f"erased_{secrets.token_hex(16)}"
            kept = connection.execute(update(EVENTS).where(here).values(id=new))
            return bool(gone.rowcount + kept.rowcount)

    def erase(self, identity: str) -> None:
        """Delete everything of a stopped experiment, its releases and keys included."""
        one = EXPERIMENTS.c
        with self._change() as connection:
            run = connection.execute
            rows = run(select(one.number, one.stopped).where(one.id == identity).with_for_update())
            stopped = {row.number: row.stopped for row in rows}
            if not all(stopped.values()):
                raise ConflictError("this experiment still decides: stop it first.")
            for table in (EVENTS, BATCHES, BLOCKS, FEEDBACK, RELEASES, PEOPLE):
                run(delete(table).where(table.c.experiment.in_(stopped)))
            run(delete(KEYS).where(KEYS.c.experiment == identity))
            run(delete(FACTS).where(FACTS.c.name == TOLD + identity))
            run(delete(DESCRIPTIONS).where(DESCRIPTIONS.c.experiment == identity))
            run(delete(EXPERIMENTS).where(one.id == identity))

    def charge(self, experiment: int, resumed: int) -> None:
        """Set how often an experiment was resumed from older copies, and raise its version."""
        self._write(_changing(EXPERIMENTS.c.number == experiment, resumed=resumed))

    def last_marks(self) -> dict[int, Mark]:
        """Return the last release of every experiment that has released anything."""
        table = RELEASES.c
        last = select(table.experiment, func.max(table.sequence).label("sequence"))
        newest = last.group_by(table.experiment).subquery()
        here = (table.experiment == newest.c.experiment) & (table.sequence == newest.c.sequence)
        query = select(table.experiment, table.sequence, table.step).join(newest, here)
        return {row.experiment: Mark(row.sequence, row.step) for row in self._rows(query)}

    def missing(self, marks: Mapping[int, Mark]) -> set[int]:
        """Return the experiments that do not hold the release of their mark."""
        with naming_errors(), self._reading.connect() as connection:
            return missing_marks(connection.execute, marks)

    # --- starts, which the rollback guard compares ----------------------------------------

    def start(self, step: str) -> StartRow | None:
        """Return a start by its step, if there was one."""
        return self._start(select(STARTS).where(STARTS.c.step == step))

    def last_start(self, guard: str | None = None) -> StartRow | None:
        """Return the last start that a guard confirmed: this one, or any."""
        query = select(STARTS).where(STARTS.c.confirmed).order_by(STARTS.c.number.desc()).limit(1)
        if guard is not None:
            query = query.where(STARTS.c.guard == guard)
        return self._start(query)

    def _start(self, query: Executable) -> StartRow | None:
        rows = self._rows(query)
        return StartRow(**rows[0]._mapping) if rows else None

    def add_start(self, step: str, guard: str, at: float) -> int:
        """Note a start; returns its number."""
        row = {"step": step, "guard": guard, "at": at, "confirmed": False}
        with self._change() as connection:
            return int(
                connection.execute(insert(STARTS).returning(STARTS.c.number), row).scalar_one()
            )

    def confirm_start(self, step: str) -> None:
        """Note that the guard knows of a start."""
        self._write(update(STARTS).where(STARTS.c.step == step).values(confirmed=True))

    def challenge(self, nonce: str, at: float) -> None:
        """Ask processes that use this database to vouch for it."""
        self._write(insert(CHALLENGES).values(nonce=nonce, at=at))

    def answered(self, nonce: str) -> bool:
        """Whether a process has vouched for the database."""
        here = CHALLENGES.c.nonce == nonce
        return bool(
            self._rows(select(CHALLENGES).where(here, CHALLENGES.c.answered_by.isnot(None)))
        )

    def unanswered(self) -> list[str]:
        """Return the challenges that nobody has answered."""
        rows = self._rows(select(CHALLENGES.c.nonce).where(CHALLENGES.c.answered_by.is_(None)))
        return [row.nonce for row in rows]

    def answer(self, nonces: Sequence[str], guard: str) -> None:
        """Vouch for the database."""
        here = CHALLENGES.c.nonce.in_(nonces)
        self._write(update(CHALLENGES).where(here).values(answered_by=guard))

    def drop_challenge(self, nonce: str) -> None:
        """Ask no longer."""
        self._write(delete(CHALLENGES).where(CHALLENGES.c.nonce == nonce))

    # --- what has been released -------------------------------------------------------------

    def releases(self, experiment: int, after: int = 0, limit: int = 1_000_000) -> list[ReleaseRow]:
        """Return releases in the order of their making, from the one numbered ``after`` on."""
        table = RELEASES
        query = select(*(table.c[name] for name in ReleaseRow._fields))
        query = query.where(table.c.experiment == experiment, table.c.sequence >= after)
        rows = self._rows(query.order_by(table.c.sequence).limit(limit))
        return [ReleaseRow(*row)._replace(value=json.loads(row.value)) for row in rows]

    def add_key(self, key: KeyRow) -> None:
        """Keep a key."""
        self._write(insert(KEYS).values(_key_row(key)))

    def add_first_key(self, key: KeyRow) -> bool:
        """Keep a key if there is none yet, whoever else tries; returns whether it was kept."""
        with self._change() as connection:
            self._alone_at_start(connection)
            if connection.execute(select(KEYS.c.id).limit(1)).first() is not None:
                return False
            connection.execute(insert(KEYS).values(_key_row(key)))
            return True

    def all_keys(self) -> list[KeyRow]:
        """Return all keys, revoked ones included."""
        query = select(KEYS).order_by(KEYS.c.created_at)
        keys = (KeyRow(**row._mapping) for row in self._rows(query))
        return [key._replace(scopes=tuple(str(key.scopes).split())) for key in keys]

    def revoke_key(self, identity: str, at: float, *, keep_one: bool = False) -> bool:
        """Revoke a key; returns whether there was one to revoke.

        Refused, if one must be kept, of the last that opens everything.
        """
        key = KEYS.c
        here = (key.id == identity) & key.revoked_at.is_(None)
        everything = key.scopes.like("%manage%") & key.experiment.is_(None)
        others = select(func.count()).where(key.id != identity, key.revoked_at.is_(None))
        others = others.where(everything, or_(key.expires_at.is_(None), key.expires_at > at))
        with self._change() as connection:
            self._alone_at_start(connection)
            last = connection.execute(select(key.id).where(here, everything)).first() is not None
            if keep_one and last and not connection.execute(others).scalar_one():
                raise ConflictError(
                    "this is the last key that opens everything: make another one first, or use "
                    "bandanna keys revoke."
                )
            return bool(connection.execute(update(KEYS).where(here).values(revoked_at=at)).rowcount)

    def latest_device_parameters(self) -> dict[str, JSON]:
        """Return what devices were told last, by experiment."""
        rows = self._rows(select(FACTS).where(FACTS.c.name.startswith(TOLD)))
        return {row.name.removeprefix(TOLD): json.loads(row.value)[-1] for row in rows}

    def device_parameter_history(self, experiment: str) -> list[JSON]:
        """Return what devices were told in an experiment, one after the other."""
        name = FACTS.c.name == TOLD + experiment
        rows = self._rows(select(FACTS.c.value).where(name))
        return list(json.loads(rows[0].value)) if rows else []

    def record_device_parameters(self, experiment: str, line: JSON, at: str) -> None:
        """Note what devices are told in an experiment, if it is not what they were told before."""
        name = TOLD + experiment
        here = FACTS.c.name == name
        with self._change() as connection:
            self._alone_at_start(connection)
            known = connection.execute(select(FACTS.c.value).where(here)).scalar()
            lines = [] if known is None else json.loads(known)
            if lines and lines[-1] == {**line, "since": lines[-1]["since"]}:
                return
            row = {"name": name, "value": json.dumps([*lines, {**line, "since": at}])}
            connection.execute(FACTS.delete().where(here))
            connection.execute(insert(FACTS).values(row))

    def take_lead(self) -> bool:
        """Lead the processes that share this database, if no other does; returns whether it does.

        Ask again and again: a lead may be lost with the connection to the database.
        """
        return self._lead.take()

    def server(self) -> int | None:
        """Return the number of its PostgreSQL server, if it has one that may be known."""
        return server_of(self._reading)

    def check(self) -> None:
        """Ask the database for a sign of life."""
        self._rows(select(literal(1)))

    def check_integrity(self) -> None:
        """Look through a SQLite database for damage; PostgreSQL has its own tools."""
        if self.sqlite:
            with naming_errors(), self._reading.connect() as connection:
                verdict = connection.exec_driver_sql("PRAGMA quick_check").scalar()
            if verdict != "ok":
                raise StateFileError(f"the database is damaged: {verdict}. Restore a backup.")

    def begun_before(self, moment: float) -> int:
        """Return how many open batches were begun before a moment."""
        batch, event = BATCHES.c, EVENTS.c
        first = (event.experiment == batch.experiment) & (event.batch == batch.number)
        query = select(func.count()).select_from(BATCHES).join(EVENTS, first)
        query = query.where(event.position == 0, event.state != EventState.VOID)
        return int(self._rows(query.where(event.made_at < moment))[0][0])

    def backup(self, path: Path) -> None:
        """Copy a SQLite database, whole, while it is used; the copy knows that it is one."""
        if not self.sqlite:
            raise InputError("PostgreSQL brings its own tool for backups: pg_dump.")
        if path.exists():
            raise InputError(f"{path} exists already; a backup overwrites nothing.")
        self._alone("VACUUM INTO ?", str(path))
        path.chmod(0o600)
        copy = SqlStore(f"sqlite:///{path}", self._secret)
        with copy._change() as connection:
            connection.execute(insert(FACTS).values(name="copied", value="yes"))
        copy.close()

    def adopt(self) -> None:
        """Forget that this is a copy: it has been charged."""
        self._write(FACTS.delete().where(FACTS.c.name == "copied"))
        self.copied = False

    def tidy(self) -> bool:
        """Leave no trace of deleted feedback in free pages and logs; returns whether that was done.

        SQLite overwrites pages when they become free; its log is emptied here.

        Most of it is written back while transactions go on; only the rest, and emptying it, waits
        until there is none, and makes the next one wait. In PostgreSQL only ciphertext was ever
        written. A reader in the way is waited for a moment only: then it returns False.
        """
        self.write_back()
        if not self.sqlite:
            return True
        with self._alone_writing:
            checkpoint = self._alone("PRAGMA wal_checkpoint(TRUNCATE)", patience=READER_SECONDS)
        busy, _, _ = checkpoint[0]
        return not busy

    def write_back(self) -> None:
        """Copy SQLite's log into the database while transactions go on, so that it stays short."""
        if self.sqlite:
            self._alone("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Let go of all connections, and of the lead."""
        self._lead.leave()
        self._writing.dispose()
        self._reading.dispose()

    @contextmanager
    def _change(self) -> Iterator[Connection]:
        with naming_errors(), self._alone_writing, self._writing.begin() as connection:
            yield connection

    def _write(self, statement: Executable) -> None:
        with self._change() as connection:
            connection.execute(statement)

    def _alone_at_start(self, connection: Connection) -> None:
        """Keep other processes that share a PostgreSQL database out of this transaction."""
        if not self.sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(ADVISORY)))

    def _alone(
        self, statement: str, *values: str, patience: float = WAIT_SECONDS
    ) -> list[tuple[int, ...]]:
        """Run something in SQLite that must not be part of a transaction; returns its rows."""
        with naming_errors(), closing(self._reading.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {round(1000 * patience)}")
            try:
                cursor.execute(statement, values)
                return list(cursor.fetchall())
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {1000 * WAIT_SECONDS}")

    def _rows(self, query: Executable) -> list[SqlRow]:
        with naming_errors(), self._reading.connect() as connection:
            return list(connection.execute(query))


def _changing(here: ColumnElement[bool], **values: object) -> Update:
    """Change experiments, so that everyone reads them again."""
    stamp = {"version": EXPERIMENTS.c.version + 1, "step": new_step()}
    return update(EXPERIMENTS).where(here).values(values | stamp)


def _key_row(key: KeyRow) -> JSON:
    row = key._asdict() | {"scopes": " ".join(key.scopes)}
    del row["projects"]
    return row


def _open_since() -> ColumnElement[float | None]:
    """Return when the oldest open batch of an experiment was begun, beside its row."""
    one, batch, event = EXPERIMENTS.c, BATCHES.c, EVENTS.c
    first = select(func.min(batch.number)).where(batch.experiment == one.number).scalar_subquery()
    begun = select(func.min(event.made_at)).where(
        event.experiment == one.number, event.batch == first, event.position == 0
    )
    return begun.scalar_subquery().label("open_since")

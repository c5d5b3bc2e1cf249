"""One transaction in SQL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import cast

from sqlalchemy import (
    Connection,
    Executable,
    Insert,
    Table,
    Update,
    bindparam,
    delete,
    func,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import sqlite

from bandanna._core.types import JSON
from bandanna.store.contract import Mark, Stamp, new_step
from bandanna.store.database import (
    BATCHES,
    BLOCKS,
    EVENTS,
    EXPERIMENTS,
    FEEDBACK,
    PEOPLE,
    RELEASES,
    SqlResult,
    SqlRow,
)
from bandanna.store.deadlines import due_of
from bandanna.store.rows import (
    WAITING_STATES,
    Changes,
    Due,
    Event,
    EventState,
    Experiment,
    Feedback,
    Location,
    OpenBatch,
    SealedBlock,
    Snapshot,
)
from bandanna.store.secret import Secret

STEP = 512
"""Characters by which the text of counters grows."""


def _padded(text: str) -> str:
    """Return a text at the end of which there is room.

    While a row keeps its length SQLite overwrites in place what changed in it. A row that became
    longer by a digit would be written anew as a whole, with what was learned of every arm.
    """
    return text.ljust(-(-len(text) // STEP) * STEP)


def experiment_of(row: SqlRow) -> Experiment:
    """Read an experiment; columns that do not belong to it are left out."""
    values = {column.name: row._mapping[column.name] for column in EXPERIMENTS.c}
    values["settings"], values["head"] = json.loads(row.settings), json.loads(row.head)
    counters = values.pop("counters")
    if counters:
        values["head"]["counters"] = json.loads(counters)
    return Experiment(**values)


def row_of(experiment: Experiment) -> JSON:
    """Write a new experiment."""
    row = vars(experiment) | {"version": 1, "step": new_step()}
    del row["number"]
    row["settings"], row["head"] = json.dumps(experiment.settings), json.dumps(experiment.head)
    row["counters"] = _padded(json.dumps(experiment.head["counters"]))
    return row


def _event_of(row: SqlRow) -> Event:
    return Event(**row._mapping)._replace(state=EventState(row.state))


# Statements are made once: to make one takes as long as to run it.


@cache
def _inserting(table: Table, *, replace: bool) -> Insert:
    """Insert rows, or replace what is not their key."""
    query = sqlite.insert(table)
    if not replace:
        return query
    return query.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={c.name: query.excluded[c.name] for c in table.columns if not c.primary_key},
    )


@cache
def _setting(names: tuple[str, ...]) -> Update:
    """Change columns of an experiment."""
    query = update(EXPERIMENTS).where(EXPERIMENTS.c.number == bindparam("here"))
    return query.values({name: bindparam(f"new_{name}") for name in names})


_EVENTS = select(EVENTS).where(EVENTS.c.id.in_(bindparam("wanted", expanding=True)))
_LOCK = (
    select(EXPERIMENTS.c.number, EXPERIMENTS.c.version, EXPERIMENTS.c.step)
    .where(EXPERIMENTS.c.number.in_(bindparam("numbers", expanding=True)))
    .order_by(EXPERIMENTS.c.number)
)
_MOVE = (
    update(EVENTS)
    .where(
        EVENTS.c.experiment == bindparam("here"),
        EVENTS.c.batch == bindparam("in_batch"),
        EVENTS.c.position == bindparam("at"),
        EVENTS.c.state != EventState.VOID,
    )
    .values(state=bindparam("new"))
)


_DUE = (
    select(EVENTS)
    .where(
        EVENTS.c.experiment == bindparam("here"),
        text("state IN (0, 3)"),  # as the index says it
        EVENTS.c.expires_at >= bindparam("at"),
        or_(EVENTS.c.expires_at > bindparam("at"), EVENTS.c.round > bindparam("round")),
    )
    .order_by(EVENTS.c.expires_at, EVENTS.c.round)
    .limit(bindparam("most"))
)
_LATEST = (
    select(EVENTS)
    .where(EVENTS.c.owner == bindparam("here"), EVENTS.c.visitor == bindparam("visitor"))
    .where(EVENTS.c.visitor.isnot(None))
    .order_by(EVENTS.c.round.desc())
    .limit(1)
)
_HOLDER = EVENTS.alias()
_OLDEST = (
    select(func.min(BATCHES.c.number))
    .where(BATCHES.c.experiment == bindparam("here"))
    .scalar_subquery()
)
_FREE = (
    select(EVENTS.c.batch, EVENTS.c.position, func.max(EVENTS.c.chance).label("chance"))
    .join(
        BATCHES,
        (BATCHES.c.experiment == EVENTS.c.experiment) & (BATCHES.c.number == EVENTS.c.batch),
    )
    .where(
        EVENTS.c.experiment == bindparam("here"),
        text("events.state = 2"),
        EVENTS.c.batch >= _OLDEST,
        ~select(_HOLDER.c.id)
        .where(
            _HOLDER.c.experiment == EVENTS.c.experiment,
            _HOLDER.c.batch == EVENTS.c.batch,
            _HOLDER.c.position == EVENTS.c.position,
            _HOLDER.c.state != EventState.VOID,
        )
        .exists(),
    )
    .group_by(EVENTS.c.batch, EVENTS.c.position)
    .limit(bindparam("most"))
)

MARKS_AT_ONCE = 400


def missing_marks(run: Callable[[Executable], SqlResult], marks: Mapping[int, Mark]) -> set[int]:
    """Return the experiments that do not hold the release of their mark."""
    latest: dict[int, Mark] = {}
    wanted, table = list(marks.items()), RELEASES.c
    for begin in range(0, len(wanted), MARKS_AT_ONCE):
        some = wanted[begin : begin + MARKS_AT_ONCE]
        keys = [(number, mark.sequence) for number, mark in some]
        query = select(table.experiment, table.sequence, table.step)
        query = query.where(tuple_(table.experiment, table.sequence).in_(keys))
        latest |= {row.experiment: Mark(row.sequence, row.step) for row in run(query)}
    return {number for number, mark in wanted if latest.get(number) != mark}


class SqlTransaction:
    """One transaction on a connection that has begun it; ``postgres`` has another way to write."""

    def __init__(self, connection: Connection, secret: Secret) -> None:
        self._connection = connection
        self._secret = secret
        self._versions: dict[int, int] = {}
        """Versions of locked experiments."""

    def _run(self, query: Executable, values: JSON | None = None) -> SqlResult:
        """Ask the database, which knows what was written so far."""
        return self._connection.execute(query, values)

    def events(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """Return the events with these ids, in all experiments; ids without any are left out."""
        wanted = list(ids)
        events: dict[str, list[Event]] = {}
        if wanted:
            for row in self._connection.execute(_EVENTS, {"wanted": wanted}):
                events.setdefault(row.id, []).append(_event_of(row))
        return events

    def lock(self, experiments: Iterable[int]) -> dict[int, Stamp]:
        """Keep others out of experiments until the end; returns their versions and steps.

        SQLite's transaction has locked the whole database.
        """
        rows = self._connection.execute(_LOCK, {"numbers": sorted(experiments)})
        return self._locked({row.number: Stamp(row.version, row.step) for row in rows})

    def _locked(self, found: dict[int, Stamp]) -> dict[int, Stamp]:
        self._versions |= {number: stamp.version for number, stamp in found.items()}
        return found

    def missing(self, marks: Mapping[int, Mark]) -> set[int]:
        """Return the experiments that do not hold the release of their mark."""
        return missing_marks(self._run, marks)

    def read(self, experiment: int, *, whole: bool = True) -> Snapshot:
        """Return a locked experiment with all open batches, or with those that fill alone."""
        run, of, person = self._run, BATCHES.c, PEOPLE.c
        here = EXPERIMENTS.c.number == experiment
        head = experiment_of(run(select(EXPERIMENTS).where(here)).one())
        filling = head.head["counters"].get("filling", [])
        count = select(func.count()).where(of.experiment == experiment)
        slots = select(person.person, person.places).where(person.experiment == experiment)
        known = run(slots) if whole else ()
        return Snapshot(
            head,
            *self.opened(experiment, None if whole else filling),
            {row.person: row.places for row in known},
            int(run(count).scalar_one()),
        )

    def opened(
        self, experiment: int, numbers: Sequence[int] | None
    ) -> tuple[list[OpenBatch], list[Event], list[Feedback]]:
        """Return open batches of a locked experiment, their events and feedback, as committed.

        All of them, or those of these numbers that are open.
        """
        run, of = self._run, BATCHES.c
        mine = of.experiment == experiment
        if numbers is not None:
            mine &= of.number.in_(numbers)
        query = select(*(of[name] for name in OpenBatch._fields)).where(mine).order_by(of.number)
        batches = [
            OpenBatch(*row)._replace(tally=self._tally(row.tally, experiment, row.number))
            for row in run(query)
        ]
        event, feedback = EVENTS.c, FEEDBACK.c
        join = (of.experiment == event.experiment) & (of.number == event.batch)
        query = select(EVENTS).join(BATCHES, join).where(mine)
        events = [_event_of(row) for row in run(query.order_by(event.round))]
        join = (of.experiment == feedback.experiment) & (of.number == feedback.batch)
        given = run(select(FEEDBACK).join(BATCHES, join).where(mine))
        return batches, events, [self._feedback(row) for row in given]

    def due(self, experiment: int, after: tuple[float, int], limit: int) -> list[Due]:
        """Return events that wait, by deadline and round: the first so many after these two."""
        values = {"here": experiment, "at": after[0], "round": after[1], "most": limit}
        return [due_of(_event_of(row)) for row in self._run(_DUE, values)]

    def latest(self, owner: int, visitor: str) -> Event | None:
        """Return the last event of a visitor in an experiment, of any of its segments."""
        row = self._run(_LATEST, {"here": owner, "visitor": visitor}).one_or_none()
        return None if row is None else _event_of(row)

    def free(self, experiment: int, limit: int) -> list[tuple[Location, float | None]]:
        """Return positions of open batches whose event was never shown, and chances of arms."""
        rows = self._run(_FREE, {"here": experiment, "most": limit})
        return [((row.batch, row.position), row.chance) for row in rows]

    def blocks(self, experiment: int, batch: int) -> list[bytes]:
        """Return the blocks of a batch of a locked experiment, in the order they were written."""
        block, name = BLOCKS.c, f"{experiment}/{batch}"
        query = select(block.content).where(block.experiment == experiment, block.batch == batch)
        rows = self._run(query.order_by(block.version))
        return [self._secret.unseal_rows(row.content, name) for row in rows]

    def write(self, experiment: int, changes: Changes) -> tuple[Stamp, Mark | None]:
        """Change a locked experiment, and raise its version by one.

        Returns its new version and step, and the last release if there was any in this transaction.
        The order lets a new event replace a void one.
        """
        version = self._versions[experiment] = self._versions[experiment] + 1
        step = new_step()
        changed = {
            "counters": _padded(json.dumps(changes.counters)),
            "observed": changes.observed,
            "version": version,
            "step": step,
        }
        if changes.head is not None:
            changed["head"] = json.dumps(changes.head)
        if changes.settings is not None:
            changed["settings"] = json.dumps(changes.settings)
        self._set(experiment, changed)
        if changes.states:
            self._move(experiment, changes.states)
        batches = [self._batch_row(experiment, batch) for batch in changes.batches]
        feedback = [self._feedback_row(experiment, row) for row in changes.feedback]
        people = [
            {"experiment": experiment, "person": person, "places": slots}
            for person, slots in changes.people.items()
        ]
        self._insert(EVENTS, [event._asdict() for event in changes.events])
        self._insert(BATCHES, batches, replace=True)
        self._insert(FEEDBACK, feedback, replace=True)
        self._insert(PEOPLE, people, replace=True)
        self._insert(BLOCKS, self._block_rows(experiment, version, changes.blocks))
        mark = self._release(experiment, changes, step) if changes.releases else None
        return Stamp(version, step), mark

    def _release(self, experiment: int, changes: Changes, step: str) -> Mark:
        """Record releases, and delete whatever was kept of their batches."""
        begin = self._newest(experiment) + 1
        parts: Counter[int] = Counter()
        rows = []
        for k, release in enumerate(changes.releases):
            row = release._asdict() | {"value": json.dumps(release.value), "step": step}
            row |= {"experiment": experiment, "sequence": begin + k, "part": parts[release.batch]}
            rows.append(row)
            parts[release.batch] += 1
        self._insert(RELEASES, rows)
        self._erase(experiment, {release.batch for release in changes.releases})
        return Mark(begin + len(rows) - 1, step)

    # --- how rows are written -----------------------------------------------------------------

    def _set(self, experiment: int, values: JSON) -> None:
        new = {f"new_{name}": value for name, value in values.items()}
        self._connection.execute(_setting(tuple(values)), new | {"here": experiment})

    def _move(self, experiment: int, states: dict[Location, EventState]) -> None:
        moves = [
            {"here": experiment, "in_batch": batch, "at": position, "new": int(state)}
            for (batch, position), state in states.items()
        ]
        self._connection.execute(_MOVE, moves)

    def _insert(self, table: Table, rows: Sequence[JSON], *, replace: bool = False) -> None:
        if rows:
            self._connection.execute(_inserting(table, replace=replace), rows)

    def _newest(self, experiment: int) -> int:
        """Return where the last release of an experiment stands in their order; -1 if none does."""
        newest = select(func.coalesce(func.max(RELEASES.c.sequence), -1))
        here = newest.where(RELEASES.c.experiment == experiment)
        return int(self._connection.execute(here).scalar_one())

    def _erase(self, experiment: int, batches: Iterable[int]) -> None:
        run, gone, event = self._connection.execute, list(batches), EVENTS.c
        left = update(EVENTS).where(event.experiment == experiment, event.batch.in_(gone))
        run(left.where(event.state.in_(WAITING_STATES)).values(state=EventState.HEARD))
        for table, number in ((FEEDBACK, "batch"), (BLOCKS, "batch"), (BATCHES, "number")):
            mine = table.c.experiment == experiment
            run(delete(table).where(mine, table.c[number].in_(gone)))

    # --- what is private ------------------------------------------------------------------

    def _batch_row(self, experiment: int, batch: OpenBatch) -> JSON:
        sealed = None
        if batch.tally:
            sealed = self._secret.seal(batch.tally, f"{experiment}/{batch.number}")
        return batch._asdict() | {"experiment": experiment, "tally": sealed}

    def _block_rows(
        self, experiment: int, version: int, blocks: Sequence[SealedBlock]
    ) -> list[JSON]:
        together: dict[int, bytes] = {}
        for batch, content in blocks:
            together[batch] = together.get(batch, b"") + content
        return [
            {
                "experiment": experiment,
                "batch": batch,
                "version": version,
                "content": self._secret.seal_rows(content, f"{experiment}/{batch}"),
            }
            for batch, content in together.items()
        ]

    def _tally(self, sealed: bytes | None, experiment: int, number: int) -> JSON:
        if sealed is None:
            return {}
        return cast(JSON, self._secret.unseal(sealed, f"{experiment}/{number}"))

    def _feedback_row(self, experiment: int, row: Feedback) -> JSON:
        location = f"{experiment}/{row.batch}/{row.position}"
        private = row.private
        return {
            "experiment": experiment,
            "batch": row.batch,
            "position": row.position,
            "private": None if private is None else self._secret.seal(private, location),
            "given_up": row.given_up,
        }

    def _feedback(self, row: SqlRow) -> Feedback:
        location = f"{row.experiment}/{row.batch}/{row.position}"
        unsealed = None if row.private is None else self._secret.unseal(row.private, location)
        private = unsealed if isinstance(unsealed, dict) else {"loss": unsealed}
        return Feedback(row.batch, row.position, given_up=bool(row.given_up), **private)

"""A store in dictionaries: the reference that the others are compared with.

It has the type of the store, so that mypy holds the two to the same calls, and none of its state.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

from bandanna.store.contract import ConflictError, KeyRow, Mark, Stamp, new_step
from bandanna.store.descriptions import Description
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
    ReleaseRow,
    SealedBlock,
    Snapshot,
)
from bandanna.store.sql import SqlStore
from bandanna.store.sql_transaction import SqlTransaction

EventKey = tuple[str, int]
"""An event's id and the experiment that it belongs to."""


def key_of(event: Event) -> EventKey:
    return event.id, event.owner


class Shelf:
    """What is kept of one experiment."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.batches: dict[int, OpenBatch] = {}
        self.events: dict[Location, EventKey] = {}
        """Ids of the events in each position of open batches."""
        self.feedback: dict[Location, Feedback] = {}
        self.releases: list[ReleaseRow] = []
        self.steps: list[str] = []
        """Random steps of the transactions that recorded releases, one for each release."""
        self.people: dict[str, int] = {}
        self.blocks: list[SealedBlock] = []


class MemoryStore(SqlStore):
    """Everything in dictionaries, one transaction at a time."""

    gather_seconds = 0.0

    def __init__(self) -> None:
        self.identity = secrets.token_hex(16)
        self._lock = threading.RLock()
        self._shelves: dict[int, Shelf] = {}
        self._events: dict[EventKey, Event] = {}
        self._keys: dict[str, KeyRow] = {}

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        """Begin a transaction."""
        with self._lock:
            transaction = MemoryTransaction(self._shelves, self._events)
            yield transaction
            transaction.commit()

    def snapshot(self, experiment: int) -> Snapshot:
        """Return an experiment with all open batches."""
        with self._lock:
            return MemoryTransaction(self._shelves, self._events).read(experiment)

    def create(self, parts: Sequence[Experiment], said: Description | None = None) -> list[int]:
        """Add an experiment."""
        with self._lock:
            here = [shelf.experiment for shelf in self._shelves.values()]
            names = [(one.id, one.segment) for one in (*here, *parts)]
            if len(set(names)) < len(names):
                raise ConflictError(f"there is an experiment {parts[0].id!r} already.")
            begin = len(self._shelves) + 1
            for number, part in enumerate(parts, begin):
                stamped = replace(deepcopy(part), number=number, owner=begin)
                stamped.version, stamped.step = 1, new_step()
                self._shelves[number] = Shelf(stamped)
            return list(range(begin, begin + len(parts)))

    def experiments(self, identity: str | None = None) -> list[Experiment]:
        """Return experiments in the order of their making."""
        with self._lock:
            everything = [deepcopy(shelf.experiment) for shelf in self._shelves.values()]
        return [one for one in everything if identity in (None, one.id)]

    def named(self, name: str) -> list[tuple[str, bool]]:
        """Return the ids of experiments of a name, and whether they are stopped."""
        found = [one for one in self.experiments() if one.name == name and one.number == one.owner]
        return [(one.id, one.stopped) for one in reversed(found)]

    def numbers(self, after: int = 0) -> list[int]:
        """Return the numbers of experiments."""
        with self._lock:
            return [number for number in self._shelves if number > after]

    def next_deadlines(self, experiments: Sequence[int]) -> dict[int, float]:
        """Return when the first deadline passes in the open batches of experiments."""
        with self._lock:
            found: dict[int, float] = {}
            for number in experiments:
                events = (self._events[key] for key in self._shelves[number].events.values())
                due = [e.expires_at for e in events if e.state in WAITING_STATES]
                known = [at for at in due if at is not None]
                if known:
                    found[number] = min(known)
            return found

    def stop(self, identity: str) -> None:
        """Take no more decisions."""
        with self._lock:
            for here in (shelf.experiment for shelf in self._shelves.values()):
                if here.id == identity:
                    here.stopped, here.version = True, here.version + 1

    def charge(self, experiment: int, resumed: int) -> None:
        """Set how often an experiment was resumed from older copies."""
        with self._lock:
            here = self._shelves[experiment].experiment
            here.resumed, here.version = resumed, here.version + 1

    def last_marks(self) -> dict[int, Mark]:
        """Return the last release of every experiment."""
        with self._lock:
            return {
                n: Mark(len(s.steps) - 1, s.steps[-1]) for n, s in self._shelves.items() if s.steps
            }

    def releases(self, experiment: int, after: int = 0, limit: int = 1_000_000) -> list[ReleaseRow]:
        """Return releases in the order of their making."""
        with self._lock:
            return self._shelves[experiment].releases[after : after + limit]

    def add_key(self, key: KeyRow) -> None:
        """Keep a key."""
        with self._lock:
            self._keys[key.id] = key

    def add_first_key(self, key: KeyRow) -> bool:
        """Keep a key if there is none yet."""
        with self._lock:
            if not self._keys:
                self._keys[key.id] = key
            return self._keys == {key.id: key}

    def all_keys(self) -> list[KeyRow]:
        """Return all keys."""
        with self._lock:
            return list(self._keys.values())

    def revoke_key(self, identity: str, at: float, *, keep_one: bool = False) -> bool:
        """Revoke a key."""
        with self._lock:
            key = self._keys.get(identity)
            if key is None or key.revoked_at is not None:
                return False
            self._keys[identity] = key._replace(revoked_at=at)
            return True

    def tidy(self) -> bool:
        """Nothing is left behind."""
        return True

    def close(self) -> None:
        """Nothing is held."""


class MemoryTransaction(SqlTransaction):
    """A transaction: what it writes is checked, and kept when it ends."""

    def __init__(self, shelves: dict[int, Shelf], events: dict[EventKey, Event]) -> None:
        self._shelves, self._events = shelves, events
        self._staged: list[tuple[Shelf, Changes, str]] = []

    def events(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """Return the events with these ids, in all experiments."""
        wanted, found = set(ids), dict[str, list[Event]]()
        for (name, _), event in self._events.items():
            if name in wanted:
                found.setdefault(name, []).append(event)
        return found

    def lock(self, experiments: Iterable[int]) -> dict[int, Stamp]:
        """Return the versions and steps of experiments."""
        wanted = {n: self._shelves[n].experiment for n in experiments if n in self._shelves}
        return {number: Stamp(one.version, one.step) for number, one in wanted.items()}

    def missing(self, marks: Mapping[int, Mark]) -> set[int]:
        """Return the experiments that do not hold the release of their mark."""
        steps = {n: self._shelves[n].steps if n in self._shelves else [] for n in marks}
        return {n for n, (k, step) in marks.items() if steps[n][k : k + 1] != [step]}

    def read(self, experiment: int, *, whole: bool = True) -> Snapshot:
        """Return an experiment with all open batches, or with those that fill alone."""
        shelf = self._shelves[experiment]
        here = deepcopy(shelf.experiment)
        filling = here.head["counters"].get("filling", [])
        opened = self.opened(experiment, None if whole else filling)
        people = dict(shelf.people) if whole else {}
        return Snapshot(here, *opened, people, len(shelf.batches))

    def opened(
        self, experiment: int, numbers: Sequence[int] | None
    ) -> tuple[list[OpenBatch], list[Event], list[Feedback]]:
        """Return open batches, with their events and feedback."""
        shelf = self._shelves[experiment]
        some = list(shelf.batches) if numbers is None else numbers
        return (
            [shelf.batches[number] for number in some if number in shelf.batches],
            [self._events[name] for location, name in shelf.events.items() if location[0] in some],
            [row for location, row in shelf.feedback.items() if location[0] in some],
        )

    def due(self, experiment: int, after: tuple[float, int], limit: int) -> list[Due]:
        """Return events that wait, by deadline and round: the first so many after these two."""
        found = [
            Due(e.expires_at, e.round, e.location, e.chance, e.state is EventState.DEFERRED)
            for e in (self._events[name] for name in self._shelves[experiment].events.values())
            if e.expires_at is not None and e.state in WAITING_STATES
        ]
        return sorted(one for one in found if one[:2] > after)[:limit]

    def latest(self, owner: int, visitor: str) -> Event | None:
        """Return the last event of a visitor in an experiment."""
        theirs = (e for e in self._events.values() if (e.owner, e.visitor) == (owner, visitor))
        return max(theirs, key=lambda event: event.round, default=None)

    def free(self, experiment: int, limit: int) -> list[tuple[Location, float | None]]:
        """Return positions of open batches whose event was never shown, and chances of arms."""
        events = (self._events[name] for name in self._shelves[experiment].events.values())
        return [(e.location, e.chance) for e in events if e.state is EventState.VOID][:limit]

    def blocks(self, experiment: int, batch: int) -> list[bytes]:
        """Return the blocks of a batch, in the order they were written."""
        return [block.content for block in self._shelves[experiment].blocks if block.batch == batch]

    def write(self, experiment: int, changes: Changes) -> tuple[Stamp, Mark | None]:
        """Check changes; they are kept when the transaction ends."""
        shelf = self._shelves[experiment]
        staged = [key_of(event) for _, other, _ in self._staged for event in other.events]
        new = staged + [key_of(event) for event in changes.events]
        if len(set(new)) < len(new) or any(name in self._events for name in new):
            raise ConflictError("an event of this id exists already.")
        before = {release.batch for release in shelf.releases}
        if any(release.batch in before for release in changes.releases):
            raise ConflictError("this batch has been released already.")
        step, count = new_step(), len(changes.releases)
        self._staged.append((shelf, changes, step))
        mark = Mark(len(shelf.steps) + count - 1, step) if count else None
        return Stamp(shelf.experiment.version + 1, step), mark

    def commit(self) -> None:
        """Keep what was written."""
        for shelf, changes, step in self._staged:
            here = shelf.experiment
            here.step = step
            shelf.steps += [step] * len(changes.releases)
            here.head = deepcopy(changes.head or here.head) | {"counters": changes.counters}
            here.settings = deepcopy(changes.settings or here.settings)
            here.observed = changes.observed
            here.version += 1
            for location, state in changes.states.items():
                name = shelf.events[location]
                self._events[name] = self._events[name]._replace(state=state)
            for event in changes.events:
                self._events[key_of(event)] = event
                if event.state is not EventState.VOID:
                    shelf.events[event.location] = key_of(event)
            shelf.batches |= {batch.number: batch for batch in changes.batches}
            shelf.feedback |= {(row.batch, row.position): row for row in changes.feedback}
            shelf.people |= changes.people
            shelf.releases += changes.releases
            gone = {release.batch for release in changes.releases}
            shelf.blocks = [one for one in shelf.blocks + changes.blocks if one.batch not in gone]
            for number in gone:
                shelf.batches.pop(number, None)
            for location in [location for location in shelf.events if location[0] in gone]:
                name = shelf.events.pop(location)
                if self._events[name].state in WAITING_STATES:
                    self._events[name] = self._events[name]._replace(state=EventState.HEARD)
                shelf.feedback.pop(location, None)

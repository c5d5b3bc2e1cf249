"""Two processes on one database, with faults in any order: nothing lost, nothing under-charged.

A state machine plays decisions, feedback, clock steps, full disks, kills at any point of a commit,
copies, marked backups and restores, restores that are accepted again and again, and a guard that is
deleted, against a model of what was acknowledged and of how often each event's feedback was
released. ``BANDANNA_SOAK`` is the number of stories that are played on SQLite, half of them on
PostgreSQL; ``make soak`` plays more.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import bandanna as bd
from bandanna.store import Secret, SqlStore, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.guard import Guard, RestoredError
from bandanna.store.rows import Event
from bandanna.store.sql_transaction import SqlTransaction
from bandanna.store.unit_of_work import NewFeedback
from bandanna.store.writer import Task, Writer, about_event
from tests.postgres import Postgres, needs_postgres
from tests.service.databases import Database, PostgresDatabase, SqliteDatabase
from tests.store.stores import experiment, put

STORIES = int(os.environ.get("BANDANNA_SOAK", "6"))
DEADLINE = 100.0
BATCHED = ("one-bit", "exp3")
ALGORITHMS = (*BATCHED, "phased", "ab-test")
"""Batches of three; phases, which release a value of each arm."""
WHO = st.integers(0, 1)


class FaultyStore(SqlStore):
    """Fails once, at a point that a test names."""

    fault = ""

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        fault, self.fault = self.fault, ""
        if fault == "begin":
            raise StoreUnavailableError("the disk is full")
        with super().transaction() as transaction:
            yield transaction
            if fault == "commit":
                raise StoreUnavailableError("killed before the commit")
        if fault == "answer":
            raise StoreUnavailableError("killed after the commit")


class Running:
    """A process: a store, a guard and a writer of its own."""

    def __init__(
        self,
        address: str,
        guard: Path,
        secret: Secret,
        clock: Callable[[], float],
        *,
        accept: bool = False,
    ) -> None:
        here = address if "://" in address else f"sqlite:///{address}"
        self.store = FaultyStore(here, secret)
        self.guard = Guard(guard, self.store)
        try:
            self.guard.begin(accept=accept, patience=0.0)
        except BaseException:
            self.store.close()
            self.guard.close()
            raise
        self.writer = Writer(self.store, self.guard, clock)

    def end(self) -> None:
        """End as by a kill: nothing is tidied, nothing is flushed."""
        self.writer.close()
        self.store.close()
        self.guard.close()


@dataclass
class Known:
    """What one branch of the database must hold."""

    decided: dict[str, Event] = field(default_factory=dict)
    rewarded: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    """Events whose feedback was sent and not acknowledged."""
    released: int = 0


class Stories(RuleBasedStateMachine):
    """Two processes, their faults, and what must hold after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = tempfile.TemporaryDirectory()
        self.folder = Path(self.kept.name)
        self.secret = Secret.new()
        self.now, self.names = 1000.0, 0
        self.known = Known()
        self.copies: list[Known] = []
        self.marked: set[int] = set()
        """Copies that say that they are backups."""
        self.spent: Counter[str] = Counter()
        """How often an event's feedback was released, over all branches."""
        self.database = self.make_database()
        self.running = [self.start(), self.start()]
        self.number = 0

    def make_database(self) -> Database:
        return SqliteDatabase(self.folder)

    def start(self, *, accept: bool = False) -> Running:
        address, guard = self.database.address, self.folder / "guard"
        return Running(address, guard, self.secret, lambda: self.now, accept=accept)

    @initialize(algorithm=st.sampled_from(ALGORITHMS))
    def make(self, algorithm: str) -> None:
        batch = 3 if algorithm in BATCHED else None
        policy = bd.PrivateBandit(["a", "b"], 5.0, 60, algorithm, batch=batch)
        made = experiment(policy, deadline_seconds=DEADLINE)
        self.number = put(self.running[0].store, made)

    def teardown(self) -> None:
        self.end()
        self.kept.cleanup()

    # --- what is asked ------------------------------------------------------------------------

    def ask(self, who: int, task: Task[Any]) -> Any:
        return self.running[who].writer.submit(task).result(timeout=60)

    def decide_task(self, name: str) -> Task[Event]:
        return Task(lambda u, known: known or u.decide(name), self.number, name)

    def observe_task(self, name: str, loss: float) -> Task[None]:
        return about_event(name, lambda u, e: u.observe(e, NewFeedback(loss)))

    @rule(who=WHO)
    def decide(self, who: int) -> None:
        self.names += 1
        name = f"event-{self.names}"
        self.known.decided[name] = self.ask(who, self.decide_task(name))

    @rule(who=WHO, data=st.data())
    def decide_again(self, who: int, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(["event-0", *self.known.decided]))
        told = self.ask(who, self.decide_task(name))
        before = self.known.decided.setdefault(name, told)
        assert told._replace(state=before.state) == before, "the same id gets the same answer"

    @rule(who=WHO, data=st.data(), loss=st.sampled_from([0.0, 0.25, 1.0]))
    def observe(self, who: int, data: st.DataObject, loss: float) -> None:
        if self.known.decided:
            name = data.draw(st.sampled_from(sorted(self.known.decided)))
            try:
                self.ask(who, self.observe_task(name, loss))
                self.known.rewarded.add(name)
            except GoneError:
                assert self.known.decided[name].expires_at is not None

    @rule(who=WHO, data=st.data())
    def give_up(self, who: int, data: st.DataObject) -> None:
        """Say that feedback will not come; where it has, nothing happens."""
        if self.known.decided:
            name = data.draw(st.sampled_from(sorted(self.known.decided)))
            self.ask(who, about_event(name, lambda unit, event: unit.give_up(event)))

    @rule(count=st.integers(2, 8))
    def both_at_once(self, count: int) -> None:
        """Decisions and feedback at the same time, some about the same event."""
        names = [f"event-{self.names + 1 + k // 2}" for k in range(count)]
        self.names += count
        tasks = [self.decide_task(name) for name in names]
        asked = [self.running[k % 2].writer.submit(task) for k, task in enumerate(tasks)]
        for name, answer in zip(names, asked, strict=True):
            told = answer.result(timeout=60)
            assert self.known.decided.setdefault(name, told) == told
        both = [w.writer.submit(self.observe_task(names[0], 0.5)) for w in self.running]
        for done in both:
            done.result(timeout=60)
        self.known.rewarded.add(names[0])

    @rule(who=WHO, seconds=st.sampled_from([-1000.0, -10.0, 10.0, 2 * DEADLINE]))
    def set_clock(self, who: int, seconds: float) -> None:
        self.now += seconds
        self.ask(who, Task(lambda unit, _: unit.expire(), self.number))

    # --- what goes wrong ----------------------------------------------------------------------

    @rule(who=WHO, point=st.sampled_from(["begin", "commit"]), data=st.data())
    def full_disk(self, who: int, point: str, data: st.DataObject) -> None:
        """What is refused has changed nothing, and the next attempt is taken."""
        self.names += 1
        name = f"event-{self.names}"
        self.running[who].store.fault = point
        with pytest.raises(StoreUnavailableError):
            self.ask(who, self.decide_task(name))
        self.known.decided[name] = self.ask(who, self.decide_task(name))

    @rule(who=WHO, point=st.sampled_from(["", "begin", "commit", "answer"]), data=st.data())
    def kill(self, who: int, point: str, data: st.DataObject) -> None:
        """Kill a process while feedback is on its way, and start it again."""
        if point and self.known.decided:
            name = data.draw(st.sampled_from(sorted(self.known.decided)))
            self.running[who].store.fault = point
            try:
                self.ask(who, self.observe_task(name, 0.5))
            except GoneError:
                pass  # the deadline had passed
            except StoreUnavailableError:
                if name not in self.known.rewarded:
                    self.known.unsure.add(name)
        self.running[who].end()
        self.running[who] = self.start()

    @precondition(lambda self: len(self.copies) < 3)
    @rule(marked=st.booleans())
    def copy(self, marked: bool) -> None:
        """Copy the database as it is; backups by ``bandanna db backup`` say that they are."""
        number = len(self.copies)
        if marked and self.database.server is None:
            self.running[0].store.backup(self.folder / f"copy-{number}")
            self.marked.add(number)
        else:
            self.database.copy(number)
        self.look()
        self.copies.append(deepcopy(self.known))

    @precondition(lambda self: self.copies)
    @rule(data=st.data(), times=st.integers(1, 3))
    def restore(self, data: st.DataObject, times: int) -> None:
        """Put a copy back: refused, unless it lacks no release; accepted, it is charged each time.

        A marked backup is always refused.
        """
        self.look()
        which = data.draw(st.integers(0, len(self.copies) - 1))
        self.end()
        self.database.put_back(which)
        lost = self.known.released > self.copies[which].released or which in self.marked
        self.known = deepcopy(self.copies[which])
        try:
            first = self.start()
            assert not lost, "a copy that lacks releases must be refused"
        except RestoredError:
            first = self.accept()
            for _ in range(times - 1):
                first.end()
                first = self.accept()
        self.running = [first, self.start()]

    @rule(while_it_runs=st.booleans())
    def delete_guard(self, while_it_runs: bool) -> None:
        """Delete the guard: whoever runs notices, and a start is refused or charged."""
        self.look()
        if not while_it_runs:
            self.end()
        for path in self.folder.glob("guard*"):
            path.unlink()
        if while_it_runs:
            for one in self.running:
                with pytest.raises(RestoredError, match="deleted or replaced"):
                    one.guard.watch()
            self.end()
        with pytest.raises(RestoredError, match="never seen it"):
            self.start()
        self.running = [self.accept(), self.start()]

    def accept(self) -> Running:
        """Start in spite of a refusal; that is charged."""
        before = self.resumed()
        found = self.start(accept=True)
        assert self.resumed() > before
        return found

    def end(self) -> None:
        for one in self.running:
            one.end()

    # --- what must hold -----------------------------------------------------------------------

    def resumed(self) -> int:
        ((found,),) = self.database.read("SELECT resumed FROM experiments")
        assert isinstance(found, int)
        return found

    @invariant()
    def look(self) -> None:
        """Compare the database with what was acknowledged."""
        store, known = self.running[0].store, self.known
        (found,) = store.experiments()
        sure = known.rewarded
        assert len(sure) <= found.observed <= len(sure | known.unsure), "feedback counts once"
        assert found.head["counters"]["rounds"] == len(known.decided)
        rows = store.releases(self.number)
        assert len({(row.batch, row.choice) for row in rows}) == len(rows) >= known.released
        for batch in {row.batch for row in rows[known.released :]}:
            events = (name for name, one in known.decided.items() if one.batch == batch)
            self.spent.update(name for name in events if name in sure | known.unsure)
        known.released = len(rows)
        assert found.resumed + 1 >= max(self.spent.values(), default=0), "claimed, at least spent"


def play(stories: type[Stories], count: int) -> None:
    stories.TestCase.settings = settings(
        max_examples=count,
        stateful_step_count=25,
        deadline=None,
        derandomize=STORIES < 10,
        suppress_health_check=list(HealthCheck),
    )
    stories.TestCase().runTest()


@pytest.mark.slow
def test_stories_of_two_processes() -> None:
    play(Stories, STORIES)


@needs_postgres
@pytest.mark.slow
def test_stories_of_two_processes_on_postgresql(postgres: Postgres) -> None:
    class OnPostgres(Stories):
        def make_database(self) -> Database:
            return PostgresDatabase(postgres)

    play(OnPostgres, max(STORIES // 2, 1))

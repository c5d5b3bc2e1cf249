"""A service and its stand-by, and whatever goes wrong, mixed at random: nothing is lost.

Programs decide and reward while one of them, or both, are killed, have no room on
their disk or have their clock set; a PostgreSQL server is killed too, and finds its disk full.
Between two such bursts the database is copied, and copies are put back, marked backups among them;
restores are accepted again and again, and the rollback guard is deleted. What was acknowledged is
there once, and the claimed epsilon covers how often anyone's feedback was released.

``BANDANNA_KILLS``, as in ``make soak``, is the number of times that services are killed on SQLite,
in stories that each have a seed of their own; on PostgreSQL it is half of that.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

import bandanna as bd
from bandanna._client.calls import Decision
from bandanna.store import open_store
from tests.postgres import Postgres, needs_postgres
from tests.service.databases import ROOM, Database, PostgresDatabase, SqliteDatabase, full_disk
from tests.service.loaded import set_clock
from tests.service.running import Copied

KILLS = int(os.environ.get("BANDANNA_KILLS", "0"))
EACH = 20
"""Kills in one story."""
STEPS = 20 if KILLS else 3
SEEDS = range(KILLS // EACH) if KILLS else [25]
"""By default one short story: a copy, a clock that is set, a restore."""
EPSILON = 0.5
DEADLINE = 1000.0


@dataclass
class Known:
    """What one branch of the database must hold."""

    decided: dict[str, Decision] = field(default_factory=dict)
    rewarded: set[str] = field(default_factory=set)
    released: int = 0


class Story:
    """Two services, programs that use them, and an account of what these were told."""

    def __init__(self, folder: Path, database: Database, seed: int) -> None:
        self.folder, self.database, self.dice = folder, database, random.Random(seed)
        self.names, self.ahead = 0, 0.0
        self.known = Known()
        self.copies: list[Known] = []
        self.marked: set[int] = set()
        """Copies that say that they are backups."""
        self.spent: Counter[str] = Counter()
        """How often an event's feedback was released, over all branches."""
        self.set_clock(0.0)
        self.done: Counter[str] = Counter()
        """What went wrong, and how often."""
        self.services = [Copied(folder, database.address) for _ in range(2)]
        for service in self.services:
            service.clock = folder / "clock"
            service.start()
        urls, key = [one.url for one in self.services], self.services[0].key
        self.clients = [bd.Client(order, key, patience=60) for order in (urls, urls[::-1])]
        settings = {"algorithm": "exp3", "deadline_seconds": DEADLINE}
        made = self.clients[0].create("test", ["a", "b"], EPSILON, rounds=100_000, **settings)
        self.experiment = made.id

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for service in self.services:
            if service.poll() is None:
                service.kill()

    # --- what programs do ---------------------------------------------------------------------

    def use(self, who: int, name: str, again: bool) -> None:
        """Decide and reward until both are acknowledged; perhaps through both services."""
        bandit = self.clients[who].experiment(self.experiment)
        told = bandit.decide(event_id=name)
        assert self.known.decided.setdefault(name, told) == told
        if again:
            other = self.clients[1 - who].experiment(self.experiment)
            assert other.decide(event_id=name) == told, "the same id gets the same answer"
        try:
            bandit.observe(name, loss=0.25)
            self.known.rewarded.add(name)
        except bd.DecisionError:
            assert self.ahead, "only a clock that was set makes feedback late"

    def burst(self, fault: Callable[[], None]) -> None:
        """Let programs work, and something happen meanwhile."""
        with ThreadPoolExecutor(4) as pool:
            tasks = []
            for _ in range(12):
                self.names += 1
                values = (self.dice.randrange(2), f"event-{self.names}", self.dice.random() < 0.3)
                tasks.append(pool.submit(self.use, *values))
            fault()
            for task in tasks:
                task.result(timeout=120)

    # --- what goes wrong ----------------------------------------------------------------------

    def nothing(self) -> None:
        """All is well."""

    def kill(self, service: Copied) -> None:
        service.kill()
        self.done["kills"] += 1

    def kill_one(self) -> None:
        """Kill one of them, and perhaps again while it starts."""
        victim = self.dice.choice(self.services)
        time.sleep(self.dice.uniform(0.0, 0.1))
        self.kill(victim)
        if self.dice.random() < 0.5:
            victim.launch()
            time.sleep(self.dice.uniform(0.0, 0.5))
            self.kill(victim)
        victim.start()

    def kill_both(self) -> None:
        """Kill both, and let them start at the same moment."""
        time.sleep(self.dice.uniform(0.0, 0.1))
        for service in self.services:
            self.kill(service)
        starts = [threading.Thread(target=service.start) for service in self.services]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        assert all(service.poll() is None for service in self.services)

    def kill_server(self) -> None:
        """Kill the database server."""
        assert self.database.server is not None
        time.sleep(self.dice.uniform(0.0, 0.1))
        self.database.server.stop()
        self.database.server.start()

    def fill_disk(self) -> None:
        """Leave no room to a service, or to a database server, which then ends and recovers."""
        service, server = self.dice.choice(self.services), self.database.server
        in_server = server is not None and self.dice.random() < 0.5
        with server.full_disk(ROOM) if server and in_server else full_disk(service.pid):
            time.sleep(self.dice.uniform(0.1, 0.5))
            if killed := self.dice.random() < 0.3:
                self.kill(service)
        if killed:
            service.start()

    def set_clock(self, ahead: float | None = None) -> None:
        if ahead is None:
            ahead = self.dice.choice([-5_000.0, -10.0, 10.0, 2 * DEADLINE])
        self.ahead += ahead
        set_clock(self.folder / "clock", self.ahead)

    # --- copies -------------------------------------------------------------------------------

    def copy(self) -> None:
        """Copy the database while it is used; backups by ``bandanna db`` say that they are."""
        number = len(self.copies)
        if self.database.server is None and self.dice.random() < 0.5:
            self.back_up(number)
        else:
            self.database.copy(number)
        self.copies.append(deepcopy(self.known))
        ((counted,),) = self.database.read("SELECT count(*) FROM releases", number)
        assert isinstance(counted, int)
        self.copies[-1].released = counted  # as of one moment, later than the last look

    def back_up(self, number: int) -> None:
        """Make a backup that says that it is one."""
        store = open_store(f"sqlite:///{self.database.address}", self.folder / "secret")
        store.backup(self.folder / f"copy-{number}")
        store.close()
        self.marked.add(number)
        self.done["marked backups"] += 1

    def restore(self) -> None:
        """Put a copy back: refused where releases are lacking; accepted, it is charged each time.

        A marked backup is always refused.
        """
        self.kill_all()
        which = self.dice.randrange(len(self.copies))
        for _ in range(self.dice.choice([1, 1, 2])):
            self.look()
            self.database.put_back(which)
            lost = self.known.released > self.copies[which].released or which in self.marked
            self.known = deepcopy(self.copies[which])
            refused = _refusal(self.services[0])
            assert refused or not lost, "a copy that lacks releases must be refused"
            if refused:
                assert ("is a backup" if which in self.marked else "older than the") in refused
                self.accept()
            self.services[0].kill()
        self.services[0].start()
        self.services[1].start()

    def accept(self) -> None:
        """Start in spite of a refusal, perhaps several times: each of them is charged."""
        first = self.services[0]
        for again in range(self.dice.choice([1, 1, 3])):
            if again:
                first.kill()
            before = self.number("resumed")
            first.start("--accept-restored")
            assert self.number("resumed") > before
            self.done["charged starts"] += 1

    def delete_guard(self) -> None:
        """Delete the guard, perhaps while it is used: the service decides nothing more."""
        stopped = self.dice.random() < 0.5
        if stopped:
            self.kill_all()
        for path in self.folder.glob("guard*"):
            path.unlink()
        if not stopped:
            for service in self.services:
                _wait_until_it_says(service, "deleted or replaced")
            self.kill_all()
        self.look()
        assert "never seen it" in (_refusal(self.services[0]) or "")
        self.accept()
        self.services[1].start()

    def kill_all(self) -> None:
        for service in self.services:
            service.kill()

    # --- what must hold -----------------------------------------------------------------------

    def number(self, column: str) -> int:
        ((found,),) = self.database.read(f"SELECT {column} FROM experiments")
        assert isinstance(found, int)
        return found

    def look(self) -> None:
        """Compare the database with what was acknowledged."""
        known = self.known
        batches = {
            str(name): batch for name, batch in self.database.read("SELECT id, batch FROM events")
        }
        assert batches.keys() == known.decided.keys(), "nothing decided is lost, nothing is doubled"
        assert self.number("observed") == len(known.rewarded), "feedback counts once"
        rows = self.database.read("SELECT batch FROM releases ORDER BY sequence")
        assert len(set(rows)) == len(rows) >= known.released, "no batch is released twice"
        new = {batch for (batch,) in rows[known.released :]}
        self.spent.update(name for name in known.rewarded if batches[name] in new)
        known.released = len(rows)
        claimed = EPSILON * (1 + self.number("resumed"))
        assert claimed >= EPSILON * max(self.spent.values(), default=0), "claimed, at least spent"

    def ask(self) -> None:
        """Compare what the services say with what was acknowledged."""
        for client in self.clients:
            bandit = client.experiment(self.experiment)
            assert bandit.guarantee.epsilon == pytest.approx(EPSILON * (1 + self.number("resumed")))
            for name in self.dice.sample(
                sorted(self.known.decided), min(3, len(self.known.decided))
            ):
                assert bandit.decide(event_id=name) == self.known.decided[name]

    def play(self, steps: int, kills: int) -> None:
        """Let things go wrong, each of them at least once in a long story."""
        faults = [self.nothing, self.kill_one, self.kill_both, self.fill_disk, self.set_clock]
        todo = [*faults, self.copy, self.restore, self.delete_guard]
        self.dice.shuffle(todo)
        if self.database.server is not None:
            faults.append(self.kill_server)
            todo.append(self.kill_server)
        more = [*todo, self.kill_one, self.kill_one, self.kill_both]
        step = 0
        while step < steps or self.done["kills"] < kills:
            what = todo[step] if step < len(todo) else self.dice.choice(more)
            if what == self.restore and not self.copies:
                what = self.copy
            if what not in faults:
                what()
            self.burst(what if what in faults else self.nothing)
            self.done[what.__name__] += 1
            self.look()
            self.ask()
            step += 1


def _refusal(service: Copied) -> str | None:
    """Start a service; returns what it said if it refuses."""
    try:
        service.start()
    except AssertionError as error:
        return str(error)
    return None


def _wait_until_it_says(service: Copied, what: str) -> None:
    """Wait until a service finds something wrong."""
    end = time.monotonic() + 60
    while what not in httpx.get(f"{service.url}/readyz", timeout=30).text:
        assert time.monotonic() < end, "it was not noticed"
        time.sleep(0.05)


def play(folder: Path, database: Database, seed: int) -> None:
    """Play one story; a long one says what was in it."""
    with closing(Story(folder, database, seed)) as story:
        story.play(STEPS, EACH if KILLS else 0)
        told = ", ".join(f"{what} {count}" for what, count in sorted(story.done.items()))
        print(f"story {seed}: {told}; {len(story.known.decided)} events in the last branch")


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_under_charged_on_sqlite(tmp_path: Path, seed: int) -> None:
    play(tmp_path, SqliteDatabase(tmp_path), seed)


@needs_postgres
@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS[: max(len(SEEDS) // 2, 1)])
def test_nothing_is_lost_or_under_charged_on_postgresql(
    tmp_path: Path, postgres: Postgres, seed: int
) -> None:
    play(tmp_path, PostgresDatabase(postgres), seed)

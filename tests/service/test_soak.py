"""Two services on one database, and whatever goes wrong, mixed at random: nothing is lost.

Programs decide and reward through both while one of them, or both, are killed, have no room on
their disk or have their clock set. Between two such bursts the database is copied, and copies are
put back. What was acknowledged is there once, and the claimed epsilon covers how often anyone's
feedback was released. With ``BANDANNA_SOAK``, as in ``make soak``, a twentieth of that number of
long stories is played, each from a seed of its own.
"""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import bandanna as bd
from bandanna._client.calls import Decision
from tests.service.loaded import set_clock
from tests.service.running import Copied

STORIES = int(os.environ.get("BANDANNA_SOAK", "0")) // 20
SEEDS, STEPS = (range(STORIES), 20) if STORIES else ([25], 3)
"""A short story by default: a copy, a clock that is set, a restore."""
EPSILON = 0.5
DEADLINE = 1000.0
ROOM = 60_000
"""Bytes that a file may have on a full disk."""


@dataclass
class Known:
    """What one branch of the database must hold."""

    decided: dict[str, Decision] = field(default_factory=dict)
    rewarded: set[str] = field(default_factory=set)
    released: int = 0


class Story:
    """Two services, programs that use them, and an account of what these were told."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.dice = folder, random.Random(seed)
        self.names, self.ahead = 0, 0.0
        self.known = Known()
        self.copies: list[Known] = []
        self.spent: Counter[str] = Counter()
        """How often an event's feedback was released, over all branches."""
        self.set_clock(0.0)
        self.services = [Copied(folder), Copied(folder)]
        for service in self.services:
            service.clock = folder / "clock"
            service.start()
        self.clients = [bd.Client(one.url, one.key, patience=60) for one in self.services]
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

    def kill_one(self) -> None:
        time.sleep(self.dice.uniform(0.0, 0.1))
        victim = self.dice.choice(self.services)
        victim.kill()
        victim.start()

    def kill_both(self) -> None:
        """Kill both, and let them start at the same moment."""
        time.sleep(self.dice.uniform(0.0, 0.1))
        for service in self.services:
            service.kill()
        starts = [threading.Thread(target=service.start) for service in self.services]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        assert all(service.poll() is None for service in self.services)

    def fill_disk(self) -> None:
        service = self.dice.choice(self.services)
        _, most = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (ROOM, most))
        time.sleep(self.dice.uniform(0.1, 0.5))
        if self.dice.random() < 0.3:
            service.kill()
            service.start()
        else:
            resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (most, most))

    def set_clock(self, ahead: float | None = None) -> None:
        if ahead is None:
            ahead = self.dice.choice([-5_000.0, -10.0, 10.0, 2 * DEADLINE])
        self.ahead += ahead
        set_clock(self.folder / "clock", self.ahead)

    # --- copies -------------------------------------------------------------------------------

    def copy(self) -> None:
        """Copy the database while it is used, without saying that this is a copy."""
        path = self.folder / f"copy-{len(self.copies)}"
        with (
            closing(sqlite3.connect(self.folder / "service.db", timeout=30)) as here,
            closing(sqlite3.connect(path)) as there,
        ):
            here.backup(there)
            with there:  # as of one moment, which may be later than the last look
                counted = there.execute("SELECT count(*) FROM releases").fetchone()[0]
        path.chmod(0o600)
        self.copies.append(deepcopy(self.known))
        self.copies[-1].released = counted

    def restore(self) -> None:
        """Put a copy back: refused where releases are lacking; accepted, it is charged."""
        for service in self.services:
            service.kill()
        self.look()
        which = self.dice.randrange(len(self.copies))
        for path in self.folder.glob("service.db*"):
            path.unlink()
        (self.folder / "service.db").write_bytes((self.folder / f"copy-{which}").read_bytes())
        (self.folder / "service.db").chmod(0o600)
        lost = self.known.released > self.copies[which].released
        self.known = deepcopy(self.copies[which])
        before = self.number("resumed")
        first, second = self.services
        refused = _refusal(first)
        assert refused or not lost, "a copy that lacks releases must be refused"
        if refused:
            assert "older than the rollback guard" in refused
            first.start("--accept-restored")
            assert self.number("resumed") > before
        second.start()

    # --- what must hold -----------------------------------------------------------------------

    def read(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.folder / "service.db", timeout=30)) as connection:
            return connection.execute(query).fetchall()

    def number(self, column: str) -> int:
        ((found,),) = self.read(f"SELECT {column} FROM experiments")
        assert isinstance(found, int)
        return found

    def look(self) -> None:
        """Compare the database with what was acknowledged."""
        known = self.known
        batches = {str(name): batch for name, batch in self.read("SELECT id, batch FROM events")}
        assert batches.keys() == known.decided.keys(), "nothing decided is lost, nothing is doubled"
        assert self.number("observed") == len(known.rewarded), "feedback counts once"
        rows = self.read("SELECT batch FROM releases ORDER BY sequence")
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

    def play(self, steps: int) -> None:
        faults = [self.nothing, self.kill_one, self.kill_both, self.fill_disk, self.set_clock]
        todo = [*faults, self.copy, self.restore]
        self.dice.shuffle(todo)
        for step in range(steps):
            what = todo[step] if step < len(todo) else self.dice.choice(todo)
            if what == self.copy or (what == self.restore and not self.copies):
                self.copy()
            elif what == self.restore:
                self.restore()
            self.burst(what if what in faults else self.nothing)
            self.look()
            self.ask()


def _refusal(service: Copied) -> str | None:
    """Start a service; returns what it said if it refuses."""
    try:
        service.start()
    except AssertionError as error:
        return str(error)
    return None


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_under_charged_whatever_goes_wrong(tmp_path: Path, seed: int) -> None:
    with closing(Story(tmp_path, seed)) as story:
        story.play(STEPS)

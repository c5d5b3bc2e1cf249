"""Processor time of a decision, by who spends it: ``python -m benchmarks.service_cost``.

Rates depend on what else a machine does; the time that processors spend per decision depends on it
much less. It gives the most decisions a second that two cores can make when the services, the
database and the clients share them, and the most that the services can make on cores of their own.
Beside them stands how busy the cores were, with everything that ran on them: where they were not
idle, nothing else was the limit.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.postgres import PROGRAMS, Postgres, open_postgres
from tests.service.running import process

from benchmarks.service import bare, experiments, load, processor_seconds

CLIENTS = 32
CORES = 2
EXPERIMENTS = 8
QUIET = {"log-level": "warning"}
TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Milliseconds of processor time per decision, as of the processes that spent them."""

    service: float
    """Of all processes of the service."""
    busiest: float
    """Of the one that spent most."""
    database: float
    client: float
    busy: float
    """The part of all cores that was busy meanwhile, with whatever it was."""

    @property
    def shared(self) -> float:
        """The most decisions a second on two cores for everything; a process uses one at a time."""
        together = self.service + self.database + self.client
        return min(self.alone, 1000.0 * CORES / together)

    @property
    def alone(self) -> float:
        """The most decisions a second where each process of the service has a core of its own."""
        return 1000.0 / self.busiest


def _spent(processes: Iterable[int]) -> float:
    """Return the seconds that processors spent on processes that are alive."""
    total = 0
    for one in processes:
        fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def cost(run: Callable[[], int], services: list[int], server: Postgres | None = None) -> Cost:
    """Measure what decisions cost; ``run`` makes them, and returns how many they were."""
    family = [] if server is None else [server.process, *server.workers()]

    def look() -> list[float]:
        each = [_spent([one]) for one in services]
        return [*each, _spent(family), time.process_time(), processor_seconds(), time.monotonic()]

    before, count, after = look(), run(), look()
    *each, database, client, busy, passed = (b - a for a, b in zip(before, after, strict=True))
    service, busiest, database, client = (
        1000.0 * one / count for one in (sum(each), max(each), database, client)
    )
    return Cost(service, busiest, database, client, busy / passed / (os.cpu_count() or 1))


def _decisions(ports: list[int], paths: list[str], key: str) -> Callable[[], int]:
    """Return what makes decisions, and returns how many they were."""
    load(ports, paths, key, CLIENTS)  # everything is loaded, all connections are open
    return lambda: len(load(ports, paths, key, CLIENTS, warm=0.0).times)


def measure() -> Iterator[tuple[str, Cost]]:
    """Measure the cost of decisions in several settings."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        service = stack.enter_context(process(folder, **QUIET))
        path = experiments(service, 1)
        running = stack.enter_context(bare(folder, keep=False))
        run = _decisions([running.port], path, service.key)
        yield "FastAPI that keeps nothing", cost(run, [running.pid])
        run = _decisions([service.port], path, service.key)
        yield "SQLite, one process", cost(run, [service.pid])
    if shutil.which(PROGRAMS) is None:
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(open_postgres(durable=True))
        database = server.new_database()
        first = stack.enter_context(process(folder, database, **QUIET))
        paths = experiments(first, EXPERIMENTS)
        run = _decisions([first.port], paths[:1], first.key)
        yield "PostgreSQL, one process", cost(run, [first.pid], server)
        run = _decisions([first.port], paths, first.key)
        yield f"PostgreSQL, one process, {EXPERIMENTS} experiments", cost(run, [first.pid], server)


COLUMNS = (
    "",
    "service, ms",
    "of it the busiest process",
    "database, ms",
    "client, ms",
    "cores busy",
    "at most on two cores, a second",
    "with a core for each process",
)


if __name__ == "__main__":
    print(f"| {' | '.join(COLUMNS)} |")
    print("|---" * len(COLUMNS) + "|")
    for what, spent in measure():
        shown = [f"{value:.2f}" for value in spent[:4]]
        shown += [f"{spent.busy:.0%}", f"{spent.shared:,.0f}", f"{spent.alone:,.0f}"]
        print(f"| {what} | {' | '.join(shown)} |", flush=True)

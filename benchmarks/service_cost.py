"""Processor time of a decision, by who spends it: ``python -m benchmarks.service_cost``.

Rates depend on what else a machine does; the time that processors spend per decision depends on it
much less. It gives the most decisions a second that two cores can make when the services, the
database and the clients share them, and so what a second process can gain there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.postgres import PROGRAMS, Postgres, open_postgres
from tests.service.running import Process, process

from benchmarks.service import bare, experiments, load

CLIENTS = 32
CORES = 2
QUIET = {"log-level": "warning"}
TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Milliseconds of processor time per decision, as of the processes that spent them."""

    service: float
    database: float
    client: float

    def most(self, processes: int) -> float:
        """Return how many decisions a second they can make; a process uses one core at a time."""
        alone = 1000.0 * processes / self.service
        return min(alone, 1000.0 * CORES / sum(self))


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
    before = [_spent(services), _spent(family), time.process_time()]
    count = run()
    after = [_spent(services), _spent(family), time.process_time()]
    return Cost(*(1000.0 * (b - a) / count for a, b in zip(before, after, strict=True)))


def measure() -> list[tuple[str, int, Cost]]:
    """Return the cost of decisions in several settings, with the number of processes."""
    found = []

    def decide(ports: list[int], paths: list[str], key: str) -> Callable[[], int]:
        load(ports, paths, key, CLIENTS)  # everything is loaded, all connections are open
        return lambda: len(load(ports, paths, key, CLIENTS, warm=0.0).times)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        service = stack.enter_context(process(folder, **QUIET))
        path = experiments(service, 1)
        running = stack.enter_context(bare(folder, keep=False))
        run = decide([running.port], path, service.key)
        found.append(("FastAPI that keeps nothing", 1, cost(run, [running.pid])))
        run = decide([service.port], path, service.key)
        found.append(("SQLite, one process", 1, cost(run, [service.pid])))
    if shutil.which(PROGRAMS) is None:
        return found
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(open_postgres(durable=True))
        database = server.new_database()
        services: list[Process] = []
        for count in (1, 2):
            services.append(stack.enter_context(process(folder, database, **QUIET)))
            time.sleep(3.0)  # until they know of each other
            path = experiments(services[0], 1)
            run = decide([one.port for one in services], path, services[0].key)
            spent = cost(run, [one.pid for one in services], server)
            found.append(
                (f"PostgreSQL, {('one process', 'two processes')[count - 1]}", count, spent)
            )
    return found


if __name__ == "__main__":
    print("| | service, ms | database, ms | client, ms | at most on two cores, a second |")
    print("|---|---|---|---|---|")
    for what, count, spent in measure():
        shown = " | ".join(f"{value:.2f}" for value in spent)
        print(f"| {what} | {shown} | {spent.most(count):,.0f} |", flush=True)

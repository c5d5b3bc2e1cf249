"""A service that starts with a million open events: ``python -m benchmarks.open_events``.

The events are decided by the service's own writer, in the default experiment, and none has
feedback; then the service is started as people start it. ``--events`` is how many there are.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.service.running import Process

import bandanna as bd
from bandanna.store import SqlStore, read_secret
from bandanna.store.rows import Event
from bandanna.store.unit_of_work import UnitOfWork
from bandanna.store.writer import Task, Writer
from benchmarks.timing import Row

DAY = 86_400.0
AT_ONCE = 10_000


def fill(folder: Path, experiment: str, count: int) -> None:
    """Decide for so many events, of which nobody sends feedback."""
    store = SqlStore(f"sqlite:///{folder}/service.db", read_secret(folder / "secret"))
    (part,) = store.experiments(experiment)
    writer = Writer(store)

    def deciding(k: int) -> Callable[[UnitOfWork, Event | None], Event]:
        return lambda unit, _: unit.decide(f"open-{k}")

    for begin in range(0, count, AT_ONCE):
        tasks = [Task(deciding(k), part.number) for k in range(begin, min(count, begin + AT_ONCE))]
        for answer in [writer.submit(task) for task in tasks]:
            answer.result()
    writer.close()
    store.close()


def memory(pid: int) -> float:
    """Return the megabytes that a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS"))
    return float(line.split()[1]) / 1024


def measure(count: int) -> list[Row]:
    """Start a service with so many open events."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service = Process(folder, **{"log-level": "warning"})
        service.start()
        with bd.Client(service.url, service.key) as client:
            settings = {"rounds": 10**7, "deadline_seconds": DAY}
            full = client.create("full", ["a", "b"], 1.0, **settings)
            other = client.create("other", ["a", "b"], 1.0, **settings)
        service.stop()
        fill(folder, full.id, count)
        began = time.perf_counter()
        service.start()
        ready = time.perf_counter() - began
        seconds = {}
        with bd.Client(service.url, service.key) as client:
            for which, made in (("another", other), ("the same", full)):
                bandit, began = client.experiment(made.id), time.perf_counter()
                decision = bandit.decide()
                seconds[which] = time.perf_counter() - began
                bandit.observe(decision, reward=1.0)
            began = time.perf_counter()
            client.experiment(full.id).observe(f"open-{count // 2}", reward=1.0)
            late = time.perf_counter() - began
            for k in range(500):
                client.experiment(full.id).observe(f"open-{k}", reward=1.0)
            used = memory(service.pid)
            assert client.experiment(full.id).show()["observed"] == 502
        service.stop()
    what = f"{count:,} open events"
    return [
        Row(f"{what}, start until it answers", f"{ready:.1f} s", "", True),
        *(
            Row(
                f"{what}, first decision of {name} experiment", f"{one:.2f} s", "below 1 s", one < 1
            )
            for name, one in seconds.items()
        ),
        Row(f"{what}, first feedback of an old event", f"{late:.2f} s", "below 1 s", late < 1),
        Row(f"{what}, memory", f"{used:.0f} MB", "below 400 MB", used < 400),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10**6)
    for row in measure(parser.parse_args().events):
        print(f"| {row.what} | {row.measured} | {row.promised} | {'yes' if row.holds else 'NO'} |")

"""What the decision service keeps up beside other work: ``python -m benchmarks.service_beside``.

Decisions, decisions with their rewards and rewards in bulk against FastAPI that keeps nothing, all
in one run, on SQLite and on PostgreSQL; decisions while pages are open and while a million releases
are read; ten thousand experiments; the first decision after a start. Names choose some of it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
from tests.postgres import PROGRAMS, open_postgres
from tests.service.running import Process, process

from bandanna.store import SqlStore, read_secret
from benchmarks.service import Measured, bare, experiments, load, pair, rewards_in_bulk
from benchmarks.timing import Row

QUIET = {"log-level": "warning"}
EXPERIMENTS = int(os.environ.get("BANDANNA_EXPERIMENTS", "10000"))
RELEASES = int(os.environ.get("BANDANNA_RELEASES", "1000000"))
PAGES = 20
TURNS = 5
"""How often loads that are compared take turns."""


def in_turns(*loads: Callable[[], Measured]) -> list[Measured]:
    """Apply loads one after the other, several times: machines have faster and slower minutes.

    Returns the median rate of each, and all its times.
    """
    found = list(zip(*([one() for one in loads] for _ in range(TURNS)), strict=True))
    return [
        Measured(
            statistics.median(turn.rate for turn in turns),
            [seconds for turn in turns for seconds in turn.times],
        )
        for turns in found
    ]


def _p99(found: Measured) -> float:
    return statistics.quantiles(found.times, n=100)[98]


def against_bare() -> list[Row]:
    """One process against an endpoint that keeps nothing, in the same run."""
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plain = stack.enter_context(bare(folder, keep=False))
        databases = {"SQLite": str(folder / "service.db")}
        if shutil.which(PROGRAMS) is not None:
            databases["PostgreSQL"] = stack.enter_context(
                open_postgres(durable=True)
            ).new_database()
        for name, database in databases.items():
            own = folder / name
            own.mkdir()
            with process(own, database, **QUIET) as service:
                path = experiments(service, 1)
                ports = [plain.port], [service.port]
                theirs, ours, pairs, bulk = in_turns(
                    *(partial(load, port, path, service.key, 32) for port in ports),
                    partial(load, [service.port], path, service.key, 32, what=pair),
                    partial(rewards_in_bulk, service.port, path[0], service.key),
                )
            share = ours.rate / theirs.rate
            cuts = statistics.quantiles(ours.times, n=100)
            spread = cuts[98] / cuts[49]
            shown = f"{share:.2f} ({ours.rate:,.0f} against {theirs.rate:,.0f} a second)"
            times = f"{spread:.1f} times ({1000 * cuts[49]:.1f} and {1000 * cuts[98]:.1f} ms)"
            what = f"{name}, 32 clients, durable, against FastAPI that keeps nothing"
            rows.append(Row(what, shown, "at least 0.4", share >= 0.4))
            rows.append(
                Row(f"{name}, 32 clients, p99 against p50", times, "at most 4", spread <= 4)
            )
            shown = f"{2 * pairs.rate / theirs.rate:.2f} ({pairs.rate:,.0f} pairs a second)"
            rows.append(Row(f"{name}, decisions with their rewards, requests", shown, "", True))
            shown = f"{bulk.rate / theirs.rate:.2f} ({bulk.rate:,.0f} a second)"
            rows.append(Row(f"{name}, rewards in bulk, 1,000 at once", shown, "", True))
    return rows


def _while(decide: Callable[[], Measured], *works: Callable[[threading.Event], None]) -> Measured:
    """Measure decisions while other things are done, each in a thread."""
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(stop,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        return decide()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _reader(service: Process, paths: list[str]) -> Callable[[threading.Event], None]:
    """Return someone who reads again and again."""

    def read(stop: threading.Event) -> None:
        headers = {"Authorization": f"Bearer {service.key}"}
        with httpx.Client(base_url=service.url, headers=headers, timeout=60) as http:
            while not stop.is_set():
                for path in paths:
                    http.get(path).raise_for_status()

    return read


def _page(service: Process, path: str) -> Callable[[threading.Event], None]:
    """Return an open page: it listens to what changes."""

    def listen(stop: threading.Event) -> None:
        headers = {"Authorization": f"Bearer {service.key}"}
        with (
            httpx.Client(base_url=service.url, headers=headers, timeout=60) as http,
            http.stream("GET", f"{path}/live") as lines,
        ):
            for _ in lines.iter_lines():
                if stop.is_set():
                    return

    return listen


def fill(folder: Path, count: int) -> None:
    """Give the first experiment of a service that is not running many releases."""
    with sqlite3.connect(folder / "service.db") as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            "INSERT INTO releases (experiment, batch, choice, size, value, released_at, sequence, "
            "step) SELECT 1, -i, i % 2, 10, '0.5', i, i - 1, '' FROM n",
            (count,),
        )


def beside_readers() -> list[Row]:
    """Decisions alone; beside open pages and a reader; beside whoever reads a million releases."""
    with tempfile.TemporaryDirectory() as name, process(Path(name), **QUIET) as service:
        decisions = experiments(service, 1)
        path = decisions[0].removesuffix("/decisions")
        service.kill()
        fill(Path(name), RELEASES)
        service.start()
        decide = partial(load, [service.port], decisions, service.key, 32)
        pages = [_page(service, path) for _ in range(PAGES)]
        reader = _reader(service, [f"{path}/privacy", "/v1/experiments"])
        alone, open_pages, results = in_turns(
            decide,
            partial(_while, decide, *pages, reader),
            partial(_while, decide, _reader(service, [f"{path}/results"])),
        )
    slower, kept = _p99(open_pages) / _p99(alone), results.rate / alone.rate
    shown = f"{kept:.2f} times ({alone.rate:,.0f} and {results.rate:,.0f} a second)"
    what = f"decisions while results of {RELEASES:,} releases are read, rate"
    return [
        Row(
            f"p99 with {PAGES} open pages and a reader against without",
            f"{slower:.2f} times",
            "at most 1.5",
            slower <= 1.5,
        ),
        Row(what, shown, "at least 0.9", kept >= 0.9),
    ]


def many_experiments() -> list[Row]:
    """A service with ten thousand experiments: its start, a page of the list, its memory."""
    with tempfile.TemporaryDirectory() as name, process(Path(name), **QUIET) as service:
        path = experiments(service, 1)
        service.stop()
        store = SqlStore(f"sqlite:///{name}/service.db", read_secret(Path(name) / "secret"))
        (first,) = store.experiments()
        for k in range(1, EXPERIMENTS):
            store.create([replace(first, id=f"exp_{k}", name=f"{k}")])
        store.close()
        begin = time.perf_counter()
        service.start()
        started = time.perf_counter() - begin
        headers = {"Authorization": f"Bearer {service.key}"}
        with httpx.Client(base_url=service.url, headers=headers, timeout=60) as http:
            times = []
            for _ in range(6):
                begin = time.perf_counter()
                http.get("/v1/experiments?limit=100").raise_for_status()
                times.append(1000 * (time.perf_counter() - begin))
            listed = statistics.median(times[1:])  # the first may find nothing in memory
            http.post(path[0], json={}).raise_for_status()
        status = Path(f"/proc/{service.pid}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
    many = f"{EXPERIMENTS:,} experiments"
    return [
        Row(f"start with {many}", f"{started:.1f} s", "under 3 s", started < 3),
        Row(f"a page of the list of {many}", f"{listed:.0f} ms", "under 100 ms", listed < 100),
        Row(f"memory with {many}", f"{memory:.0f} MB", "under 500 MB", memory < 500),
    ]


def cold_start() -> list[Row]:
    """The first decision after a start, in an experiment that was there before."""
    with tempfile.TemporaryDirectory() as name, process(Path(name), **QUIET) as service:
        path = experiments(service, 1)[0]
        headers = {"Authorization": f"Bearer {service.key}"}
        httpx.post(f"{service.url}{path}", json={}, headers=headers).raise_for_status()
        service.stop()
        begin = time.perf_counter()
        service.start()
        ready = time.perf_counter()
        httpx.post(f"{service.url}{path}", json={}, headers=headers, timeout=60).raise_for_status()
        first = time.perf_counter() - ready
    shown = f"{first:.2f} s (ready after {ready - begin:.1f} s)"
    return [Row("first decision after a start", shown, "under 1 s", first < 1)]


PARTS: dict[str, Callable[[], list[Row]]] = {
    "bare": against_bare,
    "readers": beside_readers,
    "many": many_experiments,
    "start": cold_start,
}


def rows(names: Iterable[str] = PARTS) -> list[Row]:
    """Return all rows, or some."""
    return [row for name in names for row in PARTS[name]()]


if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        for row in rows([name]):
            holds = "yes" if row.holds else "NO"
            print(f"| {row.what} | {row.measured} | {row.promised} | {holds} |", flush=True)

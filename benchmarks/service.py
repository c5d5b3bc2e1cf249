"""The decision service: its rate, its times, and what many experiments and events cost."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

import httpx
from tests.service.running import Process, free_port, process

import bandanna as bd
from benchmarks.timing import Row

SECONDS = 4.0
DAY = 86_400.0
EVENTS = int(os.environ.get("BANDANNA_EVENTS", "30000000"))
"""A month of a million decisions a day."""


class Measured(NamedTuple):
    """Requests a second, and the times of single ones."""

    rate: float
    times: list[float]


Post = Callable[[str, bytes], Awaitable[bytes]]
"""Posts a body to a path, over a connection that stays open; returns the body of the answer."""


async def _connected(port: int, key: str, work: Callable[[Post], Awaitable[None]]) -> None:
    """Do something with a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def post(path: str, body: bytes) -> bytes:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 20"), answer
        if b" 204 " in answer[:16]:
            return b""
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return await reader.readexactly(length)

    await work(post)
    writer.close()


async def decide(post: Post, path: str) -> None:
    """Ask for a decision."""
    await post(path, b"{}")


async def pair(post: Post, path: str) -> None:
    """Ask for a decision, and send its reward."""
    event = json.loads(await post(path, b"{}"))["event_id"]
    await post(f"{path.removesuffix('/decisions')}/events/{event}/reward", b'{"reward": 1}')


def load(
    ports: list[int],
    paths: list[str],
    key: str,
    clients: int,
    warm: float = 1.0,
    what: Callable[[Post, str], Awaitable[None]] = decide,
) -> Measured:
    """Let clients ask, as fast as they are answered, after a second that does not count."""

    async def run(seconds: float) -> list[float]:
        times: list[float] = []
        until = time.perf_counter() + seconds

        async def ask(k: int, post: Post) -> None:
            while (begin := time.perf_counter()) < until:
                await what(post, paths[k % len(paths)])
                times.append(time.perf_counter() - begin)

        jobs = (_connected(ports[k % len(ports)], key, partial(ask, k)) for k in range(clients))
        await asyncio.gather(*jobs)
        return times

    asyncio.run(run(warm))
    times = asyncio.run(run(SECONDS))
    return Measured(len(times) / SECONDS, times)


BLOCK, BLOCKS = 1_000, 20


def rewards_in_bulk(port: int, path: str, key: str, clients: int = 4) -> Measured:
    """Let clients send the rewards of decisions that were taken in blocks, each block at once."""
    times: list[float] = []
    began: list[float] = []
    ready = asyncio.Barrier(clients)

    async def send(k: int, post: Post) -> None:
        names = [f"{secrets.token_hex(8)}-{n}" for n in range(k, BLOCKS, clients)]
        for name in names:
            asked = {"block_id": name, "count": BLOCK}
            await post(f"{path}/block", json.dumps(asked).encode())
        await ready.wait()
        began.append(time.perf_counter())
        for name in names:
            lines = ({"event_id": f"{name}.{n}", "reward": n % 2} for n in range(BLOCK))
            body = "".join(json.dumps(line) + "\n" for line in lines).encode()
            begin = time.perf_counter()
            found = await post(f"{path.removesuffix('/decisions')}/rewards", body)
            times.append(time.perf_counter() - begin)
            assert found.count(b'"status": 204') == BLOCK, found[:200]

    async def run() -> float:
        await asyncio.gather(*(_connected(port, key, partial(send, k)) for k in range(clients)))
        return time.perf_counter()

    ended = asyncio.run(run())
    return Measured(BLOCK * BLOCKS / (ended - min(began)), times)


class Bare(NamedTuple):
    """A bare endpoint that runs."""

    port: int
    pid: int


@contextmanager
def bare(folder: Path, *, keep: bool = True) -> Iterator[Bare]:
    """Run the bare endpoint; it may keep nothing."""
    port = free_port()
    path = str(folder / "bare.db") if keep else ""
    command = [sys.executable, "-m", "benchmarks.bare_endpoint", path, str(port)]
    running = Popen(command)
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/healthz")
            break
        except httpx.TransportError:
            time.sleep(0.1)
    yield Bare(port, running.pid)
    running.terminate()
    running.wait()


def experiments(service: Process, count: int) -> list[str]:
    """Make experiments; returns the paths of their decisions."""
    with bd.Client(service.url, service.key) as client:
        options = {"rounds": 10**6, "deadline_seconds": DAY}
        made = [client.create(f"{k}", ["a", "b"], 0.2, **options).id for k in range(count)]
    return [f"/v1/experiments/{name}/decisions" for name in made]


def rates() -> list[Row]:
    """One process on SQLite against the bare endpoint, itself with one client, and many open."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        service = stack.enter_context(process(folder, **{"log-level": "warning"}))
        path = experiments(service, 1)
        plain = stack.enter_context(bare(folder))
        theirs = load([plain.port], path, service.key, 32)
        one = load([service.port], path, service.key, 1)
        many = load([service.port], path, service.key, 32)
        thousand = experiments(service, 1000)
        load([service.port], thousand, service.key, 1000)  # every one is open
        among = load([service.port], path, service.key, 32)
    cuts = statistics.quantiles(many.times, n=100)
    against, gained = many.rate / theirs.rate, many.rate / one.rate
    spread, cost = cuts[98] / cuts[49], many.rate / among.rate
    shown = f"{against:.2f} ({many.rate:,.0f} against {theirs.rate:,.0f} a second)"
    return [
        Row("32 clients against a bare endpoint, rate", shown, "at least 1", against >= 1),
        Row("32 clients against one, rate", f"{gained:.1f} times", "at least 3", gained >= 3),
        Row("p99 against p50, 32 clients", f"{spread:.1f} times", "below 10", spread < 10),
        Row("1 000 open experiments against one", f"{cost:.2f} times", "below 2", cost < 2),
    ]


def processor_seconds() -> float:
    """Return how long processors have been busy, all together."""
    fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    user, nice, system, _, _, irq, soft, _ = map(int, fields)
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


FILL = """
WITH RECURSIVE n(i) AS (SELECT {begin} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {end})
INSERT INTO events (id, owner, experiment, batch, position, arm, round, chance, made_at, state)
SELECT 'old-' || i, 1, 1, -1 - i / 20, i % 20, 0, i, 0.5, 0.0, 0 FROM n
"""


def a_month() -> list[Row]:
    """A store with a month of events: start after a crash, and decisions, against an empty one."""
    import sqlite3

    with tempfile.TemporaryDirectory() as name, process(Path(name)) as service:
        path = experiments(service, 1)
        before = load([service.port], path, service.key, 32)
        service.kill()
        with sqlite3.connect(Path(name) / "service.db") as connection:
            for begin in range(0, EVENTS, 10**6):
                connection.execute(FILL.format(begin=begin, end=min(EVENTS, begin + 10**6)))
                connection.commit()
        begin_at = time.perf_counter()
        service.start()
        started = time.perf_counter() - begin_at
        after = load([service.port], path, service.key, 32)
    ratio = after.rate / before.rate
    many = f"{EVENTS:,} events"
    return [
        Row(f"start after a crash, {many}", f"{started:.1f} s", "below 10 s", started < 10),
        Row(f"decisions with {many}, rate", f"{ratio:.2f} times", "at least 0.8", ratio >= 0.8),
    ]

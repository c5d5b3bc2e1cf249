"""Processes that share a database: each experiment is served by one of them.

A process that changes an experiment must know its newest state. If two took turns, each would
read again what the other had changed, which costs more than it gains. So every experiment has one
process that serves it, chosen by rendezvous hashing among those that are alive: no table of
assignments, and when a process comes or goes, only its own share moves. The other processes check
keys and requests, send what is asked to that process in groups, and pass its answers on.

Nothing depends on this but speed. The row lock and the version of an experiment protect it whoever
writes, so a process that cannot reach another does the work itself: everything that is sent is
named, and what was already done is not done twice. What is sent is encrypted with the secret that
processes share; what was sealed with another secret is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

import httpx
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from bandanna._core.types import JSON, BandannaError, DecisionError, InputError, StateFileError
from bandanna.store import ConflictError, Secret, SqlStore, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.guard import RestoredError
from bandanna.store.rows import Event, State
from bandanna.store.unit_of_work import NewFeedback, UnitOfWork
from bandanna.store.writer import OverloadedError, Task, UnknownError, about_event

PATH = "/peer"
ALIVE_SECONDS = 4.0
"""A process that has not been heard of for so long serves nothing."""

FORGET_SECONDS = 60.0
"""A process that has not been heard of for so long is deleted."""

MOST_TOGETHER, MOST_FLIGHTS, MOST_CHARACTERS = 200, 2, 4_000
"""Operations in one message; messages under way to one process; characters of one operation."""

PATIENCE = httpx.Timeout(5.0, connect=1.0)
ASKED, ANSWERED = "peer asks", "peer answers"
"""Where a sealed message may be read: an answer cannot be sent as a question."""

ERRORS: dict[str, type[BandannaError]] = {
    kind.__name__: kind
    for kind in (
        ConflictError,
        DecisionError,
        GoneError,
        InputError,
        OverloadedError,
        RestoredError,
        StoreUnavailableError,
        UnknownError,
    )
}


class LostPeerError(Exception):
    """Another process did not answer; whether it has done what was asked is not known."""


class Operation(NamedTuple):
    """What is asked about an event, as plain values."""

    kind: str
    """``decide``, ``observe``, ``give_up`` or ``activate``."""
    event: str
    owner: int | None
    """The experiment, by the number of its first segment; None if it is not known."""
    number: int | None = None
    """The segment in which to decide."""
    values: tuple[Any, ...] = ()
    defer: bool = False
    new: bool = False
    """Whether the id was made a moment ago, so that no such event can exist."""

    def task(self, clock: Callable[[], float]) -> Task[Event | None]:
        """Return what the writer does."""
        values = self.values
        if self.kind == "decide":

            def decide(unit: UnitOfWork, known: Event | None) -> Event | None:
                return known or unit.decide(self.event, *values, defer=self.defer, now=clock())

            return Task(decide, self.number, None if self.new else self.event)

        def work(unit: UnitOfWork, event: Event) -> None:
            if self.kind == "observe":
                unit.observe(event, NewFeedback(*values), now=clock())
            elif self.kind == "give_up":
                unit.give_up(event, now=clock())
            else:
                unit.activate(event, now=clock())

        return about_event(self.event, work, self.owner)


class Peers:
    """The processes that share a database, as one of them sees them.

    Parameters
    ----------
    store, secret
        What they share.
    address
        Where the others reach this one; None if it serves everything it is asked for itself.
    perform
        Does an operation in this process.
    """

    def __init__(
        self,
        store: SqlStore,
        secret: Secret,
        address: str | None,
        perform: Callable[[Operation], Awaitable[Event | None]],
    ) -> None:
        self.id = secrets.token_hex(16)
        self._store, self._secret, self._perform = store, secret, perform
        self._address = None if store.sqlite else address
        self._heard: dict[str, tuple[int, float]] = {}
        """The last beat of each process, and when it was heard first, by the monotonic clock."""
        self._links: dict[str, Link] = {}
        self._serving: dict[int, str] = {}
        """The process that serves an experiment, while the processes are the same."""
        self.forwarded = 0
        """Operations that other processes did for this one."""

    async def look(self) -> None:
        """Say that this process is alive, and see which others are."""
        if self._address is None:
            return
        rows = await run_in_threadpool(self._store.beat, self.id, self._address)
        now = time.monotonic()
        for one, (_, beat) in rows.items():
            if one not in self._heard or self._heard[one][0] != beat:
                self._heard[one] = beat, now
        self._heard = {one: heard for one, heard in self._heard.items() if one in rows}
        silent = {one: now - at for one, (_, at) in self._heard.items() if one != self.id}
        if gone := [one for one, seconds in silent.items() if seconds > FORGET_SECONDS]:
            await run_in_threadpool(self._store.leave, gone)
        alive = {one: rows[one][0] for one, s in silent.items() if s <= ALIVE_SECONDS}
        self._set_links(alive)

    def _set_links(self, alive: Mapping[str, str]) -> None:
        if alive.keys() != self._links.keys():
            self._serving = {}
        self._links = {
            one: self._links.get(one) or Link(address, self._secret)
            for one, address in alive.items()
        }

    def serves(self, experiment: int) -> bool:
        """Whether this process serves an experiment."""
        return self._server(experiment) == self.id

    def _server(self, experiment: int) -> str:
        if not self._links:
            return self.id
        if experiment not in self._serving:
            everyone = (self.id, *self._links)
            self._serving[experiment] = max(everyone, key=lambda one: _weight(one, experiment))
        return self._serving[experiment]

    def elsewhere(self, experiment: int) -> str | None:
        """Return the address of the process that serves an experiment, if it is another one."""
        link = self._links.get(self._server(experiment))
        return None if link is None else link.address

    async def ask(self, operation: Operation) -> Event | None:
        """Let the process do it that serves the experiment; raises if it did not answer."""
        if not self._links or len(json.dumps(operation)) > MOST_CHARACTERS:
            return await self._perform(operation)
        owner = operation.owner
        if owner is None:
            found = await run_in_threadpool(self._store.owners_of, operation.event)
            owner = found[0] if len(found) == 1 else None
        server = self.id if owner is None else self._server(owner)
        if server == self.id:
            return await self._perform(operation)
        named = operation._replace(new=False)
        try:
            answer = await self._links[server].send(named)
        except LostPeerError:
            self._links.pop(server, None)  # until it is heard of again
            self._serving = {}
            return await self._perform(named)
        self.forwarded += 1
        return answer

    async def answer(self, sealed: bytes) -> bytes:
        """Do what another process asks for."""
        try:
            asked = cast(JSON, self._secret.unseal(sealed, ASKED))["operations"]
        except (StateFileError, ValueError):
            raise HTTPException(401, "this was not sent by a process with our secret.") from None
        jobs = (self._perform(_operation(values)) for values in asked)
        found = await asyncio.gather(*jobs, return_exceptions=True)
        return self._secret.seal({"answers": [_said(one) for one in found]}, ANSWERED)

    async def close(self) -> None:
        """Tell the others, and end."""
        if self._address is not None:
            await run_in_threadpool(self._store.leave, [self.id])
        for link in self._links.values():
            await link.close()


class Link:
    """The way to another process: whatever waits together is sent together."""

    def __init__(self, address: str, secret: Secret) -> None:
        self.address = address
        self._http = httpx.AsyncClient(base_url=address, timeout=PATIENCE, trust_env=False)
        self._secret = secret
        self._waiting: list[tuple[Operation, asyncio.Future[Event | None]]] = []
        self._flights: set[asyncio.Task[None]] = set()

    async def send(self, operation: Operation) -> Event | None:
        """Send an operation; returns its answer."""
        answer: asyncio.Future[Event | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((operation, answer))
        self._pump()
        return await answer

    def _pump(self) -> None:
        while self._waiting and len(self._flights) < MOST_FLIGHTS:
            group = self._waiting[:MOST_TOGETHER]
            del self._waiting[:MOST_TOGETHER]
            flight = asyncio.create_task(self._fly(group))
            self._flights.add(flight)
            flight.add_done_callback(self._landed)

    def _landed(self, flight: asyncio.Task[None]) -> None:
        self._flights.discard(flight)
        self._pump()

    async def _fly(self, group: list[tuple[Operation, asyncio.Future[Event | None]]]) -> None:
        try:
            message = self._secret.seal({"operations": [one for one, _ in group]}, ASKED)
            answer = await self._http.post(PATH, content=message)
            answer.raise_for_status()
            said = cast(JSON, self._secret.unseal(answer.content, ANSWERED))["answers"]
            found = [_understood(one) for one in said]
        except (httpx.HTTPError, httpx.InvalidURL, StateFileError, ValueError, RuntimeError):
            found = [LostPeerError() for _ in group]
        for (_, future), one in zip(group, found, strict=True):
            if future.done():  # whoever asked has gone
                continue
            if isinstance(one, Exception):
                future.set_exception(one)
            else:
                future.set_result(one)

    async def close(self) -> None:
        """Let go of the connection."""
        await self._http.aclose()


def _weight(process: str, experiment: int) -> bytes:
    return hashlib.sha256(f"{process} {experiment}".encode()).digest()


def _operation(values: list[Any]) -> Operation:
    found = Operation(*values)
    return found._replace(values=tuple(found.values))


def _said(found: Event | BaseException | None) -> JSON:
    """Return an answer as plain values."""
    if isinstance(found, BandannaError):
        return {"error": type(found).__name__, "why": str(found)}
    if isinstance(found, BaseException):
        return {"error": "", "why": type(found).__name__}
    return {"event": found}


def _understood(said: JSON) -> Event | Exception | None:
    """Return an answer, or the error that it tells of."""
    if "error" in said:
        kind = ERRORS.get(said["error"])
        why = str(said["why"])
        return RuntimeError(f"another process failed: {why}") if kind is None else kind(why)
    if said["event"] is None:
        return None
    event = Event(*said["event"])
    return event._replace(state=State(event.state))

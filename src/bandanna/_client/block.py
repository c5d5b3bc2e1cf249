"""Decisions taken from the service in blocks, and used without asking it each time."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from . import calls
from .calls import JSON, Call, Decision

if TYPE_CHECKING:
    from .client import AsyncClient, Client

DEFAULT_COUNT = 100


class _Stock:
    """Decisions that were fetched and not used yet, and the names of those used since.

    Callers make sure that one request is under way at a time.
    """

    def __init__(
        self,
        path: str,
        count: int,
        segment: str | None,
        eligible: Iterable[str | int] | None,
    ) -> None:
        self._path, self._count = path, count
        self._asked: JSON = {} if segment is None else {"segment": segment}
        if eligible is not None:
            self._asked["eligible"] = list(eligible)
        self._left: deque[Decision] = deque()
        self.used: list[str] = []
        self.until = 0.0

    def ready(self) -> bool:
        """Whether a decision is left; those whose deadline is near are given to others."""
        if time.monotonic() >= self.until:
            self._left.clear()
        return bool(self._left)

    def take(self) -> Decision:
        """Return a decision, and note that it was used."""
        decision = self._left.popleft()
        self.used.append(decision.event_id)
        return decision

    def more(self) -> Call:
        """Return the request for more decisions, which also says what was used."""
        return self._call(self._count)

    def report(self) -> Call:
        """Return the request that only says what was used."""
        return self._call(0)

    def _call(self, count: int) -> Call:
        body = {"block_id": f"blk_{secrets.token_hex(12)}", "count": count, "used": self.used}
        return Call("POST", f"{self._path}/decisions/block", body | self._asked)

    def put(self, answer: JSON, began: float) -> None:
        """Add what a request that began at some time was answered."""
        self.used = []
        if answer["decisions"]:
            self._left.extend(map(calls.decision, answer["decisions"]))
            self.until = began + float(answer["use_within_seconds"])


class Block:
    """Decisions of one experiment, fetched many at a time; may be shared by threads.

    The service makes every decision, so the promise is the same as without. A decision counts once
    it was used: the client says so with its next request, or when the block is closed. If the
    program dies before, decisions that were used and got no feedback are taken for unused.

    Parameters
    ----------
    client
        The connection to the service.
    path
        Of the experiment.
    count
        Decisions in one request. They are drawn ahead of time, so feedback that came in between
        has not changed them: take a small part of the decisions of a deadline.
    segment, eligible
        As for ``decide``.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        count: int = DEFAULT_COUNT,
        *,
        segment: str | None = None,
        eligible: Iterable[str | int] | None = None,
    ) -> None:
        self._client = client
        self._stock = _Stock(path, count, segment, eligible)
        self._lock = threading.Lock()

    def decide(self) -> Decision:
        """Return a decision: at once, unless the block is used up."""
        with self._lock:
            if not self._stock.ready():
                self._run(self._stock.more())
            return self._stock.take()

    def flush(self) -> None:
        """Tell the service which decisions were used."""
        with self._lock:
            if self._stock.used:
                self._run(self._stock.report())

    def close(self) -> None:
        """Tell the service which decisions were used; the others are freed at their deadline."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, call: Call) -> None:
        began = time.monotonic()
        self._stock.put(self._client.run(call), began)


class AsyncBlock:
    """Decisions of one experiment, fetched many at a time; may be shared by tasks.

    The same as ``Block``, with methods that are awaited.

    Parameters
    ----------
    client
        The connection to the service.
    path
        Of the experiment.
    count
        Decisions in one request.
    segment, eligible
        As for ``decide``.
    """

    def __init__(
        self,
        client: AsyncClient,
        path: str,
        count: int = DEFAULT_COUNT,
        *,
        segment: str | None = None,
        eligible: Iterable[str | int] | None = None,
    ) -> None:
        self._client = client
        self._stock = _Stock(path, count, segment, eligible)
        self._lock = asyncio.Lock()

    async def decide(self) -> Decision:
        """Return a decision: at once, unless the block is used up."""
        async with self._lock:
            if not self._stock.ready():
                await self._run(self._stock.more())
            return self._stock.take()

    async def flush(self) -> None:
        """Tell the service which decisions were used."""
        async with self._lock:
            if self._stock.used:
                await self._run(self._stock.report())

    async def close(self) -> None:
        """Tell the service which decisions were used; the others are freed at their deadline."""
        await self.flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, call: Call) -> None:
        began = time.monotonic()
        self._stock.put(await self._client.run(call), began)

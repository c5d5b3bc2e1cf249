"""Decisions taken from the service in blocks, and used without asking it each time."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Self

from . import calls
from .calls import JSON, Call, Decision
from .waiting import at_once

DEFAULT_COUNT = 100


class Stock:
    """Decisions that were fetched and not used yet, and the names of those used since.

    Callers make sure that one request is under way at a time.

    Parameters
    ----------
    ask
        Sends a call to the service.
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
        ask: Callable[[Call], Awaitable[JSON]],
        path: str,
        count: int,
        segment: str | None,
        eligible: Iterable[str | int] | None,
    ) -> None:
        self._ask, self._path, self._count = ask, path, count
        self._asked: JSON = {} if segment is None else {"segment": segment}
        if eligible is not None:
            self._asked["eligible"] = list(eligible)
        self._left: deque[Decision] = deque()
        self.used: list[str] = []
        self.until = 0.0

    async def decide(self) -> Decision:
        """Return a decision, and note that it was used.

        Those whose deadline is near are given to others.
        """
        if time.monotonic() >= self.until:
            self._left.clear()
        if not self._left:
            await self._more(self._count)
        decision = self._left.popleft()
        self.used.append(decision.event_id)
        return decision

    async def flush(self) -> None:
        """Tell the service which decisions were used."""
        if self.used:
            await self._more(0)

    async def _more(self, count: int) -> None:
        """Ask for more decisions, and say what was used."""
        began = time.monotonic()
        body = {"block_id": f"blk_{secrets.token_hex(12)}", "count": count, "used": self.used}
        answer = await self._ask(Call("POST", f"{self._path}/decisions/block", body | self._asked))
        self.used = []
        if answer["decisions"]:
            self._left.extend(map(calls.decision, answer["decisions"]))
            self.until = began + float(answer["use_within_seconds"])


class Block:
    """Decisions of one experiment, fetched many at a time; may be shared by threads.

    The service makes every decision, so the promise is the same as without. A decision counts once
    it was used: the client says so with its next request, or when the block is closed. If the
    program dies before, decisions that were used and got no feedback are taken for unused.
    """

    def __init__(self, stock: Stock) -> None:
        self._stock, self._lock = stock, threading.Lock()

    def decide(self) -> Decision:
        """Return a decision: at once, unless the block is used up."""
        with self._lock:
            return at_once(self._stock.decide())

    def flush(self) -> None:
        """Tell the service which decisions were used."""
        with self._lock:
            at_once(self._stock.flush())

    def close(self) -> None:
        """Tell the service which decisions were used; the others are freed at their deadline."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncBlock:
    """Decisions of one experiment, fetched many at a time; may be shared by tasks.

    The same as ``Block``, with methods that are awaited.
    """

    def __init__(self, stock: Stock) -> None:
        self._stock, self._lock = stock, asyncio.Lock()

    async def decide(self) -> Decision:
        """Return a decision: at once, unless the block is used up."""
        async with self._lock:
            return await self._stock.decide()

    async def flush(self) -> None:
        """Tell the service which decisions were used."""
        async with self._lock:
            await self._stock.flush()

    async def close(self) -> None:
        """Tell the service which decisions were used; the others are freed at their deadline."""
        await self.flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

"""Decisions taken from the service in blocks, and used without asking it each time."""

from __future__ import annotations

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
    from .waiting import Client

DEFAULT_COUNT = 100


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
        self._client, self._path, self._count = client, path, count
        self._asked: JSON = {} if segment is None else {"segment": segment}
        if eligible is not None:
            self._asked["eligible"] = list(eligible)
        self._lock = threading.Lock()
        self._left: deque[Decision] = deque()
        self._used: list[str] = []
        self._until = 0.0

    def decide(self) -> Decision:
        """Return a decision: at once, unless the block is used up."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._left.clear()  # their deadline is near: the service gives them to others
            if not self._left:
                self._fetch(self._count)
            decision = self._left.popleft()
            self._used.append(decision.event_id)
            return decision

    def flush(self) -> None:
        """Tell the service which decisions were used."""
        with self._lock:
            if self._used:
                self._fetch(0)

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

    def _fetch(self, count: int) -> None:
        body = {"block_id": f"blk_{secrets.token_hex(12)}", "count": count, "used": self._used}
        began = time.monotonic()
        answer = self._client.run(Call("POST", f"{self._path}/decisions/block", body | self._asked))
        self._used = []
        if count:
            self._left.extend(calls.decision(one) for one in answer["decisions"])
            self._until = began + float(answer["use_within_seconds"])

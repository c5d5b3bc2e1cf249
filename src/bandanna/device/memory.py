"""What a device must not forget: the bits it drew, what was spent, every change of parameters."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from bandanna._core.documents import write_whole
from bandanna._core.types import JSON
from bandanna.device.release import demand


class Storage(Protocol):
    """Keeps one text. When ``write`` returns, the text survives the program."""

    def read(self) -> str | None:
        """Return what was written last, or None."""

    def write(self, text: str) -> None:
        """Keep a text in place of the one before."""


class MemoryStorage:
    """For tests, and for devices that are never switched off: forgets with the program."""

    def __init__(self) -> None:
        self._text: str | None = None

    def read(self) -> str | None:
        """Return what was written last, or None."""
        return self._text

    def write(self, text: str) -> None:
        """Keep a text in place of the one before."""
        self._text = text


class FileStorage:
    """A file that its owner alone can read. One program at a time may use it."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def read(self) -> str | None:
        """Return the file's content, or None when there is no file."""
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Write the file whole or not at all, and to the disk."""
        write_whole(self._path, text, private=True)


DAY = 86_400.0
NANO = 1e9
"""Budgets are kept in whole billionths."""

T = TypeVar("T")


class Budget(NamedTuple):
    """How much epsilon may be spent in each period of so many days."""

    epsilon: float
    days: float


class Memory:
    """A state that is read, changed and written as one step, before anything leaves."""

    def __init__(self, storage: Storage, budget: Budget, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._budget = budget
        self._clock = clock
        self._lock = threading.Lock()

    def change(self, work: Callable[[JSON, float], T]) -> T:
        """Let ``work`` change the state, given the time; nothing is changed if it refuses."""
        with self._lock:
            now = self._clock()
            period = math.floor(now / (self._budget.days * DAY))
            text = self._storage.read()
            fresh: JSON = {"period": period, "spent": 0, "events": {}, "history": []}
            state: JSON = fresh if text is None else json.loads(text)
            if period > state["period"]:  # a clock that was set back earns nothing
                state |= {"period": period, "spent": 0}
            events = state["events"].items()
            state["events"] = {key: event for key, event in events if event["forget_at"] >= now}
            result = work(state, now)
            text = json.dumps(state)
            self._storage.write(text)
            demand(self._storage.read() == text, "storage", "the storage keeps nothing")
            return result

    def charge(self, state: JSON, epsilon: float) -> None:
        """Spend from this period's budget, or refuse."""
        state["spent"] += math.ceil(epsilon * NANO)
        most = math.floor(self._budget.epsilon * NANO)
        demand(state["spent"] <= most, "budget", "the budget is spent")


def open_events(state: JSON) -> dict[str, JSON]:
    """Return the events whose bit still has to be sent."""
    return {key: event for key, event in state["events"].items() if "done" not in event}


def close_event(state: JSON, event_id: str) -> None:
    """Forget the bit of an event that was answered, but not the event."""
    event = state["events"].get(event_id)
    if event is not None:
        kept = {key: event[key] for key in ("send_at", "forget_at")}
        state["events"][event_id] = {**kept, "done": True}

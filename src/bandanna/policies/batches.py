"""Batches that wait for feedback, and what is remembered of those that closed."""

from __future__ import annotations

import hashlib
import secrets
from array import array

from bandanna.grid import UNITS

WAITING = -1


class Batch:
    """Rounds that share an arm: the one place where their losses live, until the batch closes."""

    __slots__ = ("arm", "importance", "losses", "number", "observed")

    def __init__(self, number: int, arm: int, importance: float) -> None:
        self.number = number
        self.arm = arm
        self.importance = importance
        self.losses = array("i")
        """Loss of each decided round in grid units, or ``WAITING``."""
        self.observed = 0

    def open_round(self) -> int:
        """Add a round and return its position."""
        self.losses.append(WAITING)
        return len(self.losses) - 1

    def erase(self) -> None:
        """Forget the losses."""
        self.losses = array("i")

    def total(self) -> int:
        """Return the sum of the losses, each clamped to the grid whatever was stored."""
        return sum(min(max(loss, 0), UNITS) for loss in self.losses)


class ClosedBatches:
    """Recognises feedback that is sent again after its batch closed, without keeping the losses.

    Of each loss only a keyed hash is kept, in memory, for the most recent decisions; the key is
    never written down.
    """

    def __init__(self, remember: int = 10_000) -> None:
        self._key = secrets.token_bytes(16)
        self._marks: dict[int, list[bytes]] = {}
        self._room = remember

    def add(self, batch: Batch) -> None:
        """Remember a batch that is about to be erased, and forget the oldest beyond the limit."""
        if len(batch.losses) > self._room:
            return
        self._marks[batch.number] = [
            self._mark(batch.number, position, loss) for position, loss in enumerate(batch.losses)
        ]
        while len(self._marks) * len(batch.losses) > self._room:
            del self._marks[next(iter(self._marks))]

    def matches(self, number: int, position: int, loss: int) -> bool | None:
        """Whether the loss is the one observed before; None if that has been forgotten."""
        marks = self._marks.get(number)
        if marks is None:
            return None
        return secrets.compare_digest(marks[position], self._mark(number, position, loss))

    def _mark(self, *parts: int) -> bytes:
        data = b"".join(part.to_bytes(8, "big") for part in parts)
        return hashlib.blake2b(data, key=self._key, digest_size=8).digest()

"""What is remembered of batches that closed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Literal

from bandanna._core.types import Decision, DecisionError

Verdict = Literal["same", "different", "given up", "forgotten"]

_GIVEN_UP, _UNCOUNTED = b"given up", b"uncounted"

_REFUSED: dict[Verdict, str] = {
    "different": (
        "has already been observed with another value; the first one stands. Neither is repeated "
        "here because feedback is private."
    ),
    "given up": (
        "was given up; its default loss stands, and feedback that came too late is not used."
    ),
    "forgotten": (
        "has been observed and its batch released; whether the value is the same can no longer be "
        "told. The first one stands."
    ),
}


def refusal(decision: Decision, verdict: Verdict) -> DecisionError:
    """Return the error for feedback that is not taken."""
    error = DecisionError(f"decision {decision.round} {_REFUSED[verdict]}")
    error.reason = verdict
    return error


class ClosedBatches:
    """Recognises feedback that is sent again after its batch closed, without keeping the losses.

    Of each loss only a keyed hash is kept, in memory, for the most recent decisions; the key is
    never written down.
    """

    def __init__(self, remember: int = 10_000) -> None:
        self._key = secrets.token_bytes(16)
        self._marks: dict[int, list[bytes]] = {}
        self._room = self._remember = remember

    def add(self, number: int, losses: Sequence[int], given_up: set[int]) -> None:
        """Remember a batch that is about to be erased, and forget the oldest beyond the limit.

        A negative loss is one whose counting was interrupted: any value is its repeat.
        """
        if len(losses) > self._remember or number in self._marks:
            return
        self._marks[number] = [
            _GIVEN_UP if position in given_up else self._mark(number, position, loss)
            for position, loss in enumerate(losses)
        ]
        self._room -= len(losses)
        while self._room < 0:
            self._room += len(self._marks.pop(next(iter(self._marks))))

    def compare(self, number: int, position: int, loss: int) -> Verdict:
        """Say whether the loss is the one observed before."""
        marks = self._marks.get(number)
        if marks is None or position >= len(marks):
            return "forgotten"
        if marks[position] in (_GIVEN_UP, _UNCOUNTED):
            return "given up" if marks[position] == _GIVEN_UP else "same"
        same = secrets.compare_digest(marks[position], self._mark(number, position, loss))
        return "same" if same else "different"

    def _mark(self, number: int, position: int, loss: int) -> bytes:
        if loss < 0:
            return _UNCOUNTED
        data = b"".join(part.to_bytes(8, "big") for part in (number, position, loss))
        return hashlib.blake2b(data, key=self._key, digest_size=8).digest()

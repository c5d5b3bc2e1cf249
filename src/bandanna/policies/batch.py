"""One open batch: the rounds that are released together."""

from __future__ import annotations

import math
from array import array

from bandanna.advice import Ticket, ticket_from_dict
from bandanna.grid import UNITS
from bandanna.privacy.release import Release, Tally
from bandanna.types import JSON

WAITING = -1
"""In place of a loss."""


class Batch:
    """Rounds that are released together."""

    __slots__ = (
        *("arms", "choice", "first", "given_up", "importance", "losses", "number", "size"),
        *("tally", "ticket", "waiting"),
    )

    def __init__(
        self, number: int, first: int, size: int, choice: int, importance: float, tally: Tally
    ) -> None:
        self.number = number
        self.first = first
        """Round of its first decision."""
        self.size = size
        self.choice = choice
        """Arm or expert it was opened with."""
        self.importance = importance
        self.tally = tally
        self.arms = array("l")
        """Arm chosen in each round."""
        self.losses = array("i")
        """Loss of each decided round in grid units, or ``WAITING``; only to recognise repeats."""
        self.waiting: dict[int, Ticket | None] = {}
        """Rounds without feedback, and what crediting them needs."""
        self.ticket: Ticket | None = None
        """Of the round counted last."""
        self.given_up: set[int] = set()

    @property
    def full(self) -> bool:
        """Whether all its rounds have been decided."""
        return len(self.losses) >= self.size

    @property
    def complete(self) -> bool:
        """Whether it can be released."""
        return self.full and not self.waiting

    def open_round(self, arm: int, ticket: Ticket | None) -> int:
        """Add a round and return its position; what an interrupt leaves behind is overwritten."""
        position = len(self.losses)
        self.waiting[position] = ticket
        del self.arms[position:]
        self.arms.append(arm)
        self.losses.append(WAITING)
        return position

    def to_dict(self) -> JSON:
        """Return everything, raw feedback included, as plain values."""
        return {
            "number": self.number,
            "first": self.first,
            "size": self.size,
            "choice": self.choice,
            "importance": self.importance,
            "arms": list(self.arms),
            "losses": [None if loss == WAITING else loss for loss in self.losses],
            "waiting": [
                [position, None if ticket is None else ticket.to_dict()]
                for position, ticket in self.waiting.items()
                if position < len(self.losses)
            ],
            "given_up": sorted(self.given_up),
            "tally": self.tally.to_dict(),
        }


def batch_from_dict(saved: JSON, release: Release, arms: int, experts: int | None) -> Batch:
    """Make a batch from what ``Batch.to_dict`` gave, refusing impossible ones."""
    losses = [WAITING if loss is None else int(loss) for loss in saved["losses"]]
    known = [loss for loss in losses if loss != WAITING]
    size = int(saved["size"])
    batch = Batch(
        int(saved["number"]),
        int(saved["first"]),
        size,
        int(saved["choice"]),
        float(saved["importance"]),
        release.resume(saved["tally"], known, size),
    )
    batch.losses = array("i", losses)
    batch.arms = array("l", (int(arm) for arm in saved["arms"]))
    batch.given_up = {int(position) for position in saved["given_up"]}
    for position, ticket in saved["waiting"]:
        batch.waiting[int(position)] = (
            None if ticket is None else ticket_from_dict(ticket, arms, experts or 0)
        )
    places = range(len(losses))
    good = (
        1 <= len(losses) <= size
        and len(batch.arms) == len(losses)
        and all(0 <= arm < arms for arm in batch.arms)
        and all(0 <= loss <= UNITS for loss in known)
        and all(place in places and losses[place] == WAITING for place in batch.waiting)
        and all(place in places and place not in batch.waiting for place in batch.given_up)
        and math.isfinite(batch.importance)
        and batch.first >= 0
    )
    if not good:
        raise ValueError(f"batch {batch.number} holds impossible values")
    return batch

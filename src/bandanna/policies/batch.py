"""One open batch: the rounds that are released together."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable

from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.types import JSON
from bandanna.policies.among import Among, Drawn
from bandanna.privacy.release import Release, Tally

WAITING = -1
"""In place of a loss."""


class Batch:
    """Rounds that are released together."""

    __slots__ = (
        *("among", "arms", "chance", "choice", "credited", "given_up", "importance", "losses"),
        *("number", "numbers", "size", "tally", "ticket", "used", "waiting"),
    )

    def __init__(self, number: int, size: int, drawn: Drawn, tally: Tally) -> None:
        self.number = number
        self.size = size
        self.used = size
        """Losses that its release counts; known once it closes."""
        self.choice = drawn.choice
        """Arm that it plays, or expert that it follows."""
        self.importance = drawn.importance
        self.credited = drawn.credited
        """Whose loss is learned; another than ``choice`` if what was drawn might not be played."""
        self.chance = drawn.chance
        """With which probability its arm is played, where that is known."""
        self.among: Among | None = None
        """The arms that all its rounds may be given; None: all arms there are."""
        self.tally = tally
        self.numbers = array("q")
        """Which decision of the policy each round is."""
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

    def count_used(self) -> int:
        """Return how many losses its release counts, default losses included."""
        return self.size

    @property
    def missed(self) -> int:
        """Rounds that nothing true was learned from: each may add one loss range to regret."""
        return len(self.given_up)

    def round_of(self, position: int) -> int:
        """Return which decision of the policy a round is."""
        return self.numbers[position]

    def open_round(
        self, number: int, arm: int, ticket: Ticket | None, person: int | None = None
    ) -> int:
        """Add a round and return its position; what an interrupt leaves behind is overwritten."""
        position = len(self.losses)
        self.waiting[position] = ticket
        del self.arms[position:], self.numbers[position:]
        self.arms.append(arm)
        self.numbers.append(number)
        self.losses.append(WAITING)
        return position

    def count(self, position: int, units: int) -> None:
        """Count a loss. From the first line on the round has its feedback.

        Interrupted after it, the loss is not counted; the batch still closes, and nothing is
        counted twice when the feedback is sent again.
        """
        self.ticket = ticket = self.waiting.pop(position)
        self.losses[position] = units
        self.tally.add(units, ticket)

    def give_up(self, position: int, units: int) -> None:
        """Count the default loss of a round without feedback."""
        self.given_up.add(position)
        self.count(position, units)

    def erase(self) -> None:
        """Forget all feedback but what the tally holds."""
        self.losses = array("i")

    def to_dict(self) -> JSON:
        """Return everything, raw feedback included, as plain values.

        A round that an interrupt kept from being decided is left out.
        """
        return {
            "number": self.number,
            "size": self.size,
            "choice": self.choice,
            "importance": self.importance,
            "numbers": list(self.numbers[: len(self.losses)]),
            "arms": list(self.arms[: len(self.losses)]),
            "losses": [None if loss == WAITING else loss for loss in self.losses],
            "waiting": [
                [position, None if ticket is None else ticket.to_dict()]
                for position, ticket in self.waiting.items()
                if position < len(self.losses)
            ],
            "given_up": sorted(self.given_up),
            "tally": self.tally.to_dict(),
        }


def fill_from_dict(
    batch: Batch,
    saved: JSON,
    release: Release,
    known: list[int],
    arms: int,
    decided: int,
    as_ticket: Callable[[JSON], Ticket],
) -> None:
    """Read what ``Batch.to_dict`` gave, refusing impossible values.

    ``known`` is what was counted so far, of ``decided`` rounds in all; ``as_ticket`` reads what
    crediting a round needs. After an interrupt a batch may be without rounds, and a round given up
    but not yet counted.
    """
    losses = [WAITING if loss is None else int(loss) for loss in saved["losses"]]
    batch.tally = release.resume(saved["tally"], known, batch.size)
    batch.losses = array("i", losses)
    batch.numbers = array("q", (int(number) for number in saved["numbers"]))
    batch.arms = array("l", (int(arm) for arm in saved["arms"]))
    batch.given_up = {int(position) for position in saved["given_up"]}
    for position, ticket in saved["waiting"]:
        batch.waiting[int(position)] = None if ticket is None else as_ticket(ticket)
    places = range(len(losses))
    good = (
        len(batch.arms) == len(batch.numbers) == len(losses)
        and all(0 <= number < decided for number in batch.numbers)
        and all(0 <= arm < arms for arm in batch.arms)
        and all(loss == WAITING or 0 <= loss <= UNITS for loss in losses)
        and len(known) <= batch.size
        and all(place in places and losses[place] == WAITING for place in batch.waiting)
        and all(place in places for place in batch.given_up)
        and 0.0 <= batch.importance < math.inf
    )
    if not good:
        raise ValueError(f"batch {batch.number} holds impossible values")

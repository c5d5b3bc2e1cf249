"""The ledger: open batches and their losses, what is known of closed ones, and who may be credited.

With the release's tallies it is the only keeper of losses. Every change is ordered so that an
interrupt at any moment counts no loss twice, leaves no loss without its noise and gives no
identity out twice; ``tests/policies/test_interrupts.py`` stops it everywhere.
"""

from __future__ import annotations

import secrets
from array import array

from bandanna.policies.batch import WAITING, Batch, batch_from_dict
from bandanna.policies.closed import ClosedBatches, Verdict
from bandanna.privacy.release import Release, Released
from bandanna.types import JSON, Decision, DecisionError


class Ledger:
    """Batches of one policy, from the first decision to the last release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.identity = secrets.token_hex(8)
        self.open: dict[int, Batch] = {}
        self.current: Batch | None = None
        self.batches = 0
        """Batches begun."""
        self.decided = 0
        """Rounds of batches before the current one."""
        self.closed = ClosedBatches()
        self.released = 0
        self._issuers: list[tuple[str, int, int]] = [(self.identity, 0, 0)]
        """Identities so far, each with the batch and position it begins at."""

    # --- deciding -------------------------------------------------------------------------

    def room(self) -> Batch | None:
        """Return the batch that has room for a round, if there is one."""
        batch = self.current
        return None if batch is None or batch.full else batch

    def begin(self, choice: int, importance: float, size: int) -> Batch:
        """Open a batch. Its number is used up first, so that no interrupt gives it out twice."""
        number, first = self.batches, self.rounds
        self.batches = number + 1
        tally = self.release.start(size)
        self.decided, self.current = first, None
        self.open[number] = batch = Batch(number, first, size, choice, importance, tally)
        self.current = batch
        return batch

    @property
    def rounds(self) -> int:
        """Decisions made so far."""
        current = self.current
        return self.decided if current is None else current.first + len(current.losses)

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        return sum(len(batch.waiting) for batch in self.open.values())

    # --- feedback -------------------------------------------------------------------------

    def take(self, decision: Decision, units: int) -> Batch | None:
        """Count a loss, once; returns its batch if that is now complete."""
        batch = self._find(decision)
        position = decision.position
        if batch is None:
            verdict = self.closed.compare(decision.batch, position, units)
        elif position in batch.given_up:
            verdict = "given up"
        elif position in batch.waiting:
            _count(batch, position, units)
            verdict = "same"
        else:
            verdict = "same" if batch.losses[position] in (units, WAITING) else "different"
        if verdict != "same":
            raise _refusal(decision, verdict)
        return batch if batch is not None and batch.complete else None

    def give_up(self, decision: Decision, units: int) -> Batch | None:
        """Count the default loss of a decision without feedback; with feedback, change nothing.

        Whether feedback had come is all that could show, never what it was.
        """
        batch = self._find(decision)
        if batch is not None and decision.position in batch.waiting:
            batch.given_up.add(decision.position)
            _count(batch, decision.position, units)
        return batch if batch is not None and batch.complete else None

    def close(self, batch: Batch) -> Released:
        """Take a full batch out of reach and only then release it.

        The batch is gone before it is released: whatever fails, here or later, cannot bring the
        same losses to a second release. If the release fails, nothing is learned from it, and the
        error does not carry the sum along in its traceback.
        """
        self.closed.add(batch.number, batch.losses, batch.given_up)
        if self.current is batch:
            self.decided, self.current = batch.first + len(batch.losses), None
        del self.open[batch.number]
        batch.losses = array("i")
        self.released += 1
        try:
            return batch.tally.publish()
        except BaseException as error:
            raise error.with_traceback(None) from None

    def _find(self, decision: Decision) -> Batch | None:
        """Return the open batch of a decision, or None if it has closed."""
        place = decision.batch, decision.position
        issuer = self._issuers[0][0]
        for identity, *begin in self._issuers:
            if place >= tuple(begin):
                issuer = identity
        if decision.policy != issuer:
            raise DecisionError(f"decision {decision.round} {self._stranger(decision)}")
        batch = self.open.get(decision.batch)
        size = decision.position + 1 if batch is None else len(batch.losses)
        if (
            not 0 <= decision.batch < self.batches
            or not 0 <= decision.position < size
            or (batch is not None and not _belongs(decision, batch))
        ):
            raise DecisionError(f"decision {decision.round} was never made by this policy.")
        return batch

    def _stranger(self, decision: Decision) -> str:
        if decision.policy in (identity for identity, *_ in self._issuers):
            return (
                "was made after the file was saved that this policy was loaded from; its feedback "
                "cannot be credited."
            )
        return f"was made by another policy ({decision.policy}); this one is {self.identity}."

    # --- files ----------------------------------------------------------------------------

    def to_dict(self, *, batches: bool = True) -> JSON:
        """Return everything, as plain values; open batches hold raw feedback."""
        here = self.open.values() if batches else ()
        return {
            "issuers": [list(issuer) for issuer in self._issuers],
            "batches": self.batches,
            "rounds": self.rounds,
            "released": self.released,
            "current": None if self.current is None else self.current.number,
            "open_batches": [batch.to_dict() for batch in here],
        }

    def load(
        self, saved: JSON, choices: int, arms: int, experts: int | None, *, latest: bool = False
    ) -> None:
        """Go on from what ``to_dict`` gave, checking every value anew.

        What is decided from here on has a new identity: the rounds that follow may have been
        given out before, after the file was saved, and their feedback must not be credited here.
        Only whoever records every decision before giving it out knows that this is the ``latest``
        state, and keeps the identity.
        """
        self.batches, self.decided = int(saved["batches"]), int(saved["rounds"])
        self.released = int(saved["released"])
        for entry in saved["open_batches"]:
            batch = batch_from_dict(entry, self.release, arms, experts)
            if not 0 <= batch.number < self.batches or batch.number in self.open:
                raise ValueError(f"batch {batch.number} is one too many")
            if not 0 <= batch.choice < choices:
                raise ValueError(f"batch {batch.number} holds impossible values")
            self.open[batch.number] = batch
        current = saved["current"]
        self.current = None if current is None else self.open[int(current)]
        if self.rounds != int(saved["rounds"]) or not 0 <= self.released <= self.batches:
            raise ValueError("its counts do not fit together")
        here = self.room()
        begin = (self.batches, 0) if here is None else (here.number, len(here.losses))
        issuers = [(str(name), int(batch), int(place)) for name, batch, place in saved["issuers"]]
        if latest:
            self.identity, self._issuers = issuers[-1][0], issuers
        else:
            self._issuers = [*issuers, (self.identity, *begin)]


def _count(batch: Batch, position: int, units: int) -> None:
    """Count a loss. From the first line on the round has its feedback.

    Interrupted after it, the loss is not counted; the batch still closes, and nothing is counted
    twice when the feedback is sent again.
    """
    batch.ticket = ticket = batch.waiting.pop(position)
    batch.losses[position] = units
    batch.tally.add(units, ticket)


def _refusal(decision: Decision, verdict: Verdict) -> DecisionError:
    error = DecisionError(f"decision {decision.round} {_REFUSED[verdict]}")
    error.reason = verdict
    return error


def _belongs(decision: Decision, batch: Batch) -> bool:
    position = decision.position
    return batch.arms[position] == decision.index and decision.round == batch.first + position


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

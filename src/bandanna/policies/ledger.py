"""The ledger: open batches and their losses, what is known of closed ones, and who may be credited.

With the release's tallies it is the only keeper of losses. Every change is ordered so that an
interrupt at any moment counts no loss twice, leaves no loss without its noise and gives no
identity out twice; ``tests/policies/test_interrupts.py`` stops it everywhere.
"""

from __future__ import annotations

import secrets

from bandanna._core.types import Decision, DecisionError, InputError, without_frames
from bandanna.policies.among import Among, Drawn
from bandanna.policies.batch import WAITING, Batch
from bandanna.policies.closed import ClosedBatches, refusal
from bandanna.policies.issuers import Issuers
from bandanna.policies.people import People
from bandanna.policies.places import PlacesBatch
from bandanna.policies.short import rescaled
from bandanna.privacy.reading import Told
from bandanna.privacy.release import Release, Released


class Ledger:
    """Batches of one policy, from the first decision to the last release."""

    def __init__(self, release: Release, people: People | None = None) -> None:
        self.release = release
        self.people = people
        self.identity = secrets.token_hex(8)
        self.open: dict[int, Batch] = {}
        self.rooms: dict[Among | None, Batch] = {}
        """The batch that fills with rounds of the same eligible arms; None stands for all arms."""
        self.batches = 0
        """Batches begun."""
        self.rounds = 0
        """Decisions made so far."""
        self.played: dict[int, int] = {}
        """How many of them each arm, or expert, was given: public, as decisions are."""
        self.restricted = False
        """Whether some batch was among some arms: the promise assumes that these are public, and
        someone may have several open places."""
        self.mixed = False
        """Whether someone with an open place came with other eligible arms than it was drawn among:
        no bound on regret is known then."""
        self.overlapped = False
        """Whether a batch began while another was open: bounds for feedback in order say nothing
        then."""
        self.missed_before = 0
        """What ``missed`` counts, of closed batches."""
        self.closed = ClosedBatches()
        self.released = 0
        self.told: dict[int, Told] = {}
        """What was released of each arm, or expert, that batches were opened with: public."""
        self.issuers = Issuers(self.identity)

    # --- deciding -------------------------------------------------------------------------

    def room(self, among: Among | None = None) -> Batch | None:
        """Return the batch that has room for a round among these arms, if there is one.

        Which batch a round is in depends on the arms that are eligible, never on what was drawn:
        so every arm's loss in a batch is one number, whichever is played.
        """
        batch = self.rooms.get(among)
        return None if batch is None or batch.full else batch

    def room_for(self, person: int, among: Among | None = None) -> Batch | None:
        """Return the batch a person's next round is in, if it is open: theirs, or one with room.

        Theirs is the newest in which their place is open and whose arm is eligible.
        """
        assert self.people is not None, "there is no rule for people"
        last = self.people.batches.get(person)
        if last is not None and person in last.open_places and last.among != among:
            self.mixed = True
        if last is not None and _welcomes(last, person, among):
            return last
        if self.restricted:
            for batch in reversed(self.open.values()):
                if isinstance(batch, PlacesBatch) and person in batch.open_places:
                    self.mixed = self.mixed or batch.among != among
                    if _welcomes(batch, person, among):
                        return batch
        return self.room(among)

    def sealed(self, among: Among | None = None) -> Batch | None:
        """Return the batch that waits for nothing but the next decision to be released.

        So many rounds were in none of its places that it takes no more people.
        """
        batch = self.rooms.get(among)
        return batch if batch is not None and batch.complete else None

    def next_round(self, choice: int) -> int:
        """Return which decision the next one is, of an arm or expert: used up before it is made."""
        number = self.rounds
        self.rounds = number + 1
        self.played[choice] = self.played.get(choice, 0) + 1
        return number

    def known_as(self, person: object) -> int:
        """Return the keyed hash of a person."""
        if self.people is None:
            raise InputError(
                "this policy protects rounds and knows no persons; make it with per_person=, the "
                "places each may have, or leave out person=."
            )
        return self.people.known_as(person)

    def begin(self, drawn: Drawn, size: int, among: Among | None = None) -> Batch:
        """Open a batch. Its number is used up first, so that no interrupt gives it out twice."""
        number = self.batches
        self.batches = number + 1
        batch = self.new_batch(number, size, drawn)
        batch.among = among
        self.restricted = self.restricted or among is not None
        self.overlapped = self.overlapped or bool(self.open)
        self.open[number] = batch
        self.rooms[among] = batch
        return batch

    def new_batch(self, number: int, size: int, drawn: Drawn) -> Batch:
        """Return an empty batch, of places if there is a rule for people."""
        tally = self.release.start(size)
        if self.people is None:
            return Batch(number, size, drawn, tally)
        return PlacesBatch(self.people, number, size, drawn, tally)

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        # A copy, made in one step: others may decide meanwhile. ``repr`` must not wait for a lock.
        return sum(len(batch.waiting) for batch in list(self.open.values()))

    @property
    def missed(self) -> int:
        """Rounds and places that were played and that nothing true was learned from.

        Rounds given up; places beyond a person's cap or with a round given up; and rounds in no
        place. Each may add one loss range to regret.
        """
        return self.missed_before + sum(batch.missed for batch in list(self.open.values()))

    def join(self, before: Ledger) -> None:
        """Take what only memory knows from an earlier state, which is used no more."""
        self.closed = before.closed
        if self.people is not None and before.people is not None:
            self.people.join(before.people)

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
            batch.count(position, units)
            verdict = "same"
        else:
            verdict = "same" if batch.losses[position] in (units, WAITING) else "different"
        if verdict != "same":
            raise refusal(decision, verdict)
        return batch if batch is not None and batch.complete else None

    def give_up(self, decision: Decision, units: int) -> Batch | None:
        """Count the default loss of a decision without feedback; with feedback, change nothing.

        Whether feedback had come is all that could show, never what it was.
        """
        batch = self._find(decision)
        if batch is not None and decision.position in batch.waiting:
            batch.give_up(decision.position, units)
        return batch if batch is not None and batch.complete else None

    def owner_of(self, decision: Decision) -> int:
        """Return the person whose place a decision belongs to, in an open batch."""
        batch = self._find(decision)
        if not isinstance(batch, PlacesBatch) or not batch.owners:
            raise DecisionError("this decision belongs to no open place.")
        return batch.owners[decision.position].person

    def finish(self, person: int) -> list[Batch]:
        """Close the open places of a person; returns the batches that are now complete."""
        theirs = [
            batch
            for batch in self.open.values()
            if isinstance(batch, PlacesBatch) and person in batch.places
        ]
        if not theirs:
            raise DecisionError(
                "this person has no place in an open batch: they were never decided for, or their "
                "batch has been released."
            )
        for batch in theirs:
            batch.finish(person)
        return [batch for batch in theirs if batch.complete]

    def close(self, batch: Batch) -> Released | None:
        """Take a full batch out of reach and only then release it; None if nothing counts in it.

        The batch is gone before it is released: whatever fails, here or later, cannot bring the
        same losses to a second release. If the release fails, nothing is learned from it, and the
        error does not carry the sum along in its traceback.
        """
        self.closed.add(batch.number, batch.losses, batch.given_up)
        if self.rooms.get(batch.among) is batch:
            del self.rooms[batch.among]
        self.missed_before += batch.missed
        batch.used = batch.count_used()
        del self.open[batch.number]
        batch.erase()
        if batch.used == 0:
            return None
        self.released += 1
        batch.tally.fill(batch.size - batch.used)
        try:
            released = batch.tally.publish()
        except BaseException as error:
            raise without_frames(error) from None
        if isinstance(released, float):
            so_far = self.told.get(batch.choice, Told())
            mean = rescaled(released, batch.size, batch.used)
            self.told[batch.choice] = so_far.and_also(mean, batch.used)
        return released

    def _find(self, decision: Decision) -> Batch | None:
        """Return the open batch of a decision, or None if it has closed."""
        if decision.policy != self.issuers.issuer_of(decision.batch, decision.position):
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

    def issued_by(self, identity: str) -> bool:
        """Whether an identity is, or was, this ledger's."""
        return identity in self.issuers

    def _stranger(self, decision: Decision) -> str:
        if decision.policy in self.issuers:
            return (
                "was made after the file was saved that this policy was loaded from; its feedback "
                "cannot be credited."
            )
        return f"was made by another policy ({decision.policy}); this one is {self.identity}."


def _welcomes(batch: PlacesBatch, person: int, among: Among | None) -> bool:
    return person in batch.open_places and (among is None or batch.choice in among)


def _belongs(decision: Decision, batch: Batch) -> bool:
    position = decision.position
    return batch.arms[position] == decision.index and decision.round == batch.round_of(position)

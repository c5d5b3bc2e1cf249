"""A policy from the rows that a store keeps, and back: batches, their rounds, people's slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from bandanna._core.advice import Ticket
from bandanna._core.types import JSON, StateFileError
from bandanna.loading import from_dict
from bandanna.policy.base import BasePolicy
from bandanna.policy.codec import phase_to_dict
from bandanna.policy.facade import DAMAGE
from bandanna.policy.state import KEY_BYTES, WAITING, Batch
from bandanna.policy.state import State as PolicyState
from bandanna.store.rows import (
    Event,
    EventState,
    Experiment,
    Feedback,
    Location,
    OpenBatch,
    Snapshot,
)


@contextmanager
def reading(experiment: Experiment) -> Iterator[None]:
    """Say of what cannot be read only whose it is, and no content."""
    try:
        yield
    except DAMAGE as error:
        raise StateFileError(
            f"what the database holds of {experiment.id} is damaged: {type(error).__name__}."
        ) from None


HASHED_BEFORE = bytes(KEY_BYTES).hex()
"""The policy's key for persons. Whoever has a store hashes them with its secret before they get
here, so a key beside the hashes would protect nobody: this one is no secret."""


def assemble(saved: Snapshot) -> tuple[BasePolicy, dict[Location, Event]]:
    """Return the policy, checked anew, and for each position that was read whose it is."""
    with reading(saved.experiment):
        opened, holders = by_number(saved.batches, saved.events, saved.feedback)
        head = saved.experiment.head
        data = head | {"open_batches": [opened[number] for number in sorted(opened)]}
        if data["people"] is not None:
            data["people"] = {"key": HASHED_BEFORE, "slots": by_count(saved.people)}
        counters = head["counters"]
        resumed = counters["resumed"] + saved.experiment.resumed
        data["counters"] = counters | {"resumed": resumed}
        return from_dict(data, latest=True), holders


class OpenBatches(dict[int, Batch]):
    """The open batches of a policy: those that were used last, others are read when asked for.

    Iterating yields those in memory; their number is that of all.
    """

    def __init__(
        self, here: Mapping[int, Batch], count: int, read: Callable[[int], Batch | None]
    ) -> None:
        super().__init__(here)
        self._elsewhere, self._read = count - len(here), read
        self._closed: set[int] = set()
        """Those that closed in this transaction: the store has them until it ends."""

    def __len__(self) -> int:
        return super().__len__() + self._elsewhere

    def __bool__(self) -> bool:
        return len(self) > 0

    def __missing__(self, number: int) -> Batch:
        batch = None if number in self._closed else self._read(number)
        if batch is None:
            raise KeyError(number)
        self._elsewhere -= 1
        self[number] = batch
        return batch

    def __delitem__(self, number: int) -> None:
        super().__delitem__(number)
        self._closed.add(number)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.get(number) is not None

    def get(  # type: ignore[override]
        self, number: int, default: Batch | None = None
    ) -> Batch | None:
        """Return an open batch, or the default if there is none of this number."""
        try:
            return self[number]
        except KeyError:
            return default

    def forget(self, kept: Iterable[int], most: int) -> None:
        """Begin a transaction with some batches and so many others: those that came last."""
        self._closed.clear()
        here, always = list(self), set(kept)
        for number in here[: max(0, len(here) - most)]:
            if number not in always:
                super().__delitem__(number)
                self._elsewhere += 1


MOST_BATCHES = 256
"""Open batches that stay in memory after a transaction."""


def without_batches(experiment: Experiment) -> BasePolicy:
    """Return the policy without its open batches and its people: for those who read, not decide."""
    head = experiment.head | {"counters": experiment.head["counters"] | {"filling": []}}
    return assemble(Snapshot(replace(experiment, head=head), [], [], [], {}))[0]


def by_number(
    batches: list[OpenBatch], events: list[Event], feedback: list[Feedback]
) -> tuple[dict[int, JSON], dict[Location, Event]]:
    """Return what ``batch_to_dict`` would of batches, and for each position whose it is.

    The event that holds a position is one that is not void, if there is one.
    """
    holders: dict[Location, Event] = {}
    for event in events:
        if event.location not in holders or event.state is not EventState.VOID:
            holders[event.location] = event
    theirs: dict[int, list[Event]] = {batch.number: [] for batch in batches}
    for location in sorted(holders):
        theirs[location[0]].append(holders[location])
    given = {(row.batch, row.position): row for row in feedback}
    opened = {one.number: _values(one, theirs[one.number], given) for one in batches}
    return opened, holders


def _values(batch: OpenBatch, events: list[Event], feedback: dict[Location, Feedback]) -> JSON:
    if [event.position for event in events] != list(range(len(events))):
        raise ValueError("a position is missing")
    nothing = Feedback(batch.number, 0, None, given_up=False)
    rows = [feedback.get(event.location, nothing) for event in events]
    waiting = [
        [position, row.ticket]
        for position, row in enumerate(rows)
        if row.loss is None and not row.given_up and (row.slot is None or row.slot["joined"])
    ]
    return batch._asdict() | {
        **batch.tally["drawn"],
        "tally": batch.tally["tally"],
        "numbers": [event.round for event in events],
        "arms": [event.arm for event in events],
        "losses": [row.loss for row in rows],
        "waiting": waiting,
        "given_up": [position for position, row in enumerate(rows) if row.given_up],
        "metrics": [[k, row.metrics] for k, row in enumerate(rows) if row.metrics],
        "before": [[k, row.before] for k, row in enumerate(rows) if row.before is not None],
        "sent": [[k, row.sent] for k, row in enumerate(rows) if row.sent is not None],
        "counted": [
            [position, row.ticket]
            for position, row in enumerate(rows)
            if row.ticket is not None and row.loss is not None
        ],
        **_slots(rows),
    }


def _slots(rows: list[Feedback]) -> JSON:
    """Return the slots of a batch's rounds, where persons have slots."""
    kept = [row.slot for row in rows if row.slot is not None]
    owners = [one["person"] for one in kept]
    rounds: dict[str, list[int]] = {owner: [] for owner in owners}
    for position, one in enumerate(kept):
        if one["joined"]:
            rounds[one["person"]].append(position)
    firsts = {person: kept[positions[0]]["stands"] for person, positions in rounds.items()}
    return {
        "owners": owners,
        "slots": [
            [person, counts, rounds[person], counted]
            for person, (counts, _, counted) in firsts.items()
        ],
        "open_slots": [person for person, (_, is_open, _) in firsts.items() if is_open],
        "unused": sum(not one["joined"] for one in kept),
    }


def by_count(people: dict[str, int]) -> dict[str, list[str]]:
    """Return persons by the number of slots they have had."""
    names: dict[str, list[str]] = {}
    for person, slots in people.items():
        names.setdefault(str(slots), []).append(person)
    return names


def tally_of(batch: Batch) -> JSON:
    """Return what is kept of a batch beside single rounds."""
    drawn: JSON = {"credited": batch.credited, "chance": batch.chance, "among": batch.among}
    if batch.raw:
        drawn["raw"] = True
    if batch.phase is not None:
        drawn["phase"] = phase_to_dict(batch.phase)
    tally = batch.tally
    return {"drawn": drawn, "tally": tally.opened_with() if tally.from_rounds else tally.to_dict()}


def batch_row(batch: Batch) -> OpenBatch:
    """Return what is kept of an open batch."""
    return OpenBatch(batch.number, batch.size, batch.choice, batch.importance, tally_of(batch))


def feedback_row(batch: Batch, position: int, ticket: Ticket | None) -> Feedback | None:
    """Return what is kept of one position, or None if there is nothing yet."""
    loss, slot = batch.losses[position], None
    known = position in batch.given_up or position in batch.before
    if batch.slots is not None:
        slot = _slot_of(batch, position)
    elif loss == WAITING and ticket is None and not known:
        return None
    return Feedback(
        batch.number,
        position,
        None if loss == WAITING else loss,
        position in batch.given_up,
        None if ticket is None else ticket.to_dict(),
        list(batch.metrics[position]) if position in batch.metrics else None,
        slot,
        batch.before.get(position),
        batch.sent.get(position),
    )


def _slot_of(batch: Batch, position: int) -> JSON:
    """Return whose slot a round is in; with its first round, how the slot stands."""
    owner = batch.owners[position]
    kept: JSON = {"person": f"{owner.person:016x}", "joined": position in owner.rounds}
    if owner.rounds[:1] == [position]:
        kept["stands"] = [owner.counts, owner.person in batch.open_slots, owner.counted]
    return kept


def waits(state: PolicyState, location: Location) -> bool:
    """Whether the feedback of a round has not come."""
    batch = state.open.get(location[0])
    return batch is not None and location[1] in batch.waiting


def begins_slot(state: PolicyState, location: Location) -> bool:
    """Whether a round is the first of a person's slot that is still open."""
    batch = state.open.get(location[0])
    if batch is None or location[1] >= len(batch.owners):
        return False
    owner = batch.owners[location[1]]
    return owner.person in batch.open_slots and owner.rounds[:1] == [location[1]]


def with_slot(opened: Mapping[int, Batch], location: Location) -> list[Location]:
    """Return a position, and where the slot begins that it is in, whose row says how it stands.

    Nothing is returned of a batch that is open no more.
    """
    number, position = location
    if number not in opened:
        return []
    slots = opened[number].owners[position : position + 1]
    firsts = (slot.rounds[0] for slot in slots if position in slot.rounds)
    return [location, *((number, at) for at in firsts)]

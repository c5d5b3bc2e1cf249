"""What a store keeps: experiments, events, open batches, feedback that waits, releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from bandanna._core.types import JSON

Location = tuple[int, int]
"""A batch's number and a position in it."""


class EventState(IntEnum):
    """Where an event stands."""

    SHOWN = 0
    EXPIRED = 1
    """Its deadline passed without feedback: the default loss was counted."""
    VOID = 2
    """It was never shown: it counts for nothing, and its position went to another event."""
    DEFERRED = 3
    """Decided, and not yet shown to anybody."""
    HEARD = 4
    """Its feedback has come. In experiments with persons, whose slots have deadlines, events are
    marked so when their batch is released."""


WAITING_STATES = (EventState.SHOWN, EventState.DEFERRED)


@dataclass
class Experiment:
    """An experiment, or one segment of it: what was asked for, and all that has been learned.

    Nothing of it is private. Segments share their id, name and settings.
    """

    id: str
    name: str
    settings: JSON
    """As it was made: arms, deadline, default loss. Arms may be added; nothing else changes."""
    head: JSON
    """The policy without its open batches."""
    created_at: float
    number: int = 0
    """Given by the store."""
    version: int = 0
    """Counts the transactions that changed it."""
    stopped: bool = False
    observed: int = 0
    step: str = ""
    """Random, of the transaction that changed it last."""
    resumed: int = 0
    """How often it was resumed from an older copy of the database."""
    owner: int = 0
    """The number of the experiment's first segment, given by the store: ids of events belong to
    all segments together."""
    segment: str = ""
    """Which of the experiment's segments this is, each with a policy of its own; empty where
    there are none."""


class Listed(NamedTuple):
    """What is quickly known of an experiment, or of a segment of it."""

    number: int
    id: str
    segment: str
    stopped: bool
    resumed: int
    open: bool
    """Whether it has open batches."""


class Outline(NamedTuple):
    """What an experiment, or a segment of it, was made as."""

    number: int
    id: str
    settings: JSON


class Event(NamedTuple):
    """One decision, as it was given out."""

    id: str
    """Given once in an experiment; another experiment may give it too."""
    owner: int
    """The number of the experiment's first segment."""
    experiment: int
    batch: int
    position: int
    arm: int
    round: int
    chance: float | None
    made_at: float
    expires_at: float | None
    state: EventState
    visitor: str | None = None
    """A keyed hash of whose flag it is, if it is one: until it is over they get it again."""

    @property
    def location(self) -> Location:
        """Where its feedback is counted."""
        return self.batch, self.position


NO_BATCH = -1
"""In place of a batch's number: the decision is not part of the experiment."""


def without_batch(name: str, owner: int, number: int, arm: int, now: float) -> Event:
    """Return a decision for an arm that was shipped: nothing is kept of it, nothing learned."""
    place = NO_BATCH, NO_BATCH
    return Event(name, owner, number, *place, arm, NO_BATCH, 1.0, now, None, EventState.SHOWN)


class OpenBatch(NamedTuple):
    """A batch that has not been released."""

    number: int
    size: int
    choice: int
    importance: float
    tally: JSON
    """How it was drawn, and what its release needs beside its rounds: private."""


MORE_PRIVATE = ("ticket", "metrics", "slot", "before", "sent")


class Feedback(NamedTuple):
    """What is known of one position in an open batch."""

    batch: int
    position: int
    loss: int | None
    """In grid units, or None while it waits: private."""
    given_up: bool
    ticket: JSON | None = None
    """What crediting it will need, such as experts' advice or a context: private."""
    metrics: list[int] | None = None
    """In grid units, where there are any: private."""
    slot: JSON | None = None
    """Whose slot it is in, where persons have slots, and how that stands: private."""
    before: float | None = None
    """What was known before the decision, where that is subtracted from the outcome: private."""
    sent: int | None = None
    """The outcome as it was sent, where it is counted on another scale: private."""

    @property
    def private(self) -> JSON | int | None:
        """What is sealed of it: as a rule its loss alone."""
        known = {name: getattr(self, name) for name in MORE_PRIVATE}
        more = {name: value for name, value in known.items() if value is not None}
        return {"loss": self.loss, **more} if more else self.loss


class SealedBlock(NamedTuple):
    """Rows that came together: reports of a batch that is decided elsewhere, or who was counted."""

    batch: int
    content: bytes
    """As ``edge_unit`` packs them: private."""


COUNTED = -1
"""In place of a batch's number: who was counted in batches that were released."""


class ReleaseRow(NamedTuple):
    """What left a batch: public."""

    batch: int
    choice: int
    """The arm, or with experts the expert that was followed."""
    size: int
    value: float | list[float]
    released_at: float


class StartRow(NamedTuple):
    """A start of the service, as the database keeps it."""

    number: int
    step: str
    """Random; the guard keeps it too."""
    guard: str
    """The guard that was used."""
    at: float
    confirmed: bool
    """Whether the guard is known to have kept it."""


class Committed(NamedTuple):
    """What those who read need of an experiment: nothing private."""

    experiment: Experiment
    open: int
    """Open batches."""
    slots: int
    """Slots that people have taken."""
    given_up: int
    """Rounds in open batches whose feedback did not come."""
    open_since: float | None
    """When the oldest open batch was begun."""
    released_at: float | None
    """When something was released last."""


class TrailRow(NamedTuple):
    """Who changed what."""

    number: int
    at: float
    who: str
    """The id of a key, or ``command line``."""
    action: str
    about: str
    """The id of an experiment or of a key."""
    details: JSON


class Gauges(NamedTuple):
    """Numbers of one experiment, or of a segment of it."""

    id: str
    name: str
    decided: int
    observed: int
    released: int
    resumed: int
    open_since: float | None
    """When the oldest open batch was begun."""


class Snapshot(NamedTuple):
    """What is needed to go on with an experiment."""

    experiment: Experiment
    batches: list[OpenBatch]
    """Those that were asked for."""
    events: list[Event]
    """Events of these batches."""
    feedback: list[Feedback]
    """Feedback of these batches."""
    people: dict[str, int]
    """Slots that each person has had; persons are hashes of 16 hexadecimal digits."""
    opened: int = 0
    """How many batches are open."""


class Due(NamedTuple):
    """An event that waits for feedback: when that is due, and where it is."""

    at: float
    round: int
    location: Location
    chance: float | None
    deferred: bool


@dataclass(repr=False)
class Changes:
    """What one transaction changes in one experiment."""

    counters: JSON
    """The head's counters, which change with every round."""
    observed: int
    head: JSON | None = None
    """The whole head, where more than its counters has changed."""
    settings: JSON | None = None
    """The settings, where arms were added."""
    events: list[Event] = field(default_factory=list)
    states: dict[Location, EventState] = field(default_factory=dict)
    """New states of events that are not void."""
    batches: list[OpenBatch] = field(default_factory=list)
    """Opened, or with a tally that changed."""
    feedback: list[Feedback] = field(default_factory=list)
    blocks: list[SealedBlock] = field(default_factory=list)
    releases: list[ReleaseRow] = field(default_factory=list)
    """Whatever was kept of their batches is deleted."""
    people: dict[str, int] = field(default_factory=dict)
    """Persons who took a slot, and how many they have had now."""

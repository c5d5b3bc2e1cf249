"""The state of a policy as plain data.

``State`` holds everything that changes while a policy runs: counters, open batches with the raw
feedback they wait to release, people's slots, what was learned, the random stream. Functions in
``transitions.py`` change it; ``codec.py`` turns it into plain values and back.
"""

from __future__ import annotations

import hashlib
import secrets
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Ticket
from bandanna._core.scale import Scale
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, InputError
from bandanna.privacy.release import ArmTotals, Published, Tally

WAITING = -1
"""In place of a loss."""

MOST_IN_PHASES = 100
"""Arms for which each phase is remembered, for statements about losses that change."""

NOT_LEARNED = -1.0
"""In place of an importance: a batch that the control was given to keep its share."""

EligibleArms = tuple[int, ...]
"""Indices of the arms that may be played, in their order."""


class Drawn(NamedTuple):
    """What a batch is opened with."""

    choice: int
    """The arm that is played, or the expert that is followed."""
    importance: float
    size: int
    """For how many rounds; 0 leaves it to the release."""
    credited: int
    """Whose loss is learned: what was drawn, before another replaced it."""
    chance: float | None
    """The probability with which the arm is played, where that is known."""


class Told(NamedTuple):
    """What a batch has told of an arm, or expert: the default loss is taken out of it."""

    arm: int
    losses: int
    """How many came."""
    mean: float
    offset: float = 0.0
    """What bits still hold of the default loss, as ``ArmTotals`` keeps it."""


# --- batches ----------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Slot:
    """One person's slot in a batch: all its rounds count once, by their mean."""

    person: int
    counts: bool
    """Whether its feedback is used; otherwise the person had all their slots before."""
    rounds: list[int] = field(default_factory=list)
    """Positions of its rounds in the batch."""
    counted: int | None = None
    """What it counted in the batch's sum, once it closed."""


@dataclass(slots=True, eq=False)
class Phase:
    """How the rounds of a phase are shared among arms, and in which order they are played."""

    planned: NDArray[np.float64]
    """Rounds of each arm."""
    words: tuple[int, ...]
    """The stream from which the order was drawn, as it was before."""
    order: NDArray[np.int32]
    """The arm of each round. Rounds among some arms take the next of those from further on."""
    drawn: int = 0
    """How many of them have been played."""
    counts: dict[int, int] = field(default_factory=dict)
    """Once it closed: how many losses of each arm were released."""

    def take(self, among: EligibleArms | None = None) -> tuple[int, float] | None:
        """Return the next arm in the order, or the next eligible one, and its chance.

        The order is a random permutation, so the next eligible arm in it is drawn from what is left
        of the eligible arms. None where none of them is left.
        """
        at, order = self.drawn, self.order
        if at >= len(order):
            return None
        arm = int(order[at])
        chance = float(self.planned[arm]) / len(order)
        if among is not None:
            later = np.flatnonzero(np.isin(order[at:], among))
            if not later.size:
                return None
            drawn = at + int(later[0])
            arm = int(order[drawn])
            chance = float(np.mean(order[at:][later] == arm))
            order[at], order[drawn] = order[drawn], order[at]
        self.drawn = at + 1
        return arm, chance

    def replay(self, arm: int) -> None:
        """Take a certain arm again, as it was taken before a state was saved."""
        if self.drawn < len(self.order) and self.order[self.drawn] == arm:
            self.drawn += 1
        else:
            self.take((arm,))

    def chance(self, arm: int) -> float:
        """Return the share of an arm."""
        return float(self.planned[arm]) / len(self.order)


@dataclass(slots=True, eq=False, repr=False)
class Batch:
    """Rounds that are released together; with a rule for people, slots that are.

    Rounds have positions, from 0 on. ``tally`` holds what the release will need of their feedback.
    """

    number: int
    size: int
    """Rounds that fill it, or slots."""
    choice: int
    """Arm that it plays, or expert that it follows."""
    importance: float
    credited: int
    """Whose loss is learned; another than ``choice`` if what was drawn might not be played."""
    chance: float | None
    """The probability with which its arm is played, where that is known."""
    tally: Tally
    among: EligibleArms | None = None
    """The arms that all its rounds may be given; None: all arms there are."""
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """Which decision of the policy each round is."""
    arms: array[int] = field(default_factory=lambda: array("l"))
    """Arm chosen in each round."""
    losses: array[int] = field(default_factory=lambda: array("i"))
    """Loss of each decided round in grid units, or ``WAITING``; only to recognise repeats."""
    waiting: dict[int, Ticket | None] = field(default_factory=dict)
    """Rounds without feedback, and what crediting them needs."""
    ticket: Ticket | None = None
    """The ticket of the round counted last."""
    given_up: set[int] = field(default_factory=set)
    slots: dict[int, Slot] | None = None
    """Slots by person; None without a rule for people."""
    open_slots: dict[int, Slot] = field(default_factory=dict)
    """Slots that further rounds may join."""
    owners: list[Slot] = field(default_factory=list)
    """Slot of each round."""
    unused: int = 0
    """Rounds of people whose slot here had closed: in no slot, and not learned from."""
    used: int = 0
    """Losses that its release counts, once it closed."""
    lost: dict[int, int] = field(default_factory=dict)
    """How many of these are the default loss, by arm."""
    told: list[Told] = field(default_factory=list)
    """What it told of arms, once it was released."""
    beside: Sequence[Published] = ()
    """What was released of arms beside that, column by column."""
    phase: Phase | None = None
    """How arms take turns in it; None where it plays one arm or follows one expert."""
    elsewhere: dict[int, int] | None = None
    """How many losses of each arm were added up elsewhere; None where rounds are decided here."""
    metrics: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Metrics of each round that has feedback, in grid units."""
    before: dict[int, float] = field(default_factory=dict)
    """Where outcomes are adjusted: what was known of each round before it was decided."""
    raw: bool = False
    """Whether it keeps outcomes as they were sent until it closes: it was not known before how to
    count them."""
    sent: dict[int, int] = field(default_factory=dict)
    """Where outcomes are counted on another scale: each as it was sent, to recognise repeats."""

    @property
    def full(self) -> bool:
        """Whether it takes no more rounds, or no more people.

        With slots left it takes no more people when as many rounds were in no slot as it was to
        have slots: people come back whose slot in it has closed, and others do not come. That
        depends on who came alone.
        """
        if self.slots is None:
            return len(self.losses) >= self.size
        return len(self.slots) >= self.size or self.unused >= self.size

    @property
    def complete(self) -> bool:
        """Whether it can be released."""
        return self.full and not self.open_slots and not self.waiting

    def as_sent(self) -> Sequence[int]:
        """Return the loss of each decided round as it was sent, or ``WAITING``."""
        if not self.sent:
            return self.losses
        pairs = enumerate(self.losses)
        return [loss if loss == WAITING else self.sent.get(at, loss) for at, loss in pairs]

    def round_of(self, position: int) -> int:
        """Return which decision of the policy a round is."""
        return self.numbers[position]

    def plays(self) -> dict[int, int]:
        """Return how many of its rounds each arm, or the expert that is followed, was given."""
        if self.elsewhere is not None:
            return dict(self.elsewhere)
        if self.phase is None:
            return {self.choice: len(self.losses)}
        return dict(Counter(self.arms[: len(self.losses)]))

    def arm_of(self, slot: Slot) -> int | None:
        """Return the arm that a slot was given; None before its first round."""
        return self.arms[slot.rounds[0]] if slot.rounds else None

    def counted(self) -> list[tuple[Sequence[int], int]]:
        """Return what is in its sums so far: rounds, or those of a slot that closed; their loss."""
        if self.slots is None:
            return [((at,), loss) for at, loss in enumerate(self.losses) if loss != WAITING]
        counting = [slot for slot in self.slots.values() if slot.counts]
        return [(slot.rounds, slot.counted) for slot in counting if slot.counted is not None]

    def count_used(self) -> int:
        """Return how many losses its release counts: public, by who came and how often."""
        if self.elsewhere is not None:
            return sum(self.elsewhere.values())
        if self.slots is None:
            return self.size
        return sum(slot.counts for slot in self.slots.values())

    def without_feedback(self) -> dict[int, int]:
        """Return how many losses in its sums are the default loss, by arm: public.

        They are those of rounds given up, and of slots that count and have no feedback at all.
        """
        if not self.given_up:
            return {}
        if self.slots is None:
            return dict(Counter(self._sum_of(position) for position in self.given_up))
        lost = (
            slot.rounds[0]
            for slot in self.slots.values()
            if slot.counts and slot.rounds and self.given_up.issuperset(slot.rounds)
        )
        return dict(Counter(map(self._sum_of, lost)))

    def _sum_of(self, position: int) -> int:
        """Return in whose sum a round is: its arm's in a phase, else that of the whole batch."""
        return self.choice if self.phase is None else self.arms[position]

    @property
    def missed(self) -> int:
        """Rounds and slots that nothing true was learned from; each may add a loss to regret.

        Rounds given up; slots that count nothing or lack feedback; and rounds that are in no slot.
        """
        if self.slots is None:
            return len(self.given_up)
        return self.unused + sum(
            not slot.counts or not self.given_up.isdisjoint(slot.rounds)
            for slot in self.slots.values()
        )


# --- people -----------------------------------------------------------------------------------

KEY_BYTES = 16
_USUAL = (str, int)


class People:
    """Who has had how many slots, and where those are that may still matter.

    Persons are known by a keyed hash alone. Two who share one, which takes billions of people,
    share their slots too: less is learned, and the promise holds.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._use(secrets.token_bytes(KEY_BYTES) if key is None else key)
        self.slots: dict[int, int] = {}
        """How many slots each person has had."""
        self.batches: dict[int, Batch] = {}
        """The newest open batch in which a person has had a slot."""
        self.admitted: set[int] | None = None
        """Who took a slot since someone last asked; noted for those who store it."""

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def used(self) -> int:
        """Slots that all persons together have had."""
        return sum(self.slots.values())

    def with_slots_left(self, per_person: int) -> int:
        """Return how many persons are known who may have further slots: public, as who comes is."""
        return sum(had < per_person for had in self.slots.values())

    def known_as(self, person: object) -> int:
        """Return the keyed hash of a person."""
        if type(person) not in _USUAL and (
            isinstance(person, bool) or not isinstance(person, str | Integral)
        ):
            raise InputError(
                f"person must be a text or a whole number that is the same whenever they come; "
                f"got {type(person).__name__}."
            )
        try:
            text = str(person)
        except ValueError:  # Python writes no longer ones
            raise InputError("person must be a number of at most 4,300 digits.") from None
        mark = self._keyed.copy()
        mark.update(text.encode("utf-8", "surrogatepass"))
        return int.from_bytes(mark.digest(), "big")

    def take_admitted(self) -> dict[str, int]:
        """Return who took a slot since this was last asked, and how many they have had."""
        noted, self.admitted = self.admitted or (), set()
        return {f"{person:016x}": self.slots[person] for person in noted}

    def find_in(self, person: int, batch: Batch) -> None:
        """Note that a person has a slot in an open batch."""
        known = self.batches.get(person)
        if known is None or known.number < batch.number:
            self.batches[person] = batch

    def forget(self, batch: Batch) -> None:
        """Forget where the people of a batch that closes were."""
        for person in batch.slots or ():
            if self.batches.get(person) is batch:
                del self.batches[person]

    def join(self, before: People) -> None:
        """Add slots that were known before; what is known here is newer."""
        before.slots.update(self.slots)
        self.slots = before.slots

    def to_dict(self, *, persons: bool = True) -> JSON:
        """Return everything as plain values; without ``persons``, neither hashes nor their key."""
        if not persons:
            return {}
        by_count: dict[str, list[str]] = {}
        for person, had in sorted(self.slots.items()):  # not in the order in which people came
            by_count.setdefault(str(had), []).append(f"{person:016x}")
        return {"key": self._key.hex(), "slots": by_count}

    def load(self, saved: JSON, per_person: int) -> None:
        """Go on from what ``to_dict`` gave, checking every value anew."""
        self._use(bytes.fromhex(saved["key"]))
        for slots, people in saved["slots"].items():
            had = checks.whole("slots", int(slots), 1, per_person)
            self.slots |= {int(person, 16): had for person in people}

    def _use(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError("its key for people is damaged")
        self._key = key
        self._keyed = hashlib.blake2b(key=key, digest_size=8)


# --- closed batches ---------------------------------------------------------------------------

Verdict = Literal["same", "different", "given up", "forgotten"]

_GIVEN_UP, _UNCOUNTED = b"given up", b"uncounted"


class ClosedBatches:
    """Recognises feedback that is sent again after its batch closed, without keeping the losses.

    Of each loss only a keyed hash is kept, in memory, for the most recent decisions; the key is
    never written down.
    """

    def __init__(self, remember: int = 10_000) -> None:
        self._key = secrets.token_bytes(16)
        self._marks: dict[int, list[bytes]] = {}
        self._room = self._remember = remember

    def add(
        self,
        number: int,
        losses: Sequence[int],
        given_up: set[int],
        metrics: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
    ) -> None:
        """Remember a batch that is about to be erased, and forget the oldest beyond the limit.

        A negative loss is one whose counting was interrupted: any value is its repeat.
        """
        if len(losses) > self._remember or number in self._marks:
            return
        self._marks[number] = [
            _GIVEN_UP
            if position in given_up
            else self._mark(number, position, loss, *metrics.get(position, ()))
            for position, loss in enumerate(losses)
        ]
        self._room -= len(losses)
        while self._room < 0:
            self._room += len(self._marks.pop(next(iter(self._marks))))

    def compare(self, number: int, position: int, loss: int, *metrics: int) -> Verdict:
        """Say whether the loss, with its metrics, is the one observed before."""
        marks = self._marks.get(number)
        if marks is None or position >= len(marks):
            return "forgotten"
        if marks[position] in (_GIVEN_UP, _UNCOUNTED):
            return "given up" if marks[position] == _GIVEN_UP else "same"
        mark = self._mark(number, position, loss, *metrics)
        same = secrets.compare_digest(marks[position], mark)
        return "same" if same else "different"

    def _mark(self, number: int, position: int, loss: int, *metrics: int) -> bytes:
        if loss < 0:
            return _UNCOUNTED
        data = b"".join(part.to_bytes(8, "big") for part in (number, position, loss, *metrics))
        return hashlib.blake2b(data, key=self._key, digest_size=8).digest()


# --- identities -------------------------------------------------------------------------------


class Issuer(NamedTuple):
    """An identity of the policy, and from where on it issues decisions.

    Each time a policy is loaded it goes on under a new one.
    """

    identity: str
    batch: int
    """The first batch that is wholly its own."""
    joined: dict[int, int]
    """Batches begun before, each with the position from which on it goes on with them."""

    def issued(self, batch: int, position: int) -> bool:
        """Whether a round is its own, or a later identity's."""
        begin = self.joined.get(batch)
        return batch >= self.batch or (begin is not None and position >= begin)


# --- metrics and guardrails -------------------------------------------------------------------


class Retirement(NamedTuple):
    """An arm that a guardrail retired, and why: public."""

    arm: int
    metric: str
    rounds: int
    """After how many decisions."""
    difference: float
    """The arm's mean minus the control's, as a share of the metric's range."""
    least: float
    """How far it is at least from the control, in the direction of the guardrail."""
    log_evidence: float
    """Chance alone reaches it with probability at most ``exp(-log_evidence)``."""
    assumption: str


class Found(NamedTuple):
    """How outcomes are counted, as the first phase found it: public."""

    scale: Scale
    rounds: int
    """How many of its rounds, or slots of people, had feedback."""
    cut: float | None = None
    """Share of the outcomes that were cut: a private estimate."""
    cut_noise: float = 0.0
    """The scale of its noise."""
    related: float | None = None
    """The squared correlation with what was known before: a private estimate."""
    kept: bool = False
    """Whether the bounds were kept."""


class Learned(Protocol):
    """What has been learned, where that is no tuple of arrays."""

    def state_dict(self) -> JSON:
        """All that has been learned, as plain values."""

    def load_state(self, state: JSON) -> None:
        """Go on from what ``state_dict`` gave."""


# --- the whole --------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class State:
    """Everything that changes while a policy runs."""

    stream: Stream
    """Draws the arms; the randomness of releases is never kept."""
    learned: NamedTuple | Learned
    """The learner's arrays; another library's learner itself, or what plays by context."""
    people: People | None = None
    """None without a rule for people."""
    identity: str = field(default_factory=lambda: secrets.token_hex(8))
    issuers: list[Issuer] = field(default_factory=list)
    """All identities so far; the last is the present one."""
    rounds: int = 0
    """Decisions made so far."""
    batches: int = 0
    """Batches begun."""
    released: int = 0
    """Batches released."""
    restricted: bool = False
    """Whether some batch was among some arms: the promise assumes that these are public, and
    someone may have several open slots."""
    mixed: bool = False
    """Whether someone with an open slot came with other eligible arms than it was drawn among: no
    bound on regret is known then."""
    outstanding: int = 0
    """The most batches that were open when another began: bounds for feedback in order hold only
    while there were none."""
    missed_before: int = 0
    """What ``missed`` counts, of closed batches."""
    left_out: int = 0
    """Rounds and slots without feedback whose default loss was taken out of what was released:
    public, as who came and what was given up are."""
    resumed: int = 0
    """How often its file was resumed more than once."""
    retired: frozenset[int] = frozenset()
    """Indices of arms that no further batch plays."""
    changed: bool = False
    """Whether arms were added or retired."""
    first_arms: int = 0
    """Arms, or experts, that there were when something was first released; 0 before that."""
    played: dict[int, int] = field(default_factory=dict)
    """Decisions of closed batches that each arm, or expert, was given: public."""
    totals: dict[int, ArmTotals] = field(default_factory=dict)
    """What was released of each arm, or expert, that batches were opened with: public."""
    open: dict[int, Batch] = field(default_factory=dict)
    filling: dict[EligibleArms | None, Batch] = field(default_factory=dict)
    """The batch that fills with rounds of the same eligible arms; None stands for all arms."""
    closed: ClosedBatches = field(default_factory=ClosedBatches)
    phases: list[list[tuple[int, int, float]]] = field(default_factory=list)
    """What was released of each phase: arm, rounds and mean loss. Public, and kept for few arms."""
    column_totals: dict[int, tuple[ArmTotals, ...]] = field(default_factory=dict)
    """What was released of each arm beside its losses, column by column: public."""
    column_phases: list[Sequence[Published]] = field(default_factory=list)
    """The same by phase, as ``phases``."""
    retirements: list[Retirement] = field(default_factory=list)
    """Arms that guardrails retired."""
    control_rounds: int = 0
    """Rounds of batches that the control was given to keep its share."""
    rewarded: bool | None = None
    """Whether feedback comes as rewards: in which direction answers are given. None before any."""
    scale: Scale | None = None
    """How outcomes are counted; None where they are counted as they are, or it is not known yet."""
    found: Found | None = None
    """What the first phase found, where it was to find something."""
    changes: int = 0
    """Grows whenever ``learned`` or anything in that section changes; not saved."""

    def __post_init__(self) -> None:
        if not self.issuers:
            self.issuers = [Issuer(self.identity, 0, {})]

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        # A copy, made in one step: others may decide meanwhile. ``repr`` must not wait for a lock.
        return sum(len(batch.waiting) for batch in list(self.open.values()))

    @property
    def missed(self) -> int:
        """Rounds and slots that were played and that nothing true was learned from."""
        return self.missed_before + sum(batch.missed for batch in list(self.open.values()))

    def plays(self) -> dict[int, int]:
        """Return how many decisions each arm, or expert, was given so far."""
        plays = dict(self.played)
        for batch in self.open.values():
            for arm, count in batch.plays().items():
                plays[arm] = plays.get(arm, 0) + count
        return plays

    def issuer_of(self, batch: int, position: int) -> str:
        """Return which identity issued a round, or would have."""
        for issuer in reversed(self.issuers):
            if issuer.issued(batch, position):
                return issuer.identity
        return self.issuers[0].identity

    def issued_by(self, identity: str) -> bool:
        """Whether an identity is, or was, this policy's."""
        return any(issuer.identity == identity for issuer in self.issuers)

    def join(self, before: State) -> None:
        """Take what only memory knows from an earlier state, which is used no more."""
        self.closed = before.closed
        if self.people is not None and before.people is not None:
            self.people.join(before.people)

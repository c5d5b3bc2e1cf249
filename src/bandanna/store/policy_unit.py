"""One experiment at work in memory: its policy, its deadlines, and what the store must be told.

A unit of work is made from the rows that a store kept (``assemble``) and says which rows change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from bandanna._core.advice import Ticket
from bandanna._core.grid import feedback_to_units
from bandanna._core.types import JSON, ArmName, Decision, InputError
from bandanna.loading import from_dict
from bandanna.policy.base import BasePolicy
from bandanna.policy.codec import batch_from_dict, counters_to_dict, phase_to_dict
from bandanna.policy.outcomes import metrics_to_units
from bandanna.policy.policy import Policy
from bandanna.policy.state import KEY_BYTES, WAITING, Batch, EligibleArms
from bandanna.policy.state import State as PolicyState
from bandanna.policy.transitions import MIDDLE, check_bit
from bandanna.privacy.release import Released, ReleasedEpoch
from bandanna.store.contract import ConflictError, Transaction, refusals_only
from bandanna.store.rows import (
    Changes,
    Event,
    EventState,
    Experiment,
    Feedback,
    Location,
    OpenBatch,
    ReleaseRow,
    Snapshot,
)
from bandanna.store.unit_of_work import (
    PAGE,
    Deadlines,
    NewFeedback,
    UnitOfWork,
    due_of,
    holders_of,
    reading,
)

if TYPE_CHECKING:
    from bandanna.contextual.policy import PrivateContextual


def check_feedback(given: NewFeedback, policy: BasePolicy) -> None:
    """Refuse what a policy does not take, before anything is changed."""
    policy.check_takes(bits=given.bit is not None)
    if given.bit is None:
        feedback_to_units(given.loss, given.reward, policy.loss_range, clip=policy.clip)
        metrics_to_units(given.metrics, policy.spec.metrics, clip=policy.clip)
    else:
        check_bit(given.bit)


def hand_over(given: NewFeedback, policy: BasePolicy, decision: Decision) -> None:
    """Hand feedback to a policy."""
    if given.bit is None:
        policy.observe(decision, loss=given.loss, reward=given.reward, metrics=given.metrics)
    else:
        assert isinstance(policy, Policy), "no other takes bits"
        policy.observe_bit(decision, given.bit)


HASHED_BEFORE = bytes(KEY_BYTES).hex()
"""The policy's key for persons. Whoever has a store hashes them with its secret before they get
here, so a key beside the hashes would protect nobody: this one is no secret."""


def assemble(saved: Snapshot) -> tuple[BasePolicy, dict[Location, Event]]:
    """Return the policy, checked anew, and for each position that was read whose it is."""
    holders = holders_of(saved.events)
    by_batch: dict[int, list[Event]] = {batch.number: [] for batch in saved.batches}
    feedback = {(row.batch, row.position): row for row in saved.feedback}
    with reading(saved.experiment):
        for location in sorted(holders):
            by_batch[location[0]].append(holders[location])
        opened = {
            batch.number: _batch(batch, by_batch[batch.number], feedback) for batch in saved.batches
        }
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


def _batch(batch: OpenBatch, events: list[Event], feedback: dict[Location, Feedback]) -> JSON:
    """Return what ``batch_to_dict`` would."""
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


class PolicyUnit(UnitOfWork):
    """A policy of any kind, at work.

    Open batches and deadlines are counted, and read when they are needed. Only where persons have
    slots all of them are in memory: any of them may be the one that someone comes back to.
    """

    def __init__(self, saved: Snapshot) -> None:
        self.experiment = saved.experiment
        self.policy: BasePolicy
        self.policy, holders = assemble(saved)
        self.policy.on_release = self._note_release
        self._learned: bytes | None = None
        """A digest of what was learned, as it was last written."""
        state = self.policy.state
        self._waiting = Deadlines(None if self.deadline is not None else ())
        if state.people is None:
            state.open = OpenBatches(state.open, saved.opened, self._read_batch)
            return
        state.people.admitted = set()
        begun = (one for at, one in holders.items() if waits(state, at) or begins_slot(state, at))
        self._waiting = Deadlines(due_of(one) for one in begun if one.expires_at is not None)

    def _read_batch(self, number: int) -> Batch | None:
        """Read an open batch, if it is one."""
        opened = self._transaction.open_batch(self.experiment.number, number)
        if opened is None:
            return None
        row, events, feedback = opened
        holders = holders_of(events)
        given = {(one.batch, one.position): one for one in feedback}
        with reading(self.experiment):
            saved = _batch(row, [holders[at] for at in sorted(holders)], given)
            return batch_from_dict(saved, self.policy.state.rounds, self.policy.limits())

    def begin(self, transaction: Transaction) -> None:
        """Start to collect what one transaction changes."""
        super().begin(transaction)
        state = self.policy.state
        if isinstance(state.open, OpenBatches):
            state.open.forget([batch.number for batch in state.filling.values()], MOST_BATCHES)
        self._arms_changed = False
        self._tickets: dict[Location, Ticket | None] = {}

    # --- what is asked of it --------------------------------------------------------------

    def decide(
        self,
        name: str,
        advice: object = None,
        person: str | None = None,
        eligible: Iterable[ArmName] | None = None,
        context: Mapping[str, object] | None = None,
        before: float | None = None,
        *,
        defer: bool = False,
        now: float,
    ) -> Event:
        """Decide for an event."""
        if name in self._events:
            return self._events[name]
        if self.experiment.stopped:
            raise ConflictError("this experiment has been stopped; it decides nothing more.")
        side = self._side(advice, context, defer=defer)
        known = self.policy.known_before(before)
        among = None if eligible is None else self.policy.among(eligible)
        free = self._take_free(among)
        if free is not None:
            location, chance = free
            if known is not None:  # of whom the position is given to now
                self.policy.state.open[location[0]].before[location[1]] = known
        else:
            also: JSON = {} if known is None else {"before": known}
            made = self.policy.decide(side, person=person, eligible=eligible, **also)
            location, chance = (made.batch, made.position), made.chance
            if made.position == 0:
                self._opened.add(made.batch)
        batch, position = self.policy.state.open[location[0]], location[1]
        drawn = batch.arms[position], batch.round_of(position), chance
        event = self._note_event(name, location, *drawn, defer=defer, now=now)
        self._wait_for(event)
        self._touched.add(location)
        return event

    def _side(self, advice: object, context: object, *, defer: bool) -> object:
        """Return what a round comes with; refuse what its policy does not take."""
        policy = self.policy
        if isinstance(policy, Policy):
            if context is not None:
                raise InputError("this experiment has no features; leave context out.")
            if defer and not (policy.experts is None is policy.people):
                raise InputError("defer is for experiments without experts and without per_person.")
            return advice
        if advice is not None:
            raise InputError("this experiment decides by context; leave advice out.")
        if context is None:
            asked = ", ".join(cast("PrivateContextual", policy).encoder.asked)
            raise InputError(f"this experiment decides by context: give context, with {asked}.")
        return context

    def observe(self, event: Event, given: NewFeedback, *, now: float) -> None:
        """Count the feedback of an event."""
        check_feedback(given, self.policy)
        location = self._check_shown_in_time(event, now)
        if self._state_of(event) is EventState.HEARD:
            return
        waited = waits(self.policy.state, location)
        self._keep_ticket(location)
        if self.policy.state.people is None and waited:
            self._waiting.deferred.pop(location, None)
            self._set_state(location, EventState.HEARD)
        taken = self._tell(event, lambda decision: hand_over(given, self.policy, decision))
        if taken and waited:
            self.experiment.observed += 1
            self._show(event)
            self._touched.add(location)

    def _keep_ticket(self, location: Location) -> None:
        """Keep what crediting a round needed where its sums follow from rounds."""
        batch = self.policy.state.open.get(location[0])
        if batch is not None and batch.tally.from_rounds and location[1] in batch.waiting:
            self._tickets[location] = batch.waiting[location[1]]

    def add_arm(self, name: ArmName) -> list[ArmName]:
        """Add an arm, unless it is there; returns the arms that are played from now on."""
        policy = self._with_arms()
        if name in policy.arms and policy.arms.index(name) in policy.retired:
            raise ConflictError(f"arm {name!r} was retired, which is for good; use another name.")
        if name not in policy.arms:
            self._change_arms(lambda: policy.add_arm(name))
        return _active_arms(policy)

    def retire_arm(self, name: ArmName) -> list[ArmName]:
        """Retire an arm, unless that was done before; returns the arms that are still played."""
        policy = self._with_arms()
        if name not in policy.arms:
            raise InputError(f"there is no arm {name!r}.")
        if policy.arms.index(name) not in policy.retired:
            self._change_arms(lambda: policy.retire_arm(name))
        return _active_arms(policy)

    def collect(self) -> Changes | None:
        """Return what has changed since ``begin``, or None if nothing has."""
        happened = (self._events, self._states, self._touched, self._releases)
        if not (any(happened) or self._arms_changed):
            return None
        opened = self.policy.state.open
        rows = sorted({at for one in self._touched for at in _with_slot(opened, one)})
        changed = [opened[number] for number in {batch for batch, _ in rows}]
        people = self.policy.state.people
        return Changes(
            counters=self._counters(),
            head=self._head(),
            observed=self.experiment.observed,
            settings=self.experiment.settings if self._arms_changed else None,
            events=list(self._events.values()),
            states=self._states,
            batches=[
                batch_row(batch)
                for batch in changed
                if batch.number in self._opened or not batch.tally.from_rounds
            ],
            feedback=[
                row
                for number, position in rows
                if (row := self._feedback_row(opened[number], position))
            ],
            releases=self._releases,
            people={} if people is None else people.take_admitted(),
        )

    def _feedback_row(self, batch: Batch, position: int) -> Feedback | None:
        ticket = batch.waiting.get(position) or self._tickets.get((batch.number, position))
        return feedback_row(batch, position, ticket)

    def _counters(self) -> JSON:
        """Return what changes with every round; resumptions are counted beside the head."""
        counters = counters_to_dict(self.policy.state)
        return counters | {"resumed": counters["resumed"] - self.experiment.resumed}

    def _head(self) -> JSON | None:
        """Return the policy without its open batches, if more than its counters changed.

        It can be large: it holds numbers for every arm.
        """
        if not (self._opened or self._releases or self._arms_changed):
            return None
        digest = _digest(self.policy.state.learned)
        anyway = self._releases or self._arms_changed
        if not anyway and digest is not None and digest == self._learned:
            return None
        self._learned = digest
        return self.policy.to_dict(private=False) | {"counters": {}}

    # --- how it works ---------------------------------------------------------------------

    def _take_free(self, among: EligibleArms | None) -> tuple[Location, float | None] | None:
        """Return a position that was never shown to anybody, for a round among the same arms."""
        waiting, opened = self._waiting, self.policy.state.open
        if not isinstance(self.policy, Policy):  # each position has a context of its own
            return None
        if not waiting.free and waiting.more_free and self.policy.state.people is None:
            page = self._transaction.free(self.experiment.number, PAGE)
            waiting.more_free = len(page) == PAGE
            waiting.free.extend(one for one in page if one[0] not in self._holders)
        for one in waiting.free:
            if opened[one[0][0]].among == among:
                waiting.free.remove(one)
                return one
        return None

    def _with_arms(self) -> Policy:
        """Return the policy, whose arms may change; refuse where they are fixed."""
        if not isinstance(self.policy, Policy):
            raise InputError("arms of an experiment that decides by context cannot be changed.")
        if self.policy.experts is not None:
            raise InputError("arms of an experiment with experts cannot be changed.")
        return self.policy

    def _change_arms(self, change: Callable[[], object]) -> None:
        """Change arms; open batches go on with those they began with."""
        if self.experiment.stopped:
            raise ConflictError("this experiment has been stopped; its arms stay as they are.")
        change()
        self._arms_changed = True
        arms = list(self.policy.arms)
        self.experiment.settings = self.experiment.settings | {"arms": arms}

    def _pass_deadline(self, location: Location) -> None:
        """Close a person's slot, free what was never shown, or stop waiting.

        A position whose arm was chosen by a context is given to nobody else.
        """
        if begins_slot(self.policy.state, location):
            self._finish_slot(location)
        elif location in self._waiting.deferred:
            chance = self._waiting.deferred.pop(location)
            if isinstance(self.policy, Policy):
                self._waiting.free.append((location, chance))
            else:
                self._give_up(location)
            self._set_state(location, EventState.VOID)
        else:
            self._give_up(location)

    def _give_up(self, location: Location) -> None:
        """Count the default loss where feedback has not come."""
        if waits(self.policy.state, location):
            batch = self.policy.state.open[location[0]]
            self._set_state(location, EventState.EXPIRED)
            self._touched.add(location)
            with refusals_only():
                self.policy.give_up(self._decision_at(batch, location[1]))

    def _finish_slot(self, location: Location) -> None:
        """Close a person's slot: its deadline is its first round's."""
        batch = self.policy.state.open[location[0]]
        owner = batch.owners[location[1]]
        for position in owner.rounds:
            if position in batch.waiting:
                self._set_state((batch.number, position), EventState.EXPIRED)
            self._touched.add((batch.number, position))
        with refusals_only():
            self.policy.finish_slot(self._decision_at(batch, location[1]))

    def _decision_at(self, batch: Batch, position: int) -> Decision:
        arm = batch.arms[position]
        numbers = batch.round_of(position), batch.number, position
        return Decision(self.policy.arms[arm], arm, *numbers, self.policy.state.identity)

    def _note_release(self, batch: Batch, released: Released | None) -> None:
        """Note what a batch told, and of how many losses; of none, if none of them came."""
        if isinstance(released, ReleasedEpoch):
            values = released.noisy(both=getattr(self.policy.recipe.release, "both", False))
            self._releases.append(ReleaseRow(batch.number, 0, batch.used, values, self._now))
            return
        for one in batch.told:
            note = ReleaseRow(batch.number, one.arm, one.losses, one.mean, self._now)
            self._releases.append(note)
        if not batch.told:
            size, value = 0, MIDDLE
            if isinstance(released, np.ndarray) and batch.phase is None:
                size, value = batch.used, released.tolist()
            self._releases.append(ReleaseRow(batch.number, batch.choice, size, value, self._now))


def _active_arms(policy: Policy) -> list[ArmName]:
    return [arm for k, arm in enumerate(policy.arms) if k not in policy.retired]


def _with_slot(opened: Mapping[int, Batch], location: Location) -> list[Location]:
    """Return a position, and where the slot begins that it is in, whose row says how it stands.

    Nothing is returned of a batch that is open no more.
    """
    number, position = location
    if number not in opened:
        return []
    slots = opened[number].owners[position : position + 1]
    firsts = (slot.rounds[0] for slot in slots if position in slot.rounds)
    return [location, *((number, at) for at in firsts)]


def _digest(learned: object) -> bytes | None:
    """Return a digest of what was learned, or None where that is another library's."""
    if not isinstance(learned, tuple):
        return None
    digest = hashlib.blake2b(digest_size=16)
    for array in learned:
        digest.update(array.tobytes())
    return digest.digest()

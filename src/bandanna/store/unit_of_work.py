"""The unit of work: an experiment in memory whose changes are written in one transaction.

It is made from the rows that a store kept (``open_batches``) and says which rows change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from bandanna._core.advice import Ticket
from bandanna._core.grid import feedback_to_units
from bandanna._core.types import JSON, ArmName, Decision, DecisionError, InputError
from bandanna.policy.base import BasePolicy
from bandanna.policy.closing import MIDDLE
from bandanna.policy.codec import batch_from_dict, counters_to_dict
from bandanna.policy.outcomes import metrics_to_units
from bandanna.policy.policy import Policy
from bandanna.policy.state import Batch, EligibleArms
from bandanna.policy.transitions import check_bit
from bandanna.privacy.release import Released, ReleasedEpoch
from bandanna.store.contract import ConflictError, gone, refusals_only
from bandanna.store.deadlines import AT_ONCE, NEVER, PAGE, Deadlines, due_of
from bandanna.store.open_batches import (
    MOST_BATCHES,
    OpenBatches,
    assemble,
    batch_row,
    begins_slot,
    by_number,
    feedback_row,
    reading,
    waits,
    with_slot,
)
from bandanna.store.rows import (
    WAITING_STATES,
    Changes,
    Event,
    EventState,
    Feedback,
    Location,
    ReleaseRow,
    Snapshot,
)
from bandanna.store.sql_transaction import SqlTransaction

if TYPE_CHECKING:
    from bandanna.contextual.policy import PrivateContextual


class DecisionRequest(NamedTuple):
    """What a decision is asked for with."""

    advice: object = None
    person: str | None = None
    eligible: Sequence[ArmName] | None = None
    context: Mapping[str, object] | None = None
    before: float | None = None
    """The number that is subtracted from the outcome, where the experiment has ``adjust``."""


class NewFeedback(NamedTuple):
    """Feedback as it was sent; one of the first three is not None."""

    loss: float | None = None
    reward: float | None = None
    bit: int | None = None
    metrics: dict[str, float] | None = None
    """With a loss or a reward, where the policy has metrics."""


def check_feedback(given: NewFeedback, policy: BasePolicy) -> None:
    """Refuse what a policy does not take, before anything is changed."""
    policy.check_takes(bits=given.bit is not None)
    if given.bit is None:
        feedback_to_units(given.loss, given.reward, policy.loss_range, clip=policy.clip)
        metrics_to_units(given.metrics, policy.spec.metrics, clip=policy.clip)
    else:
        check_bit(given.bit)


class UnitOfWork:
    """A policy of any kind whose every change is collected, to be written in one transaction.

    Nothing it returns may leave before that transaction has ended well; if it does not, the unit
    is thrown away, and with it all noise that was drawn.

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

    def begin(self, transaction: SqlTransaction, now: float) -> None:
        """Start to collect what one transaction changes; what is needed is read in it.

        All that happens in it happens at one moment.
        """
        self._transaction, self._now = transaction, now
        self._events: dict[str, Event] = {}
        self._visits: dict[str, Event] = {}
        self._holders: dict[Location, str] = {}
        self._states: dict[Location, EventState] = {}
        self._touched: set[Location] = set()
        self._opened: set[int] = set()
        self._releases: list[ReleaseRow] = []
        self._tickets: dict[Location, Ticket | None] = {}
        self._arms_changed = False
        opened = self.policy.state.open
        if isinstance(opened, OpenBatches):
            filling = self.policy.state.filling.values()
            opened.forget([batch.number for batch in filling], MOST_BATCHES)

    @property
    def deadline(self) -> float | None:
        """Seconds after which feedback is not waited for."""
        seconds: float | None = self.experiment.settings.get("deadline_seconds")
        return seconds

    # --- what is asked of it --------------------------------------------------------------

    def decide(
        self,
        name: str,
        asked: DecisionRequest = DecisionRequest(),  # noqa: B008  # it cannot be changed
        *,
        defer: bool = False,
    ) -> Event:
        """Decide for an event; one of the same id in this transaction gets the same answer."""
        if name in self._events:
            return self._events[name]
        if self.experiment.stopped:
            raise ConflictError("this experiment has been stopped; it decides nothing more.")
        side = self._side(asked, defer=defer)
        known = self.policy.known_before(asked.before)
        among = None if asked.eligible is None else self.policy.among(asked.eligible)
        free = self._take_free(among)
        if free is not None:
            location, chance = free
            if known is not None:  # of whom the position is given to now
                self.policy.state.open[location[0]].before[location[1]] = known
        else:
            also: JSON = {} if known is None else {"before": known}
            made = self.policy.decide(side, person=asked.person, eligible=asked.eligible, **also)
            location, chance = (made.batch, made.position), made.chance
            if made.position == 0:
                self._opened.add(made.batch)
        batch, position = self.policy.state.open[location[0]], location[1]
        event = Event(
            name,
            self.experiment.owner,
            self.experiment.number,
            *location,
            batch.arms[position],
            batch.round_of(position),
            None if chance is None else min(1.0, chance),
            self._now,
            None if self.deadline is None else self._now + self.deadline,
            EventState.DEFERRED if defer else EventState.SHOWN,
        )
        self._events[name], self._holders[location] = event, name
        if event.expires_at is not None:
            self._waiting.add(due_of(event))
        self._touched.add(location)
        return event

    def _side(self, asked: DecisionRequest, *, defer: bool) -> object:
        """Return what a round comes with; refuse what its policy does not take."""
        policy, advice, context = self.policy, asked.advice, asked.context
        if isinstance(policy, Policy):
            if context is not None:
                raise InputError("this experiment has no features; leave context out.")
            if defer and not (policy.experts is None is policy.people):
                raise InputError("defer is for experiments without experts and without per_person.")
            return advice
        if advice is not None:
            raise InputError("this experiment decides by context; leave advice out.")
        if context is None:
            names = ", ".join(cast("PrivateContextual", policy).encoder.asked)
            raise InputError(f"this experiment decides by context: give context, with {names}.")
        return context

    def decide_for(
        self,
        visitor: str,
        decide: Callable[[], Event],
        eligible: Sequence[ArmName] | None,
        *,
        sticky: float | None,
        defer: bool = False,
    ) -> Event:
        """Return the decision that a visitor has, or decide.

        It is theirs for so many ``sticky`` seconds, or until its deadline. One that was never shown
        in time is nobody's any more, nor is one whose arm is not eligible now.
        """
        known = self._visits.get(visitor)
        if known is None:
            known = self._transaction.latest(self.experiment.owner, visitor)
        if known is None or self.experiment.stopped or not self._holds(known, eligible, sticky):
            made = decide()
            known = self._events[made.id] = made._replace(visitor=visitor)
        elif not defer:
            self._show(known)
        self._visits[visitor] = known
        return known

    def _holds(
        self, event: Event, eligible: Sequence[ArmName] | None, sticky: float | None
    ) -> bool:
        """Whether a visitor still has a decision."""
        state = self._state_of(event)
        if state is EventState.VOID or (state is EventState.DEFERRED and self._is_late(event)):
            return False
        if eligible is not None and self.policy.arms[event.arm] not in eligible:
            return False
        until = event.expires_at if sticky is None else event.made_at + sticky
        return until is None or self._now < until

    def observe(self, event: Event, given: NewFeedback) -> None:
        """Count the feedback of an event, once: the first value stands.

        A repeat changes nothing and is answered alike whatever it says, so nobody can find out by
        trying what was sent before.
        """
        check_feedback(given, self.policy)
        location = self._check_shown_in_time(event)
        if self._state_of(event) is EventState.HEARD:
            return
        waited = waits(self.policy.state, location)
        self._keep_ticket(location)
        if self.policy.state.people is None and waited:
            self._waiting.deferred.pop(location, None)
            self._set_state(location, EventState.HEARD)
        if self._hand_over(event, given) and waited:
            self.experiment.observed += 1
            self._show(event)
            self._touched.add(location)

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

    def give_up(self, event: Event) -> None:
        """Stop waiting for an event's feedback; change nothing if it has come.

        A deferred event that nobody was shown counts for nothing from its deadline on, as before.
        """
        self.expire()
        if self._state_of(event) is EventState.SHOWN:
            self._give_up(event.location)

    def activate(self, event: Event) -> None:
        """Say that a decision has been shown to somebody."""
        self._check_shown_in_time(event)
        self._show(event)

    def expire(self) -> float | None:
        """Stop waiting where the deadline has passed, for a while.

        Returns the next deadline, if there is one; it has passed where more is left to do.
        """
        waiting = self._waiting
        for _ in range(AT_ONCE):
            if not waiting.due and waiting.known != NEVER:
                page = self._transaction.due(self.experiment.number, waiting.known, PAGE)
                here = (e for e in self._events.values() if e.expires_at is not None)
                written = [due_of(one) for one in here if one.state in WAITING_STATES]
                waiting.read_on(page, PAGE, written)
            if not waiting.due or waiting.due[0][0] > self._now:
                break
            self._pass_deadline(heappop(waiting.due)[2])
        return waiting.due[0][0] if waiting.due else None

    def collect(self) -> Changes | None:
        """Return what has changed since ``begin``, or None if nothing has."""
        happened = (self._events, self._states, self._touched, self._releases)
        if not (any(happened) or self._arms_changed):
            return None
        opened = self.policy.state.open
        rows = sorted({at for one in self._touched for at in with_slot(opened, one)})
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

    def _read_batch(self, number: int) -> Batch | None:
        """Read an open batch, if it is one."""
        kept = self._transaction.opened(self.experiment.number, [number])
        with reading(self.experiment):
            for saved in by_number(*kept)[0].values():
                return batch_from_dict(saved, self.policy.state.rounds, self.policy.limits())
        return None

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

    def _decision(self, arm: int, number: int, location: Location) -> Decision:
        """Return the decision of a round, as the policy gave it."""
        name, identity = self.policy.arms[arm], self.policy.state.identity
        return Decision(name, arm, number, *location, identity)

    def _decision_at(self, batch: Batch, position: int) -> Decision:
        at = batch.number, position
        return self._decision(batch.arms[position], batch.round_of(position), at)

    def _hand_over(self, event: Event, given: NewFeedback) -> bool:
        """Hand feedback to the policy; returns whether it took it, or had it before."""
        try:
            with refusals_only():
                decision = self._decision(event.arm, event.round, event.location)
                if given.bit is not None:
                    assert isinstance(self.policy, Policy), "no other takes bits"
                    self.policy.observe_bit(decision, given.bit)
                else:
                    values = {"loss": given.loss, "reward": given.reward}
                    self.policy.observe(decision, **values, metrics=given.metrics)
        except DecisionError as error:
            if error.reason == "given up":
                raise gone(event) from None
            if error.reason not in ("different", "forgotten"):
                raise
            return False
        return True

    def _keep_ticket(self, location: Location) -> None:
        """Keep what crediting a round needed where its sums follow from rounds."""
        batch = self.policy.state.open.get(location[0])
        if batch is not None and batch.tally.from_rounds and location[1] in batch.waiting:
            self._tickets[location] = batch.waiting[location[1]]

    def _check_shown_in_time(self, event: Event) -> Location:
        """Refuse what comes too late; the clock is the only judge."""
        self.expire()
        state = self._state_of(event)
        late = self._is_late(event) and state is not EventState.HEARD
        if late or state in (EventState.EXPIRED, EventState.VOID):
            raise gone(event)
        return event.location

    def _is_late(self, event: Event) -> bool:
        return event.expires_at is not None and event.expires_at <= self._now

    def _state_of(self, event: Event) -> EventState:
        """Return where an event stands, with what this transaction changed."""
        if event.state is EventState.VOID:
            return EventState.VOID
        here = self._events.get(event.id, event)
        return self._states.get(event.location, here.state)

    def _show(self, event: Event) -> None:
        if self._state_of(event) is EventState.DEFERRED:
            self._waiting.deferred.pop(event.location, None)
            self._set_state(event.location, EventState.SHOWN)

    def _set_state(self, location: Location, state: EventState) -> None:
        name = self._holders.get(location)
        if name is None:
            self._states[location] = state
        else:
            self._events[name] = self._events[name]._replace(state=state)
        if state is EventState.VOID:
            self._holders.pop(location, None)

    def _note_release(self, batch: Batch, released: Released | None) -> None:
        """Note what a batch told, and of how many losses; of none, if none of them came."""
        notes: list[tuple[int, int, float | list[float]]]
        if isinstance(released, ReleasedEpoch):
            both = getattr(self.policy.recipe.release, "both", False)
            notes = [(0, batch.used, released.noisy(both=both))]
        elif batch.told:
            notes = [(one.arm, one.losses, one.mean) for one in batch.told]
        elif isinstance(released, np.ndarray) and batch.phase is None:
            notes = [(batch.choice, batch.used, released.tolist())]
        else:
            notes = [(batch.choice, 0, MIDDLE)]
        self._releases += [ReleaseRow(batch.number, *note, self._now) for note in notes]


def _active_arms(policy: Policy) -> list[ArmName]:
    return [arm for k, arm in enumerate(policy.arms) if k not in policy.retired]


def _digest(learned: object) -> bytes | None:
    """Return a digest of what was learned, or None where that is another library's."""
    if not isinstance(learned, tuple):
        return None
    digest = hashlib.blake2b(digest_size=16)
    for array in learned:
        digest.update(array.tobytes())
    return digest.digest()

"""One experiment that decides by context, at work in memory.

A store keeps its rounds, not its sums: of each round of an open epoch the encoded context and the
loss, sealed as all feedback is. The sums are of integers, so adding the rounds up again gives the
same ones. An epoch is a batch to the store: its release deletes all rounds of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bandanna._core.grid import feedback_to_units
from bandanna._core.types import JSON, ArmName, Decision, InputError
from bandanna.contextual.policy import PrivateContextual
from bandanna.contextual.state import GIVEN_UP, WAITING, Epoch, Past
from bandanna.contextual.state import Waiting as WaitingRound
from bandanna.store.contract import ConflictError, Transaction, refusals_only
from bandanna.store.policy_unit import HASHED_BEFORE, by_count
from bandanna.store.rows import (
    Changes,
    Event,
    Experiment,
    Feedback,
    Location,
    OpenBatch,
    Release,
    Snapshot,
    State,
)
from bandanna.store.unit_of_work import (
    NewFeedback,
    UnitOfWork,
    Waiting,
    due_of,
    holders_of,
    reading,
)

FIXED_ARMS = "arms of an experiment that decides by context cannot be changed."


def head_of(policy: PrivateContextual) -> JSON:
    """Return what is kept of a policy besides its open epochs and its people: nothing private."""
    return policy.to_dict(private=False) | {"counters": counters_of(policy)}


def counters_of(policy: PrivateContextual) -> JSON:
    """Return what changes with every round."""
    state = policy.state
    return {
        "rounds": state.decided,
        "counted": state.counted,
        "released": len(state.past),
        "batches": state.opened,
        "resumed": policy.resumed,
        "arm_stream": [int(word) for word in policy.arm_stream],
    }


def assemble_context(saved: Snapshot) -> tuple[PrivateContextual, dict[Location, Event]]:
    """Return the policy, checked anew, and for each position the event that holds it."""
    holders = holders_of(saved.events)
    with reading(saved.experiment):
        return _assemble(saved, holders), holders


def without_epochs(experiment: Experiment) -> PrivateContextual:
    """Return the policy without its open epochs and its people: for those who read."""
    state = experiment.head["state"]
    over = len(state["past"])
    closed = state | {"sizes": state["sizes"][:over]}
    head = experiment.head | {"state": closed}
    return PrivateContextual.from_dict(_document(experiment, head, [], {}), latest=True)


def _assemble(saved: Snapshot, holders: dict[Location, Event]) -> PrivateContextual:
    rows = {(row.batch, row.position): row for row in saved.feedback}
    locations: dict[int, list[Location]] = {batch.number: [] for batch in saved.batches}
    for location in sorted(holders):
        locations[location[0]].append(location)
    head, features = saved.experiment.head, saved.experiment.head["state"]["features"]
    size = len(head["arms"]), features
    epochs = [
        _epoch(batch, [(holders[p], rows.get(p)) for p in locations[batch.number]], *size)
        for batch in saved.batches
    ]
    data = _document(saved.experiment, head, epochs, saved.people)
    policy = PrivateContextual.from_dict(data, latest=True)
    for epoch in policy.state.open.values():
        heard = ((rows[p], holders[p]) for p in locations[epoch.number] if p in rows)
        policy.recount(
            epoch,
            (
                (_phi(row), event.arm, row.loss)
                for row, event in heard
                if row.loss is not None and not row.given_up
            ),
        )
    return policy


def _document(
    experiment: Experiment, head: JSON, epochs: list[JSON], people: dict[str, int]
) -> JSON:
    """Return what ``PrivateContextual.to_dict`` would, from what a store keeps."""
    counters, state = head["counters"], head["state"]
    known = None
    if state["people"] is not None:
        known = {"key": HASHED_BEFORE, "slots": by_count(people)}
    counted = {"decided": counters["rounds"], "counted": counters["counted"]}
    return head | {
        "arm_stream": counters["arm_stream"],
        "resumed": counters["resumed"] + experiment.resumed,
        "state": state | counted | {"open": epochs, "people": known},
    }


def _epoch(
    batch: OpenBatch, rounds: list[tuple[Event, Feedback | None]], arms: int, features: int
) -> JSON:
    """Return an open epoch as its state writes it down, with sums that are still to be counted."""
    counted = [(event, row) for event, row in rounds if event.position < batch.size]
    if [event.position for event, _ in counted] != list(range(len(counted))):
        raise ValueError("a round is missing")
    losses, waiting, members = [], [], []
    for event, row in counted:
        if row is None or row.context is None:
            raise ValueError("a context is missing")
        if row.context["person"] is not None:
            members.append(row.context["person"])
        loss = GIVEN_UP if row.given_up else WAITING if row.loss is None else row.loss
        losses.append(loss)
        if loss == WAITING:
            waiting.append([event.position, event.arm, row.context["phi"]])
    kept = batch.tally["epoch"]
    return {
        "number": batch.number,
        "start": kept["start"],
        "size": batch.size,
        "transform": kept["transform"],
        "products": np.zeros((arms, features * (features + 1) // 2), dtype=np.int64),
        "sums": np.zeros((arms, features), dtype=np.int64),
        "rounds": np.zeros(arms, dtype=np.int64),
        "losses": losses,
        "waiting": waiting,
        "numbers": [event.round for event, _ in counted],
        "members": members,
        "extras": kept["extras"],
        "closed": kept["closed"],
    }


def _phi(row: Feedback) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    assert row.context is not None
    return np.array(row.context["phi"], dtype=np.float64)


class ContextUnit(UnitOfWork):
    """A policy that decides by context."""

    def __init__(self, saved: Snapshot) -> None:
        self.experiment = saved.experiment
        self.policy, holders = assemble_context(saved)
        self.policy.on_release = self._note_release
        state = self.policy.state
        if state.people is not None:
            state.people.admitted = set()
            self._know_persons(saved)
        waiting = (one for location, one in holders.items() if self._waits(location))
        self._waiting = Waiting(due_of(one) for one in waiting if one.expires_at is not None)

    def begin(self, transaction: Transaction) -> None:
        """Start to collect what one transaction changes."""
        super().begin(transaction)
        self._rows: dict[Location, Feedback] = {}
        self._changed: set[int] = set()

    def _know_persons(self, saved: Snapshot) -> None:
        """Say whose rounds wait, so that a row that is written again says it too."""
        for row in saved.feedback:
            one = self._find((row.batch, row.position))
            if one is not None and row.context is not None and row.context["person"] is not None:
                one.who = int(row.context["person"], 16)

    # --- what is asked of it --------------------------------------------------------------

    def decide(
        self,
        name: str,
        advice: object = None,
        person: str | None = None,
        eligible: Iterable[ArmName] | None = None,
        context: Mapping[str, object] | None = None,
        *,
        defer: bool = False,
        now: float,
    ) -> Event:
        """Decide for an event by its context."""
        if name in self._events:
            return self._events[name]
        if self.experiment.stopped:
            raise ConflictError("this experiment has been stopped; it decides nothing more.")
        for word, given in (("advice", advice), ("eligible", eligible)):
            if given is not None:
                raise InputError(f"this experiment decides by context; leave {word} out.")
        if context is None:
            known = ", ".join(self.policy.encoder.asked)
            raise InputError(f"this experiment decides by context: give context, with {known}.")
        self._now, before = now, self.policy.state.opened
        made = self.policy.decide(context, person=person)
        location = made.batch, made.position
        if self.policy.state.opened > before:
            self._opened.add(made.batch)
        self._changed.add(made.batch)
        drawn = made.index, made.round, made.chance
        event = self._note_event(name, location, *drawn, defer=defer, now=now)
        if self._waits(location):
            self._touch(location, self._find(location))
            self._wait_for(event)
        return event

    def observe(self, event: Event, given: NewFeedback, *, now: float) -> None:
        """Count the feedback of an event."""
        policy = self.policy
        if given.bit is not None:
            raise InputError("this experiment takes a loss or a reward, not a device's bit.")
        if given.metrics is not None:
            raise InputError("this experiment has no metrics; leave metrics out.")
        units = feedback_to_units(given.loss, given.reward, policy.loss_range, clip=policy.clip)
        location = self._check_shown_in_time(event, now)
        waited = self._find(location)
        if waited is not None:
            self._touch(location, waited, units)
            self._waiting.deferred.pop(location, None)
            self._set_state(location, State.HEARD)
        sent = {"loss": given.loss, "reward": given.reward}
        taken = self._tell(event, lambda decision: policy.observe(decision, **sent))
        if taken and waited is not None:
            self.experiment.observed += 1

    def add_arm(self, name: ArmName) -> list[ArmName]:
        """Refuse it."""
        raise InputError(FIXED_ARMS)

    def retire_arm(self, name: ArmName) -> list[ArmName]:
        """Refuse it."""
        raise InputError(FIXED_ARMS)

    def collect(self) -> Changes | None:
        """Return what has changed since ``begin``, or None if nothing has."""
        if not (self._events or self._states or self._rows or self._releases):
            return None
        state = self.policy.state
        by_person = state.people is not None
        fresh = self._opened | (self._changed if by_person else set())
        counters = counters_of(self.policy)
        head = None
        if self._opened or self._releases:
            head = self.policy.to_dict(private=False) | {"counters": {}}
        return Changes(
            counters=counters | {"resumed": counters["resumed"] - self.experiment.resumed},
            observed=self.experiment.observed,
            head=head,
            events=list(self._events.values()),
            states=self._states,
            batches=[_batch_row(state.open[n]) for n in sorted(fresh) if n in state.open],
            feedback=[
                row for location, row in sorted(self._rows.items()) if location[0] in state.open
            ],
            releases=self._releases,
            people={} if state.people is None else state.people.take_admitted(),
        )

    # --- how it works ---------------------------------------------------------------------

    def _find(self, location: Location) -> WaitingRound | None:
        epoch = self.policy.state.open.get(location[0])
        return None if epoch is None else epoch.waiting.get(location[1])

    def _waits(self, location: Location) -> bool:
        return self._find(location) is not None

    def _touch(
        self,
        location: Location,
        one: WaitingRound | None,
        loss: int | None = None,
        *,
        up: bool = False,
    ) -> None:
        """Note what is kept of a round."""
        assert one is not None
        who = None if one.who is None else f"{one.who:016x}"
        context = {"phi": [] if up else one.phi.tolist(), "person": who}
        self._rows[location] = Feedback(*location, loss, up, None, None, context)

    def _pass_deadline(self, location: Location) -> None:
        """Stop waiting; a position that was never shown is not given to anyone else."""
        if location in self._waiting.deferred and self._waits(location):
            del self._waiting.deferred[location]
            self._set_state(location, State.VOID)
            self._leave(location)
        else:
            self._give_up(location)

    def _give_up(self, location: Location) -> None:
        """Count nothing for a round whose feedback has not come."""
        if self._waits(location):
            self._set_state(location, State.EXPIRED)
            self._leave(location)

    def _leave(self, location: Location) -> None:
        epoch, waited = self.policy.state.open[location[0]], self._find(location)
        assert waited is not None
        self._touch(location, waited, up=True)
        arm = self.policy.arms[waited.arm]
        spot = epoch.round_of(location[1]), *location
        with refusals_only():
            self.policy.give_up(Decision(arm, waited.arm, *spot, self.policy.state.identity))

    def _note_release(self, number: int, past: Past) -> None:
        """Note what an epoch released: noisy sums, and where contexts are protected products."""
        parts = [past.statistics.sums.ravel()]
        if self.policy.both:
            parts.append(past.statistics.products.ravel())
        values = [float(value) for part in parts for value in part]
        rounds = int(past.rounds.sum())
        self._releases.append(Release(number, 0, rounds, values, self._now))


def _batch_row(epoch: Epoch) -> OpenBatch:
    kept = {
        "start": epoch.start,
        "transform": epoch.counts.transform.tolist(),
        "extras": epoch.extras,
        "closed": epoch.closed,
    }
    return OpenBatch(epoch.number, epoch.size, 0, 0.0, {"epoch": kept})

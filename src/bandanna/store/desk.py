"""One experiment at work in memory: its policy, its deadlines, and what the store must be told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from heapq import heappop, heappush

from bandanna._core.types import JSON, ArmName, Decision, DecisionError, InputError
from bandanna.policy.codec import counters_to_dict
from bandanna.policy.policy import Policy
from bandanna.policy.state import Batch
from bandanna.policy.transitions import MIDDLE, rescaled
from bandanna.privacy.release import Released
from bandanna.store.assembly import assemble
from bandanna.store.batch_rows import batch_row, changes_by_round, feedback_row, kept_of
from bandanna.store.contract import ConflictError
from bandanna.store.given import Given
from bandanna.store.refusals import gone, whole_or_broken
from bandanna.store.rows import Changes, Event, Place, Release, Saved, State
from bandanna.store.waiting import Waiting, begins_slot, waits


class Desk:
    """A policy whose every change is collected, to be written in one transaction.

    Nothing it returns may leave before that transaction has ended well; if it does not, the desk
    is thrown away, and with it all noise that was drawn. Where others have changed the experiment
    meanwhile, a new desk takes from the one ``before`` what is still the same.
    """

    def __init__(self, saved: Saved, before: Desk | None = None) -> None:
        self.experiment = saved.experiment
        policy = None if before is None else before.policy
        self.policy: Policy
        self.policy, holders = assemble(saved, policy)
        self.policy.on_release = self._note_release
        self._learned: bytes | None = None
        """A digest of what was learned, as it was last written."""
        self._deadline: float | None = self.experiment.settings.get("deadline_seconds")
        if self.policy.state.people is not None:
            self.policy.state.people.admitted = set()
        self._waiting = Waiting(self.policy.state, holders)
        if before is not None:
            self._waiting.join(before._waiting, saved.unchanged)
        self.begin()

    def begin(self) -> None:
        """Start to collect what one transaction changes."""
        self._events: dict[str, Event] = {}
        self._holders: dict[Place, str] = {}
        self._states: dict[Place, State] = {}
        self._touched: set[Place] = set()
        self._opened: set[int] = set()
        self._releases: list[Release] = []
        self._now = 0.0

    # --- what is asked of it --------------------------------------------------------------

    def decide(
        self,
        name: str,
        advice: object = None,
        person: str | None = None,
        eligible: Iterable[ArmName] | None = None,
        *,
        defer: bool = False,
        now: float,
    ) -> Event:
        """Decide for an event; one of the same id in this transaction gets the same answer."""
        if name in self._events:
            return self._events[name]
        if self.experiment.stopped:
            raise ConflictError("this experiment has been stopped; it decides nothing more.")
        if defer and not (self.policy.experts is None is self.policy.people):
            raise InputError("defer is for experiments without experts and without per_person.")
        among = None if eligible is None else self.policy.among(eligible)
        opened = self.policy.state.open
        free = next((one for one in self._waiting.free if opened[one[0][0]].among == among), None)
        if free is not None:
            self._waiting.free.remove(free)
            place, chance = free
        else:
            made = self.policy.decide(advice, person=person, eligible=eligible)
            place, chance = (made.batch, made.position), made.chance
            if made.position == 0:
                self._opened.add(made.batch)
        state = State.DEFERRED if defer else State.SHOWN
        event = self._event(name, place, chance, state, now)
        if defer:
            self._waiting.deferred[place] = chance
        if event.expires_at is not None:
            heappush(self._waiting.due, (event.expires_at, place))
        self._events[name], self._holders[place] = event, name
        self._touched.add(place)
        return event

    def observe(self, event: Event, given: Given, *, now: float) -> None:
        """Count the feedback of an event, once: the first value stands.

        A repeat changes nothing and is answered alike whatever it says, so nobody can find out by
        trying what was sent before.
        """
        given.check(self.policy)
        place = self._check_shown_in_time(event, now)
        waited = waits(self.policy.state, place)
        try:
            with whole_or_broken():
                given.hand_to(self.policy, self._decision(event))
        except DecisionError as error:
            if error.reason == "given up":
                raise gone(event) from None
            if error.reason not in ("different", "forgotten"):
                raise
            return
        if waited:
            self.experiment.observed += 1
            self._show(place)
            self._touched.add(place)

    def give_up(self, event: Event, *, now: float) -> None:
        """Count the default loss for an event that waits for feedback; change nothing otherwise.

        A deferred event that nobody was shown counts for nothing from its deadline on, as before.
        """
        self.expire(now)
        void = self._states.get(event.place) is State.VOID
        over = void or event.state in (State.EXPIRED, State.VOID)
        if not over and event.place not in self._waiting.deferred:
            self._give_up(event.place)

    def activate(self, event: Event, *, now: float) -> None:
        """Say that a decision has been shown to somebody."""
        self._show(self._check_shown_in_time(event, now))

    def expire(self, now: float) -> float | None:
        """Count the default loss where the deadline has passed; free what was never shown.

        Returns the next deadline, if there is one.
        """
        self._now = now
        while self._waiting.due and self._waiting.due[0][0] <= now:
            _, place = heappop(self._waiting.due)
            if begins_slot(self.policy.state, place):
                self._finish_slot(place)
            elif place in self._waiting.deferred:
                self._waiting.free.append((place, self._waiting.deferred.pop(place)))
                self._set_state(place, State.VOID)
            else:
                self._give_up(place)
        return self._waiting.due[0][0] if self._waiting.due else None

    def collect(self) -> Changes | None:
        """Return what has changed since ``begin``, or None if nothing has."""
        if not (self._events or self._states or self._touched or self._releases):
            return None
        opened = self.policy.state.open
        touched = {batch for batch, _ in self._touched if batch in opened}
        kept = {number: kept_of(opened[number]) for number in touched}
        people = self.policy.state.people
        return Changes(
            counters=self._counters(),
            head=self._head(),
            observed=self.experiment.observed,
            events=list(self._events.values()),
            states=self._states,
            batches=[
                batch_row(opened[number], row)
                for number, row in kept.items()
                if number in self._opened or changes_by_round(row)
            ],
            feedback=[
                row
                for batch, position in sorted(self._touched)
                if batch in opened and (row := feedback_row(opened[batch], position))
            ],
            releases=self._releases,
            people={} if people is None else people.take_admitted(),
        )

    def _counters(self) -> JSON:
        """Return what changes with every round; resumptions are counted beside the head."""
        counters = counters_to_dict(self.policy.state)
        return counters | {"resumed": counters["resumed"] - self.experiment.resumed}

    def _head(self) -> JSON | None:
        """Return the policy without its open batches, if more than its counters changed.

        It can be large: it holds numbers for every arm.
        """
        if not (self._opened or self._releases):
            return None
        digest = _digest(self.policy.state.learned)
        if not self._releases and digest is not None and digest == self._learned:
            return None
        self._learned = digest
        return self.policy.to_dict(private=False) | {"counters": {}}

    # --- how it works ---------------------------------------------------------------------

    def _give_up(self, place: Place) -> None:
        """Count the default loss where feedback has not come."""
        if waits(self.policy.state, place):
            batch = self.policy.state.open[place[0]]
            self._set_state(place, State.EXPIRED)
            self._touched.add(place)
            with whole_or_broken():
                self.policy.give_up(self._decision_at(batch, place[1]))

    def _finish_slot(self, place: Place) -> None:
        """Close a person's place: its deadline is its first round's."""
        batch = self.policy.state.open[place[0]]
        owner = batch.owners[place[1]]
        for position in owner.rounds:
            if position in batch.waiting:
                self._set_state((batch.number, position), State.EXPIRED)
        self._touched.add(place)
        with whole_or_broken():
            self.policy.finish_slot(self._decision_at(batch, place[1]))

    def _check_shown_in_time(self, event: Event, now: float) -> Place:
        """Refuse what comes too late; the clock is the only judge."""
        self.expire(now)
        void = self._states.get(event.place) is State.VOID
        if void or event.state in (State.EXPIRED, State.VOID):
            raise gone(event)
        return event.place

    def _show(self, place: Place) -> None:
        if place in self._waiting.deferred:
            del self._waiting.deferred[place]
            self._set_state(place, State.SHOWN)

    def _set_state(self, place: Place, state: State) -> None:
        name = self._holders.get(place)
        if name is None:
            self._states[place] = state
        else:
            self._events[name] = self._events[name]._replace(state=state)
        if state is State.VOID:
            self._holders.pop(place, None)

    def _event(
        self, name: str, place: Place, chance: float | None, state: State, now: float
    ) -> Event:
        number, position = place
        batch = self.policy.state.open[number]
        return Event(
            name,
            self.experiment.owner,
            self.experiment.number,
            number,
            position,
            batch.arms[position],
            batch.round_of(position),
            None if chance is None else min(1.0, chance),
            now,
            None if self._deadline is None else now + self._deadline,
            state,
        )

    def _decision(self, event: Event) -> Decision:
        arm, identity = self.policy.arms[event.arm], self.policy.state.identity
        return Decision(arm, event.arm, event.round, event.batch, event.position, identity)

    def _decision_at(self, batch: Batch, position: int) -> Decision:
        arm = batch.arms[position]
        place = batch.round_of(position), batch.number, position
        return Decision(self.policy.arms[arm], arm, *place, self.policy.state.identity)

    def _note_release(self, batch: Batch, released: Released | None) -> None:
        """Note what a batch released, and of how many losses; of none, if nothing in it counted."""
        if batch.phase is not None and not isinstance(released, float | None):
            for (arm, count), mean in zip(batch.phase.counts.items(), released, strict=True):
                note = Release(batch.number, arm, count, float(mean), self._now)
                self._releases.append(note)
            return
        value: float | list[float] = MIDDLE
        if isinstance(released, float):
            value = rescaled(released, batch.size, batch.used)
        elif released is not None:
            value = released.tolist()
        self._releases.append(Release(batch.number, batch.choice, batch.used, value, self._now))


def _digest(learned: object) -> bytes | None:
    """Return a digest of what was learned, or None where that is another library's."""
    if not isinstance(learned, tuple):
        return None
    found = hashlib.blake2b(digest_size=16)
    for array in learned:
        found.update(array.tobytes())
    return found.digest()

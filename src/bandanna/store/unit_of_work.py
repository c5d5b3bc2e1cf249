"""The unit of work: an experiment in memory whose changes are written in one transaction.

Here are events, where they stand, and their deadlines; ``policy_unit`` knows the policy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush, nsmallest
from typing import NamedTuple

from bandanna._core.types import ArmName, Decision, DecisionError, StateFileError
from bandanna.policy.base import BasePolicy
from bandanna.policy.facade import DAMAGE
from bandanna.store.contract import Transaction, gone, refusals_only
from bandanna.store.rows import (
    WAITING_STATES,
    Changes,
    Due,
    Event,
    EventState,
    Experiment,
    Location,
    ReleaseRow,
)


class NewFeedback(NamedTuple):
    """Feedback as it was sent; one of the first three is not None."""

    loss: float | None = None
    reward: float | None = None
    bit: int | None = None
    metrics: dict[str, float] | None = None
    """With a loss or a reward, where the policy has metrics."""


def holders_of(events: Iterable[Event]) -> dict[Location, Event]:
    """Return for each position the event that holds it: one that is not void, if there is one."""
    holders: dict[Location, Event] = {}
    for event in events:
        if event.location not in holders or event.state is not EventState.VOID:
            holders[event.location] = event
    return holders


def due_of(event: Event) -> Due:
    """Return when an event's feedback is due."""
    assert event.expires_at is not None, "it has no deadline"
    deferred = event.state is EventState.DEFERRED
    return Due(event.expires_at, event.round, event.location, event.chance, deferred)


@contextmanager
def reading(experiment: Experiment) -> Iterator[None]:
    """Say of what cannot be read only whose it is, and no content."""
    try:
        yield
    except DAMAGE as error:
        raise StateFileError(
            f"what the database holds of {experiment.id} is damaged: {type(error).__name__}."
        ) from None


PAGE = 1_000
"""Deadlines, and positions that are free, that are read at once."""

MOST_DUE = 20_000
"""Deadlines that are kept in memory: the first ones."""

AT_ONCE = 500
"""Deadlines that pass in one step, so that others wait for no longer."""

NEVER = math.inf, 0


class Deadlines:
    """Deadlines and free positions of one experiment: the first of them, others when they come.

    Parameters
    ----------
    due
        All deadlines; None if they are to be read as time goes on.
    """

    def __init__(self, due: Iterable[Due] | None = None) -> None:
        self.free: deque[tuple[Location, float | None]] = deque()
        """Locations of events that were never shown, and the chances of their arms."""
        self.more_free = due is None
        """Whether there may be more of them than are known here."""
        self.deferred: dict[Location, float | None] = {}
        """Locations, among those that are due, of events that have not been shown yet."""
        self.due: list[tuple[float, int, Location]] = []
        """Deadlines, as a heap: where the clock was set back, later decisions may be due first."""
        self.known = (-math.inf, 0) if due is None else NEVER
        """Deadlines up to this one, and rounds at that one, are in the heap; later ones are not."""
        for one in due or ():
            self._put(one)

    def add(self, one: Due) -> None:
        """Wait for another event, unless it will be read when its time comes."""
        if one[:2] <= self.known:
            self._put(one)
            if len(self.due) > MOST_DUE:
                self._shorten()

    def _put(self, one: Due) -> None:
        heappush(self.due, one[:3])
        if one.deferred:
            self.deferred[one.location] = one.chance

    def _shorten(self) -> None:
        """Keep the first deadlines alone."""
        self.due = nsmallest(MOST_DUE // 2, self.due)
        self.known = self.due[-1][:2]
        kept = {location for *_, location in self.due}
        self.deferred = {at: chance for at, chance in self.deferred.items() if at in kept}

    def read_on(self, page: list[Due], limit: int, written: Iterable[Due]) -> None:
        """Add a page of deadlines, the next ones; ``written`` are not in the store yet."""
        before, self.known = self.known, page[-1][:2] if len(page) == limit else NEVER
        for one in (*page, *(one for one in written if before < one[:2] <= self.known)):
            self._put(one)


class UnitOfWork(ABC):
    """A policy whose every change is collected, to be written in one transaction.

    Nothing it returns may leave before that transaction has ended well; if it does not, the unit
    is thrown away, and with it all noise that was drawn.
    """

    experiment: Experiment
    policy: BasePolicy
    _waiting: Deadlines

    def begin(self, transaction: Transaction) -> None:
        """Start to collect what one transaction changes; what is needed is read in it."""
        self._transaction = transaction
        self._events: dict[str, Event] = {}
        self._visits: dict[str, Event] = {}
        self._holders: dict[Location, str] = {}
        self._states: dict[Location, EventState] = {}
        self._touched: set[Location] = set()
        self._opened: set[int] = set()
        self._releases: list[ReleaseRow] = []
        self._now = 0.0

    @property
    def deadline(self) -> float | None:
        """Seconds after which feedback is not waited for."""
        seconds: float | None = self.experiment.settings.get("deadline_seconds")
        return seconds

    # --- what is asked of it --------------------------------------------------------------

    @abstractmethod
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
        """Decide for an event; one of the same id in this transaction gets the same answer."""

    def decide_for(
        self,
        visitor: str,
        decide: Callable[[], Event],
        eligible: Sequence[ArmName] | None,
        *,
        sticky: float | None,
        defer: bool = False,
        now: float,
    ) -> Event:
        """Return the decision that a visitor has, or decide.

        It is theirs for so many ``sticky`` seconds, or until its deadline. One that was never shown
        in time is nobody's any more, nor is one whose arm is not eligible now.
        """
        known = self._visits.get(visitor)
        if known is None:
            known = self._transaction.latest(self.experiment.owner, visitor)
        if (
            known is None
            or self.experiment.stopped
            or not self._holds(known, eligible, sticky, now)
        ):
            made = decide()
            known = self._events[made.id] = made._replace(visitor=visitor)
        elif not defer:
            self._show(known)
        self._visits[visitor] = known
        return known

    def _holds(
        self, event: Event, eligible: Sequence[ArmName] | None, sticky: float | None, now: float
    ) -> bool:
        """Whether a visitor still has a decision."""
        state = self._state_of(event)
        late = event.expires_at is not None and event.expires_at <= now
        if state is EventState.VOID or (state is EventState.DEFERRED and late):
            return False
        if eligible is not None and self.policy.arms[event.arm] not in eligible:
            return False
        until = event.expires_at if sticky is None else event.made_at + sticky
        return until is None or now < until

    @abstractmethod
    def observe(self, event: Event, given: NewFeedback, *, now: float) -> None:
        """Count the feedback of an event, once: the first value stands.

        A repeat changes nothing and is answered alike whatever it says, so nobody can find out by
        trying what was sent before.
        """

    @abstractmethod
    def add_arm(self, name: ArmName) -> list[ArmName]:
        """Add an arm, unless it is there; returns the arms that are played from now on."""

    @abstractmethod
    def retire_arm(self, name: ArmName) -> list[ArmName]:
        """Retire an arm, unless that was done before; returns the arms that are still played."""

    @abstractmethod
    def collect(self) -> Changes | None:
        """Return what has changed since ``begin``, or None if nothing has."""

    def give_up(self, event: Event, *, now: float) -> None:
        """Stop waiting for an event's feedback; change nothing if it has come.

        A deferred event that nobody was shown counts for nothing from its deadline on, as before.
        """
        self.expire(now)
        if self._state_of(event) is EventState.SHOWN:
            self._give_up(event.location)

    def activate(self, event: Event, *, now: float) -> None:
        """Say that a decision has been shown to somebody."""
        self._check_shown_in_time(event, now)
        self._show(event)

    def expire(self, now: float) -> float | None:
        """Stop waiting where the deadline has passed, for a while.

        Returns the next deadline, if there is one; it has passed where more is left to do.
        """
        self._now, waiting = now, self._waiting
        for _ in range(AT_ONCE):
            if not waiting.due and waiting.known != NEVER:
                page = self._transaction.due(self.experiment.number, waiting.known, PAGE)
                waiting.read_on(page, PAGE, map(due_of, self._waiting_events()))
            if not waiting.due or waiting.due[0][0] > now:
                break
            self._pass_deadline(heappop(waiting.due)[2])
        return waiting.due[0][0] if waiting.due else None

    def _waiting_events(self) -> Iterator[Event]:
        """Yield the events of this transaction that have deadlines."""
        for event in self._events.values():
            if event.expires_at is not None and event.state in WAITING_STATES:
                yield event

    # --- how it works ---------------------------------------------------------------------

    @abstractmethod
    def _pass_deadline(self, location: Location) -> None:
        """Stop waiting for a round whose deadline has passed."""

    @abstractmethod
    def _give_up(self, location: Location) -> None:
        """Stop waiting for a round, if its feedback has not come."""

    def _note_event(
        self,
        name: str,
        location: Location,
        arm: int,
        number: int,
        chance: float | None,
        *,
        defer: bool,
        now: float,
    ) -> Event:
        """Note the decision of a round for an event."""
        event = Event(
            name,
            self.experiment.owner,
            self.experiment.number,
            *location,
            arm,
            number,
            None if chance is None else min(1.0, chance),
            now,
            None if self.deadline is None else now + self.deadline,
            EventState.DEFERRED if defer else EventState.SHOWN,
        )
        self._events[name], self._holders[location] = event, name
        return event

    def _wait_for(self, event: Event) -> None:
        """Wait for an event's feedback until its deadline, if it has one."""
        if event.expires_at is not None:
            self._waiting.add(due_of(event))

    def _decision(self, event: Event) -> Decision:
        arm, identity = self.policy.arms[event.arm], self.policy.state.identity
        return Decision(arm, event.arm, event.round, event.batch, event.position, identity)

    def _tell(self, event: Event, tell: Callable[[Decision], None]) -> bool:
        """Tell the policy of feedback; returns whether it took it, or had it before."""
        try:
            with refusals_only():
                tell(self._decision(event))
        except DecisionError as error:
            if error.reason == "given up":
                raise gone(event) from None
            if error.reason not in ("different", "forgotten"):
                raise
            return False
        return True

    def _check_shown_in_time(self, event: Event, now: float) -> Location:
        """Refuse what comes too late; the clock is the only judge."""
        self.expire(now)
        state = self._state_of(event)
        late = event.expires_at is not None and event.expires_at <= now
        if state in (EventState.EXPIRED, EventState.VOID) or (
            late and state is not EventState.HEARD
        ):
            raise gone(event)
        return event.location

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

"""The unit of work: an experiment in memory whose changes are written in one transaction.

Here is what both kinds share: events, where they stand, and their deadlines. ``policy_unit`` and
``context_unit`` are for the two kinds of policies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from bandanna._core.types import ArmName, Decision, DecisionError, StateFileError
from bandanna.policy.facade import DAMAGE
from bandanna.store.contract import gone, refusals_only
from bandanna.store.rows import Changes, Event, Experiment, Location, Release, State


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
        if event.location not in holders or event.state is not State.VOID:
            holders[event.location] = event
    return holders


@contextmanager
def reading(experiment: Experiment) -> Iterator[None]:
    """Say of what cannot be read only whose it is, and no content."""
    try:
        yield
    except DAMAGE as error:
        raise StateFileError(
            f"what the database holds of {experiment.id} is damaged: {type(error).__name__}."
        ) from None


class Waiting:
    """Deadlines and positions of one experiment.

    Parameters
    ----------
    waiting
        The events that hold positions whose feedback has not come.
    begun
        Those that began a person's slot which is still open.
    """

    def __init__(
        self, waiting: Mapping[Location, Event], begun: Mapping[Location, Event] | None = None
    ) -> None:
        self.free = deque((p, e.chance) for p, e in waiting.items() if e.state is State.VOID)
        """Locations of events that were never shown, and the chances of their arms."""
        self.deferred = {p: e.chance for p, e in waiting.items() if e.state is State.DEFERRED}
        """Locations of events that have not been shown yet."""
        open_rounds = {**waiting, **(begun or {})}
        due = [(e.expires_at, p) for p, e in open_rounds.items() if e.state is not State.VOID]
        self.due = [(at, location) for at, location in due if at is not None]
        """Deadlines, as a heap: where the clock was set back, later decisions may be due first."""
        heapify(self.due)

    def join(self, before: Waiting, same: Container[int]) -> None:
        """Add what was known before of batches that are still the same."""
        self.free.extend(one for one in before.free if one[0][0] in same)
        self.deferred |= {p: chance for p, chance in before.deferred.items() if p[0] in same}
        self.due += [one for one in before.due if one[1][0] in same]
        heapify(self.due)


class UnitOfWork(ABC):
    """A policy whose every change is collected, to be written in one transaction.

    Nothing it returns may leave before that transaction has ended well; if it does not, the unit
    is thrown away, and with it all noise that was drawn.
    """

    experiment: Experiment
    policy: Any
    """Its policy, of the kind that the unit is for."""
    _waiting: Waiting

    def begin(self) -> None:
        """Start to collect what one transaction changes."""
        self._events: dict[str, Event] = {}
        self._holders: dict[Location, str] = {}
        self._states: dict[Location, State] = {}
        self._touched: set[Location] = set()
        self._opened: set[int] = set()
        self._releases: list[Release] = []
        self._now = 0.0

    @property
    def deadline(self) -> float | None:
        """Seconds after which feedback is not waited for."""
        found: float | None = self.experiment.settings.get("deadline_seconds")
        return found

    # --- what is asked of it --------------------------------------------------------------

    @abstractmethod
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
        """Decide for an event; one of the same id in this transaction gets the same answer."""

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
        void = self._states.get(event.location) is State.VOID
        over = void or event.state in (State.EXPIRED, State.VOID)
        if not over and event.location not in self._waiting.deferred:
            self._give_up(event.location)

    def activate(self, event: Event, *, now: float) -> None:
        """Say that a decision has been shown to somebody."""
        self._show(self._check_shown_in_time(event, now))

    def expire(self, now: float) -> float | None:
        """Stop waiting where the deadline has passed.

        Returns the next deadline, if there is one.
        """
        self._now = now
        while self._waiting.due and self._waiting.due[0][0] <= now:
            self._pass_deadline(heappop(self._waiting.due)[1])
        return self._waiting.due[0][0] if self._waiting.due else None

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
            State.DEFERRED if defer else State.SHOWN,
        )
        self._events[name], self._holders[location] = event, name
        return event

    def _wait_for(self, event: Event) -> None:
        """Wait for an event's feedback until its deadline, if it has one."""
        if event.state is State.DEFERRED:
            self._waiting.deferred[event.location] = event.chance
        if event.expires_at is not None:
            heappush(self._waiting.due, (event.expires_at, event.location))

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
        over = State.EXPIRED, State.VOID
        if event.state in over or self._states.get(event.location) in over:
            raise gone(event)
        return event.location

    def _show(self, location: Location) -> None:
        if location in self._waiting.deferred:
            del self._waiting.deferred[location]
            self._set_state(location, State.SHOWN)

    def _set_state(self, location: Location, state: State) -> None:
        name = self._holders.get(location)
        if name is None:
            self._states[location] = state
        else:
            self._events[name] = self._events[name]._replace(state=state)
        if state is State.VOID:
            self._holders.pop(location, None)

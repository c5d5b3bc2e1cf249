"""Deadlines of feedback, and positions that were never shown to anybody."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from heapq import heappush, nsmallest

from bandanna.store.rows import Due, Event, EventState, Location


def due_of(event: Event) -> Due:
    """Return when an event's feedback is due."""
    assert event.expires_at is not None, "it has no deadline"
    deferred = event.state is EventState.DEFERRED
    return Due(event.expires_at, event.round, event.location, event.chance, deferred)


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

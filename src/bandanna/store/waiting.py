"""What places of open batches wait for: their deadline, to be shown, to be given to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from heapq import heapify

from bandanna.policy.state import State as PolicyState
from bandanna.store.rows import Event, Place, State


def waits(state: PolicyState, place: Place) -> bool:
    """Whether the feedback of a place has not come."""
    batch = state.open.get(place[0])
    return batch is not None and place[1] in batch.waiting


def begins_slot(state: PolicyState, place: Place) -> bool:
    """Whether a round is the first of a person's slot that is still open."""
    batch = state.open.get(place[0])
    if batch is None or place[1] >= len(batch.owners):
        return False
    owner = batch.owners[place[1]]
    return owner.person in batch.open_slots and owner.rounds[:1] == [place[1]]


class Waiting:
    """Deadlines and places of one experiment, from the events that hold its places."""

    def __init__(self, state: PolicyState, holders: dict[Place, Event]) -> None:
        waiting = {place: event for place, event in holders.items() if waits(state, place)}
        self.free = deque((p, e.chance) for p, e in waiting.items() if e.state is State.VOID)
        """Places of events that were never shown, and the chances of their arms."""
        self.deferred = {p: e.chance for p, e in waiting.items() if e.state is State.DEFERRED}
        """Places of events that have not been shown yet."""
        open_places = {p: e for p, e in holders.items() if p in waiting or begins_slot(state, p)}
        due = [(e.expires_at, p) for p, e in open_places.items() if e.state is not State.VOID]
        self.due = [(at, place) for at, place in due if at is not None]
        """Deadlines, as a heap: where the clock was set back, later decisions may be due first."""
        heapify(self.due)

    def join(self, before: Waiting, same: Container[int]) -> None:
        """Add what was known before of batches that are still the same."""
        self.free.extend(one for one in before.free if one[0][0] in same)
        self.deferred |= {p: chance for p, chance in before.deferred.items() if p[0] in same}
        self.due += [one for one in before.due if one[1][0] in same]
        heapify(self.due)

"""A batch of places: each belongs to a person, and counts the mean of its rounds."""

from __future__ import annotations

from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.types import JSON
from bandanna.policies.among import Drawn
from bandanna.policies.batch import WAITING, Batch
from bandanna.policies.people import People
from bandanna.policies.short import sealed
from bandanna.privacy.release import Tally


class Place:
    """One person's place in a batch."""

    __slots__ = ("counted", "counts", "person", "rounds")

    def __init__(self, person: int, *, counts: bool) -> None:
        self.person = person
        self.counts = counts
        """Whether its feedback is used; otherwise the person had all their places before."""
        self.rounds: list[int] = []
        """Positions of its rounds in the batch."""
        self.counted: int | None = None
        """What it counted in the batch's sum, once it closed."""


class PlacesBatch(Batch):
    """Places that are released together; ``size`` of them fill it.

    Rounds keep positions of their own, as in any batch. A place that closed while its batch still
    fills takes no more rounds: its person meets the same arm, and that feedback is not used. After
    as many such rounds as it was to have places, the batch takes no more people: see ``short.py``.

    An interrupt at any line leaves a place that is closed by ``finish``, or one whose feedback is
    not counted; never a loss counted twice, nor a person with a place too many.
    """

    __slots__ = ("open_places", "owners", "people", "places", "unused")

    def __init__(self, people: People, number: int, size: int, drawn: Drawn, tally: Tally) -> None:
        super().__init__(number, size, drawn, tally)
        self.people = people
        self.places: dict[int, Place] = {}
        self.open_places: dict[int, Place] = {}
        """Places that further rounds may join."""
        self.owners: list[Place] = []
        """Place of each round."""
        self.unused = 0
        """Rounds of people whose place here had closed: in no place, and not learned from."""

    @property
    def full(self) -> bool:
        """Whether it takes no more people."""
        return len(self.places) >= self.size or sealed(self.unused, self.size)

    @property
    def complete(self) -> bool:
        """Whether it can be released."""
        return self.full and not self.open_places and not self.waiting

    def count_used(self) -> int:
        """Return how many of its places count: public, by who came and how often."""
        return sum(place.counts for place in self.places.values())

    @property
    def missed(self) -> int:
        """Places that count nothing or lack feedback, and rounds that are in no place."""
        return self.unused + sum(
            not place.counts or not self.given_up.isdisjoint(place.rounds)
            for place in self.places.values()
        )

    def open_round(
        self, number: int, arm: int, ticket: Ticket | None, person: int | None = None
    ) -> int:
        """Add a round of a person, in their place where that is open."""
        assert person is not None, "places belong to persons"
        place = self.places.get(person) or self._open_place(person)
        position = len(self.losses)
        if len(self.arms) > position:  # what an interrupt left behind
            del self.arms[position:], self.owners[position:], self.numbers[position:]
        self.arms.append(arm)
        self.owners.append(place)
        self.numbers.append(number)
        self.losses.append(WAITING)
        if person in self.open_places:
            place.rounds.append(position)
            self.waiting[position] = ticket
            if len(place.rounds) >= self.people.rounds_per_place:
                del self.open_places[person]
        else:
            self.unused += 1
        return position

    def _open_place(self, person: int) -> Place:
        """Take a place for a person: it is counted as theirs before it is one."""
        place = Place(person, counts=self.people.admit(person))
        self.open_places[person] = place
        self.places[person] = place
        self.people.find_in(person, self)
        return place

    def count(self, position: int, units: int) -> None:
        """Take the feedback of a round; its place counts once it takes no more."""
        self.ticket = ticket = self.waiting.pop(position)
        self.losses[position] = units
        self._settle(self.owners[position], ticket)

    def give_up(self, position: int, units: int) -> None:
        """Leave a round out of its place's mean."""
        self.given_up.add(position)
        self.ticket = ticket = self.waiting.pop(position)
        self._settle(self.owners[position], ticket)

    def finish(self, person: int) -> None:
        """Close a person's place with the feedback that has come."""
        place, ticket = self.places[person], None
        self.open_places.pop(person, None)
        for position in place.rounds:
            if position in self.waiting:
                self.given_up.add(position)
                self.ticket = ticket = self.waiting.pop(position)
        self._settle(place, ticket)

    def _settle(self, place: Place, ticket: Ticket | None) -> None:
        """Count a place, once, if no round of it can change any more."""
        if place.person in self.open_places or place.counted is not None:
            return
        known, missed = [], False
        losses, waiting, given_up = self.losses, self.waiting, self.given_up
        for position in place.rounds:
            if position in waiting:
                return
            if position in given_up:
                missed = True
            elif losses[position] != WAITING:
                known.append(losses[position])
        if not known and not missed:
            return  # an interrupt came before anyone knew of a round of it: nothing to count
        units = rounded_mean(known) if known and place.counts else self.people.default
        place.counted = units
        if place.counts:
            self.tally.add(units, ticket)

    def move_to(self, people: People) -> None:
        """Go on with another count of people's places."""
        self.people = people
        for person in self.places:
            people.find_in(person, self)

    def erase(self) -> None:
        """Forget all feedback, and who gave it."""
        super().erase()
        self.people.forget(self)
        self.places, self.owners = {}, []

    def to_dict(self) -> JSON:
        """Return everything, raw feedback included, as plain values."""
        decided = len(self.losses)
        return super().to_dict() | {
            "owners": [f"{place.person:016x}" for place in self.owners[:decided]],
            "places": [
                [f"{person:016x}", place.counts, place.rounds, place.counted]
                for person, place in self.places.items()
            ],
            "open_places": [
                f"{person:016x}" for person in self.open_places if person in self.places
            ],
            "unused": self.unused,
        }

    def counted(self) -> list[int]:
        """Return what is in its sum so far."""
        counting = (place for place in self.places.values() if place.counts)
        return [place.counted for place in counting if place.counted is not None]


def rounded_mean(units: list[int]) -> int:
    """Return the mean of whole numbers, rounded half to even: no floating point.

    Examples
    --------
    >>> rounded_mean([1, 2]), rounded_mean([2, 3]), rounded_mean([0, 0, 1])
    (2, 2, 0)
    """
    if len(units) == 1:
        return units[0]
    whole, rest = divmod(sum(units), len(units))
    twice = 2 * rest - len(units)
    return whole + (twice > 0 or (twice == 0 and whole % 2 == 1))


def load_places(batch: PlacesBatch, saved: JSON) -> None:
    """Read what ``PlacesBatch.to_dict`` adds, refusing impossible values."""
    for name, counts, rounds, counted in saved["places"]:
        place = Place(int(name, 16), counts=counts is True)
        place.rounds = [int(position) for position in rounds]
        place.counted = None if counted is None else int(counted)
        batch.places[place.person] = place
        batch.people.find_in(place.person, batch)
    batch.owners = [batch.places[int(name, 16)] for name in saved["owners"]]
    batch.unused = int(saved.get("unused", 0))
    opened = [int(name, 16) for name in saved["open_places"]]
    batch.open_places = {person: batch.places[person] for person in opened}
    good = (
        len(batch.owners) == len(saved["losses"])
        and len(batch.places) == len(saved["places"]) <= batch.size
        and all(place.counted is None for place in batch.open_places.values())
        and all(0 <= units <= UNITS for units in batch.counted())
        and 0 <= batch.unused <= len(batch.owners)
        and all(_owns(batch, place) for place in batch.places.values())
    )
    if not good:
        raise ValueError(f"batch {batch.number} holds impossible places")


def _owns(batch: PlacesBatch, place: Place) -> bool:
    in_order = place.rounds == sorted(set(place.rounds)) and min(place.rounds, default=0) >= 0
    return in_order and all(batch.owners[position] is place for position in place.rounds)

"""People who come back: places in batches belong to persons, and each may have so many.

With a rule for people a batch holds places, not rounds. Whoever comes back while their place is
open meets the arm of its batch again, and all rounds of a place count once, by their mean: one
person moves a batch's sum by at most one loss, however often they came. ``docs/theory/people.md``
has the proofs.

Persons are known by a keyed hash alone. Two who share one, which takes billions of people, share
their places too: less is learned, and the promise holds.
"""

from __future__ import annotations

import math
import secrets
from hashlib import blake2b
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

from bandanna._core import checks
from bandanna._core.types import JSON, InputError
from bandanna.privacy.composition import check_places

if TYPE_CHECKING:
    from bandanna.policies.places import PlacesBatch

KEY_BYTES = 16
USUAL = (str, int)


class PeopleRule(NamedTuple):
    """What is promised to a person, and the public rule by which places fill and close."""

    epsilon: float
    """For everything a person contributes; so is delta."""
    delta: float
    per_person: int
    """Places a person may have, each in a batch of its own."""
    rounds_per_place: int | None
    """Rounds after which a place takes no more; None: it stays open until ``finish``."""
    people: int | None = None
    """How many there are, where that was said: batches are then small enough for them."""


def check_rule(
    epsilon: float,
    delta: object,
    per_person: object,
    rounds_per_place: object,
    people: object = None,
) -> PeopleRule | None:
    """Take a rule for people as a user gives it; None if there is none."""
    if per_person is None:
        if rounds_per_place is not None:
            raise InputError("rounds_per_place goes with per_person, the places a person may have.")
        if people is not None:
            raise InputError("people= goes with per_person=, the slots a person may have.")
        return None
    rounds = (
        None
        if rounds_per_place is None
        else checks.whole("rounds_per_place", rounds_per_place, at_least=1)
    )
    places = check_places(per_person)
    known = None if people is None else checks.whole("people", people, 1, checks.MAX_ROUNDS)
    return PeopleRule(checks.epsilon(epsilon), checks.delta(delta), places, rounds, known)


class People:
    """Who has had how many places, and where those are that may still matter."""

    def __init__(self, rule: PeopleRule, default: int) -> None:
        self.rule = rule
        self.rounds_per_place: float = rule.rounds_per_place or math.inf
        self.default = default
        """What a place counts that has no feedback, or that is one too many, in grid units."""
        self.batches: dict[int, PlacesBatch] = {}
        """The newest open batch in which a person has had a place."""
        self._use(secrets.token_bytes(KEY_BYTES))
        self._places: dict[int, int] = {}
        self.admitted: set[int] | None = None
        """Who took a place since someone last asked; noted for those who store it."""

    def __len__(self) -> int:
        return len(self._places)

    @property
    def used(self) -> int:
        """Places that all persons together have had."""
        return sum(self._places.values())

    @property
    def with_places_left(self) -> int:
        """How many persons are known who may have further places: public, as who comes is."""
        most = self.rule.per_person
        return sum(had < most for had in self._places.values())

    def known_as(self, person: object) -> int:
        """Return the keyed hash of a person."""
        if type(person) not in USUAL and (
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

    def admit(self, person: int) -> bool:
        """Count one more place of a person; False if it is one too many."""
        had = self._places.get(person, 0)
        if had >= self.rule.per_person:
            return False
        self._places[person] = had + 1
        if self.admitted is not None:
            self.admitted.add(person)
        return True

    def take_admitted(self) -> dict[str, int]:
        """Return who took a place since this was last asked, and how many they have had."""
        noted, self.admitted = self.admitted or (), set()
        return {f"{person:016x}": self._places[person] for person in noted}

    def find_in(self, person: int, batch: PlacesBatch) -> None:
        """Note that a person has a place in an open batch."""
        known = self.batches.get(person)
        if known is None or known.number < batch.number:
            self.batches[person] = batch

    def join(self, before: People) -> None:
        """Add places that were known before; what is known here is newer."""
        before._places.update(self._places)
        self._places = before._places

    def forget(self, batch: PlacesBatch) -> None:
        """Forget where the people of a batch that closes were."""
        for person in batch.places:
            if self.batches.get(person) is batch:
                del self.batches[person]

    def to_dict(self, *, persons: bool = True) -> JSON:
        """Return everything as plain values; without ``persons``, neither hashes nor their key."""
        if not persons:
            return {}
        by_count: dict[str, list[str]] = {}
        for person, had in self._places.items():
            by_count.setdefault(str(had), []).append(f"{person:016x}")
        return {"key": self._key.hex(), "places": by_count}

    def load(self, saved: JSON) -> None:
        """Go on from what ``to_dict`` gave, checking every value anew."""
        self._use(bytes.fromhex(saved["key"]))
        for places, people in saved["places"].items():
            had = checks.whole("places", int(places), 1, self.rule.per_person)
            self._places |= {int(person, 16): had for person in people}

    def _use(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError("its key for people is damaged")
        self._key = key
        self._keyed = blake2b(key=key, digest_size=8)

"""Which identity issued which decision: each time a policy is loaded it goes on under a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

SavedIssuer = tuple[str, int, list[tuple[int, int]]]
"""What ``to_list`` gives for each, as JSON gives it back."""


class Issuer(NamedTuple):
    """An identity, and from where on it issues decisions."""

    identity: str
    batch: int
    """The first batch that is wholly its own."""
    joined: dict[int, int]
    """Batches begun before, each with the position from which on it goes on with them."""

    def issued(self, batch: int, position: int) -> bool:
        """Whether a round is its own, or a later identity's."""
        begin = self.joined.get(batch)
        return batch >= self.batch or (begin is not None and position >= begin)


class Issuers:
    """The identities of a policy so far."""

    def __init__(self, identity: str) -> None:
        self._all = [Issuer(identity, 0, {})]

    def __contains__(self, identity: str) -> bool:
        return any(issuer.identity == identity for issuer in self._all)

    def issuer_of(self, batch: int, position: int) -> str:
        """Return who issued a round, or would have."""
        for issuer in reversed(self._all):
            if issuer.issued(batch, position):
                return issuer.identity
        return self._all[0].identity

    def to_list(self) -> list[list[object]]:
        """Return plain values."""
        return [[who, batch, [*map(list, joined.items())]] for who, batch, joined in self._all]

    def resume(self, saved: Iterable[SavedIssuer]) -> str:
        """Go on from what ``to_list`` gave under the latest identity, which is returned."""
        self._all = [
            Issuer(str(who), int(batch), {int(number): int(place) for number, place in begun})
            for who, batch, begun in saved
        ]
        return self._all[-1].identity

    def load(
        self, saved: Iterable[SavedIssuer], identity: str, batches: int, joined: Mapping[int, int]
    ) -> None:
        """Go on from what ``to_list`` gave, under a new identity."""
        self.resume(saved)
        self._all.append(Issuer(identity, batches, dict(joined)))

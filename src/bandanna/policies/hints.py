"""Why a policy learns nothing, and what to do: from public counts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandanna.policies.places import PlacesBatch

if TYPE_CHECKING:
    from bandanna.policies.ledger import Ledger
    from bandanna.policies.people import PeopleRule

MANY = 3
"""After so many times a batch's decisions without a release there is something to say."""


def hint(ledger: Ledger, batch: int, rule: PeopleRule | None) -> str:
    """Return a sentence about a policy that is stuck; empty while it is not."""
    opened = list(ledger.open.values())
    rounds, waiting = sum(len(one.losses) for one in opened), ledger.waiting
    decided = ledger.rounds
    if decided < MANY * batch:
        return ""
    if rule is not None and 2 * ledger.missed > decided:
        return (
            f"{ledger.missed:,} of {decided:,} rounds or slots were not learned from: most who "
            f"come have had all their slots ({rule.per_person:,}) or have one in the open batch. "
            f"Allow more with per_person=, or use a smaller batch="
        )
    if rounds < MANY * batch or 2 * rounds < decided:
        return ""
    slots = sum(len(one.open_places) for one in opened if isinstance(one, PlacesBatch))
    if rule is not None and slots:
        until = "finish(person) is called"
        if rule.rounds_per_place is not None:
            until = f"{rule.rounds_per_place:,} rounds of their person, or until {until}"
        return (
            f"{slots:,} slots are open until {until}, and no batch is released before its slots "
            f"close: call finish by a public rule, such as a fixed time, or use rounds_per_place=1"
        )
    if waiting:
        return (
            f"{waiting:,} decisions wait for feedback, and no batch is released before its "
            f"feedback has come: call observe, or give_up by a public rule, such as a fixed time"
        )
    return ""

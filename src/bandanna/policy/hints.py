"""Why a policy learns nothing, and what to do: from public counts alone."""

from __future__ import annotations

from bandanna.policy.state import State
from bandanna.spec import PeopleRule

MANY = 3
"""After so many times a batch's decisions without a release there is something to say."""


def hint(state: State, batch: int, rule: PeopleRule | None) -> str:
    """Return a sentence about a policy that is stuck; empty while it is not."""
    opened = list(state.open.values())
    rounds, waiting = sum(len(one.losses) for one in opened), state.waiting
    decided = state.rounds
    if decided < MANY * batch:
        return ""
    if rule is not None and 2 * state.missed > decided:
        return (
            f"{state.missed:,} of {decided:,} rounds or slots were not learned from: most who "
            f"come have had all their slots ({rule.per_person:,}) or have one in the open batch. "
            f"Allow more with per_person=, or use a smaller batch="
        )
    if rounds < MANY * batch or 2 * rounds < decided:
        return ""
    slots = sum(len(one.open_slots) for one in opened)
    if rule is not None and slots:
        until = "finish(person) is called"
        if rule.rounds_per_slot is not None:
            until = f"{rule.rounds_per_slot:,} rounds of their person, or until {until}"
        return (
            f"{slots:,} slots are open until {until}, and no batch is released before its slots "
            f"close: call finish by a public rule, such as a fixed time, or use rounds_per_slot=1"
        )
    if waiting:
        return (
            f"{waiting:,} decisions wait for feedback, and no batch is released before its "
            f"feedback has come: call observe, or give_up by a public rule, such as a fixed time"
        )
    return ""

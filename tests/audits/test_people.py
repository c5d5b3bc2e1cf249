"""One person against a whole policy: honest ones pass, and each planted fault is found."""

from __future__ import annotations

from typing import Any

import pytest

import bandanna as bd
from bandanna._core.advice import Ticket
from bandanna._core.types import JSON
from bandanna.audits.people import audit_person
from bandanna.policy import Policy, transitions
from bandanna.policy.state import WAITING, Batch, People, Slot, State
from bandanna.policy.transitions import Parts
from bandanna.spec import PeopleRule
from tests.soak import mostly_slow

HONEST: dict[str, Policy] = {
    "one slot": bd.PrivateBandit(2, 2.0, batch=2, per_person=1),
    "three slots": bd.PrivateBandit(2, 2.0, batch=3, per_person=3, delta=1e-3),
    "of two rounds": bd.PrivateBandit(2, 2.0, batch=2, per_person=2, rounds_per_slot=2),
    "of one round": bd.PrivateBandit(2, 2.0, batch=2, per_person=2, rounds_per_slot=1),
    "laplace": bd.PrivateBandit(3, 2.0, algorithm="htinf", batch=2, per_person=2, delta=1e-3),
    "conversion": bd.PrivateExperts(3, 2, 2.0, 1e-3, None, "one-bit", per_person=2),
    "exp4": bd.PrivateExperts(3, 2, 2.0, 1e-3, 10**4, "one-bit-exp4", per_person=2),
}


@pytest.mark.parametrize("name", mostly_slow(HONEST, ["of one round"]))
def test_honest_policies_pass(name: str) -> None:
    """The exact attack has no false alarms; the other is asked for one in ten million."""
    result = audit_person(HONEST[name], runs=200, significance=1e-7)
    assert result.passed, result
    assert result.batches == result.allowed
    assert result.most == 1.0
    assert "passed" in str(result)


@pytest.mark.soak
def test_most_of_epsilon_is_found() -> None:
    result = audit_person(bd.PrivateBandit(2, 3.0, batch=1, per_person=2), runs=2000)
    assert result.attack is not None
    assert 1.5 < result.attack.epsilon <= 3.0


def test_policies_that_protect_rounds_are_refused() -> None:
    with pytest.raises(bd.InputError, match="protects rounds"):
        audit_person(bd.PrivateBandit(2, 1.0))


def forgets(self: People, saved: JSON, per_person: int) -> None:
    """Go on from a file without counting who had how many slots."""
    self._use(bytes.fromhex(saved["key"]))


def new_key(self: People, saved: JSON, per_person: int) -> None:
    """Go on with counts that belong to nobody any more."""
    honest_load(self, saved | {"key": "00" * 16}, per_person)


def uncounted(people: People, rule: PeopleRule, person: int) -> bool:
    """Let everyone in."""
    return True


def two_slots(
    parts: Parts[Any], state: State, batch: Batch, *round_of: Any, joins: bool = True
) -> int:
    """Give a person whose slot closed another in the same batch."""
    assert batch.slots is not None
    slot = batch.slots.get(round_of[-1])
    if slot is not None and slot.counted is not None:
        del batch.slots[slot.person]
        slot.person ^= len(batch.losses)
        batch.slots[slot.person] = slot
    return honest_open(parts, state, batch, *round_of, joins=joins)


def not_divided(parts: Parts[Any], batch: Batch, slot: Slot, ticket: Ticket | None) -> None:
    """Count every round of a slot instead of their mean."""
    for position in slot.rounds if slot.counted is None else ():
        if batch.losses[position] != WAITING:
            batch.tally.add(batch.losses[position], ticket)
    honest_count(parts, batch, slot, ticket)


def used_beyond(people: People, rule: PeopleRule, person: int) -> bool:
    """Enforce a cap that is one too high."""
    beyond: set[int] = people.__dict__.setdefault("beyond", set())
    if honest_admit(people, rule, person):
        return True
    once_more = person not in beyond
    beyond.add(person)
    return once_more


honest_load, honest_open = People.load, transitions._open_round_of
honest_count, honest_admit = transitions.count_slot, transitions.admit
FAULTS: dict[str, tuple[object, str, Any]] = {
    "slots are forgotten by files": (People, "load", forgets),
    "files change the key": (People, "load", new_key),
    "no cap": (transitions, "admit", uncounted),
    "a cap that is one too high": (transitions, "admit", used_beyond),
    "two slots in a batch": (transitions, "_open_round_of", two_slots),
    "rounds are not averaged": (transitions, "count_slot", not_divided),
}


@pytest.mark.parametrize("rounds_per_slot", [None, 1, 2])
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(
    name: str, rounds_per_slot: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*FAULTS[name])
    policy = bd.PrivateBandit(2, 1.0, batch=3, per_person=2, rounds_per_slot=rounds_per_slot)
    result = audit_person(policy, runs=0)
    assert not result.passed, result
    assert "FAILED" in str(result)


@pytest.mark.soak
def test_a_cap_that_files_forget_is_found_in_what_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The person's epsilon of 2 is then 4; found for both of two seeds."""
    monkeypatch.setattr(People, "load", forgets)
    policy = bd.PrivateBandit(2, 2.0, batch=1, per_person=1, rounds_per_slot=1)
    for seed in range(2):
        result = audit_person(policy, runs=2000, significance=1e-4, seed=seed)
        assert result.attack is not None
        assert not result.attack.passed, result


def among_some(policy: Policy, person: str, loss: float, advice: object) -> None:
    """Visit with eligible arms that change from round to round, as everyone knows."""
    eligible = ([0, 1, 2], [0], [1, 2], [1])[policy.decided * 5 % 4]
    policy.observe(policy.decide(advice, person=person, eligible=eligible), loss=loss)


@pytest.mark.parametrize("rounds_per_slot", [None, 1, 2])
@pytest.mark.parametrize(
    "fault",
    [
        *("honest", "slots are forgotten by files", "no cap", "a cap that is one too high"),
        "rounds are not averaged",
    ],
)
def test_a_person_has_no_more_slots_when_their_arm_is_not_eligible(
    fault: str, rounds_per_slot: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several slots of theirs are open at a time; honest ones still count once and to the cap."""
    monkeypatch.setattr("bandanna.audits.people._visit", among_some)
    if fault != "honest":
        monkeypatch.setattr(*FAULTS[fault])
    policy = bd.PrivateBandit(3, 1.0, batch=3, per_person=3, rounds_per_slot=rounds_per_slot)
    result = audit_person(policy, runs=0)
    assert result.passed == (fault == "honest"), result

"""Places belong to persons: who comes back meets the same arm, and counts once."""

from __future__ import annotations

import json
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.documents import seal
from bandanna.policy import Policy
from bandanna.policy.parts import slot_problem
from bandanna.policy.state import People
from bandanna.policy.transitions import admit, rounded_mean
from bandanna.privacy.certificate import verify
from bandanna.privacy.statements import PERSON_ENTRIES
from bandanna.spec import PeopleRule

UNIT = 2**20


def sums_of(policy: Policy) -> list[int]:
    """Return a list that fills with what every release of sums is given."""
    sums: list[int] = []
    inside: Any = policy._parts.release
    give = inside.release

    def spy(total: int, size: int | None = None) -> Any:
        sums.append(total)
        return give(total, size)

    object.__setattr__(inside, "release", spy)
    return sums


def make(**options: Any) -> bd.PrivateBandit:
    return bd.PrivateBandit(3, 1.0, **{"batch": 2, "per_person": 1, "seed": 1} | options)


def visit(policy: Policy, person: str | int, loss: float) -> bd.Decision:
    decision = policy.decide(person=person)
    policy.observe(decision, loss=loss)
    return decision


def test_a_slot_keeps_its_arm_and_counts_the_mean_of_its_rounds_once() -> None:
    policy = make()
    sums = sums_of(policy)
    first = [visit(policy, "a", loss) for loss in (0.0, 1.0, 1.0)]
    others = [visit(policy, "b", loss) for loss in (0.25, 0.5)]
    again = visit(policy, "a", 1.0)  # the batch is full, and their slot still open
    assert len({decision.arm for decision in (*first, *others, again)}) == 1
    assert len({decision.round for decision in (*first, *others, again)}) == 6
    assert sums == []
    policy.finish("a")
    policy.finish("b")
    assert sums == [UNIT * 3 // 4 + UNIT * 3 // 8]
    assert policy.released == 1


@pytest.mark.parametrize("seed", range(20))
def test_means_are_rounded_half_to_even_without_floats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units = [int(value) for value in rng.integers(0, UNIT + 1, rng.integers(1, 9))]
    assert rounded_mean(units) == round(Fraction(sum(units), len(units)))


def test_a_public_number_of_rounds_closes_a_slot() -> None:
    policy = make(rounds_per_slot=2)
    sums = sums_of(policy)
    for person in ("a", "b"):
        visit(policy, person, 1.0)
        visit(policy, person, 0.5)
    assert sums == [2 * UNIT * 3 // 4]


@pytest.mark.parametrize("slots", [1, 3])
def test_nobody_has_a_slot_too_many_and_nothing_shows(slots: int) -> None:
    """Beyond the cap: decided like anyone, feedback taken, and nothing learned from it."""
    policy = make(per_person=slots, batch=1, rounds_per_slot=1, default_loss=0.25)
    sums = sums_of(policy)
    made = [visit(policy, "a", 1.0) for _ in range(slots + 2)]
    assert sums == [UNIT] * slots
    assert (policy.released, policy.state.missed) == (slots, 2)
    assert [decision.batch for decision in made] == list(range(slots + 2))
    for decision in made:
        policy.observe(decision, loss=1.0)  # a repeat like any other
    with pytest.raises(bd.DecisionError, match="another value"):
        policy.observe(made[-1], loss=0.5)


def test_a_person_has_one_slot_in_a_batch() -> None:
    """Whoever comes back while the batch fills meets its arm; that feedback is not used."""
    policy = make(per_person=9, batch=3, rounds_per_slot=1)
    sums = sums_of(policy)
    first = visit(policy, "a", 1.0)
    extra = [visit(policy, "a", 0.0) for _ in range(2)]
    assert {decision.arm for decision in extra} == {first.arm}
    policy.observe(extra[0], loss=0.7)  # not used, so no value is another one
    visit(policy, "b", 1.0)
    waiting = policy.decide(person="c")
    unused = policy.decide(person="b")  # its feedback never comes, and nobody waits for it
    assert unused.batch == 1  # the batch is full: a slot in the next one
    policy.observe(waiting, loss=1.0)
    assert sums == [3 * UNIT]


def test_rounds_without_feedback_are_left_out_and_slots_without_count_the_default() -> None:
    policy = make(default_loss=0.125)
    sums = sums_of(policy)
    visit(policy, "a", 1.0)
    late = policy.decide(person="a")
    given_up = policy.decide(person="b")
    policy.give_up(given_up)
    policy.finish("b")
    policy.finish("a")
    assert sums == [UNIT + UNIT // 8]
    for decision in (late, given_up):
        with pytest.raises(bd.DecisionError, match="given up"):
            policy.observe(decision, loss=1.0)


def test_slots_and_counts_survive_files(tmp_path: Path) -> None:
    policy = make(per_person=2, batch=2, rounds_per_slot=None)
    visit(policy, "a", 1.0)
    visit(policy, "b", 0.0)
    policy.finish("b")
    full = policy.decide(person="c")  # opens the next batch
    policy.save(tmp_path / "policy.json")
    after = policy.decide(person="a")  # after the file was saved

    loaded = bd.load(tmp_path / "policy.json")
    sums = sums_of(loaded)
    assert isinstance(loaded, bd.PrivateBandit)
    assert loaded.people == policy.people
    again = loaded.decide(person="a")
    assert (again.batch, again.position) == (after.batch, after.position)
    with pytest.raises(bd.DecisionError, match="after the file was saved"):
        loaded.observe(after, loss=1.0)
    loaded.observe(again, loss=0.5)
    loaded.observe(full, loss=0.5)
    loaded.finish("a")
    assert sums == [UNIT * 3 // 4]
    loaded.finish("c")
    visit(loaded, "a", 1.0)  # the second slot
    loaded.finish("a")
    assert sums == [UNIT * 3 // 4, UNIT // 2 + UNIT]
    visit(loaded, "a", 1.0)  # the third
    visit(loaded, "d", 1.0)
    loaded.finish("a")
    loaded.finish("d")
    assert sums[2] == UNIT // 2 + UNIT


def test_a_closed_batch_forgets_who_was_in_it() -> None:
    policy = make(rounds_per_slot=1)
    for person in range(10):
        visit(policy, person, 0.5)
    people = policy.state.people
    assert people is not None
    assert people.batches == {}
    assert len(people) == 10
    assert policy.state.open == {}


@pytest.mark.slow
def test_a_hundred_thousand_people_take_little_memory() -> None:
    """A tenth of what is promised for ten times as many; dictionaries grow in steps."""
    tracemalloc.start()
    people, rule = People(), PeopleRule(1.0, 0.0, 1, 1)
    for person in range(100_000):
        assert admit(people, rule, people.known_as(f"user-{person}"))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 25e6


def test_the_same_person_by_number_and_by_text_is_one() -> None:
    people = People()
    assert people.known_as(17) == people.known_as("17") == people.known_as(np.int64(17))
    other = People()
    assert people.known_as("17") != other.known_as("17")  # equal with probability 2**-64


def test_bad_input_is_refused_and_changes_nothing() -> None:
    policy = make()
    for person in (None, True, 1.5, b"user", ["user"], 10**5000):
        with pytest.raises(bd.InputError, match="person must be"):
            policy.decide(person=person)  # type: ignore[arg-type]
    with pytest.raises(bd.DecisionError, match="no slot"):
        policy.finish("stranger")
    assert policy.decided == 0
    with pytest.raises(bd.InputError, match="knows no persons"):
        bd.PrivateBandit(2, 1.0).decide(person="a")
    with pytest.raises(bd.InputError, match="knows no persons"):
        bd.PrivateBandit(2, 1.0).finish("a")
    for slots in (0, -1, 1.5, True, 10**7):
        with pytest.raises(bd.InputError, match="per_person must be"):
            make(per_person=slots)
    with pytest.raises(bd.InputError, match="rounds_per_slot must be"):
        make(rounds_per_slot=0)
    with pytest.raises(bd.InputError, match="goes with per_person"):
        bd.PrivateBandit(2, 1.0, rounds_per_slot=3)
    with pytest.raises(bd.InputError, match="per_person"):
        bd.PrivateBandit(2, 1.0, delta=1e-6)


def test_the_promise_is_the_persons() -> None:
    pure = bd.PrivateBandit(3, 1.0, per_person=4).guarantee
    assert (pure.epsilon, pure.delta) == (1.0, 0.0)
    assert pure.facts["slot_epsilon"] == 0.25
    composed = bd.PrivateBandit(3, 1.0, per_person=100, delta=1e-6).guarantee
    assert (composed.epsilon, composed.delta) == (1.0, 1e-6)
    assert composed.facts["slot_epsilon"] == pytest.approx(0.0240, rel=1e-3)
    assert "all feedback of one person" in composed.protects
    assert "100 slots" in composed.protects
    assert "Kairouz" in composed.because
    assert composed.at_delta(1e-3).epsilon < 1.0
    assert "k times epsilon" not in str(composed)


@pytest.mark.parametrize("algorithm", ["htinf", "one-bit-exp3", "ldp-exp3"])
def test_every_release_of_sums_takes_people(algorithm: str) -> None:
    policy = bd.PrivateBandit(3, 1.0, 10_000, algorithm, per_person=5, delta=1e-6, batch=2)
    for person in range(20):
        visit(policy, person % 7, 0.5)
    for person in range(7):
        policy.finish(person)
    assert policy.released > 0


@pytest.mark.parametrize("algorithm", ["one-bit", "one-bit-exp4", "batched-exp4"])
def test_experts_take_people(algorithm: str) -> None:
    policy = bd.PrivateExperts(
        *(3, 2, 1.0, 1e-2, 10_000, algorithm),
        constants="ours" if algorithm == "batched-exp4" else None,
        per_person=2,
        rounds_per_slot=1,
        seed=0,
    )
    if isinstance(policy._parts.release, bd.privacy.VectorRelease):
        assert slot_problem(policy.spec).delta > 0
    assert policy.guarantee.epsilon == 1.0
    for person in range(2 * policy.batch):
        decision = policy.decide([0, 1, 1], person=person)
        policy.observe(decision, loss=0.5)
    assert policy.released == 2


def test_exp4_has_slots_of_one_round() -> None:
    policy = bd.PrivateExperts(3, 2, 1.0, rounds=10_000, algorithm="one-bit-exp4", per_person=2)
    assert policy.people is not None
    assert policy.people.rounds_per_slot == 1
    with pytest.raises(bd.InputError, match="rounds_per_slot is 1"):
        bd.PrivateExperts(
            *(3, 2, 1.0, 0.0, 10_000, "one-bit-exp4"), per_person=2, rounds_per_slot=2
        )


def test_one_expert_who_is_always_followed_tells_nothing_of_anyone() -> None:
    policy = bd.PrivateExperts(1, 2, 1.0, per_person=2)
    assert policy.guarantee.epsilon == 0.0
    visited = policy.decide([1], person="a")
    policy.observe(visited, loss=1.0)
    policy.finish("a")


def test_whoever_averages_slots_sees_feedback() -> None:
    assert bd.PrivateBandit(2, 1.0, batch=1).guarantee.model == "local"
    assert bd.PrivateBandit(2, 1.0, batch=1, per_person=1).guarantee.model == "central"


def test_files_hold_the_key_and_no_name(tmp_path: Path) -> None:
    policy = make()
    visit(policy, "a-name-to-look-for", 0.5)
    policy.save(tmp_path / "policy.json")
    text = (tmp_path / "policy.json").read_text()
    key = json.loads(text)["people"]["key"]
    assert "a-name-to-look-for" not in text
    assert len(key) == 32


@pytest.mark.parametrize("rounds_per_slot", [None, 1])
def test_what_is_shared_without_batches_says_nothing_of_persons(
    rounds_per_slot: int | None,
) -> None:
    """Neither key nor hash: with the key anyone could try out who was there."""
    policy = make(batch=3, per_person=2, rounds_per_slot=rounds_per_slot)
    planted = [f"person-{number}" for number in range(8)]
    for name in planted:
        visit(policy, name, 0.5)
    people = policy.state.people
    assert people is not None
    kept = json.dumps(policy.to_dict())
    shared = json.dumps(policy.to_dict(private=False))
    hashes = [f"{people.known_as(name):016x}" for name in planted]
    assert people._key.hex() in kept
    assert all(mark in kept for mark in hashes)
    for secret in (people._key.hex(), *hashes, *planted):
        assert secret not in shared


def test_rehearsals_begin_with_nobody() -> None:
    from bandanna._core.streams import new_stream

    policy = make()
    visit(policy, "a", 0.5)
    copy = policy.rehearse(new_stream(1), new_stream(2))
    assert copy.state.people is not None
    assert len(copy.state.people) == 0
    assert next(iter(policy.state.open.values())).slots


@pytest.mark.parametrize(
    "made",
    [
        bd.PrivateBandit(3, 1.0, 10**6, "one-bit", per_person=1),
        bd.PrivateBandit(3, 1.0, 10**6, "one-bit", per_person=20, delta=1e-6),
        bd.PrivateBandit(3, 1.0, 10**6, "htinf", per_person=3),
        bd.PrivateBandit(3, 1.0, 10**6, "ldp-exp3", per_person=365, delta=1e-9),
        bd.PrivateExperts(
            *(4, 2, 1.0, 1e-2, 10**6, "batched-exp4"), constants="ours", per_person=3
        ),
        bd.PrivateExperts(4, 2, 1.0, 1e-6, 10**6, "one-bit", per_person=7),
    ],
    ids=repr,
)
def test_certificates_are_derived_again(made: Policy) -> None:
    document = made.certificate()
    text = json.dumps(document)
    findings = verify(text)
    assert all(finding.holds for finding in findings), findings
    assert {"slot_epsilon", "epsilon"} <= {finding.entry for finding in findings}
    people = made.state.people
    assert people is not None
    assert people._key.hex() not in text


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("slots", 21),
        ("slots", 0),
        ("slots", 10**9),
        ("slot_epsilon", 0.06),
        ("slot_epsilon", 0.01),
        ("slot_delta", 1e-3),
        ("epsilon", 0.99),
        ("delta", 1e-7),
        ("delta", 0.0),
        ("protects", "everything"),
    ],
)
def test_forged_certificates_are_refused(entry: str, value: object) -> None:
    """Sealed again after the change, as a forger would."""
    made = bd.PrivateBandit(3, 1.0, 10**6, per_person=20, delta=1e-6)
    forged = made.certificate() | {entry: value}
    forged["seals"] = forged["seals"] | {entry: seal([entry, value])[:12]}
    findings = verify(json.dumps(forged))
    assert not all(finding.holds for finding in findings)


def test_a_certificate_without_its_slots_is_refused() -> None:
    """Nobody turns what was promised for one slot into a promise about persons, or back."""
    document = bd.PrivateBandit(3, 1.0, 10**6, per_person=20, delta=1e-6).certificate()
    for entry in PERSON_ENTRIES:
        shortened = {key: value for key, value in document.items() if key != entry}
        shortened["seals"] = {k: v for k, v in document["seals"].items() if k != entry}
        assert not all(finding.holds for finding in verify(json.dumps(shortened)))

"""An interrupt between any two lines of a transition: nothing counted twice, nothing stuck."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.contextual import plays, trees
from bandanna.contextual import policy as contexts
from bandanna.policy import Policy, base, closing, policy, runner, state, transitions
from bandanna.privacy import VectorRelease, epoch_sums, one_bit, release, sums, vector_sums
from bandanna.privacy.release import ReleasedEpoch
from tests.contracts.policies import FOLLOWED, OURS, PRIVATE, advise, make
from tests.soak import mostly_slow

FILES = {
    module.__file__
    for module in (
        *(base, closing, policy, runner, state, transitions),
        *(epoch_sums, one_bit, release, sums, vector_sums),
        *(contexts, plays, trees),
    )
}


def interrupt_at(line: int, action: Callable[[], object]) -> bool:
    """Run an action and raise at the given line event of the watched files; whether it did."""
    seen = 0
    raised = False

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal seen, raised
        if frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raised = True
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()  # of coverage
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return raised


BATCHED = f"batched-exp4{OURS}"
DIFFERENT = [
    name
    for name in PRIVATE
    if not name.endswith(OURS) and (FOLLOWED not in name or name == f"one-bit{FOLLOWED}")
]
"""Policies whose transitions differ: others have another learner or another bound."""


@pytest.mark.parametrize("name", mostly_slow(PRIVATE, DIFFERENT))
@pytest.mark.parametrize("what", ["decide", "observe"])
def test_an_interrupt_anywhere_is_survived(name: str, what: str) -> None:
    """Whatever line is hit: identities differ, batches close, no loss is counted twice."""
    advice = advise(name, np.random.default_rng(0))
    make(name).decide(advice)  # compiled before anything is interrupted
    warm = make(name)
    for _ in range(warm.batch):
        warm.observe(warm.decide(advice), loss=1.0)
    line = 1
    while True:
        player = make(name)
        totals: list[Any] = []
        _watch(player, totals)
        made: list[bd.Decision] = []
        if what == "decide":
            hit = interrupt_at(line, partial(_decide, player, advice, made))
        else:
            made = [player.decide(advice)]
            hit = interrupt_at(line, partial(player.observe, made[0], loss=1.0))
            player.observe(made[0], loss=1.0)
        while len(made) < 2 * player.batch:
            made.append(player.decide(advice))
        locations = [(decision.batch, decision.position) for decision in made]
        assert len(set(locations)) == len(locations)
        for decision in made:
            player.observe(decision, loss=1.0)
        while player.waiting:  # a round that was decided and never handed out
            for number, open_batch in list(player.state.open.items()):
                _fill(player, open_batch, number)
        for total, scale, rounds in totals:
            assert total <= rounds
            assert scale is None or scale > 0
        if not hit:
            return
        line += 1


@pytest.mark.parametrize("what", ["observe_bit", "give_up"])
def test_an_interrupt_anywhere_hands_a_devices_bit_on_at_most_once(what: str) -> None:
    """Whatever line is hit: sent again, the bit is taken as a repeat, and its batch is gone."""
    line, hit = 0, True
    while hit:
        line += 1
        player = bd.PrivateBandit(2, 1.0, release="device")
        made = player.decide()
        credit = partial(player.observe_bit, bit=1) if what == "observe_bit" else player.give_up
        hit = interrupt_at(line, partial(credit, made))
        with suppress(bd.DecisionError):  # it was given up, or forgotten while it closed
            credit(made)
        other = player.decide()
        player.observe_bit(other, 0)
        assert (player.waiting, player.state.open) == (0, {})
        assert sum(told.batches for told in player.state.totals.values()) <= 2
    assert line > 5


@pytest.mark.parametrize(
    "name",
    mostly_slow(["one-bit", BATCHED, "people", "eligible"], ["one-bit", "people"]),
)
@pytest.mark.parametrize("what", ["decide", "observe", "give_up"])
def test_what_is_saved_after_an_interrupt_can_be_loaded(
    name: str, what: str, tmp_path: Path
) -> None:
    """Whatever line is hit: whoever catches the interrupt and saves has a file that goes on."""
    people = name == "people"
    name, eligible = ("one-bit", [0, 2]) if name == "eligible" else (name, None)
    advice = None if people else advise(name, np.random.default_rng(0))

    def decide(policy: Policy, person: int) -> bd.Decision:
        return policy.decide(advice, person=person if people else None, eligible=eligible)

    line, hit = 0, True
    while hit:
        line += 1
        policy = bd.PrivateBandit(2, 1.0, batch=2, per_person=1) if people else make(name)
        if what == "decide":  # the first opens a batch
            hit = interrupt_at(line, partial(decide, policy, 0))
        else:
            made = decide(policy, 0)
            credit = partial(policy.observe, loss=0.25) if what == "observe" else policy.give_up
            hit = interrupt_at(line, partial(credit, made))
        policy.save(tmp_path / "policy.json")
        loaded = bd.load(tmp_path / "policy.json")
        for person in range(1, 3):
            loaded.observe(decide(loaded, person), loss=1.0)
    assert line > 5


CONTEXT = {"x": 0.5}


@pytest.mark.parametrize("per_person", [None, 9], ids=["rounds", "people"])
@pytest.mark.parametrize("algorithm", ["linear", "trees"])
@pytest.mark.parametrize("what", ["decide", "observe", "give_up"])
def test_an_interrupt_anywhere_counts_a_context_once(
    what: str, algorithm: str, per_person: int | None, tmp_path: Path
) -> None:
    """Whatever line is hit: no outcome counts twice, batches close, and what is saved goes on."""
    line, hit = 0, True
    while hit:
        line += 1
        made = bd.PrivateContextual(
            2, {"x": (0, 1)}, 1.0, rounds=8, per_person=per_person, seed=1, algorithm=algorithm
        )
        made.on_release = _within_size
        people: Any = iter([None] * 99 if per_person is None else range(99))
        made.observe(made.decide(CONTEXT, person=next(people)), loss=1.0)
        person = next(people)
        decide = partial(made.decide, CONTEXT, person=person)
        if what == "decide":
            hit = interrupt_at(line, decide)
        else:
            waited = decide()
            credit = partial(made.give_up, waited)
            if what == "observe":
                credit = partial(made.observe, waited, loss=1.0)
            hit = interrupt_at(line, credit)
            with suppress(bd.DecisionError):  # it was given up, or forgotten while it closed
                credit()
        made.save(tmp_path / "policy.json")
        for player in (made, bd.load(tmp_path / "policy.json")):
            player.on_release = _within_size
            several = range(50, 62) if per_person is not None else [None] * 12
            for other in several:
                player.observe(player.decide(CONTEXT, person=other), loss=1.0)
            for batch in list(player.state.open.values()):
                for position in [*batch.waiting]:  # a round that was decided and never handed out
                    if position >= len(batch.losses):
                        del batch.waiting[position]
                        continue
                    where = batch.round_of(position), batch.number, position
                    who = player.state.issuer_of(batch.number, position)
                    arm = batch.arms[position]
                    player.give_up(bd.Decision(arm, arm, *where, who))
            if per_person is not None:
                with suppress(bd.DecisionError):  # they have no slot that is open
                    player.finish(person)
            assert player.waiting == 0
            assert not any(batch.complete for batch in player.state.open.values())
            assert player.released >= 4
    assert line > 20


def _within_size(batch: Any, released: Any) -> None:
    """Check that a batch released no more rounds than it had."""
    assert batch.used <= batch.size
    if isinstance(released, ReleasedEpoch):
        assert released.rounds.sum() <= batch.used


@pytest.mark.parametrize("algorithm", ["one-bit", BATCHED])
@pytest.mark.parametrize("what", ["decide", "observe", "finish"])
def test_an_interrupt_anywhere_gives_no_person_more(algorithm: str, what: str) -> None:
    """At any line: a person has one slot, a slot one loss, and every batch can close."""
    advice = None if algorithm == "one-bit" else [0, 1, 1]
    warm = _make_for_people(algorithm)
    for person in range(warm.batch):
        warm.observe(warm.decide(advice, person=person), loss=1.0)
    line, hit = 1, True
    while hit:
        player = _make_for_people(algorithm)
        totals: list[Any] = []
        _watch(player, totals)
        act: Callable[[], object] = partial(player.decide, advice, person="a")
        if what != "decide":
            decision = player.decide(advice, person="a")
            act = partial(player.observe, decision, loss=1.0)
        if what == "finish":
            act()
            act = partial(player.finish, "a")
        hit = interrupt_at(line, act)
        if what == "observe":
            act()
        for person in ("a", *range(1, 2 * player.batch)):
            player.observe(player.decide(advice, person=person), loss=1.0)
        for person in ("a", *range(1, 2 * player.batch)):
            with suppress(bd.DecisionError):  # their batch has been released
                player.finish(person)
        assert player.waiting == 0
        assert all(not batch.full for batch in player.state.open.values())
        assert totals
        for total, scale, rounds in totals:
            assert total <= rounds
            assert scale is None or scale > 0
        known = player.state.people
        assert known is not None
        assert max(known.slots.values()) <= 2
        line += 1


def test_an_interrupt_anywhere_releases_a_sealed_batch_at_most_once() -> None:
    """Whatever line is hit while the next decision releases a batch that people did not fill."""
    unit, line, hit = 2**20, 0, True
    while hit:
        line += 1
        player = bd.PrivateBandit(2, 1.0, batch=2, per_person=9, rounds_per_slot=1, seed=0)
        sums: list[int] = []
        inside: Any = player._parts.release
        give = inside.release

        def spy(total: int, size: int, sums: list[int] = sums, give: Any = give) -> Any:
            sums.append(total)
            return give(total, size)

        object.__setattr__(inside, "release", spy)
        player.observe(player.decide(person="a"), loss=1.0)
        for _ in range(2):
            player.decide(person="a")
        hit = interrupt_at(line, partial(player.decide, person="b"))
        for person in "cdef":
            player.observe(player.decide(person=person), loss=0.0)
        assert (
            sums.count(unit + unit // 2) <= 1
        )  # one loss of 1, and the middle for what is missing
        assert all(total <= 2 * unit for total in sums)
        assert player.state.missed >= 2
    assert line > 5


def _make_for_people(algorithm: str) -> Policy:
    if algorithm == "one-bit":
        return bd.PrivateBandit(3, 1.0, batch=2, per_person=2, rounds_per_slot=2, seed=0)
    saved = bd.PrivateExperts(
        3, 2, 1.0, 1e-2, 10_000, "batched-exp4", constants="ours", per_person=2, seed=0
    )
    return _with_batch(saved, 2)


def _with_batch(policy: Policy, size: int) -> Policy:
    parameters = policy.recipe.release.to_dict() | {"batch": size}
    del parameters["name"]
    release = VectorRelease(**parameters)
    Policy.__init__(policy, policy.spec, policy.recipe._replace(release=release), seed=0)
    return policy


def _decide(player: Policy, advice: Any, made: list[bd.Decision]) -> None:
    made.append(player.decide(advice))


def _fill(player: Policy, open_batch: Any, number: int) -> None:
    for position in list(open_batch.waiting):
        if position < len(open_batch.losses):
            arm = open_batch.arms[position]
            location = open_batch.round_of(position), number, position
            decision = bd.Decision(player.arms[arm], arm, *location, player.state.identity)
            player.give_up(decision)
        else:
            del open_batch.waiting[position]


def _watch(player: Policy, sums: list[Any]) -> None:
    """Write down what every release is given, in losses, with the noise it asks for."""
    inside = player._parts.release
    give = inside.release  # type: ignore[attr-defined]

    def spy(total: Any, size: Any = None) -> Any:
        if isinstance(total, np.ndarray):
            sums.append((0, size if total.any() else None, player.batch))
        else:
            sums.append((total / 2**20, None, player.batch))
        return give(total, size)

    object.__setattr__(inside, "release", spy)

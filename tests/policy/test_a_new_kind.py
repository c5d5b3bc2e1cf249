"""A new kind of batch is one file: what opens it, what counts it, what its release teaches.

The toy asks people for a yes or no, in batches of eight, and releases how many said no, with noise.
Waiting, repeats, persons, erasing before the release, promises and files come with ``BasePolicy``.
"""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from bandanna._core.advice import Advice, Ticket, ticket_from_dict
from bandanna._core.streams import Stream, new_stream, uniform
from bandanna._core.types import JSON, Decision, DecisionError
from bandanna.learners import FixedArm
from bandanna.policy.base import BasePolicy
from bandanna.policy.codec import Limits, load_state, migrated
from bandanna.policy.parts import Recipe
from bandanna.policy.state import Batch, Drawn, EligibleArms, People, State
from bandanna.policy.transitions import Parts, open_batch
from bandanna.privacy import LaplaceRelease, Release
from bandanna.privacy.release import Released, Tally
from bandanna.spec import Spec, spec_from_dict
from tests.policy.test_interrupts import interrupt_at

SIZE, UNIT = 8, 2**20


class Noes(Tally):
    """How many said no: a loss above one half."""

    def __init__(self, release: LaplaceRelease) -> None:
        self._release, self._count = release, 0

    def add(self, units: int, ticket: Ticket | None = None, *about: object) -> None:
        self._count += units > UNIT // 2

    def publish(self) -> float:
        count, self._count = self._count, 0
        return self._release.release(count * UNIT, SIZE)

    def to_dict(self) -> JSON:
        return {"count": self._count}


class CountingNoes(LaplaceRelease):
    """Noise on a count, which moves by one."""

    def start(self, size: int | None = None) -> Noes:
        return Noes(self)

    def resume(self, saved: JSON, losses: list[int], size: int) -> Noes:
        tally = self.start()
        tally._count = int(saved["count"])
        return tally


class Asking:
    """Asks one of two questions, by a coin; keeps what was released."""

    shares = True

    def __init__(self, stream: Stream) -> None:
        self.stream, self.told = stream, list[float]()

    def choose(
        self, choice: int, side: Advice | None, among: EligibleArms | None
    ) -> tuple[int, None]:
        arms = (0, 1) if among is None else among
        return arms[int(uniform(self.stream) * len(arms))], None

    def chance(self, drawn: float | None, ticket: Ticket | None) -> float | None:
        return drawn

    def state_dict(self) -> JSON:
        return {"told": self.told}

    def load_state(self, state: JSON) -> None:
        self.told[:] = state["told"]


class Survey(BasePolicy):
    """Asks in batches."""

    saved_as = "Survey"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.recipe = Recipe(FixedArm(2), CountingNoes(spec.epsilon, SIZE))
        self._lock = threading.RLock()
        self._belong_here()
        self._begin(new_stream(1), self.recipe.release)

    def _begin(self, stream: Stream, release: Release) -> None:
        asking, rule = Asking(stream), self.spec.rule
        self._state = State(stream, asking, None if rule is None else People())
        self._parts = Parts(asking, release, rule, default=0)

    def decide(
        self, side: object = None, /, *, person: Any = None, eligible: Any = None
    ) -> Decision:
        return self._decide(None, person, eligible)

    def _open_batch(self, among: EligibleArms | None) -> Batch:
        drawn = Drawn(choice=0, importance=1.0, size=SIZE, credited=0, chance=None)
        return open_batch(self._parts, self._state, drawn)

    def _teach(self, batch: Batch, released: Released | None) -> None:
        assert isinstance(released, float)
        self.answer().append(released)

    def answer(self) -> list[float]:
        assert isinstance(self._state.learned, Asking)
        return self._state.learned.told

    def limits(self) -> Limits:
        as_ticket = partial(ticket_from_dict, arms=2, experts=1)
        return Limits(2, 2, self.spec.rule, self.recipe.release, as_ticket)


def survey(**more: Any) -> Survey:
    return Survey(Spec("Survey", (0, 1), 1.0, algorithm="one-bit", **more))


def test_a_new_kind_counts_each_answer_once_and_releases_it_once() -> None:
    policy, rng = survey(), np.random.default_rng(0)
    asked = [policy.decide(eligible=[1] if k % 2 else None) for k in range(2 * SIZE)]
    assert all(decision.index == 1 for decision in asked[1::2])
    for k in rng.permutation(len(asked)):
        policy.observe(asked[k], loss=1.0)
        policy.observe(asked[k], loss=1.0)
        with pytest.raises(DecisionError):
            policy.observe(asked[k], loss=0.0)
    assert (policy.released, policy.waiting, len(policy.answer())) == (2, 0, 2)
    assert policy.guarantee.private
    assert "eligible" in str(policy.guarantee.assumptions)


def test_a_new_kind_has_persons_and_files() -> None:
    policy = survey(per_person=1, rounds_per_slot=1)
    for k in range(SIZE + 3):
        policy.observe(policy.decide(person=k), reward=1.0)
    assert policy.guarantee.unit == "person"
    saved = migrated(json.loads(json.dumps(policy.to_dict())))
    again = Survey(spec_from_dict(saved["spec"]))
    load_state(again.state, saved, again.limits())
    for one in (policy, again):
        for k in range(SIZE):  # three of them have answered, and their batch is not full
            one.observe(one.decide(person=k), reward=0.0)
            one.observe(one.decide(person=100 + k), reward=0.0)
    assert (again.released, again.decided) == (policy.released, policy.decided)
    assert policy.state.people is not None
    assert set(policy.state.people.slots.values()) == {1}


def test_an_interrupt_anywhere_counts_an_answer_of_a_new_kind_once() -> None:
    line, hit = 0, True
    while hit:
        line += 1
        policy = survey()
        asked = [policy.decide() for _ in range(SIZE)]
        for decision in asked[1:]:
            policy.observe(decision, loss=1.0)
        hit = interrupt_at(line, partial(policy.observe, asked[0], loss=1.0))
        policy.observe(asked[0], loss=1.0)
        assert len(policy.answer()) <= 1
        assert policy.state.open == {}
    assert line > 20

"""What policies that decide by context keep: the contract of policies, over contexts and trees."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.loading import load
from bandanna.privacy import OneBitRelease
from bandanna.privacy.certificate import verify
from bandanna.privacy.epoch_sums import EpochRelease, Statistics
from bandanna.privacy.epochs import Protects

FEATURES = {"x": (0, 1), "kind": ["a", "b", "c"]}
KINDS = ("contexts", "contexts-both", "contexts-people", "trees")
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind: str, **options: Any) -> bd.PrivateContextual:
    if kind == "trees":
        return bd.PrivateContextual(3, FEATURES, 0.8, 0.0, 50, algorithm="trees", **options)
    if kind == "contexts-people":
        options["per_person"] = 50
    protects: Protects = "context and feedback" if kind == "contexts-both" else "feedback"
    return bd.PrivateContextual(3, FEATURES, 0.8, 1e-6, 12, protects, **options)


def decide(policy: bd.PrivateContextual, kind: str, rng: np.random.Generator, number: int) -> Any:
    context = {"x": float(rng.random()), "kind": "abc"[int(rng.integers(3))]}
    who: dict[str, Any] = {"person": number} if kind == "contexts-people" else {}
    return policy.decide(context, **who)


@every_kind
def test_feedback_may_come_late_and_in_any_order(kind: str) -> None:
    rng, policy = np.random.default_rng(2), make(kind)
    decisions = [decide(policy, kind, rng, number) for number in range(29)]
    assert [decision.round for decision in decisions] == list(range(29))
    for index in rng.permutation(29):
        policy.observe(decisions[index], loss=float(rng.random()))
    assert (policy.waiting, policy.decided) == (0, 29)
    assert policy.released > 1


@every_kind
@settings(deadline=None, max_examples=8)
@given(before=st.integers(0, 40), late=st.sets(st.integers(0, 39)), after=st.integers(1, 5))
def test_it_goes_on_from_a_file(kind: str, before: int, late: set[int], after: int) -> None:
    rng, policy, waiting = np.random.default_rng(3), make(kind), []
    for number in range(before):
        decision = decide(policy, kind, rng, number)
        if number in late:
            waiting.append(decision)
        else:
            policy.observe(decision, loss=float(rng.random()))
    other = type(policy).from_dict(json.loads(json.dumps(policy.to_dict())))
    assert other.guarantee == policy.guarantee
    assert (other.decided, other.waiting, other.released) == (
        before,
        len(waiting),
        policy.released,
    )
    seed = int(rng.integers(2**31))
    for number in range(after):
        ours, theirs = (
            decide(one, kind, np.random.default_rng(seed + number), 100 + number)
            for one in (policy, other)
        )
        assert theirs == ours._replace(policy=theirs.policy)
    for decision in waiting:
        other.observe(decision, loss=0.25)
    assert other.waiting == after


@every_kind
def test_decisions_depend_on_losses_only_through_releases(kind: str) -> None:
    def play(loss: float) -> list[int]:
        noise = np.random.default_rng(3)

        def epoch(self: object, exact: Statistics) -> Statistics:
            sums = noise.integers(-(2**34), 2**34, exact.sums.shape)
            products = np.abs(noise.integers(0, 2**28, exact.products.shape))
            return Statistics(products if kind == "contexts-both" else exact.products.copy(), sums)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(EpochRelease, "release", epoch)
            bit = lambda self, total, size=None: float(noise.integers(2))  # noqa: E731
            patch.setattr(OneBitRelease, "release", bit)
            policy, rng, arms = make(kind, seed=4), np.random.default_rng(5), []
            for number in range(40):
                decision = decide(policy, kind, rng, number)
                arms.append(decision.index)
                policy.observe(decision, loss=loss)
        assert policy.released > 1
        return arms

    assert play(0.0) == play(1.0)


@every_kind
def test_bad_contexts_change_nothing(kind: str) -> None:
    policy, rng = make(kind, seed=3), np.random.default_rng(0)
    decide(policy, kind, rng, 0)
    before = policy.to_dict()
    who = {"person": 1} if kind == "contexts-people" else {}
    for context in ({"y": 0.5}, {"x": "high", "kind": "a"}, [0.5], None, "context"):
        with pytest.raises(bd.InputError):
            policy.decide(context, **who)  # type: ignore[arg-type]
    assert policy.to_dict() == before


@every_kind
def test_repeats_are_ignored_and_other_values_refused(kind: str) -> None:
    policy, rng = make(kind), np.random.default_rng(1)
    decisions = [decide(policy, kind, rng, number) for number in range(40)]
    first, second = decisions[-2:]
    policy.observe(first, loss=0.5)
    policy.observe(first, loss=0.5)
    with pytest.raises(bd.DecisionError):
        policy.observe(first, loss=0.25)
    policy.give_up(second)
    for late in (0.75, 0.5):  # also the default itself: the answer must not depend on the value
        with pytest.raises(bd.DecisionError):
            policy.observe(second, loss=late)


@every_kind
def test_losses_are_gone_once_they_are_released(kind: str) -> None:
    policy, rng, loss = make(kind), np.random.default_rng(1), 0.6241
    while policy.released < 3 or policy.waiting:
        policy.observe(decide(policy, kind, rng, policy.decided), loss=loss)
    saved = json.dumps(policy.to_dict())
    assert str(round(loss * 2**20)) not in saved
    assert str(loss) not in saved + repr(policy) + repr(vars(policy))


def test_files_are_loaded_whatever_they_hold(tmp_path: Any) -> None:
    for kind in KINDS:
        policy = make(kind)
        decide(policy, kind, np.random.default_rng(1), 0)
        path = tmp_path / f"{kind}.json"
        policy.save(path)
        assert type(load(path)) is type(policy)


def test_rounds_among_some_arms_share_an_epoch_with_others() -> None:
    policy, rng = make("contexts", seed=1), np.random.default_rng(0)
    for number in range(60):
        context = {"x": float(rng.random()), "kind": "a"}
        decision = policy.decide(context, eligible=[0, 2] if number % 2 else None)
        assert decision.index != 1 or number % 2 == 0
        assert 0.0 < (decision.chance or 0.0) <= 1.0
        policy.observe(decision, loss=float(decision.index == 0))
    assert policy.released > 2
    assert any("eligible" in said for said in policy.guarantee.assumptions)
    assert all(one.holds for one in verify(json.dumps(policy.certificate())))
    with pytest.raises(bd.InputError, match="linear"):
        make("trees").decide({"x": 0.5}, eligible=[0, 1])


def test_trees_protect_persons_with_a_bit_for_each_slot() -> None:
    policy = bd.PrivateContextual(
        2, FEATURES, 1.0, 1e-6, 50, algorithm="trees", per_person=4, seed=1
    )
    for number in range(30):
        policy.observe(policy.decide({"x": 0.5}, person=number % 5), loss=1.0)
    assert policy.released == 20
    assert (policy.guarantee.unit, policy.guarantee.epsilon) == ("person", 1.0)
    assert all(one.holds for one in verify(json.dumps(policy.certificate())))


def test_segments_may_decide_by_context(tmp_path: Any) -> None:
    shops = bd.Segments(lambda name: make("contexts"), ["de", "fr"])
    decision = shops.decide({"x": 0.5}, segment="fr")
    shops.observe(decision, reward=1.0)
    assert (shops["fr"].decided, shops["de"].decided) == (1, 0)
    shops.save(tmp_path / "shops.json")
    again = load(tmp_path / "shops.json")
    assert again["fr"].decided == 1
    assert "de" in str(again.answer())
    with pytest.raises(bd.InputError, match="by context"):
        again.compare(0, 1)

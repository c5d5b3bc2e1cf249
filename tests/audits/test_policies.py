"""Whole policies under attack: faults that show in decisions alone are found, honest ones pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.audits.policies import PolicyAudit, audit_policy, side_door
from bandanna.policy import Policy
from bandanna.policy.closing import close
from bandanna.policy.state import Batch, EligibleArms
from bandanna.privacy import LaplaceRelease, SeededRelease
from tests.soak import mostly_slow, mostly_soak, seeds

HONEST: dict[str, Policy] = {
    "one-bit": bd.PrivateBandit(2, 1.0, algorithm="one-bit"),
    "one-bit, batch 5": bd.PrivateBandit(4, 1.0, algorithm="one-bit", batch=5),
    "htinf": bd.PrivateBandit(3, 1.0, algorithm="htinf", loss_range=(-2, 5)),
    "ftpl": bd.PrivateBandit(3, 1.0, 1000, "ftpl"),
    "conversion": bd.PrivateExperts(4, 3, 1.0, algorithm="one-bit"),
    "one-bit-exp4": bd.PrivateExperts(4, 3, 1.0, 0.0, 10**4, "one-bit-exp4"),
    "local-exp4": bd.PrivateExperts(3, 2, 1.0, 0.0, 10**5, "local-exp4"),
    "batched-exp4": bd.PrivateExperts(3, 2, 2.0, 0.0, 20, "batched-exp4", constants="ours"),
    "gaussian": bd.PrivateExperts(12, 2, 3.0, 1e-3, 20, "batched-exp4", constants="ours"),
}


def quick(
    policy: Policy, *, significance: float = 1e-4, exact: bool = False, seed: int = 0
) -> PolicyAudit:
    return audit_policy(
        policy, batches=1000, runs=300, significance=significance, exact=exact, seed=seed
    )


USUAL = ("one-bit", "phased-net", "htinf", "conversion", "batched-exp4")
ONE_SUM = {name: policy for name, policy in HONEST.items() if name != "phased-net"}
"""Policies of which every batch releases one sum, or one vector."""


@pytest.mark.parametrize("name", mostly_soak(HONEST, USUAL, ("htinf", "batched-exp4")))
def test_honest_policies_pass_with_experts_and_without(name: str) -> None:
    """The side door has no false alarms; the rest is asked for one in ten million here."""
    result = quick(HONEST[name], significance=1e-7)
    assert result.passed, result
    assert result.side_door == ""
    assert HONEST[name].decided == 0


@pytest.mark.soak
@pytest.mark.parametrize("name", ["one-bit", "htinf", "conversion"])
def test_most_of_epsilon_is_found_through_a_policy(name: str) -> None:
    result = audit_policy(HONEST[name], batches=10_000, runs=2000)
    assert 0.8 < result.epsilon <= 1.0
    assert set(result.attacks) == {"canaries", "short runs"}
    assert "passed" in str(result)


@pytest.mark.soak
def test_vectors_are_attacked_too() -> None:
    policy = bd.PrivateExperts(2, 2, 3.0, 0.0, 20, "batched-exp4", constants="ours")
    result = audit_policy(policy, runs=1500)
    assert set(result.attacks) == {"short runs"}
    assert 0.5 < result.epsilon <= 3.0


# Faults that releases do not show, planted in every kind of play.


class RawLosses:
    """Publishes as it should, and teaches the learner what really happened."""

    def _learn(self: Any, batch: Batch | None) -> None:
        if batch is not None:
            raw = sum(batch.losses) / (len(batch.losses) * UNITS)
            released = close(self._parts, self._state, batch)
            assert isinstance(released, float | np.ndarray)
            truth = raw if isinstance(released, float) else raw * np.arange(released.size)
            learn = self._parts.runner.learn
            learn(batch.choice, batch.importance, batch.ticket, truth, batch.size)


class LossInImportance:
    """Publishes as it should, and weighs what was published by the loss."""

    def _learn(self: Any, batch: Batch | None) -> None:
        if batch is not None:
            extra = 1.0 + batch.losses[0] / UNITS
            ticket = batch.ticket
            if ticket is not None:
                ticket = ticket._replace(importance=ticket.importance * extra)
            released = close(self._parts, self._state, batch)
            assert isinstance(released, float | np.ndarray)
            if not isinstance(released, float):
                released = released * extra
            weight = batch.importance * extra
            self._parts.runner.learn(batch.choice, weight, ticket, released, batch.size)


class LossInNextArm:
    """Chooses the next arm by the last loss, once in a while."""

    last = 0

    def _learn(self: Any, batch: Batch | None) -> None:
        if batch is not None:
            self.last = batch.losses[0]
        Policy._learn(self, batch)

    def _open_batch(self: Any, among: EligibleArms | None) -> Batch:
        batch = Policy._open_batch(self, among)
        if batch.number % 20 == 0 and self.last > 0 and self.experts is None:
            batch.choice = 0
        return batch


def plant(policy: Policy, fault: type) -> Policy:
    """Return a policy that is like another but for a fault."""
    kind = type(f"{fault.__name__}{type(policy).__name__}", (fault, type(policy)), {})
    faulty: Any = object.__new__(kind)
    faulty.__dict__.update(policy.__dict__)
    assert isinstance(faulty, Policy)
    return faulty


@pytest.mark.parametrize("fault", [RawLosses, LossInImportance])
@pytest.mark.parametrize("name", mostly_soak(ONE_SUM, USUAL, ("htinf",)))
def test_losses_that_reach_the_learner_are_found(name: str, fault: type) -> None:
    faulty = plant(HONEST[name], fault)
    assert faulty.guarantee == HONEST[name].guarantee
    for seed in range(5):
        assert "changes" in side_door(faulty, seed=seed)
    result = quick(faulty)
    assert not result.passed
    assert "FAILED" in str(result)
    assert "though what was published is the same" in str(result)


@pytest.mark.parametrize("fault", [RawLosses, LossInImportance, LossInNextArm])
@pytest.mark.parametrize("name", mostly_slow(["one-bit", "htinf"], ["htinf"]))
def test_decisions_alone_give_the_fault_away(
    name: str, fault: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where a policy does not show what it has learned."""
    monkeypatch.setattr("bandanna.audits.transcript._learned", lambda policy: "")
    for seed in range(5):
        assert "decision" in side_door(plant(HONEST[name], fault), seed=seed)


class Reusing(LaplaceRelease):
    """Laplace noise whose eighth draw is the second one again."""

    def seeded(self, stream: Stream) -> SeededRelease:
        return ReusingSeeded(self, stream)


class ReusingSeeded(SeededRelease):
    def __init__(self, release: LaplaceRelease, stream: Stream) -> None:
        super().__init__(release, stream)
        self.drawn: list[float] = []

    def release(self, total: int, size: int | None = None) -> float:
        self.drawn.append(super().release(0, size))
        noise = self.drawn[1] if len(self.drawn) == 8 else self.drawn[-1]
        return noise + total / ((size or self.batch) * UNITS)


class Halved(LaplaceRelease):
    """Half of the noise that it promises."""

    def seeded(self, stream: Stream) -> SeededRelease:
        return LaplaceRelease(2 * self.epsilon, self.batch).seeded(stream)


@pytest.mark.parametrize("kind", [Reusing, Halved])
@pytest.mark.parametrize("experts", mostly_slow([None, 3], [None]))
@pytest.mark.parametrize("chosen", seeds(usual=1, all_of_them=3))
def test_faulty_noise_is_found_through_the_policy(
    kind: type[LaplaceRelease], experts: int | None, chosen: range
) -> None:
    release = kind(1.0, 1)
    policy: Policy = (
        bd.PrivateBandit(2, 1.0, release=release, learner="htinf")
        if experts is None
        else bd.PrivateExperts(experts, 2, 1.0, algorithm="htinf", release=release)
    )
    for seed in chosen:
        result = audit_policy(policy, batches=2000, runs=600, seed=seed)
        assert not result.passed, result
        assert result.epsilon > 1.2
        assert result.side_door == ""


def test_a_policy_that_does_not_repeat_itself_says_so() -> None:
    class Restless:
        def _open_batch(self: Any, among: EligibleArms | None) -> Batch:
            batch = Policy._open_batch(self, among)
            batch.choice = int(np.random.default_rng().integers(len(self.arms)))
            return batch

    assert "does not repeat itself" in side_door(plant(HONEST["one-bit"], Restless))


@pytest.mark.soak
def test_the_noise_that_protects_people_passes_in_policies() -> None:
    for name in ("one-bit", "htinf", "conversion", "batched-exp4"):
        result = quick(HONEST[name], exact=True, significance=1e-7)
        assert result.passed, result


def test_what_promises_nothing_is_not_audited() -> None:
    for policy in (bd.Bandit(2), bd.Experts(3, 2, 1000)):
        with pytest.raises(InputError, match="nothing to audit"):
            audit_policy(policy)


def test_without_any_attack_the_bound_is_zero() -> None:
    result = audit_policy(bd.PrivateExperts(3, 2, 25.0, 0.0, 200, "batched-exp4", constants="ours"))
    assert isinstance(result, PolicyAudit)
    assert result.attacks == {}
    assert result.epsilon == 0.0

"""The attacker who sees everything but the planted person's own decision, and planted faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import uniform
from bandanna.audits.contextual import audit_context
from bandanna.contextual.features import Context
from bandanna.contextual.plays import LinearPlay
from bandanna.contextual.policy import PrivateContextual
from bandanna.contextual.steps import Scores
from bandanna.policy.state import Batch
from bandanna.privacy.epoch_sums import Counts, EpochRelease, EpochTally, Statistics
from bandanna.privacy.epochs import PROTECTS, Protects

ROUNDS = 300


def people() -> list[tuple[dict[str, float], list[float]]]:
    rng = np.random.default_rng(0)
    return [({"x": float(rng.uniform(-1, 1))}, rng.random(2).tolist()) for _ in range(ROUNDS)]


def attacked(policy: PrivateContextual, planted: int = 10, draws: int = 0) -> Any:
    rounds = people()
    rounds[planted] = ({"x": -1.0}, [0.0, 0.0])
    other = ({"x": 1.0 if policy.protects != "feedback" else -1.0}, [1.0, 1.0])
    return audit_context(policy, rounds, planted, other, draws=draws)


def make(kind: type[PrivateContextual], protects: Protects) -> PrivateContextual:
    return kind(2, {"x": (-1, 1)}, 1.0, 1e-6, ROUNDS, protects)


@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("planted", [0, 10, 200])
def test_honest_policies_pass(protects: Protects, planted: int) -> None:
    found = attacked(make(PrivateContextual, protects), planted)
    assert found.passed, found
    assert 0.0 < found.moved <= 1.0
    assert found.epochs == 1


@pytest.mark.parametrize("protects", PROTECTS)
def test_honest_noise_passes(protects: Protects) -> None:
    found = attacked(make(PrivateContextual, protects), draws=4_000)
    assert found.passed, found
    assert found.attack is not None


def sums_of(batch: Batch) -> Counts:
    assert isinstance(batch.tally, EpochTally)
    return batch.tally.counted()


class ExactCounts(PrivateContextual):
    """Fault: how many people had each arm is published, though it depends on contexts."""

    def _learn(self, batch: Batch | None) -> None:
        exact = None if batch is None else sums_of(batch).rounds.copy()
        super()._learn(batch)
        if exact is not None:
            self.past[-1].rounds[:] = exact


class RunningContexts(PrivateContextual):
    """Fault: scores use contexts of the epoch that is running."""

    def decide(self, context: Context, **who: Any) -> bd.Decision:  # type: ignore[override]
        play = self.state.learned
        assert isinstance(play, LinearPlay)
        for batch in self.state.open.values():
            products = sums_of(batch).products[:, 0]
            base = play.fitted.scores.coefficients if play.fitted else np.zeros((2, 2))
            seen = products / (products.sum() + 1.0)
            play.scores = Scores(base + seen[:, None], np.array([50.0]), np.zeros(2))
        return super().decide(context)


class LeakedDecision(PrivateContextual):
    """Fault: one person's arm changes with which chances the next ones are drawn."""

    def decide(self, context: Context, **who: Any) -> bd.Decision:  # type: ignore[override]
        decision = super().decide(context)
        if decision.index == 0:
            uniform(self.state.stream)
        return decision


class UsedTwice(PrivateContextual):
    """Fault: feedback stays in the sums after they are released."""

    def _learn(self, batch: Batch | None) -> None:
        kept = None
        if batch is not None:
            kept = sums_of(batch).products.copy(), sums_of(batch).sums.copy()
        super()._learn(batch)
        if kept is not None:
            following = sums_of(self._open_batch(None))
            following.products[:] += kept[0]
            following.sums[:] += kept[1]


@pytest.mark.parametrize(
    ("fault", "sign"),
    [
        (ExactCounts, "besides noisy statistics"),
        (RunningContexts, "decisions of other people"),
        (LeakedDecision, "decisions of other people"),
    ],
)
def test_planted_faults_are_found(fault: type[PrivateContextual], sign: str) -> None:
    seen = [
        attacked(make(fault, "context and feedback"), planted) for planted in range(80, 300, 15)
    ]
    assert not all(found.passed for found in seen)
    assert any(sign in str(found) for found in seen)


@pytest.mark.parametrize("protects", PROTECTS)
def test_feedback_used_twice_is_found(protects: Protects) -> None:
    found = attacked(make(UsedTwice, protects))
    assert found.epochs > 1
    assert not found.passed


@dataclass(frozen=True)
class Noiseless(EpochRelease):
    """Fault: what is released has no noise."""

    def release(self, exact: Statistics) -> Statistics:
        return Statistics(exact.products.copy(), exact.sums.copy())


@dataclass(frozen=True)
class HalfNoise(EpochRelease):
    """Fault: noise for half the epsilon's reach."""

    def release(self, exact: Statistics) -> Statistics:
        weaker = EpochRelease(self.protects, 8 * self.epsilon, self.delta, self.arms, self.features)
        return weaker.release(exact)


@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("fault", [Noiseless, HalfNoise])
def test_missing_noise_is_found(fault: type[EpochRelease], protects: Protects) -> None:
    policy = make(PrivateContextual, protects)
    policy.recipe = policy.recipe._replace(release=fault(protects, 1.0, 1e-6, 2, 2))
    found = attacked(policy, draws=4_000)
    assert not found.attack.passed


def test_public_contexts_stay() -> None:
    with pytest.raises(bd.InputError, match="public"):
        audit_context(make(PrivateContextual, "feedback"), people(), 0, ({"x": 0.0}, [0, 0]))

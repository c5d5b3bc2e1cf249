"""Attacks through someone who is in a log and in the run that started from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.audits import releases
from bandanna.audits.attack import audit
from bandanna.audits.releases import audit_start
from bandanna.privacy import LaplaceRelease


def log_with(outcome: float) -> bd.logs.LogAnswer:
    """Answer a log of three rows of each arm, in which one outcome is planted."""
    log = {"plan": ["A", "A", "A", "B", "B", "B"], "lost": [outcome, 0, 0, 0, 0, 0]}
    return bd.answer(log, arm="plan", outcome="lost", epsilon=1.0)


@pytest.fixture(scope="module")
def policy() -> bd.PrivateBandit:
    return bd.PrivateBandit(["A", "B"], 0.5, 1_000, start_from=log_with(0.0))


def test_what_both_cost_is_what_is_stated(policy: bd.PrivateBandit) -> None:
    """The bound exceeds the true epsilon with probability 1e-6 at most, and is close to it."""
    result = audit_start(policy, draws=200_000, significance=1e-6)
    assert result.claimed == policy.certificate()["epsilon_with_start"] == 1.5
    assert result.passed, result
    assert result.epsilon > 1.3  # more than either costs: 1.0 and 0.5


def test_a_log_that_was_released_with_less_noise_is_found(
    policy: bd.PrivateBandit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clearer(epsilon: float, *size: Any, **options: Any) -> LaplaceRelease:
        return LaplaceRelease(2.0 * epsilon, *size, **options)

    monkeypatch.setattr(releases, "LaplaceRelease", clearer)
    assert not audit_start(policy, draws=200_000, significance=1e-6).passed


def test_only_policies_that_started_from_a_log_are_attacked() -> None:
    with pytest.raises(bd.InputError, match="did not start from a log"):
        audit_start(bd.PrivateBandit(2, 1.0, 1_000))


@pytest.mark.soak
def test_whole_logs_and_whole_runs() -> None:
    """The same with the log answered anew and a batch of the run played, every time."""

    def seen(outcome: float) -> list[float]:
        found = log_with(outcome)
        policy = bd.PrivateBandit(["A", "B"], 0.5, 1_000, "dp-klucb", start_from=found)
        while policy.released == 0:
            decision = policy.decide()
            policy.observe(decision, loss=outcome if decision.position == 0 else 0.0)
        assert found.start is not None
        first, own = found.start.arms[0].total, policy.state.totals[decision.index].total
        return [first, own, first + own, min(first, own)]

    outputs = [np.array([seen(outcome) for _ in range(2_000)]) for outcome in (1.0, 0.0)]
    result = audit(
        lambda count: outputs[0][:count],
        lambda count: outputs[1][:count],
        1.5,
        draws=2_000,
        significance=1e-6,
    )
    assert result.passed, result
    assert result.epsilon > 0.3

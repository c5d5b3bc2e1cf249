"""Where nothing is proved about regret, nothing is promised: in no summary, plan or bound."""

from __future__ import annotations

from pathlib import Path

import pytest

import bandanna as bd


def test_late_feedback_ends_what_is_promised_about_regret() -> None:
    """All decided before any feedback: "at most 290" was printed, and 501 lost."""
    policy = bd.PrivateBandit(2, epsilon=0.5, rounds=1000, algorithm="adaptive")
    bound = policy.plan.own
    assert bound is not None
    assert bound.bound is not None
    decisions = [policy.decide() for _ in range(1000)]
    for decision in decisions:
        policy.observe(decision, loss=float(decision.index))
    said = policy.summary()
    assert "at most" not in str(said)
    assert "Nothing is promised about regret: batches began while others waited" in said.net
    assert "Nothing is promised" in policy._repr_html_()
    own = policy.plan.own
    assert own is not None
    assert own.bound is None
    assert "feedback in order" in own.reason
    assert policy.regret_bound is None
    assert policy.net is None


@pytest.mark.parametrize("algorithm", ["one-bit", "htinf", "phased-net", "exp3", "adaptive"])
def test_no_algorithm_without_a_proof_promises_anything_then(algorithm: str) -> None:
    policy = bd.PrivateBandit(2, 1.0, 100_000, algorithm, seed=3)
    in_order = policy.decide()
    policy.observe(in_order, loss=0.5)
    while len(policy.state.open) < 2:  # the second begins before the first is released
        policy.decide()
    policy.decide()
    own = policy.plan.own
    assert own is not None
    assert own.bound is None
    assert "at most" not in policy.summary().net


def test_a_bound_for_a_delay_is_for_no_more_than_that() -> None:
    policy = bd.PrivateBandit(2, 1.0, 10_000, "one-bit-exp3", delay=100)
    waiting = [policy.decide() for _ in range(100)]
    own = policy.plan.own
    assert own is not None
    assert own.bound is not None
    waiting += [policy.decide() for _ in range(100 + 2 * policy.batch)]
    own = policy.plan.own
    assert own is not None
    assert own.bound is None
    assert "no later than delay= says" in own.reason


def test_lateness_is_remembered_after_a_restart(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(2, epsilon=0.5, rounds=1000)
    for _ in range(3 * policy.batch):
        policy.decide()
    policy.save(tmp_path / "bandit.json")
    loaded = bd.load(tmp_path / "bandit.json")
    assert isinstance(loaded, bd.PrivateBandit)
    assert loaded.state.outstanding == policy.state.outstanding > 0
    assert "Nothing is promised" in str(loaded.summary())

"""EXP3 without noise gives itself away."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from research.exp3_leakage import (
    audit_actions,
    exp3_leakage,
    paper_construction,
    sample_arms,
    search_worse,
)

from bandanna.learners import Exp3


def probability(arms: tuple[int, ...], losses: np.ndarray, rate: float, mixing: float) -> float:
    """EXP3's probability of a sequence of arms, written a second time."""
    estimates, total = np.zeros(2), 1.0
    for t, arm in enumerate(arms):
        weights = np.exp(-rate * estimates)
        chances = (1 - mixing) * weights / weights.sum() + mixing / 2
        total *= chances[arm]
        estimates[arm] += losses[t, arm] / chances[arm]
    return float(total)


def test_privacy_loss_is_exact_for_every_sequence_of_arms() -> None:
    learner = Exp3(2, learning_rate=0.3, mixing=0.02)
    losses, neighbour, _ = paper_construction(7)
    for arms in itertools.product((0, 1), repeat=7):
        first = probability(arms, losses, 0.3, 0.02)
        second = probability(arms, neighbour, 0.3, 0.02)
        along = exp3_leakage(learner, losses, neighbour, np.array(arms)).along[-1]
        assert along == pytest.approx(np.log(first / second), abs=1e-12)


def test_the_papers_figure() -> None:
    learner = Exp3(2, learning_rate=1e-4, mixing=1e-4)
    leakage = exp3_leakage(learner, *paper_construction(10**6))
    assert leakage.first[0] == leakage.second[0] == 0.5
    assert leakage.first[-1] == pytest.approx(1 - 0.5e-4, abs=1e-6)
    assert leakage.second[-1] == pytest.approx(0.5e-4, abs=1e-6)
    assert leakage.per_round[1] == pytest.approx(1e-4, rel=0.01)
    assert leakage.per_round[-1] > 9


def test_replayed_runs_are_followed_to_the_last_bit() -> None:
    """EXP3 is chaotic here: a replay that rounds differently would soon tell another story."""
    learner = Exp3(2, learning_rate=0.1, mixing=0.01)
    losses, neighbour, _ = paper_construction(1000)
    for run in range(50):
        arms = sample_arms(learner, neighbour, [3, run])
        # On its own losses a run cannot speak strongly for the others: P(ratio > c) <= exp(-c).
        assert exp3_leakage(learner, losses, neighbour, arms).along[-1] < 20


def test_actions_alone_convict_exp3() -> None:
    learner = Exp3(2, learning_rate=0.03, mixing=0.01)
    losses, neighbour, _ = paper_construction(1000)
    result = audit_actions(learner, losses, neighbour, claimed_epsilon=1.0, draws=3000)
    assert not result.passed
    assert result.epsilon > 1.8


def test_a_search_finds_worse() -> None:
    learner = Exp3(2, learning_rate=0.01, mixing=0.01)
    paper = np.abs(exp3_leakage(learner, *paper_construction(2000)).along).max()
    worse, losses, neighbour, arms = search_worse(learner, 2000, tries=50)
    assert worse > 10 * paper
    assert (losses != neighbour).any(axis=1).sum() == 1
    assert arms.shape == (2000,)

"""Answers from phases hold for losses that change, if they were fixed in advance."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bandanna as bd


@pytest.fixture(scope="module")
def policy() -> bd.PrivateBandit:
    """Play losses with a trend that moves both arms alike, and a steady difference of 0.2."""
    found = bd.PrivateBandit(["A", "B"], 1.0, 3_000, "phased", seed=1)
    rng = np.random.default_rng(0)
    trend = np.linspace(0.1, 0.6, 3_000)
    losses = (rng.random((3_000, 2)) < np.stack([trend + 0.2, trend], axis=1)).astype(float)
    for row in losses:
        decision = found.decide()
        found.observe(decision, loss=row[decision.index])
    return found


def test_nothing_is_assumed_but_that_losses_are_fixed_in_advance(policy: bd.PrivateBandit) -> None:
    answer = policy.answer()
    assert answer.best in (None, "B")
    assert "provided outcomes were fixed in advance (they may change over time)." in answer.sentence
    found = policy.compare("A", "B")
    assert found.low <= -0.2 <= found.high
    assert "fixed in advance" in found.assumption
    for arm in answer.arms:
        assert arm.mean is not None
        assert arm.low <= arm.mean <= arm.high


def test_phases_survive_files(policy: bd.PrivateBandit, tmp_path: Path) -> None:
    policy.save(tmp_path / "policy.json")
    loaded = bd.load(tmp_path / "policy.json")
    assert loaded.answer() == policy.answer()
    assert loaded.compare("A", "B") == policy.compare("A", "B")
    assert json.dumps(policy.to_dict()["learned"]["phases"])


def test_before_the_first_phase_nothing_is_claimed() -> None:
    fresh = bd.PrivateBandit(["A", "B"], 1.0, 3_000, "phased")
    assert fresh.answer().best is None
    assert fresh.compare("A", "B").difference is None

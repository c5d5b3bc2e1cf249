"""Audits of policies that play phases: honest ones pass, planted faults are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.audits.policies import audit_canaries, side_door
from bandanna.audits.transcript import WatchedTally
from bandanna.policy.state import Phase
from bandanna.privacy.sums import SumTally

SIGNIFICANCE = 1e-6
"""The audits' own: how likely a claim that holds is refused."""


def policy(name: str = "phased") -> bd.PrivateBandit:
    return bd.PrivateBandit(2, 1.0, 60, algorithm=name, seed=1)


def canaries() -> Any:
    return audit_canaries(policy(), batches=400, significance=SIGNIFICANCE)


@pytest.mark.parametrize("name", ["phased", "ab-test"])
def test_honest_policies_pass(name: str) -> None:
    found = audit_canaries(policy(name), batches=400, significance=SIGNIFICANCE)
    assert found is not None
    assert found.epsilon <= found.claimed
    assert name == "ab-test" or side_door(policy(name)) == ""


def test_noise_forgotten_on_one_arms_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = SumTally.publish

    def forgetful(self: SumTally) -> np.ndarray:
        assert self._sums is not None
        sums = {arm: tuple(pair) for arm, pair in self._sums.items()}
        most = max(sums, key=lambda arm: sums[arm][1])  # the arm with most rounds in the phase
        total, count = sums[most]
        values = np.asarray(publish(self))
        values[sorted(sums).index(most)] = total / (count * 2**20)
        return values

    monkeypatch.setattr(SumTally, "publish", forgetful)
    assert canaries().epsilon > 1.0


def test_a_sum_released_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Averaging many releases of the same sum takes the noise away."""
    publish = SumTally.publish

    def again(self: SumTally) -> np.ndarray:
        sums = dict(self._sums or {})
        values = [np.asarray(publish(self))]
        for _ in range(15):
            self._sums = dict(sums)
            values.append(np.asarray(publish(self)))
        return np.asarray(np.mean(values, axis=0))

    monkeypatch.setattr(SumTally, "publish", again)
    assert canaries().epsilon > 1.0


def test_a_share_that_depends_on_the_running_phase_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = [0]
    take, add = Phase.take, WatchedTally.add

    def peek(self: WatchedTally, units: int, *about: Any) -> None:
        seen[0] = units
        add(self, units, *about)

    def leaning(self: Phase, among: Any = None) -> Any:
        taken = take(self, among)
        return taken if taken is None or seen[0] == 0 else (0, taken[1])

    monkeypatch.setattr(WatchedTally, "add", peek)
    monkeypatch.setattr(Phase, "take", leaning)
    assert "changes" in side_door(policy())

"""The simulator and the online object make the same decisions, bit for bit, for any learner.

``tests/contracts/test_policies.py`` shows it for every algorithm.
"""

from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna.learners import CompiledLearner
from bandanna.policy import Policy
from bandanna.simulation.engine import run_streams
from tests.contracts.test_learners import LEARNERS_UNDER_TEST
from tests.soak import mostly_slow

ROUNDS = 997
"""Prime: the last batch is never full."""

RELEASES = ["one-bit", "laplace"]


def drive_by_hand(policy: Policy, losses: np.ndarray, seed: int, run: int) -> list[int]:
    arms, releases, _ = run_streams(seed, run)
    rehearsal = policy.rehearse(arms, releases)
    played = []
    for row in losses:
        decision = rehearsal.decide()
        played.append(decision.index)
        rehearsal.observe(decision, loss=float(row[decision.index]))
    return played


def check(policy: Policy) -> None:
    arms = len(policy.arms)
    # Exact on the grid, so that rounding plays no part.
    losses = np.random.default_rng(8).integers(0, 2**20 + 1, (ROUNDS, arms)) / 2**20
    results = bd.simulate(policy, losses, replicates=3, seed=21, checkpoints=9)
    for run in range(3):
        played = drive_by_hand(policy, losses, 21, run)
        np.testing.assert_array_equal(
            results.plays("policy")[run], np.bincount(played, minlength=arms)
        )
        mine = losses[np.arange(ROUNDS), played].cumsum()[results.stops - 1]
        best = losses.cumsum(axis=0)[results.stops - 1].min(axis=1)
        np.testing.assert_allclose(results.curves("policy")[run], mine - best, atol=1e-9)


LEARNERS = {name: learner for name, learner in LEARNERS_UNDER_TEST.items() if not learner.grows}
"""All but those whose batches grow: they come with a release of their own, as algorithms."""


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
@pytest.mark.parametrize("release", mostly_slow(RELEASES, ["laplace"]))
def test_every_learner_under_every_release(learner: CompiledLearner, release: str) -> None:
    check(bd.PrivateBandit(learner.arms, 0.7, learner=learner, release=release, batch=3))


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
def test_every_learner_without_privacy(learner: CompiledLearner) -> None:
    check(bd.Bandit(learner.arms, learner))

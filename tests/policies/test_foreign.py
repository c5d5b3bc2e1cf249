"""Bandits of other libraries, the real ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import river.bandit
import river.compose
import river.stats
from mabwiser.mab import MAB, LearningPolicy, NeighborhoodPolicy

import bandanna as bd


class Greedy:
    """The smallest bandit that can be: two methods."""

    def __init__(self, seed: int | None = None) -> None:
        self.rng = random.Random(seed)
        self.totals = [0.0] * 3
        self.counts = [1] * 3

    def draw(self) -> int:
        if self.rng.random() < 0.1:
            return self.rng.randrange(3)
        return min(range(3), key=lambda arm: self.totals[arm] / self.counts[arm])

    def update(self, arm: int, loss: float) -> None:
        self.totals[arm] += loss
        self.counts[arm] += 1


def make_greedy(seed: int) -> Greedy:
    return Greedy(seed)


LEARNERS: dict[str, Any] = {
    "river exp3": river.bandit.Exp3(gamma=0.1),
    "river ucb": river.bandit.UCB(delta=1, seed=1),
    "river epsilon-greedy": river.bandit.EpsilonGreedy(epsilon=0.1, seed=1),
    "mabwiser epsilon-greedy": MAB([0, 1, 2], LearningPolicy.EpsilonGreedy(0.1), seed=3),
    "mabwiser thompson": MAB(["x", "y", "z"], LearningPolicy.ThompsonSampling()),
    "mabwiser softmax": MAB([5, 6, 7], LearningPolicy.Softmax(tau=0.2)),
    "two methods": Greedy(1),
    "a factory": make_greedy,
    "ours by name": "htinf",
    "ours": bd.learners.TsallisInf(3),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_made_private_in_one_line_and_learns(name: str) -> None:
    private = bd.privatize(LEARNERS[name], arms=3, epsilon=1.0, seed=1)
    assert private.guarantee.epsilon == 1.0
    plays = [0, 0, 0]
    for _ in range(6000):
        decision = private.decide()
        plays[decision.index] += 1
        private.observe(decision, loss=0.05 if decision.index == 1 else 0.95)
    assert plays[1] > 3000


def test_the_users_object_is_copied() -> None:
    mine = river.bandit.Exp3(gamma=0.1)
    private = bd.privatize(mine, arms=3, epsilon=1.0)
    for _ in range(10):
        private.observe(private.decide(), loss=0.5)
    assert mine._n == 0


def test_they_can_be_simulated_and_runs_differ() -> None:
    policies = {
        name: bd.privatize(LEARNERS[name], arms=3, epsilon=1.0)
        for name in ("river exp3", "mabwiser thompson", "two methods", "a factory")
    }
    environment = bd.environments.Segments([[0.1, 0.9, 0.9]], [600])
    results = bd.simulate(policies, environment, replicates=8)
    again = bd.simulate(policies, environment, replicates=8, cores=1)
    for name in policies:
        assert len(np.unique(results.regret(name))) > 3, name
        np.testing.assert_array_equal(results.plays(name).sum(axis=1), 600)
        if name != "mabwiser thompson":  # keeps a generator of its own in every process
            np.testing.assert_array_equal(results.regret(name), again.regret(name))


def test_they_cannot_be_saved(tmp_path: Path) -> None:
    private = bd.privatize(Greedy(), arms=3, epsilon=1.0)
    with pytest.raises(bd.InputError, match="around Greedy cannot be saved"):
        private.save(tmp_path / "p.json")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_played_is_refused() -> None:
    linear = MAB([1, 2, 3], LearningPolicy.LinUCB())
    nearest = MAB([1, 2, 3], LearningPolicy.UCB1(), NeighborhoodPolicy.KNearest(2))
    four = MAB([1, 2, 3, 4], LearningPolicy.UCB1())
    contextual = river.bandit.LinUCBDisjoint(alpha=0.1)
    for learner, reason in (
        (linear, "context"),
        (nearest, "context"),
        (contextual, "context"),
        (four, "4 arms and the bandit 3"),
        (object(), "draw"),
        (Greedy, "the class Greedy; pass an instance"),
        (river.bandit.Exp3, "the class Exp3"),
        (42, "draw"),
    ):
        with pytest.raises(bd.InputError, match=reason):
            bd.privatize(learner, arms=3, epsilon=1.0)


def test_mabwisers_arms_are_matched_by_name() -> None:
    mab = MAB(["x", "y", "z"], LearningPolicy.EpsilonGreedy(0.5), seed=1)
    private = bd.privatize(mab, arms=["z", "x", "y"], epsilon=2.0, batch=1)
    for _ in range(300):
        decision = private.decide()
        private.observe(decision, loss=0.0 if decision.arm == "y" else 1.0)
    bandit = private._player._play.params.bandit  # type: ignore[union-attr]
    assert bandit.mab._imp.arm_to_expectation["y"] > 0.5
    assert bandit._arms == ["z", "x", "y"]
    with pytest.raises(bd.InputError, match="same names"):
        bd.privatize(mab, arms=["a", "b", "c"], epsilon=1.0)


def test_an_arm_that_does_not_exist_is_refused() -> None:
    class Wild(Greedy):
        arm: Any = 7

        def draw(self) -> int:
            return self.arm  # type: ignore[no-any-return]

    for arm in (7, "a", 1.5, None):
        wild = Wild()
        wild.arm = arm
        private = bd.privatize(wild, arms=3, epsilon=1.0)
        with pytest.raises(bd.InputError, match="drew arm"):
            private.decide()
        assert private.decided == 0


def test_a_repr_names_the_learner_and_one_that_has_learned_is_warned_about() -> None:
    assert "one-bit around Exp3: 3 arms" in repr(bd.privatize(LEARNERS["river exp3"], 3, 1.0))
    assert "one-bit around htinf: " in repr(bd.privatize("htinf", 3, 1.0))
    assert " around " not in repr(bd.PrivateBandit(3, 1.0))
    fitted = MAB([0, 1, 2], LearningPolicy.EpsilonGreedy(0.1))
    fitted.fit([0, 1, 2], [1, 0, 1])
    with pytest.warns(UserWarning, match="has learned already"):
        bd.privatize(fitted, 3, 1.0)

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
    for _ in range(3000):
        decision = private.decide()
        plays[decision.index] += 1
        private.observe(decision, loss=0.05 if decision.index == 1 else 0.95)
    assert plays[1] > 1500


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


class Thompson:
    """Thompson sampling, as one writes it."""

    def __init__(self, seed: int | None = None, prior: float = 1.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.bad, self.good = np.full(3, prior), np.full(3, prior)

    def draw(self) -> int:
        return int(np.argmin(self._generator().beta(self.bad, self.good)))

    def update(self, arm: int, loss: float) -> None:
        self.bad[arm] += loss
        self.good[arm] += 1.0 - loss

    def _generator(self) -> Any:
        return self.rng


class Careless(Thompson):
    """Its randomness is everybody's."""

    def _generator(self) -> Any:
        return np.random


def half_played(learner: Any) -> bd.PrivateBandit:
    """Leave batches open, and feedback out of order."""
    policy = bd.privatize(learner, arms=3, epsilon=1.0, seed=5)
    waiting = []
    for number in range(200):
        waiting.append(policy.decide())
        if number % 3:
            policy.observe(waiting.pop(0), loss=float(number % 2))
    return policy


OTHERS = {name: learner for name, learner in LEARNERS.items() if not name.startswith("ours")}


@pytest.mark.parametrize("name", [*OTHERS, "thompson", "a lambda"])
def test_a_saved_one_goes_on_in_a_fresh_learner(name: str, tmp_path: Path) -> None:
    more = {"thompson": Thompson(2), "a lambda": lambda seed: Thompson(seed, prior=2.0)}
    learner = (OTHERS | more)[name]
    policy = half_played(learner)
    policy.save(tmp_path / "p.json")
    again = bd.load(tmp_path / "p.json", learner=learner, epsilon=1.0)
    assert again.around == policy.around
    assert again.guarantee == policy.guarantee
    assert again.summary().rows == policy.summary().rows
    assert [policy.decide().index for _ in range(60)] == [again.decide().index for _ in range(60)]


def test_experts_around_another_learner_go_on_too(tmp_path: Path) -> None:
    policy = bd.PrivateExperts(3, 2, 1.0, algorithm="one-bit", learner=Thompson(1))
    for _ in range(20):
        policy.observe(policy.decide([0, 1, 1]), loss=0.5)
    policy.save(tmp_path / "p.json")
    again = bd.load(tmp_path / "p.json", learner=Thompson())
    for _ in range(20):
        assert again.decide([0, 1, 1]).index == policy.decide([0, 1, 1]).index


@pytest.mark.parametrize(
    ("saved", "given", "reason"),
    [
        (Thompson(1), None, "its learner is a Thompson, which is not in the file: pass a fresh"),
        (Thompson(1), Thompson(1, prior=50.0), "does not draw the arms that the saved one drew"),
        (Careless(), Careless(), "its randomness is not its own"),
        ("htinf", Thompson(1), "its learner is Bandanna's own htinf and is in the file"),
        (Thompson(1), MAB([1, 2], LearningPolicy.Random()), "2 arms and the bandit 3"),
    ],
)
def test_what_cannot_be_replayed_is_refused_and_can_be_tried_again(
    saved: Any, given: Any, reason: str, tmp_path: Path
) -> None:
    half_played(saved).save(tmp_path / "p.json")
    with pytest.raises(bd.StateFileError, match=reason):
        bd.load(tmp_path / "p.json", learner=given)
    if isinstance(saved, Thompson) and not isinstance(saved, Careless):
        assert bd.load(tmp_path / "p.json", learner=Thompson(1)).resumed == 0


def test_a_learner_that_fails_at_what_was_released_is_named(tmp_path: Path) -> None:
    class Fails(Thompson):
        def update(self, arm: int, loss: float) -> None:
            raise RuntimeError("no")

    half_played(Thompson(1)).save(tmp_path / "p.json")
    with pytest.raises(
        bd.StateFileError, match="cannot replay what was released to the Fails given"
    ):
        bd.load(tmp_path / "p.json", learner=Fails(1))


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
    bandit = private._parts.runner._play.params.bandit  # type: ignore[union-attr]
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

from __future__ import annotations

import numpy as np
import pytest
from research.prior_work import ClippedExp3

from bandanna._core.streams import new_stream
from bandanna.learners import Exp3
from tests.laws import assert_law


@pytest.mark.parametrize("arms", [2, 10, 64, 65, 1000])
def test_probabilities_are_the_formula(arms: int) -> None:
    learner = Exp3(arms, learning_rate=0.3, mixing=0.1)
    player = learner.play(new_stream(1))
    losses = np.zeros(arms)
    for t in range(400):
        weights = np.exp(-0.3 * (losses - losses.min()))
        expected = 0.9 * weights / weights.sum() + 0.1 / arms
        arm, importance = player.draw()
        assert 1 / importance == pytest.approx(expected[arm], rel=1e-9)
        loss = np.cos(t)
        losses[arm] += loss * importance
        player.update(arm, importance, float(loss))


@pytest.mark.parametrize("arms", [5, 200])
@pytest.mark.parametrize("mixing", [0.0, 0.3, 1.0])
def test_draws_follow_the_probabilities(arms: int, mixing: float) -> None:
    player = Exp3(arms, learning_rate=1.0, mixing=mixing).play(new_stream(2))
    losses = np.linspace(0, 3, arms)
    for arm in range(arms):
        player.update(arm, 1.0, float(losses[arm]))
    counts = np.zeros(arms)
    for _ in range(20_000):
        counts[player.draw()[0]] += 1
    weights = np.exp(-losses)
    assert_law(counts, (1 - mixing) * weights / weights.sum() + mixing / arms)


def test_arms_without_weight_are_never_drawn() -> None:
    player = Exp3(100, learning_rate=1.0).play(new_stream(3))
    for arm in range(100):
        if arm != 17:
            player.update(arm, 1.0, 1e4)
    assert {player.draw()[0] for _ in range(200)} == {17}


def test_clipped_gains() -> None:
    player = ClippedExp3(2, mixing=0.5, bound=2.0).play(new_stream(0))
    player.update(0, 3.0, loss=-2.1)  # gain 3.1, outside [-2, 3]
    player.update(0, 3.0, loss=3.1)  # gain -2.1
    assert player.state_dict()["losses"] == [0.0, 0.0]
    player.update(0, 3.0, loss=0.0)  # gain 1, rescaled to 3/5
    assert player.state_dict()["losses"] == pytest.approx([-1.8, 0.0])

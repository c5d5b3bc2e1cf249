from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bandanna._core.streams import new_stream
from bandanna.learners import Ftpl
from tests.laws import assert_law


def test_importance_is_a_capped_geometric_count() -> None:
    """Given the arm, min(Geometric(p), M): the cap itself, not zero, when no repeat hits."""
    player = Ftpl(2, learning_rate=1.0, resamples=4).play(new_stream(1))
    player.update(0, 1.0, 2.0)
    draws = [player.draw() for _ in range(40_000)]
    chance = np.mean([arm == 0 for arm, _ in draws])
    # P(2 + Z < Z') for Laplace variables of scale 1: their difference has a known tail.
    assert stats.binomtest(int(chance * 40_000), 40_000, 0.5 * (1 + 1) * np.exp(-2)).pvalue > 1e-6
    for arm, p in ((0, np.exp(-2)), (1, 1 - np.exp(-2))):
        counts = np.bincount([int(m) for a, m in draws if a == arm], minlength=5)[1:]
        law = [p, p * (1 - p), p * (1 - p) ** 2, (1 - p) ** 3]
        assert_law(counts, law)


@pytest.mark.parametrize("arms", [2, 6])
def test_importance_estimates_one_over_the_probability(arms: int) -> None:
    player = Ftpl(arms, learning_rate=1.0, resamples=10_000).play(new_stream(2))
    for arm in range(arms):
        player.update(arm, 1.0, arm / 3)
    draws = [player.draw() for _ in range(20_000)]
    weights = np.zeros(arms)
    for arm, importance in draws:
        weights[arm] += importance
    np.testing.assert_allclose(weights / len(draws), 1.0, atol=0.1)

"""Groups of rounds, against the recursion over all splits that the search approximates."""

from __future__ import annotations

import math
from functools import cache

import pytest

from bandanna.privacy.composition import LARGEST, STEPS, one_bit_group


def exact_delta(each: float, size: int, batch: int, epsilon: float) -> float:
    """Return the largest delta at epsilon of ``size`` rounds, over all splits, without a grid."""

    @cache
    def worst(rounds: int, excess: float) -> float:
        if rounds == 0:
            return max(0.0, -math.expm1(-excess))
        return max(split(rounds, excess, j) for j in range(1, min(rounds, batch) + 1))

    def split(rounds: int, excess: float, j: int) -> float:
        loss = math.log1p(j * math.expm1(each))
        chance = 1.0 / (1.0 + math.exp(-loss))
        return chance * worst(rounds - j, excess + loss) + (1.0 - chance) * worst(
            rounds - j, excess - loss
        )

    return worst(size, -epsilon)


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.1, 0.3])
@pytest.mark.parametrize(("each", "size", "batch"), [(0.5, 6, 2), (1.0, 4, 3), (0.2, 9, 4)])
def test_the_search_is_above_the_recursion_and_wastes_little(
    each: float, size: int, batch: int, delta: float
) -> None:
    found = one_bit_group(each, size, batch, delta)
    assert exact_delta(each, size, batch, found) <= delta
    assert exact_delta(each, size, batch, found - 2 * size * each / STEPS) > delta


@pytest.mark.parametrize("batch", [1, 3])
def test_without_delta_or_beyond_the_search_epsilons_add_up(batch: int) -> None:
    assert 1.5 <= one_bit_group(0.3, 5, batch, 0.0) < 1.5 + 1e-12
    assert one_bit_group(0.3, 5, batch, 0.01) < 1.5
    size = LARGEST + 1
    assert 0.3 * size <= one_bit_group(0.3, size, batch, 0.01) < 0.3 * size + 1e-9

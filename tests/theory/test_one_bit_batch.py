from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from bandanna.spec import Problem
from bandanna.theory.tsallis import best_one_bit_batch, default_one_bit_batch, one_bit_bound


def bound(batch: int, rounds: int, arms: int, epsilon: float) -> float:
    """The bound once more, as the note has it."""
    c = batch * (math.exp(epsilon) - 1)
    s = c / (2 + c)
    n = rounds // batch
    log_term = 4.07 * arms * max(0.0, math.log(max(n, 1) / 15))
    return batch / s * (2 * math.sqrt(arms * n) + log_term + 16) + batch


@settings(deadline=None)
@given(st.integers(1, 3000), st.integers(2, 100), st.floats(0.001, 10))
def test_the_best_batch_is_the_best_of_all(rounds: int, arms: int, epsilon: float) -> None:
    problem = Problem(arms, rounds, epsilon)
    everything = [one_bit_bound(problem, batch).regret for batch in range(1, rounds + 1)]
    best = best_one_bit_batch(problem)
    assert 1 <= best <= rounds
    assert math.isclose(bound(best, rounds, arms, epsilon), everything[best - 1], rel_tol=1e-9)
    if min(everything) < rounds:
        assert everything[best - 1] <= min(everything) * 1.0001
    else:  # nothing is guaranteed, so the choice for long horizons is made
        assert best == min(default_one_bit_batch(epsilon), rounds)


def test_at_large_epsilon_the_best_batch_is_one() -> None:
    assert best_one_bit_batch(Problem(10, 10**6, 1.0)) == 1
    assert [default_one_bit_batch(eps) for eps in (0.1, 0.3, 1.0, 5.0)] == [20, 7, 2, 1]


def test_the_bound_is_below_the_rounds_from_about_twelve_thousand_on() -> None:
    def share(rounds: int) -> float:
        batch = best_one_bit_batch(Problem(10, rounds, 0.1))
        return bound(batch, rounds, 10, 0.1) / rounds

    assert share(11_500) > 1 > share(12_500)

"""What late feedback costs exponential weights on released bits.

Proofs: ``docs/theory/delay.md``. Estimates there are the plain ones, which are never negative; for
centred estimates, Tsallis-INF, HTINF, FTPL and everything behind Laplace noise nothing is proved.
"""

from __future__ import annotations

import math

from bandanna.spec import Problem
from bandanna.theory.tuning import Bound, best_batch, checked_batch, one_bit_price

PROOF = "docs/theory/delay.md"


def outstanding(delay: int, batch: int) -> int:
    """Return how many batches can be open when another begins.

    Examples
    --------
    >>> outstanding(delay=600, batch=1), outstanding(delay=600, batch=7), outstanding(0, 7)
    (600, 86, 0)
    """
    return -(-delay // batch)


def overlaps(batches: int, late: int) -> int:
    """Return how many pairs of batches overlap: the sum over ``r < batches`` of ``min(r, late)``.

    Examples
    --------
    >>> overlaps(batches=5, late=2), overlaps(batches=5, late=9)
    (7, 10)
    """
    late = min(late, batches)
    return late * batches - late * (late + 1) // 2


def late_cost(rate: float, slope: float, pairs: float) -> float:
    """Bound what overlapping pairs add to EXP3's regret on bits: ``eta ((1 + s)/2)^2`` each."""
    return rate * (0.5 * (1.0 + slope)) ** 2 * pairs


def late_exp3(problem: Problem, batch: int | None = None) -> Bound:
    """EXP3 on released bits that come late, at the rate that suits the delay."""
    if batch is None:
        tried = (_late_exp3(problem, size) for size in _batches(problem))
        return min(tried, key=lambda bound: bound.regret)
    return _late_exp3(problem, checked_batch(batch, problem))


def _late_exp3(problem: Problem, batch: int) -> Bound:
    arms, rounds, epsilon = problem.size
    price, count, choices = one_bit_price(batch, epsilon), rounds // batch, math.log(arms)
    slope, pairs = batch / price, overlaps(count, outstanding(problem.delay, batch))
    rate = math.sqrt(choices / late_cost(1.0, slope, pairs + count * arms / (1.0 + slope)))
    return Bound(
        f"one-bit conversion of EXP3, late feedback ({PROOF})",
        {
            "(tau/s) log(K) / eta": price * choices / rate,
            "(tau/s) eta n K (1 + s) / 4": price * rate * count * arms * (1.0 + slope) / 4.0,
            "(tau/s) eta ((1 + s) / 2)^2 overlaps": price * late_cost(rate, slope, pairs),
            "tau": float(batch),
        },
        batch,
        {"learning_rate": rate},
    )


def _batches(problem: Problem) -> set[int]:
    """Return sizes of batches among which a good one is.

    With ``delay / batch`` for whole numbers of outstanding batches the bound has one valley. Just
    below a size at which one less is outstanding it is a little higher than need be, so the nearest
    of those sizes are looked at as well.
    """
    arms, rounds, epsilon = problem.size

    def smooth(size: float, count: float) -> float:
        price = one_bit_price(size, epsilon)
        one = 1.0 + size / price
        spread = count * (arms + (1.0 + problem.delay / size) * one) * one
        return price * math.sqrt(math.log(arms) * spread) + size

    middle = best_batch(smooth, rounds)
    late = outstanding(problem.delay, middle)
    steps = (-(-problem.delay // max(1, late + more)) for more in range(-4, 5))
    return {middle, *(size for size in steps if 1 <= size <= rounds)}


def late_exp4(problem: Problem) -> Bound:
    """EXP4 on single released bits that come late, at the rate that suits the delay."""
    arms, rounds, epsilon = problem.size
    choices, slope = math.log(problem.num_experts), math.tanh(epsilon / 2.0)
    pairs = overlaps(rounds, problem.delay)
    rate = math.sqrt(choices / late_cost(1.0, slope, pairs + rounds * arms / (1.0 + slope)))
    return Bound(
        f"one-bit EXP4, late feedback ({PROOF})",
        {
            "log(N) / (s eta)": choices / rate / slope,
            "eta T K (1 + s) / (4 s)": rate * rounds * arms * (1.0 + slope) / 4.0 / slope,
            "e^eta eta ((1 + s) / 2)^2 overlaps / s": (
                math.exp(rate) * late_cost(rate, slope, pairs) / slope
            ),
        },
        settings={"learning_rate": rate},
    )

"""Tsallis-INF, alone and behind the one-bit release: its bound, and the batch that suits it.

With centred estimates it has the smallest guarantee for many arms. Proofs:
``docs/theory/one-bit.md``, ``docs/theory/tsallis-inf.md`` and ``docs/theory/centred.md``.
"""

from __future__ import annotations

import math

from bandanna._core.types import JSON
from bandanna.spec import Problem
from bandanna.theory.centred import centred_tsallis_regret, one_bit_centred_tsallis
from bandanna.theory.tuning import (
    Bound,
    TooFewRoundsError,
    Tuning,
    best_batch,
    checked_batch,
    learner,
    one_bit_price,
    release,
)

CONVEX_FROM = 120
"""From ``15 exp(2)`` batches on the bound is convex in the logarithm of their size."""


def tsallis_inf_regret(losses: float, arms: int) -> float:
    """Bound the regret of reduced-variance Tsallis-INF over a number of losses in [0, 1]."""
    logarithm = math.log(max(losses / 15.0, 1.0))
    return 2.0 * math.sqrt(arms * losses) + 4.07 * arms * logarithm + 16.0


def best_one_bit_batch(problem: Problem) -> int:
    """Return the batch with the smallest bound, ``(batch / s) R(floor(T / batch), K) + batch``.

    Where no batch has a bound below the number of rounds there is nothing to go by, and the batch
    for long horizons is taken.

    Examples
    --------
    >>> best_one_bit_batch(Problem(arms=10, rounds=1_000_000, epsilon=0.1))
    14
    >>> best_one_bit_batch(Problem(arms=10, rounds=1_000_000, epsilon=2.0))
    1
    """
    arms, rounds, epsilon = problem.size

    def regret(size: float, count: float) -> float:
        return one_bit_price(size, epsilon) * tsallis_inf_regret(count, arms) + size

    best = best_batch(regret, rounds, CONVEX_FROM)
    if regret(best, rounds // best) >= rounds:
        return min(default_one_bit_batch(epsilon), rounds)
    return best


def default_one_bit_batch(epsilon: float) -> int:
    """Return the batch for an unknown horizon: the one that is best for long ones, 2 / epsilon."""
    return max(1, round(2.0 / epsilon))


def one_bit(problem: Problem, batch: int | None = None) -> Tuning:
    """Tsallis-INF on released bits; the best batch where the horizon is known."""
    if batch is None:
        known = problem.rounds is not None
        batch = best_one_bit_batch(problem) if known else default_one_bit_batch(problem.epsilon)
    return Tuning(learner("tsallis-inf", problem.arms), release("one-bit", problem, batch))


def one_bit_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Our one-bit conversion of Tsallis-INF (``docs/theory/one-bit.md``), for any epsilon."""
    arms, rounds, epsilon = problem.size
    batch = best_one_bit_batch(problem) if batch is None else checked_batch(batch, problem)
    count = rounds // batch
    price = one_bit_price(batch, epsilon)
    logarithm = math.log(max(count / 15.0, 1.0))
    return Bound(
        "one-bit conversion of Tsallis-INF (docs/theory/one-bit.md)",
        {
            "(tau/s) 2 sqrt(K n)": price * 2.0 * math.sqrt(arms * count),
            "(tau/s) 4.07 K log(n/15)": price * 4.07 * arms * logarithm,
            "(tau/s) 16": price * 16.0,
            "tau": float(batch),
        },
        batch,
    )


def no_privacy_bound(problem: Problem) -> Bound:
    """Tsallis-INF with reduced variance (``docs/theory/tsallis-inf.md``), or EXP3 if it is less."""
    arms, rounds, _ = problem.size
    tsallis_inf = Bound(
        "Tsallis-INF (docs/theory/tsallis-inf.md)",
        {"2 sqrt(K T) + 4.07 K max(0, log(T/15)) + 16": tsallis_inf_regret(rounds, arms)},
    )
    exp3 = Bound(
        "EXP3 (Auer and others 2002)",
        {"sqrt(2 T K log K)": math.sqrt(2.0 * rounds * arms * math.log(arms))},
    )
    return min(tsallis_inf, exp3, key=lambda bound: bound.regret)


SHORTEST = 18
"""Least number of losses for a fixed rate."""


def one_bit_tsallis_bound(problem: Problem, batch: int | None = None) -> Bound:
    """``(tau/s) (sqrt(2 n (K - sqrt(K))) + ...) + tau``, the number of bits n known."""
    arms, rounds, epsilon = problem.size
    if batch is not None:
        checked_batch(batch, problem)
    tuned = one_bit_centred_tsallis(arms, rounds, epsilon, batch)
    count, price = rounds // tuned.batch, one_bit_price(tuned.batch, epsilon)
    if count < SHORTEST:
        raise TooFewRoundsError(
            f"one-bit-tsallis needs {SHORTEST} batches, and {rounds:,} rounds are {count} of them."
        )
    return Bound(
        "one-bit conversion of centred Tsallis-INF (docs/theory/centred.md)",
        {"(tau/s) R(n, K)": price * centred_tsallis_regret(count, arms), "tau": float(tuned.batch)},
        tuned.batch,
    )


def one_bit_tsallis(problem: Problem, batch: int | None = None) -> Tuning:
    """Centred Tsallis-INF at a fixed rate, on released bits."""
    tuned = one_bit_tsallis_bound(problem, batch)
    parts: JSON = {
        **learner("tsallis-inf", problem.arms),
        "estimator": "centred",
        "losses": problem.size[1] // tuned.batch,
    }
    return Tuning(parts, release("one-bit", problem, tuned.batch))

"""Centred Tsallis-INF behind the one-bit release: the smallest guarantee for many arms.

Proofs: ``docs/theory/tsallis-inf.md`` and ``docs/theory/centred.md``.
"""

from __future__ import annotations

from bandanna._core.types import JSON
from bandanna.spec import Problem
from bandanna.theory.centred import centred_tsallis_regret, one_bit_centred_tsallis
from bandanna.theory.one_bit import one_bit_price
from bandanna.theory.tuning import Bound, TooFewRoundsError, Tuning, checked_batch, learner, release

SHORTEST = 18
"""Least number of losses for a fixed rate."""


def one_bit_tsallis_bound(problem: Problem, batch: int | None = None) -> Bound:
    """``(tau/s) (sqrt(2 n (K - sqrt(K))) + ...) + tau``, the number of bits n known."""
    arms, rounds, epsilon = problem.size
    if batch is not None:
        checked_batch(batch, problem)
    found = one_bit_centred_tsallis(arms, rounds, epsilon, batch)
    count, price = rounds // found.batch, one_bit_price(found.batch, epsilon)
    if count < SHORTEST:
        raise TooFewRoundsError(
            f"one-bit-tsallis needs {SHORTEST} batches, and {rounds:,} rounds are {count} of them."
        )
    return Bound(
        "one-bit conversion of centred Tsallis-INF (docs/theory/centred.md)",
        {"(tau/s) R(n, K)": price * centred_tsallis_regret(count, arms), "tau": float(found.batch)},
        found.batch,
    )


def one_bit_tsallis(problem: Problem, batch: int | None = None) -> Tuning:
    """Centred Tsallis-INF at a fixed rate, on released bits."""
    found = one_bit_tsallis_bound(problem, batch)
    parts: JSON = {
        **learner("tsallis-inf", problem.arms),
        "estimator": "centred",
        "losses": problem.size[1] // found.batch,
    }
    return Tuning(parts, release("one-bit", problem, found.batch))

"""Centred Tsallis-INF behind the one-bit release: the smallest guarantee beyond about 20 arms.

Proof: ``docs/theory/centred.md``.
"""

from __future__ import annotations

from bandanna.problem import Problem
from bandanna.theory.algorithm import Bound
from bandanna.theory.centred import centred_tsallis_regret, one_bit_centred_tsallis
from bandanna.theory.one_bit import one_bit_price
from bandanna.theory.tuning import Tuning, checked_batch, learner, release

FIXED_FROM = 18
"""Fewest bits for which a fixed rate is proved; for fewer it falls as they come."""


def many_arms(problem: Problem, batch: int | None = None) -> Tuning:
    """Run it at a rate fixed for as many bits as there will be."""
    batch, count = _batches(problem, batch)
    parts = learner("tsallis-inf", problem.arms) | {"estimator": "centred"}
    if count >= FIXED_FROM:
        parts["losses"] = count
    return Tuning(parts, release("one-bit", problem, batch))


def many_arms_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Bound it by ``(tau/s) sqrt(2 n (K - sqrt(K))) + ... + tau``.

    Examples
    --------
    >>> from bandanna.theory.exp3 import one_bit_bound
    >>> hundred = Problem(arms=100, rounds=1_000_000, epsilon=0.5)
    >>> many_arms_bound(hundred).regret < 0.9 * one_bit_bound(hundred).regret
    True
    """
    batch, count = _batches(problem, batch)
    price = one_bit_price(batch, problem.epsilon)
    learning = centred_tsallis_regret(count, problem.arms, known=count >= FIXED_FROM)
    return Bound(
        "one-bit conversion of centred Tsallis-INF (docs/theory/centred.md)",
        {"(tau/s) R(n, K)": price * learning, "tau": float(batch)},
        batch,
    )


def _batches(problem: Problem, batch: int | None) -> tuple[int, int]:
    arms, rounds, epsilon = problem.size
    if batch is None:
        batch = one_bit_centred_tsallis(arms, rounds, epsilon).batch
    return checked_batch(batch, problem), rounds // batch

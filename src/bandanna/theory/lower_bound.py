"""The paper's limits of private bandits (its Lemma on a class of algorithms), as arithmetic.

Two arms; on the base instance arm 1 always costs 1/2 and arm 2 always 1. If an epsilon-private
algorithm (1) plays arm 2 at least ``gamma T`` times with probability 1/2, and (2) after round
``tau`` plays it at most ``p`` times in ``p / gamma`` rounds with probability 1/2, then its
worst-case expected regret is at least what ``limit`` returns. The step of the proof from one set
of changed rounds to the supremum over all needs privacy against adversaries that adapt to the
arms; ours have it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.types import InputError


class Limit(NamedTuple):
    """A lower bound on worst-case regret, and its two terms."""

    regret: float
    base_instance: float
    """``gamma T / 4``, on the base instance."""
    shifted_instance: float
    """``(1 - exp(eps p) / 2) p / (4 gamma) - tau / 2``, when arm 2 becomes free after tau."""


def limit(*, gamma: float, tau: int, p: int, epsilon: float, rounds: int) -> Limit:
    """Return the Lemma's lower bound.

    Examples
    --------
    >>> limit(gamma=0.01, tau=100, p=4, epsilon=0.1, rounds=100_000).regret
    250.0
    """
    checks.whole("rounds", rounds, at_least=1)
    checks.whole("p", p, at_least=1)
    checks.whole("tau", tau, at_least=0)
    if not 0.0 < checks.positive("epsilon", epsilon) <= 1.0:
        raise InputError(f"the Lemma is for epsilon up to 1; got {epsilon:g}.")
    if not 0.0 < gamma <= 0.5:
        raise InputError(f"gamma must be above 0 and at most 1/2; got {gamma!r}.")
    if not (tau < rounds / 2 and 2 * gamma * tau <= p <= gamma * (rounds - tau)):
        raise InputError(
            f"the Lemma needs tau < T/2 and 2 gamma tau <= p <= gamma (T - tau); got tau = {tau}, "
            f"p = {p}, gamma = {gamma:g}, T = {rounds}."
        )
    base = gamma * rounds / 4.0
    shifted = (1.0 - 0.5 * math.exp(epsilon * p)) * p / (4.0 * gamma) - tau / 2.0
    return Limit(max(base, shifted), base, shifted)


def best_p(epsilon: float) -> int:
    """Return the number of plays p that makes ``p (1 - exp(eps p) / 2)`` largest."""
    candidates = range(1, max(2, math.ceil(math.log(2.0) / epsilon) + 1))
    return max(candidates, key=lambda p: p * (1.0 - 0.5 * math.exp(epsilon * p)))

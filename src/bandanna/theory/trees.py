"""Regret bound of EXP4 over all pruned trees of a context, behind one-bit releases.

Proof: ``docs/theory/trees.md``. The comparison is with every tree of so many leaves, an arm at each
leaf, for losses of any kind that are fixed in advance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna.theory.centred import centred_rate, centred_regret_paid
from bandanna.theory.one_bit import one_bit_price


class TreeBound(NamedTuple):
    """A learning rate, and what is guaranteed with it."""

    regret: float
    learning_rate: float


def tree_choices(arms: int, leaves: int) -> float:
    """Return the logarithm of one over the prior weight of a tree: ``m ln K + (2m - 1) ln 2``."""
    return leaves * math.log(arms) + (2 * leaves - 1) * math.log(2.0)


def tree_rate(arms: int, rounds: int, leaves: int) -> float:
    """Return the learning rate for trees of so many leaves."""
    return centred_rate(tree_choices(arms, leaves), rounds, arms)


def tree_bound(
    arms: int, rounds: int, epsilon: float, leaves: int, tuned_for: int | None = None
) -> TreeBound:
    """Bound the regret against every tree with so many leaves.

    ``coth(epsilon / 2) sqrt(T K (m ln K + (2m - 1) ln 2) / 2)`` and lower order.

    Parameters
    ----------
    arms, rounds, epsilon
        K, T, and the privacy parameter of a round.
    leaves
        Leaves of the tree compared with.
    tuned_for
        Leaves that the learning rate is for; the same unless given.

    Examples
    --------
    >>> bound = tree_bound(arms=3, rounds=1_000_000, epsilon=1.0, leaves=4)
    >>> 8_000 < bound.regret < 8_100
    True
    """
    rate = tree_rate(arms, rounds, tuned_for or leaves)
    choices = tree_choices(arms, leaves)
    paid = centred_regret_paid(choices, rate, rounds, arms, rounds * arms / 8.0)
    return TreeBound(one_bit_price(1, epsilon) * paid, rate)

"""Someone behind several rounds, wherever they fall: the worst split over batches.

Without a rule for people, a group of ``size`` rounds may share batches or not. j of them together
in a batch cost ``j e`` with the Laplace release and ``ln(1 + j (exp(e) - 1))`` with the one-bit
release, whose probability they move from ``a / D`` to at most ``(a + b j M) / D``. Which split is
worst depends on delta, so all are tried, also those that look at what was released before.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from bandanna.privacy.composition import Slot, composed_epsilon, float_above

LARGEST = 400
"""Rounds up to which splits are searched; beyond, the sum of epsilons is what is promised."""

STEPS = 24
"""Grid steps of the search in one round's epsilon."""


def one_bit_group(each: float, size: int, batch: int, delta: float) -> float:
    """Return an epsilon at a delta for any ``size`` rounds of a one-bit release, rounded up.

    Let ``V_m(u)`` be the largest delta that m further rounds can reach when the privacy loss so
    far exceeds epsilon by u. Randomised response is the worst mechanism with a given epsilon, so
    with ``e_j = ln(1 + j (exp(e) - 1))`` and ``p_j = exp(e_j) / (1 + exp(e_j))``

        V_0(u) = (1 - exp(-u))+,   V_m(u) = max_j p_j V_{m-j}(u + e_j) + (1 - p_j) V_{m-j}(u - e_j)

    over j from 1 to ``min(m, batch)``. ``V_m`` grows in u; on the grid, of which e is a multiple,
    every other ``e_j`` is rounded up, which only adds to the loss of a worse mechanism.

    Examples
    --------
    >>> round(one_bit_group(0.1, size=20, batch=1, delta=1e-6), 3)
    1.789
    >>> round(one_bit_group(0.1, size=20, batch=50, delta=1e-6), 3) >= 1.789
    True
    """
    top = float_above(size * Fraction(each))
    if delta == 0.0 or size > LARGEST:
        return top
    if batch == 1:
        return composed_epsilon(Slot(each, 0.0), size, delta)
    step = each / STEPS
    most = min(size, batch)
    jumps = [math.ceil(math.log1p(j * math.expm1(each)) / step - 1e-9) for j in range(1, most + 1)]
    chances = [1.0 / (1.0 + math.exp(-jump * step)) for jump in jumps]
    half = size * STEPS
    losses = step * np.arange(-2 * half, 2 * half + 1)
    values = [np.maximum(0.0, -np.expm1(-losses))]
    for rounds in range(1, size + 1):
        best = np.zeros_like(losses)
        for j in range(1, min(rounds, most) + 1):
            later, jump, chance = values[rounds - j], jumps[j - 1], chances[j - 1]
            split = np.empty_like(best)
            split[:-jump] = chance * later[jump:]
            split[-jump:] = chance  # no delta is above 1
            split[jump:] += (1.0 - chance) * later[:-jump]
            split[:jump] += (1.0 - chance) * later[0]
            np.maximum(best, split, out=best)
        values.append(best)
    # The delta at epsilon = -u, for u on the grid from -2 size e to 0.
    deltas = values[size][: 2 * half + 1] * (1.0 + 1e-9)
    good = int(np.searchsorted(deltas, delta, side="right")) - 1
    return min(top, -float(losses[good])) if good >= 0 else top


def laplace_group(each: float, size: int, batch: int, step: float, delta: float) -> float:
    """Return an epsilon at a delta for any ``size`` rounds of a Laplace release, rounded up.

    Where batches hold several rounds, all in one is the worst split. The trade-off curve of a
    Laplace law moved by j is that of a move by 1 composed j times with itself, and no mechanism
    that keeps the curve of a move by 1 for each of j people has a worse one for all j together
    (Dong, Roth, Su 2022, Theorem 2.14): so also a product of Laplace laws, each moved by its
    share. ``step`` is the distance between the losses of the discrete law, as for one round.
    """
    top = float_above(size * Fraction(each))
    together = max(0.0, min(top, top + 2.0 * math.log1p(-delta) + size * step))
    if batch > 1 or size == 1:
        return together
    return min(together, composed_epsilon(Slot(each, 0.0), size, delta))

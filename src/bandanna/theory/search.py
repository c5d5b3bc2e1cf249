"""Searching for the parameters that make a bound smallest."""

from __future__ import annotations

import math
from collections.abc import Callable

POINTS = 32
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def best_batch(bound: Callable[[int], float], rounds: int) -> int:
    """Return the batch size, from 1 to the number of rounds, whose bound is smallest.

    Among sizes that give the same number of batches, ``floor(rounds / size)``, the smallest must
    be the best, as it is for every bound here; only those sizes are tried. Spread evenly in
    logarithms, they are narrowed down to the neighbours of the best one until none is left out.
    """
    low, high = 1, rounds
    while True:
        sizes = _spread(low, high, rounds)
        best = min(range(len(sizes)), key=[bound(size) for size in sizes].__getitem__)
        narrower = sizes[max(best - 1, 0)], sizes[min(best + 1, len(sizes) - 1)]
        if narrower == (low, high):
            return sizes[best]
        low, high = narrower


def _spread(low: int, high: int, rounds: int) -> list[int]:
    """Return up to ``POINTS`` sizes from low to high; neighbours in full when they are few."""
    if high - low < POINTS:
        sizes = list(range(low, high + 1))
    else:
        step = math.log(high / low) / (POINTS - 1)
        sizes = [round(low * math.exp(step * k)) for k in range(POINTS)]
    # rounds // (n + 1) + 1 is the smallest size that still gives n batches.
    return sorted({low, *(max(low, rounds // (rounds // size + 1) + 1) for size in sizes)})


def lowest_point(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one valley is smallest, to a ten-thousandth of the interval."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(19):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return left if at_left < at_right else right

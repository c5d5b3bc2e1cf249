"""Searching for the parameters that make a bound smallest."""

from __future__ import annotations

import math
from collections.abc import Callable

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
TOLERANCE = 1e-4
"""How far above the smallest bound a batch may be, relatively."""

NEIGHBOURS = 4


def best_batch(bound: Callable[[float, float], float], rounds: int, few: int = 32) -> int:
    """Return a batch size whose bound is smallest, up to one part in ten thousand.

    ``bound(size, count)`` is for ``count`` batches of ``size`` rounds. It must grow with both, so
    that of all sizes with the same ``count = floor(rounds / size)`` the smallest is best. Where
    there are more than ``few`` batches, it must grow less than in proportion to the count, and with
    ``count = rounds / size``, a real number, be convex in the logarithm of the size. Our bounds
    are: they are sums, products and roots of powers with positive coefficients, minimised over
    further ones.

    So the bound with the whole count is at least ``1 - size / rounds`` times the one with the real
    count, and a size is passed over only if that is not below the best one found.
    """

    def exact(size: int) -> float:
        return bound(size, rounds // size)

    def smooth(size: float) -> float:
        return bound(size, rounds / size)

    def smallest_with(count: int) -> int:
        return rounds // (count + 1) + 1

    top = rounds // (few + 1)
    if top == 0:
        return min({smallest_with(count) for count in range(1, rounds + 1)}, key=exact)
    lowest = lowest_point(lambda x: smooth(math.exp(x)), 0.0, math.log(top))
    middle = min(max(round(math.exp(lowest)), 1), top)
    near = range(max(1, middle - NEIGHBOURS), min(top, middle + NEIGHBOURS) + 1)
    sizes = {max(near[0], smallest_with(rounds // size)) for size in near}
    best = min(exact(size) for size in sizes) * (1.0 - TOLERANCE)

    def possible(size: int, largest: int) -> bool:
        return smooth(size) * (1.0 - largest / rounds) <= best

    if possible(middle, middle):
        low = _first(lambda size: possible(size, middle), 1, middle)
        sizes |= _between(low, middle, rounds)
    start = 1
    while start <= few:  # from so many to twice as many batches, if they can be the best
        end = min(2 * start - 1, few)
        if bound(smallest_with(end), start) <= best:
            sizes |= {smallest_with(count) for count in range(start, end + 1)}
        start = end + 1
    start = middle
    while start < top:
        end = min(2 * start, top)
        if possible(start, end):
            high = _first(lambda size, end=end: not possible(size, end), start, end)  # type: ignore[misc]
            sizes |= _between(start, high, rounds)
        start = end
    return min(sizes, key=exact)


def _between(low: int, high: int, rounds: int) -> set[int]:
    """Return all sizes from low to high, or the smallest for each number of batches."""
    counts = range(rounds // high, rounds // low + 1)
    if high - low < len(counts):
        return set(range(low, high + 1))
    return {max(low, rounds // (count + 1) + 1) for count in counts}


def _first(true: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number from low on of which something is true that stays so; or high."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle + 1, high)
    return high


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

"""Events that may give a mechanism away: what an attacker looks for in its outputs.

An output is looked at in several ways (its value; for floats, the position of their lowest bit;
for sequences, their parts, sum, extremes and differences). In each view the candidates are
threshold events and, where few distinct values occur, sets of values in order of likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Outputs = NDArray[Any]
View = Callable[[Outputs], Outputs]

THRESHOLDS = 200
FEW_VALUES = 64
MOST_PARTS = 6


@dataclass(frozen=True)
class Event:
    """A set of outputs, and what to call it."""

    name: str
    holds: Callable[[Outputs], NDArray[np.bool_]]

    def count(self, outputs: Outputs) -> int:
        """Return how many of the outputs are in the event."""
        return int(np.count_nonzero(self.holds(outputs)))


def candidate_events(first: Outputs, second: Outputs) -> Iterator[Event]:
    """Yield events worth trying, from a sample on either input."""
    yield Event("any output", _anything)
    for name, view in views(first):
        seen_first, seen_second = view(first), view(second)
        pooled = np.concatenate([seen_first, seen_second])
        if pooled.dtype.kind == "f":
            yield Event(f"{name} is not a number", partial(_is_nan, view))
            pooled = pooled[np.isfinite(pooled)]
        values = np.unique(pooled)
        if values.size <= FEW_VALUES:
            yield from _value_sets(name, view, values, seen_first, seen_second)
        elif np.issubdtype(values.dtype, np.number):
            levels = np.linspace(0, 1, THRESHOLDS)[1:-1]
            by_value = np.quantile(values, levels, method="lower")
            by_count = np.quantile(pooled, levels, method="lower")
            for threshold in np.unique(np.concatenate([by_value, by_count])):
                yield _threshold(name, view, threshold, below=True)
                yield _threshold(name, view, threshold, below=False)
        yield from _frequent_values(name, view, seen_first, seen_second, values.size)


def views(outputs: Outputs) -> Iterator[tuple[str, View]]:
    """Yield ways of looking at outputs, each giving one value for every output."""
    if outputs.ndim == 1:
        yield "output", lambda outputs: outputs
        if np.issubdtype(outputs.dtype, np.floating):
            yield "lowest bit of the output", lowest_bit
        return
    for part in range(min(outputs.shape[1], MOST_PARTS)):
        yield f"part {part}", partial(_part, part)
        if np.issubdtype(outputs.dtype, np.floating):
            yield f"lowest bit of part {part}", partial(_lowest_bit_of, part)
        for other in range(part):
            yield f"part {part} minus part {other}", partial(_difference, part, other)
    yield "sum of the parts", lambda outputs: outputs.sum(axis=1)
    yield "largest part", lambda outputs: outputs.max(axis=1)
    yield "smallest part", lambda outputs: outputs.min(axis=1)


def _anything(outputs: Outputs) -> NDArray[np.bool_]:
    return np.ones(len(outputs), dtype=np.bool_)


def _part(part: int, outputs: Outputs) -> Outputs:
    return outputs[:, part]


def _lowest_bit_of(part: int, outputs: Outputs) -> Outputs:
    return lowest_bit(outputs[:, part])


def _is_nan(view: View, outputs: Outputs) -> NDArray[np.bool_]:
    return np.isnan(view(outputs))


def _difference(part: int, other: int, outputs: Outputs) -> Outputs:
    return outputs[:, part] - outputs[:, other]


def lowest_bit(outputs: Outputs) -> NDArray[np.int64]:
    """Return the exponent of the lowest bit that is set in each float.

    Floating-point noise added to 0 and to 1 lands on grids of different fineness.
    """
    finite = np.where(np.isfinite(outputs), outputs, 0.0)
    mantissa, exponent = np.frexp(finite.astype(np.float64))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.log2(np.where(whole == 0, 1, whole & -whole)).astype(np.int64)
    bits: NDArray[np.int64] = np.where(whole == 0, 0, exponent.astype(np.int64) - 53 + trailing)
    return bits


def _threshold(name: str, view: View, threshold: float, *, below: bool) -> Event:
    if below:
        return Event(f"{name} <= {threshold:.6g}", lambda o: view(o) <= threshold)
    return Event(f"{name} > {threshold:.6g}", lambda o: view(o) > threshold)


def _value_sets(
    name: str, view: View, values: Outputs, first: Outputs, second: Outputs
) -> Iterator[Event]:
    """Yield the sets of the k values with the largest likelihood ratio, for every k."""
    ones = np.array([np.count_nonzero(first == value) for value in values]) + 0.5
    others = np.array([np.count_nonzero(second == value) for value in values]) + 0.5
    ascending = np.argsort(others / ones)
    for order in (ascending, ascending[::-1]):
        for size in range(1, values.size):
            chosen = values[order[:size]]
            listed = ", ".join(str(value) for value in chosen[:4]) + (", ..." if size > 4 else "")
            yield Event(f"{name} in {{{listed}}}", partial(_is_in, view, chosen))


def _is_in(view: View, chosen: Outputs, outputs: Outputs) -> NDArray[np.bool_]:
    return np.isin(view(outputs), chosen)


def _frequent_values(
    name: str, view: View, first: Outputs, second: Outputs, distinct: int
) -> Iterator[Event]:
    """Yield single values that occur again and again among many: noise left out, or repeated."""
    if distinct <= FEW_VALUES:
        if distinct == 1:
            yield Event(f"{name} = {first[0]}", partial(_is_in, view, first[:1]))
        return
    for sample in (first, second):
        values, counts = np.unique(sample, return_counts=True)
        most = int(np.argmax(counts))
        if counts[most] > 10:
            value = values[most : most + 1]
            yield Event(f"{name} = {value[0]}", partial(_is_in, view, value))

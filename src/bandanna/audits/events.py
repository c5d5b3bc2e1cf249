"""What an attacker can look at, and which of it tells two runs apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Outputs = NDArray[Any]
"""Numbers of any kind, one or a sequence for each try."""

RESOLUTION = 1e-12
"""Variances smaller than this, against those they are computed from, are rounding errors."""


class TwoSamples(NamedTuple):
    """How far two samples of sequences are apart, and how much they vary."""

    apart: Floats
    """Difference of the means of each part."""
    spread: Floats
    """Covariance of the parts, on average over both samples."""

    @classmethod
    def of(cls, first: Outputs, second: Outputs) -> TwoSamples:
        """Compute the moments of two samples; what is not a number counts as 0."""
        one, other = (
            np.where(np.isfinite(sample), sample, 0.0).astype(np.float64)
            for sample in (first, second)
        )
        centred = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)])
        return cls(one.mean(axis=0) - other.mean(axis=0), centred.T @ centred / len(centred))

    def telling_parts(self, most: int) -> list[int]:
        """Return the parts that tell most."""
        scores = _scores(self.apart, self.spread.diagonal(), self.spread.diagonal())
        return sorted(np.argsort(-scores, kind="stable")[:most].tolist())

    def telling_pairs(self, most: int) -> list[tuple[int, int, int]]:
        """Return the sums (+1) and differences (-1) of two parts that tell most."""
        later, earlier = np.tril_indices(self.apart.size, -1)
        own = self.spread.diagonal()
        total = own[later] + own[earlier]
        scores = [
            _scores(
                self.apart[later] + sign * self.apart[earlier],
                total + 2.0 * sign * self.spread[later, earlier],
                total,
            )
            for sign in (-1, 1)
        ]
        best = np.argsort(-np.concatenate(scores), kind="stable")[:most]
        which, pair = np.divmod(best, later.size)
        signs = np.where(which == 0, -1, 1)
        rows = zip(signs.tolist(), later[pair].tolist(), earlier[pair].tolist(), strict=True)
        return list(rows)

    def best_weights(self) -> Floats:
        """Return the weights of the sum of parts that tells most (Fisher's discriminant)."""
        own = self.spread.diagonal()
        floor = RESOLUTION * max(float(own.max()), RESOLUTION)
        spread = self.spread + floor * np.eye(own.size)
        weights: Floats = np.linalg.solve(spread, self.apart).astype(np.float64)
        largest = float(np.abs(weights).max())
        return weights / largest if largest > 0 else np.ones_like(weights)


def _scores(apart: Floats, variance: Floats, scale: Floats) -> Floats:
    """Return how many deviations apart."""
    scores: Floats = np.abs(apart) / np.sqrt(np.maximum(variance, RESOLUTION * (scale + 1e-300)))
    return scores


View = Callable[[Outputs], Outputs]

MOST_PARTS, MOST_PAIRS = 24, 24


def views(first: Outputs, second: Outputs) -> Iterator[tuple[str, View]]:
    """Yield ways of looking at outputs, each giving one value for every output.

    Of sequences, those parts and pairs of parts are looked at that tell the two samples apart
    best, and the weighted sum that would be best of all if the outputs were Gaussian.
    """
    floats = np.issubdtype(first.dtype, np.floating)
    if first.ndim == 1:
        yield "output", lambda outputs: outputs
        if floats:
            yield "lowest bit of the output", lowest_bit
        return
    moments = TwoSamples.of(first, second)
    for part in moments.telling_parts(MOST_PARTS):
        yield f"part {part}", partial(np.take, indices=part, axis=1)
        if floats:
            yield f"lowest bit of part {part}", partial(_lowest_bit_of, part)
    for sign, part, other in moments.telling_pairs(MOST_PAIRS):
        name = f"part {part} {'plus' if sign > 0 else 'minus'} part {other}"
        yield name, partial(_pair, sign, part, other)
    yield "sum of the parts", lambda outputs: outputs.sum(axis=1)
    yield "largest part", lambda outputs: outputs.max(axis=1)
    yield "smallest part", lambda outputs: outputs.min(axis=1)
    weights = moments.best_weights()
    yield "weighted sum of the parts", lambda o: np.where(np.isfinite(o), o, 0.0) @ weights


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


def _lowest_bit_of(part: int, outputs: Outputs) -> Outputs:
    return lowest_bit(outputs[:, part])


def _pair(sign: int, part: int, other: int, outputs: Outputs) -> Outputs:
    total: Outputs = outputs[:, part] + sign * outputs[:, other]
    return total


THRESHOLDS = 200
FEW_VALUES = 64

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class OutputEvent:
    """A set of outputs, and what to call it."""

    name: str
    view: View
    holds: Callable[[Outputs], NDArray[np.bool_]]
    """Which outputs are in it, as they look in the view."""

    def count(self, outputs: Outputs) -> int:
        """Return how many of the outputs are in the event."""
        return int(np.count_nonzero(self.holds(self.view(outputs))))


class Family(NamedTuple):
    """Events that are counted together: how often each happened in either sample."""

    first: Counts
    second: Counts
    member: Callable[[int], OutputEvent]
    """Makes the event with an index."""


def candidate_events(first: Outputs, second: Outputs) -> Iterator[Family]:
    """Yield events worth trying, from a sample on either input."""
    anything = OutputEvent("any output", lambda o: o, lambda o: np.ones(len(o), dtype=np.bool_))
    yield _alone(anything, first, second)
    for name, view in views(first, second):
        yield from _in_view(name, view, view(first), view(second))


def _in_view(name: str, view: View, first: Outputs, second: Outputs) -> Iterator[Family]:
    finite = [first, second]
    if first.dtype.kind == "f":
        finite = [sample[np.isfinite(sample)] for sample in (first, second)]
        yield _alone(OutputEvent(f"{name} is not a number", view, np.isnan), first, second)
    samples = [np.sort(sample) for sample in finite]
    pooled = np.sort(np.concatenate(samples))
    values = np.unique(pooled)
    if 1 < values.size <= FEW_VALUES:
        yield from _value_sets(name, view, values, samples)
    elif values.size > 1 and np.issubdtype(values.dtype, np.number):
        yield from _thresholds(name, view, values, pooled, samples)
    if values.size <= 1 or values.size > FEW_VALUES:
        yield from _frequent_values(name, view, first, second)


def _thresholds(
    name: str, view: View, values: Outputs, pooled: Outputs, samples: list[Outputs]
) -> Iterator[Family]:
    levels = np.linspace(0, 1, THRESHOLDS)[1:-1]
    by_value, by_count = (
        ordered[(levels * (ordered.size - 1)).astype(np.int64)] for ordered in (values, pooled)
    )
    limits = np.unique(np.concatenate([by_value, by_count]))
    one, other = (np.searchsorted(sample, limits, side="right") for sample in samples)
    yield Family(
        *(one, other),
        lambda k: OutputEvent(f"{name} <= {limits[k]:.6g}", view, lambda o: o <= limits[k]),
    )
    yield Family(
        *(samples[0].size - one, samples[1].size - other),
        lambda k: OutputEvent(f"{name} > {limits[k]:.6g}", view, lambda o: o > limits[k]),
    )


def _value_sets(name: str, view: View, values: Outputs, samples: list[Outputs]) -> Iterator[Family]:
    """Yield the sets of the k values with the largest likelihood ratio, for every k."""
    ones, others = (
        np.searchsorted(sample, values, side="right") - np.searchsorted(sample, values)
        for sample in samples
    )
    ascending = np.argsort((others + 0.5) / (ones + 0.5))
    for order in (ascending, ascending[::-1]):
        member = partial(_among_first, name, view, values[order])
        yield Family(np.cumsum(ones[order])[:-1], np.cumsum(others[order])[:-1], member)


def _frequent_values(name: str, view: View, first: Outputs, second: Outputs) -> Iterator[Family]:
    """Yield single values that occur again and again among many: noise left out, or repeated."""
    for sample in (first, second):
        values, counts = np.unique(sample, return_counts=True)
        most = int(np.argmax(counts))
        if counts[most] > 10:
            again = partial(np.isin, test_elements=values[most])
            yield _alone(OutputEvent(f"{name} = {values[most]}", view, again), first, second)


def _alone(event: OutputEvent, first: Outputs, second: Outputs) -> Family:
    """Return a family of one event, from samples as they look in its view."""
    one, other = (np.array([np.count_nonzero(event.holds(each))]) for each in (first, second))
    return Family(one, other, lambda _: event)


def _among_first(name: str, view: View, ordered: Outputs, index: int) -> OutputEvent:
    chosen = ordered[: index + 1]
    listed = ", ".join(str(value) for value in chosen[:4]) + (", ..." if index > 3 else "")
    return OutputEvent(f"{name} in {{{listed}}}", view, partial(np.isin, test_elements=chosen))

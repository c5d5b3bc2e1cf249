"""Events that may give a mechanism away: what an attacker looks for in its outputs.

An output is looked at in several ways (``bandanna.audits.views``). In each view the candidates
are threshold events and, where few distinct values occur, sets of values in order of likelihood
ratio; and single values that occur again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.audits.moments import Outputs
from bandanna.audits.views import View, views

THRESHOLDS = 200
FEW_VALUES = 64

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Event:
    """A set of outputs, and what to call it."""

    name: str
    holds: Callable[[Outputs], NDArray[np.bool_]]

    def count(self, outputs: Outputs) -> int:
        """Return how many of the outputs are in the event."""
        return int(np.count_nonzero(self.holds(outputs)))


class Family(NamedTuple):
    """Events that are counted together: how often each happened in either sample."""

    first: Counts
    second: Counts
    member: Callable[[int], Event]
    """Makes the event of a place."""


def candidate_events(first: Outputs, second: Outputs) -> Iterator[Family]:
    """Yield events worth trying, from a sample on either input."""
    yield _alone(Event("any output", _anything), first, second)
    for name, view in views(first, second):
        yield from _in_view(name, view, view(first), view(second))


def _in_view(name: str, view: View, first: Outputs, second: Outputs) -> Iterator[Family]:
    if first.dtype.kind == "f":
        finite = [sample[np.isfinite(sample)] for sample in (first, second)]
        missing = np.array([[np.isnan(first).sum()], [np.isnan(second).sum()]])
        event = Event(f"{name} is not a number", partial(_is_nan, view))
        yield Family(missing[0], missing[1], partial(_the, event))
    else:
        finite = [first, second]
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
    yield Family(one, other, lambda place: _at_most(name, view, limits[place]))
    rest = samples[0].size - one, samples[1].size - other
    yield Family(*rest, lambda place: _above(name, view, limits[place]))


def _value_sets(name: str, view: View, values: Outputs, samples: list[Outputs]) -> Iterator[Family]:
    """Yield the sets of the k values with the largest likelihood ratio, for every k."""
    ones, others = (
        np.searchsorted(sample, values, side="right") - np.searchsorted(sample, values)
        for sample in samples
    )
    ascending = np.argsort((others + 0.5) / (ones + 0.5))
    for order in (ascending, ascending[::-1]):
        ordered = values[order]
        yield Family(
            np.cumsum(ones[order])[:-1],
            np.cumsum(others[order])[:-1],
            partial(_among_first, name, view, ordered),
        )


def _frequent_values(name: str, view: View, first: Outputs, second: Outputs) -> Iterator[Family]:
    """Yield single values that occur again and again among many: noise left out, or repeated."""
    for sample in (first, second):
        values, counts = np.unique(sample, return_counts=True)
        most = int(np.argmax(counts))
        if counts[most] > 10:
            value = values[most : most + 1]
            one, other = (np.array([np.isin(each, value).sum()]) for each in (first, second))
            event = Event(f"{name} = {value[0]}", partial(_is_in, view, value))
            yield Family(one, other, partial(_the, event))


def _alone(event: Event, first: Outputs, second: Outputs) -> Family:
    one, other = (np.array([event.count(sample)]) for sample in (first, second))
    return Family(one, other, partial(_the, event))


def _the(event: Event, _place: int) -> Event:
    return event


def _among_first(name: str, view: View, ordered: Outputs, place: int) -> Event:
    chosen = ordered[: place + 1]
    listed = ", ".join(str(value) for value in chosen[:4]) + (", ..." if place > 3 else "")
    return Event(f"{name} in {{{listed}}}", partial(_is_in, view, chosen))


def _anything(outputs: Outputs) -> NDArray[np.bool_]:
    return np.ones(len(outputs), dtype=np.bool_)


def _is_nan(view: View, outputs: Outputs) -> NDArray[np.bool_]:
    return np.isnan(view(outputs))


def _is_in(view: View, chosen: Outputs, outputs: Outputs) -> NDArray[np.bool_]:
    return np.isin(view(outputs), chosen)


def _at_most(name: str, view: View, threshold: float) -> Event:
    return Event(f"{name} <= {threshold:.6g}", lambda o: view(o) <= threshold)


def _above(name: str, view: View, threshold: float) -> Event:
    return Event(f"{name} > {threshold:.6g}", lambda o: view(o) > threshold)

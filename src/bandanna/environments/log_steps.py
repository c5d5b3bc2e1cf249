"""A log in compiled code: drawing outcomes of an arm, or going through the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.streams import Stream, binomial, uniform
from bandanna.environments.segments import segment_of
from bandanna.environments.steps import Memory, register


class ResampleParams(NamedTuple):
    """Each block's and arm's different losses, with their probabilities."""

    edges: NDArray[np.int64]
    arms: int
    starts: NDArray[np.int64]
    """Where the losses of a block and an arm begin."""
    values: NDArray[np.int64]
    chances: NDArray[np.float64]
    upto: NDArray[np.float64]
    """Probability of a value or one before it."""


class ReplayParams(NamedTuple):
    """The rows in order, and the probability with which each is taken when its arm is played."""

    arms: NDArray[np.int64]
    units: NDArray[np.int64]
    keep: NDArray[np.float64]


@step
def _resample(
    params: ResampleParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    block = segment_of(params.edges, start)
    total = 0
    while start < stop:
        until = min(stop, params.edges[block + 1])
        cell = block * params.arms + arm
        total += _draws(params, params.starts[cell], params.starts[cell + 1], until - start, stream)
        start = until
        block += 1
    return total


@step
def _draws(params: ResampleParams, low: int, high: int, count: int, stream: Stream) -> int:
    """Add up some draws: one by one, or how often each loss is drawn, whichever is faster."""
    total = np.int64(0)
    if count < high - low:
        for _ in range(count):
            u = uniform(stream)
            first, last = low, high - 1
            while first < last:
                middle = (first + last) >> 1
                if params.upto[middle] > u:
                    last = middle
                else:
                    first = middle + 1
            total += params.values[first]
        return int(total)
    mass = 1.0
    for place in range(low, high - 1):
        drawn = binomial(stream, count, min(1.0, params.chances[place] / mass))
        total += drawn * params.values[place]
        count -= drawn
        mass -= params.chances[place]
        if mass <= 0.0:
            break
    total += count * params.values[high - 1]
    return int(total)


@step
def _replay(
    params: ReplayParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    total = 0
    row = memory[0]
    while start < stop:
        if params.arms[row] == arm and uniform(stream) < params.keep[row]:
            total += params.units[row]
            start += 1
        row += 1
        if row == params.arms.size:  # hardly ever: the rounds are chosen so that rows suffice
            row = 0
    memory[0] = row
    return total


register(ResampleParams, _resample)
register(ReplayParams, _replay)

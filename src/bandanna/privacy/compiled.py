"""The compiled form of releases: seeded, for simulation alone.

A release registers a named tuple of its numbers and the step that publishes a sum by them; what a
batch is counted in is a *memory*, the compiled counterpart of a tally.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice
from bandanna._core.compiled import kernel
from bandanna._core.dispatch import dispatched
from bandanna._core.streams import Stream


@dispatched
def publish(release: NamedTuple, total: int, size: int, stream: Stream) -> float:
    """Publish the sum of a batch of ``size`` losses, in grid units, with seeded noise."""
    raise NotImplementedError


class Memory(Protocol):
    """What a batch is counted in: a named tuple of arrays."""

    @property
    def estimates(self) -> NDArray[np.float64]:
        """Where to find what is published, if it is not one number."""


@dispatched
def clear(memory: Memory) -> None:
    """Begin a batch."""
    raise NotImplementedError


@dispatched
def count(
    memory: Memory, release: NamedTuple, advice: Advice, arm: int, importance: float, loss: int
) -> None:
    """Count one loss of an arm that was chosen by advice."""
    raise NotImplementedError


@dispatched
def publish_batch(memory: Memory, release: NamedTuple, size: int, stream: Stream) -> float:
    """Publish a batch of ``size`` losses; what is not one number goes into ``estimates``."""
    raise NotImplementedError


class SumMemory(NamedTuple):
    """A sum of losses."""

    total: NDArray[np.int64]
    estimates: NDArray[np.float64]
    """Nothing: a sum is published as one number."""


def _clear(memory: SumMemory) -> None:
    memory.total[0] = 0


def _count(
    memory: SumMemory, release: NamedTuple, advice: Advice, arm: int, importance: float, loss: int
) -> None:
    memory.total[0] += loss


def _publish_batch(memory: SumMemory, release: NamedTuple, size: int, stream: Stream) -> float:
    return publish(release, memory.total[0], size, stream)


clear.register(SumMemory, _clear)
count.register(SumMemory, _count)
publish_batch.register(SumMemory, _publish_batch)


@kernel
def publish_once(release: NamedTuple, total: int, size: int, stream: Stream) -> float:
    """Publish one sum, from Python."""
    return publish(release, total, size, stream)


@kernel
def _fill(
    release: NamedTuple, total: int, size: int, stream: Stream, out: NDArray[np.float64]
) -> None:
    for i in range(out.size):
        out[i] = publish(release, total, size, stream)


def publish_many(
    release: NamedTuple, total: int, size: int, count: int, stream: Stream
) -> NDArray[np.float64]:
    """Publish the same sum many times, for audits and tests."""
    values = np.empty(count)
    _fill(release, total, size, stream, values)
    return values

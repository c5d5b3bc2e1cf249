"""Mean losses that are constant on segments of rounds: most synthetic environments are such.

The losses are either the means themselves or Bernoulli draws with those means. Either way the sum
over an interval costs the segments it touches, not its rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, binomial
from bandanna._core.types import InputError
from bandanna.environments.base import Environment, edges_of_best
from bandanna.environments.steps import Memory, register


class SegmentParams(NamedTuple):
    """Edges of the segments (first 0, last the number of rounds), and means by segment and arm."""

    edges: NDArray[np.int64]
    means: NDArray[np.float64]
    bernoulli: bool


class Segments(Environment):
    """Piecewise-constant means.

    Parameters
    ----------
    means
        (segments, arms) table of mean losses in [0, 1].
    lengths
        Rounds in each segment.
    bernoulli
        Draw every loss as 0 or 1 with its mean; otherwise the loss is the mean.
    """

    name = "segments"

    def __init__(self, means: object, lengths: object, bernoulli: bool = False) -> None:
        table = np.ascontiguousarray(means, dtype=np.float64)
        sizes = np.asarray(lengths, dtype=np.int64)
        if table.ndim != 2 or sizes.shape != table.shape[:1] or (sizes < 1).any():
            raise InputError(
                f"means must have shape (segments, arms) and lengths one positive whole number "
                f"for each segment; got shapes {table.shape} and {sizes.shape}."
            )
        if not ((table >= 0.0) & (table <= 1.0)).all():
            raise InputError("mean losses must be numbers from 0 to 1.")
        self.arms = table.shape[1]
        self.rounds = int(sizes.sum())
        self._check_size()
        self.comparator = "expected" if bernoulli else "realised"
        if not bernoulli:
            table = np.rint(table * UNITS) / UNITS  # the losses really played
        edges = np.concatenate(([0], np.cumsum(sizes)))
        self._params = SegmentParams(edges, table, bool(bernoulli))

    def params(self) -> SegmentParams:
        """Return edges and means."""
        return self._params

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Rounds at which the best arm changes."""
        return edges_of_best(self._params.edges, self._params.means)

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's (expected) total loss before each of the given rounds."""
        edges, means, _ = self._params
        played = np.clip(stops[:, None] - edges[None, :-1], 0, np.diff(edges)[None, :])
        totals: NDArray[np.float64] = played @ means
        return totals


@step
def _sum_losses(
    params: SegmentParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    edges = params.edges
    segment = segment_of(edges, start)
    total = 0
    while start < stop:
        until = min(stop, edges[segment + 1])
        mean = params.means[segment, arm]
        if params.bernoulli:
            total += binomial(stream, until - start, mean) * UNITS
        else:
            total += (until - start) * int(np.rint(mean * UNITS))
        start = until
        segment += 1
    return total


@step
def segment_of(edges: NDArray[np.int64], round_: int) -> int:
    """Return the segment a round is in, by bisection."""
    low = 0
    high = edges.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if edges[middle] <= round_:
            low = middle
        else:
            high = middle
    return low


register(SegmentParams, _sum_losses)

"""Synthetic environments with mean losses that are constant on segments of rounds.

The losses are either the means themselves or Bernoulli draws with those means. Either way the sum
over an interval costs the segments it touches, not its rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, binomial
from bandanna._core.types import InputError
from bandanna.environments.base import Environment, Memory, edges_of_best, register


class Steps(Environment):
    """Means that are constant between edges."""

    _edges: NDArray[np.int64]
    """Of the segments: the first 0, the last the number of rounds."""
    _means: NDArray[np.float64]
    """By segment and arm, of losses from 0 to 1."""

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Rounds at which the best arm changes."""
        return edges_of_best(self._edges, self._means)

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's (expected) total loss before each of the given rounds."""
        edges = self._edges
        played = np.clip(stops[:, None] - edges[None, :-1], 0, np.diff(edges)[None, :])
        totals: NDArray[np.float64] = played @ self._means
        return totals


class SegmentParams(NamedTuple):
    """Edges of the segments (first 0, last the number of rounds), and means by segment and arm."""

    edges: NDArray[np.int64]
    means: NDArray[np.float64]
    bernoulli: bool


class Segments(Steps):
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
        self._edges, self._means = np.concatenate(([0], np.cumsum(sizes))), table
        self._params = SegmentParams(self._edges, table, bool(bernoulli))

    def params(self) -> SegmentParams:
        """Return edges and means."""
        return self._params


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


class Bernoulli(Segments):
    """Losses that are 0 or 1, drawn independently.

    Parameters
    ----------
    arms
        Their mean losses; or how many, one with mean ``1/2 - gap/2``, the others ``1/2 + gap/2``.
    rounds
        Number of rounds.
    gap
        How much better the best arm is, above 0 and at most 1.
    best
        Index of the best arm.
    """

    name = "bernoulli"

    def __init__(
        self, arms: int | Sequence[float], rounds: int, gap: float = 0.2, best: int = 0
    ) -> None:
        means = arms if isinstance(arms, Sequence) else one_better(checks.arms(arms), best, gap)
        super().__init__([means], [checks.rounds(rounds)], bernoulli=True)


class Switching(Segments):
    """The best arm changes at equal intervals, moving on by one arm each time.

    Losses are constant between changes: the best arm's is ``1/2 - gap/2``, the others'
    ``1/2 + gap/2``. Regret is against the best *fixed* arm; with one change midway, the default,
    that is either of two arms, and a learner has to unlearn the first half.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        Difference between the best arm and the others, above 0 and at most 1.
    changes
        How often the best arm changes, at least 1.
    first
        Share of the rounds before the first change; the others are equally far apart.
    bernoulli
        Draw losses as 0 or 1 with those means.
    """

    name = "switching"

    def __init__(
        self,
        arms: int,
        rounds: int,
        gap: float = 0.8,
        changes: int = 1,
        first: float = 0.5,
        bernoulli: bool = False,
    ) -> None:
        arms = checks.arms(arms)
        changes = checks.whole("changes", changes, 1)
        rounds = checks.whole("rounds", rounds, changes + 1, checks.MAX_ROUNDS)
        checks.within("first", first, 0.0, 1.0)
        opening = min(max(round(first * rounds), 1), rounds - changes)
        edges = np.linspace(opening, rounds, changes + 1).round().astype(np.int64)
        lengths = np.concatenate(([opening], np.diff(edges)))
        means = [one_better(arms, segment % arms, gap) for segment in range(changes + 1)]
        super().__init__(means, lengths, bernoulli=bernoulli)


class ConstrainedAdversary(Segments):
    """The stochastically constrained adversary: gaps stay, levels swing, ever more slowly.

    Phases of length about ``1.6 ** n`` alternate between means near 0 and means near 1; the best
    arm is better by ``gap`` throughout. Losses are Bernoulli draws (Zimmert and Seldin 2021).

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        Difference between the best arm and the others, above 0 and at most 1.
    """

    name = "constrained"

    def __init__(self, arms: int, rounds: int, gap: float = 0.125) -> None:
        arms, rounds = checks.arms(arms), checks.rounds(rounds)
        _check_gap(gap)
        lengths: list[int] = []
        while sum(lengths) < rounds:
            lengths.append(min(int(np.ceil(1.6 ** len(lengths))), rounds - sum(lengths)))
        low = np.where(np.arange(arms) == 0, 0.0, gap)
        means = [low if phase % 2 == 0 else low + 1.0 - gap for phase in range(len(lengths))]
        super().__init__(means, lengths, bernoulli=True)


class Barrier(Segments):
    """The paper's instance for the limits of private bandits: losses 1/2 and 1, two arms.

    Parameters
    ----------
    rounds
        Number of rounds T.
    shift
        If given, the second arm's loss falls to 0 from this round on: the shifted instance, on
        which a private algorithm that stopped trying the second arm notices too late.
    """

    name = "barrier"

    def __init__(self, rounds: int, shift: int | None = None) -> None:
        rounds = checks.rounds(rounds)
        if shift is None:
            super().__init__([[0.5, 1.0]], [rounds])
            return
        if not 1 <= checks.whole("shift", shift, 1) < rounds:
            raise InputError(f"shift must be from 1 to rounds - 1 = {rounds - 1}; got {shift!r}.")
        super().__init__([[0.5, 1.0], [0.5, 0.0]], [shift, rounds - shift])


def _check_gap(gap: float) -> None:
    if checks.within("gap", gap, 0.0, 1.0) == 0.0:
        raise InputError("gap must be above 0 and at most 1; got 0.")


def one_better(arms: int, best: int, gap: float) -> list[float]:
    """Return mean losses with one arm better than the others."""
    _check_gap(gap)
    if not 0 <= checks.whole("best", best, 0) < arms:
        raise InputError(f"best must be the index of an arm, 0 to {arms - 1}; got {best!r}.")
    return [0.5 - gap / 2 if arm == best else 0.5 + gap / 2 for arm in range(arms)]

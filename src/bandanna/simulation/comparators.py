"""What regret is measured against: the best in hindsight, random play, and the least possible."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna.environments import Chunk, Environment, ExpertEnvironment, Logged
from bandanna.environments.experts import add_expert_losses
from bandanna.environments.synthetic import SegmentParams
from bandanna.simulation.engine import Run
from bandanna.theory.stationary import stationary_least_plays, stationary_lower_bound

Floats = NDArray[np.float64]


class Comparators:
    """What every expert would have lost, before each checkpoint."""

    def __init__(self, environment: ExpertEnvironment, stops: NDArray[np.int64]) -> None:
        self._stops = stops
        edges = environment.edges
        self._edges = np.zeros(0, dtype=np.int64) if edges is None else edges[1:-1]
        self._experts, self._start = np.zeros((2, environment.experts))
        self._before = 0.0
        self.best_expert: list[float] = []
        self.mean_expert: list[float] = []
        self._followed: list[float] = []

    def through(self, environment: ExpertEnvironment) -> Iterator[Chunk]:
        """Go through all chunks, and add up what is lost in each of them."""
        for chunk in environment.chunks():
            self._add(chunk)
            yield chunk

    def _add(self, chunk: Chunk) -> None:
        low, end = 0, chunk.losses.shape[0]
        losses = np.ascontiguousarray(chunk.losses)
        marks = np.union1d(self._stops, self._edges)
        for mark in marks[(marks > chunk.start) & (marks <= chunk.start + end)]:
            stop = int(mark) - chunk.start
            add_expert_losses(losses, chunk.advice, low, stop, self._experts)
            in_segment = float((self._experts - self._start).min())
            if mark in self._stops:
                self.best_expert.append(float(self._experts.min()) / UNITS)
                self.mean_expert.append(float(self._experts.mean()) / UNITS)
                self._followed.append((self._before + in_segment) / UNITS)
            if mark in self._edges:
                self._before, self._start = self._before + in_segment, self._experts.copy()
            low = stop
        add_expert_losses(losses, chunk.advice, low, end, self._experts)

    @property
    def followed(self) -> Floats | None:
        """What the best expert of each segment loses; None where the best does not change."""
        return np.array(self._followed) if self._edges.size else None

    @property
    def best(self) -> int:
        """The expert with the smallest loss so far."""
        return int(self._experts.argmin())


def best_expert(environment: ExpertEnvironment) -> int:
    """Return the expert who is best in hindsight."""
    experts = Comparators(environment, np.array([environment.rounds]))
    for _ in experts.through(environment):
        pass
    return experts.best


def single_best(environment: Environment | ExpertEnvironment) -> int | None:
    """Return the arm with the smallest total, where it does not depend on the run."""
    if isinstance(environment, ExpertEnvironment) or environment.comparator == "adaptive":
        return None
    return int(environment.arm_totals(np.array([environment.rounds]))[0].argmin())


def best_arm(environment: Environment, stops: NDArray[np.int64], runs: list[Run]) -> Floats:
    """Return the smallest total of any arm before each checkpoint, by run where they differ."""
    smallest: Floats
    if environment.comparator == "adaptive":
        smallest = np.array([run.realised for run in runs]).min(axis=2) / UNITS
    else:
        smallest = environment.arm_totals(stops).min(axis=1)
    return smallest


def best_of_segments(environment: Environment, stops: NDArray[np.int64]) -> Floats | None:
    """Return what playing the best arm of each segment loses before each checkpoint.

    None where the best arm does not change, or its changes are not known beforehand.
    """
    edges = environment.edges
    if edges is None:
        return None
    at_edges = environment.arm_totals(edges)
    each = np.diff(at_edges, axis=0).min(axis=1)
    before = np.concatenate(([0.0], np.cumsum(each)))
    segment = np.searchsorted(edges, stops, side="left") - 1
    since = environment.arm_totals(stops) - at_edges[segment]
    least: Floats = before[segment] + since.min(axis=1)
    return least


MOST_PLAYS = 0.1
"""The bound is for long runs: those in which worse arms need only this share of the rounds."""


def least_regret(environment: Environment | ExpertEnvironment, epsilon: float) -> float | None:
    """Return the private lower bound for steady losses that are 0 or 1, in people's units.

    It is a statement about long runs: short ones can have less regret. None for other losses, where
    all arms are equally good, and where the run is too short for the bound to mean anything: where
    the plays of worse arms that it counts are more than a tenth of the rounds.

    Examples
    --------
    >>> from bandanna.environments import Bernoulli, Switching
    >>> round(least_regret(Bernoulli([0.45] + 9 * [0.55], 1_000_000), epsilon=0.1))
    1420
    >>> least_regret(Switching(10, 1_000_000), epsilon=0.1) is None
    True
    """
    means = _steady_means(environment)
    if means is None:
        return None
    rounds = environment.rounds
    if stationary_least_plays(means, rounds, epsilon) > MOST_PLAYS * rounds:
        return None
    return stationary_lower_bound(means, rounds, epsilon) * environment.span or None


def _steady_means(environment: Environment | ExpertEnvironment) -> list[float] | None:
    """Return each arm's chance of a loss of 1, where losses are 0 or 1 and their law stays."""
    if isinstance(environment, ExpertEnvironment):
        return None
    params = environment.params()
    if isinstance(params, SegmentParams):
        steady = params.bernoulli and len(params.means) == 1
    elif isinstance(environment, Logged):
        steady = environment.steady and bool(np.isin(environment.log.units, (0, UNITS)).all())
    else:
        return None
    totals = environment.arm_totals(np.array([environment.rounds]))[0]
    return [float(total) / environment.rounds for total in totals] if steady else None

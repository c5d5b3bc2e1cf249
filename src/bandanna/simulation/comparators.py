"""What regret is measured against, and what playing at random would have cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bandanna.environments import Chunk, Environment, ExpertEnvironment
from bandanna.environments.advised import add_expert_losses
from bandanna.grid import UNITS
from bandanna.simulation.engine import Run

Floats = NDArray[np.float64]


class Comparators:
    """What every expert and every arm would have lost, before each checkpoint."""

    def __init__(self, environment: ExpertEnvironment, stops: NDArray[np.int64]) -> None:
        self._stops = stops
        self._experts, self._arms = np.zeros(environment.experts), np.zeros(environment.arms)
        self.best_expert: list[float] = []
        self.mean_expert: list[float] = []

    def add(self, chunk: Chunk) -> None:
        """Go on by a chunk."""
        low, end = 0, chunk.losses.shape[0]
        losses = np.ascontiguousarray(chunk.losses)
        inside = self._stops[(self._stops > chunk.start) & (self._stops <= chunk.start + end)]
        for stop in (int(stop) - chunk.start for stop in inside):
            add_expert_losses(losses, chunk.advice, low, stop, self._experts, self._arms)
            self.best_expert.append(float(self._experts.min()) / UNITS)
            self.mean_expert.append(float(self._experts.mean()) / UNITS)
            low = stop
        add_expert_losses(losses, chunk.advice, low, end, self._experts, self._arms)

    @property
    def best(self) -> int:
        """The expert with the smallest loss so far."""
        return int(self._experts.argmin())


def best_expert(environment: ExpertEnvironment) -> int:
    """Return the expert who is best in hindsight."""
    found = Comparators(environment, np.array([environment.rounds]))
    for chunk in environment.chunks():
        found.add(chunk)
    return found.best


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

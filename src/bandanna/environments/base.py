"""What an environment is: a source of losses in [0, 1] for every arm and round.

``sum_losses`` is what compiled code asks, dispatched on the environment's parameters: the sum of
one arm's losses over an interval, in grid units. Environments answer it without visiting the
rounds, so that a run costs its batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import MAX_EXPERTS
from bandanna._core.compiled import kernel, step
from bandanna._core.dispatch import dispatched
from bandanna._core.grid import LossRange
from bandanna._core.streams import Stream

Comparator = Literal["realised", "expected", "adaptive", "experts"]

COMPARATORS: dict[Comparator, str] = {
    "realised": "the best fixed arm on the same losses",
    "expected": "the best fixed arm in expectation",
    "adaptive": "the best fixed arm on the losses realised in the run (the adversary adapts)",
    "experts": "the best single expert on the same losses",
}


class World(ABC):
    """What all environments have: a size, and what regret in them is measured against."""

    name: ClassVar[str]
    comparator: Comparator
    arms: int
    rounds: int
    experts: int | None = None
    """How many experts advise, where any do."""
    arm_names: tuple[str, ...] = ()
    expert_names: tuple[str, ...] = ()
    loss_range: LossRange = (0.0, 1.0)
    """The units people know the losses in; inside, they are from 0 to 1."""
    about: str = ""
    """How data are used, where there are any."""

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Rounds between which one arm, or expert, is best: the first 0, the last all rounds.

        None if the best does not change, or if it is not known when.
        """
        return None

    @property
    def span(self) -> float:
        """What a loss of 1 is in people's units."""
        return self.loss_range[1] - self.loss_range[0]

    def _check_size(self) -> None:
        checks.arms(self.arms)
        checks.rounds(self.rounds)
        if self.experts is not None:
            checks.whole("experts", self.experts, at_least=1, at_most=MAX_EXPERTS)

    def __repr__(self) -> str:
        experts = "" if self.experts is None else f"{self.experts} experts, "
        return f"<{type(self).__name__}: {experts}{self.arms} arms, {self.rounds:,} rounds>"


def edges_of_best(edges: NDArray[np.int64], means: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Keep the edges of segments, with means by segment and arm, at which the best arm changes."""
    best = means.argmin(axis=1)
    changed = np.flatnonzero(np.diff(best)) + 1
    return None if changed.size == 0 else edges[[0, *changed, -1]]


class Environment(World):
    """Losses for ``arms`` arms over ``rounds`` rounds.

    ``params()`` and ``memory()`` are what compiled code works on; an oblivious environment has
    no memory. ``arm_totals`` gives what regret is measured against.
    """

    @abstractmethod
    def params(self) -> NamedTuple:
        """Return the parameters as a named tuple, for compiled code."""

    def memory(self) -> NDArray[np.int64]:
        """Return what one run's adversary remembers at the start."""
        return np.zeros(0, dtype=np.int64)

    @abstractmethod
    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's (expected) total loss before each of the given rounds."""


Memory = NDArray[np.int64]


@dispatched
def sum_losses(
    params: object, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    """Return the sum of an arm's losses over rounds [start, stop), which it was played in."""
    raise NotImplementedError


@dispatched
def realised(params: object, memory: Memory, totals: NDArray[np.int64]) -> None:
    """Write every arm's total loss so far, where it depends on the arms played."""
    raise NotImplementedError


@step
def nothing_realised(params: object, memory: Memory, totals: NDArray[np.int64]) -> None:
    """Write nothing: the losses of an oblivious environment do not depend on the run."""


def register(
    params: type,
    sum_step: Callable[..., int],
    realised_step: Callable[..., None] = nothing_realised,
) -> None:
    """Say which steps belong to a type of parameters."""
    sum_losses.register(params, sum_step)
    realised.register(params, realised_step)


@kernel
def sum_losses_once(
    params: object, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    """Ask once, from Python."""
    return sum_losses(params, memory, arm, start, stop, stream)


@kernel
def realised_once(params: object, memory: Memory, totals: NDArray[np.int64]) -> None:
    """Ask for the realised totals, from Python."""
    realised(params, memory, totals)

"""An environment with experts: losses and advice, made chunk by chunk.

A chunk holds some thousand rounds, so that a million rounds of a thousand experts never have to
lie in memory at once. A chunk is the same whenever it is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice, as_advice_table, check_rounds_of_advice
from bandanna._core.compiled import kernel
from bandanna._core.grid import LossRange, array_to_units, check_range
from bandanna.environments.base import Comparator, World

CHUNK_BYTES = 8_000_000


class Chunk(NamedTuple):
    """Some rounds in a row."""

    start: int
    """The first of them, from 0."""
    losses: NDArray[np.int64]
    """(rounds, arms), in grid units."""
    advice: Advice
    """(rounds, experts) indices of arms, or (rounds, arms, experts) shares."""


class ExpertEnvironment(World):
    """Losses and advice for ``rounds`` rounds, fixed in advance (an oblivious adversary)."""

    comparator: Comparator = "experts"
    experts: int
    spread: bool
    """Whether experts spread their advice over arms instead of naming one."""

    @abstractmethod
    def make(self, number: int, start: int, stop: int) -> tuple[NDArray[np.int64], Advice]:
        """Return losses and advice of the rounds of a chunk."""

    @property
    def chunk_rounds(self) -> int:
        """Rounds in a chunk."""
        bytes_a_round = self.experts * (8 * self.arms if self.spread else 1) + 8 * self.arms
        return max(1, CHUNK_BYTES // bytes_a_round)

    def chunks(self) -> Iterator[Chunk]:
        """Go through all rounds."""
        size = self.chunk_rounds
        for number, start in enumerate(range(0, self.rounds, size)):
            yield Chunk(start, *self.make(number, start, min(start + size, self.rounds)))


class ExpertTable(ExpertEnvironment):
    """Losses and advice from tables.

    Parameters
    ----------
    losses
        (rounds, arms) losses.
    advice
        (rounds, experts) indices of arms, or (rounds, experts, arms) distributions over arms.
    loss_range
        Smallest and largest possible loss.
    arm_names, expert_names
        What they are called.
    """

    name = "table"

    def __init__(
        self,
        losses: object,
        advice: object,
        loss_range: LossRange = (0.0, 1.0),
        arm_names: Sequence[str] = (),
        expert_names: Sequence[str] = (),
    ) -> None:
        self.loss_range = check_range(loss_range)
        self.arm_names, self.expert_names = tuple(arm_names), tuple(expert_names)
        self._losses = array_to_units(losses, loss_range=self.loss_range)
        self.rounds, self.arms = self._losses.shape
        self._advice = as_advice_table(advice, self.rounds, self.arms)
        self.experts = self._advice.shape[1]
        self.spread = self._advice.ndim == 3
        self._check_size()
        for _ in self.chunks():  # refuse bad advice now and not midway
            pass

    def make(self, number: int, start: int, stop: int) -> tuple[NDArray[np.int64], Advice]:
        """Return a part of the tables."""
        advice = check_rounds_of_advice(self._advice[start:stop], self.arms, start)
        return self._losses[start:stop], advice


@kernel
def add_expert_losses(
    losses: NDArray[np.int64],
    advice: Advice,
    low: int,
    high: int,
    totals: NDArray[np.float64],
    arm_totals: NDArray[np.float64],
) -> None:
    """Add what each expert, and each arm, would have lost in rounds [low, high) of a chunk."""
    for t in range(low, high):
        for i in range(losses.shape[1]):
            arm_totals[i] += losses[t, i]
            if advice.ndim == 3:
                for j in range(totals.size):
                    totals[j] += losses[t, i] * advice[t, i, j]
        if advice.ndim == 2:
            for j in range(totals.size):
                totals[j] += losses[t, advice[t, j]]

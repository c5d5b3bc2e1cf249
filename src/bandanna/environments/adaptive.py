"""Adaptive adversaries: they see the arms played so far and choose the next losses accordingly.

Both choose losses 0 and 1 and can tell in one step what happens while the same arm is played for a
while, so that batches stay cheap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna.environments.base import Environment, Memory, register

NONE_YET = -1


class _Adversary(Environment):
    """An adaptive adversary of a given size."""

    comparator = "adaptive"

    def __init__(self, arms: int, rounds: int) -> None:
        self.arms = checks.arms(arms)
        self.rounds = checks.rounds(rounds)

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Refuse: the totals depend on the arms played; the simulator records them."""
        raise NotImplementedError("an adaptive adversary's totals are known only after a run")


class RepeatParams(NamedTuple):
    """Number of arms."""

    arms: int


class PunishRepeats(_Adversary):
    """The arm played in the previous round costs 1, all others cost 0.

    Playing an arm for a whole batch is the worst that can be done here. No algorithm that batches
    its rounds, which is how central privacy is cheap, has small regret against this adversary:
    the paper's guarantee is for losses fixed in advance.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    """

    name = "punish-repeats"

    def params(self) -> RepeatParams:
        """Return the number of arms."""
        return RepeatParams(self.arms)

    def memory(self) -> NDArray[np.int64]:
        """Return the last arm played, and every arm's total so far in rounds."""
        memory = np.zeros(1 + self.arms, dtype=np.int64)
        memory[0] = NONE_YET
        return memory


@step
def _sum_repeats(
    params: RepeatParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    last = memory[0]
    if last != NONE_YET:
        memory[1 + last] += 1
    repeats = stop - start - 1
    memory[1 + arm] += repeats
    memory[0] = arm
    return (repeats + (1 if last == arm else 0)) * UNITS


class LeaderParams(NamedTuple):
    """Number of arms."""

    arms: int


class PunishLeader(_Adversary):
    """The arm played most often so far costs 1 (ties: the first of them), all others cost 0.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    """

    name = "punish-leader"

    def params(self) -> LeaderParams:
        """Return the number of arms."""
        return LeaderParams(self.arms)

    def memory(self) -> NDArray[np.int64]:
        """Return every arm's plays, and every arm's total so far in rounds."""
        return np.zeros(2 * self.arms, dtype=np.int64)


@step
def _sum_leader(
    params: LeaderParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    arms = params.arms
    leader = 0
    for other in range(1, arms):
        if memory[other] > memory[leader]:
            leader = other
    rounds = stop - start
    spared = 0
    if leader != arm:
        # The arm takes the lead once its plays exceed the leader's, or equal them and come first.
        spared = memory[leader] - memory[arm] + (0 if arm < leader else 1)
        spared = min(spared, rounds)
        memory[arms + leader] += spared
    memory[arms + arm] += rounds - spared
    memory[arm] += rounds
    return (rounds - spared) * UNITS


@step
def _realised(params: NamedTuple, memory: Memory, totals: NDArray[np.int64]) -> None:
    """Write every arm's total, which both remember last."""
    before = memory.size - totals.size
    for arm in range(totals.size):
        totals[arm] = memory[before + arm] * UNITS


register(RepeatParams, _sum_repeats, _realised)
register(LeaderParams, _sum_leader, _realised)

"""What compiled code asks an environment, dispatched on its parameters.

``sum_losses`` is the whole interface to the rounds: the sum of one arm's losses over an interval,
in grid units. Environments answer it without visiting the rounds, so that a run costs its batches.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel, step
from bandanna._core.dispatch import dispatched
from bandanna._core.streams import Stream

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

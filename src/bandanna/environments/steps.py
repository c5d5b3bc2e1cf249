"""What compiled code asks an environment, dispatched on its parameters.

``sum_losses`` is the whole interface to the rounds: the sum of one arm's losses over an interval,
in grid units. Environments answer it without visiting the rounds, so that a run costs its batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.compiled import dispatches, kernel, python_source, step
from bandanna.streams import Stream

Memory = NDArray[np.int64]
SumLosses = Callable[[Any, Memory, int, int, int, Stream], int]
Realised = Callable[[Any, Memory, NDArray[np.int64]], None]


class Steps(NamedTuple):
    """An environment's compiled functions."""

    sum_losses: SumLosses
    realised: Realised


_STEPS: dict[type, Steps] = {}


@step
def nothing_realised(params: Any, memory: Memory, totals: NDArray[np.int64]) -> None:
    """Write nothing: the losses of an oblivious environment do not depend on the run."""


def register(params: type, sum_losses: SumLosses, realised: Realised = nothing_realised) -> None:
    """Say which functions belong to a type of parameters."""
    _STEPS[params] = Steps(sum_losses, realised)


def sum_losses(params: Any, memory: Memory, arm: int, start: int, stop: int, stream: Stream) -> int:
    """Return the sum of an arm's losses over rounds [start, stop), which it was played in."""
    return _STEPS[type(params)].sum_losses(params, memory, arm, start, stop, stream)


def realised(params: Any, memory: Memory, totals: NDArray[np.int64]) -> None:
    """Write every arm's total loss so far, where it depends on the arms played."""
    _STEPS[type(params)].realised(params, memory, totals)


@dispatches(sum_losses)
def _sum_overload(params: Any, memory: Any, arm: Any, start: Any, stop: Any, stream: Any) -> Any:
    return python_source(_STEPS[params.instance_class].sum_losses)


@dispatches(realised)
def _realised_overload(params: Any, memory: Any, totals: Any) -> Any:
    return python_source(_STEPS[params.instance_class].realised)


@kernel
def sum_losses_once(
    params: Any, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    """Ask once, from Python."""
    return sum_losses(params, memory, arm, start, stop, stream)


@kernel
def realised_once(params: Any, memory: Memory, totals: NDArray[np.int64]) -> None:
    """Ask for the realised totals, from Python."""
    realised(params, memory, totals)

"""EXP3 with mixing (the paper's Algorithm 4; Auer, Cesa-Bianchi, Freund, Schapire 2002)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna import checks
from bandanna.compiled import step
from bandanna.learners.base import CompiledLearner
from bandanna.learners.sampling import capped_inverse, pick
from bandanna.learners.steps import register
from bandanna.streams import Stream, uniform

ONE_LEVEL = 64
"""Up to this many arms one scan finds the arm; beyond it weights are summed in blocks of about
the square root of their number, so that a round costs two short scans."""

SMALLEST, LARGEST = 1e-9, 1e9
"""Weights are rebuilt from the losses when their sum leaves this interval: no overflow, ever."""


class Exp3Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    mixing: float
    block_bits: int


class Exp3State(NamedTuple):
    """Estimated losses (up to a common constant), their weights, and sums of blocks of weights."""

    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    blocks: NDArray[np.float64]


@dataclass(frozen=True)
class Exp3(CompiledLearner):
    """Exponential weights on importance-weighted losses, mixed with the uniform draw.

    The probability of arm ``i`` is ``(1 - mixing) w_i / sum(w) + mixing / K`` with
    ``w_i = exp(-learning_rate * L_i)``, ``L_i`` the sum of its losses divided by the probability
    of each draw. Negative and unbounded losses are fine.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    learning_rate
        Above 0. ``sqrt(2 log(K) / (K T))`` is the usual choice for T losses in [0, 1].
    mixing
        Share of uniform draws, from 0 to 1.

    References
    ----------
    P. Auer, N. Cesa-Bianchi, Y. Freund, R. Schapire. The nonstochastic multiarmed bandit
    problem. SIAM Journal on Computing 32(1), 2002.

    Examples
    --------
    >>> from bandanna.learners.exp3 import Exp3
    >>> from bandanna.streams import new_stream
    >>> player = Exp3(arms=2, learning_rate=0.1).play(new_stream(0))
    >>> for _ in range(500):
    ...     arm, importance = player.draw()
    ...     player.update(arm, importance, loss=float(arm == 0))
    >>> player.draw()[0]
    1
    """

    arms: int
    learning_rate: float
    mixing: float = 0.0
    name: ClassVar[str] = "exp3"

    def __post_init__(self) -> None:
        checks.whole("arms", self.arms, at_least=2)
        checks.positive("learning_rate", self.learning_rate)
        checks.within("mixing", self.mixing, 0.0, 1.0)

    def params(self) -> Exp3Params:
        """Return the numbers for the compiled steps."""
        return Exp3Params(float(self.learning_rate), float(self.mixing), block_bits(self.arms))

    def start(self) -> Exp3State:
        """Return the state before the first round: all weights 1."""
        bits = block_bits(self.arms)
        state = Exp3State(
            losses=np.zeros(self.arms),
            weights=np.ones(self.arms),
            blocks=np.zeros(-(-self.arms // (1 << bits))),
        )
        for block in range(state.blocks.size):
            state.blocks[block] = state.weights[block << bits : (block + 1) << bits].sum()
        return state


def block_bits(arms: int) -> int:
    """Return the base-two logarithm of the size of a block of weights."""
    return int(math.log2(ONE_LEVEL)) if arms <= ONE_LEVEL else math.ceil(math.log2(arms) / 2)


@step
def _sum_block(weights: NDArray[np.float64], block: int, bits: int) -> float:
    total = 0.0
    if weights.size <= ONE_LEVEL:
        for i in range(weights.size):
            total += weights[i]
    else:
        low = block << bits
        for i in range(low, min(low + (1 << bits), weights.size)):
            total += weights[i]
    return total


@step
def _sum_blocks(blocks: NDArray[np.float64]) -> float:
    if blocks.size == 1:
        return blocks[0]  # type: ignore[no-any-return]
    total = 0.0
    for block in range(blocks.size):
        total += blocks[block]
    return total


@step
def _pick_arm(params: Exp3Params, state: Exp3State, target: float) -> int:
    weights = state.weights
    blocks = state.blocks
    if blocks.size == 1:
        return pick(weights, 0, weights.size, target)
    block = 0
    last = blocks.size - 1
    while block < last and target >= blocks[block]:
        target -= blocks[block]
        block += 1
    while block > 0 and blocks[block] <= 0.0:
        block -= 1
    low = block << params.block_bits
    return pick(weights, low, min(low + (1 << params.block_bits), weights.size), target)


@step
def exp3_draw(params: Exp3Params, state: Exp3State, stream: Stream) -> tuple[int, float]:
    """Draw an arm; one uniform number decides on mixing and on the arm."""
    mixing = params.mixing
    arms = state.weights.size
    total = _sum_blocks(state.blocks)
    u = uniform(stream)
    if u < mixing:
        arm = min(int(u / mixing * arms), arms - 1)
    else:
        arm = _pick_arm(params, state, (u - mixing) / (1.0 - mixing) * total)
    probability = (1.0 - mixing) * state.weights[arm] / total + mixing / arms
    return arm, capped_inverse(probability)


@step
def exp3_update(
    params: Exp3Params, state: Exp3State, arm: int, importance: float, loss: float
) -> None:
    """Add the importance-weighted loss; refresh one weight and the sums it is in."""
    state.losses[arm] += loss * importance
    state.weights[arm] = math.exp(-params.learning_rate * state.losses[arm])
    block = arm >> params.block_bits
    total = _sum_block(state.weights, block, params.block_bits)
    state.blocks[block] = total
    if not SMALLEST < total < LARGEST and not SMALLEST < _sum_blocks(state.blocks) < LARGEST:
        _rebuild(params, state)


@step
def _rebuild(params: Exp3Params, state: Exp3State) -> None:
    """Shift the losses so that the smallest is 0 and compute all weights from them."""
    losses = state.losses
    smallest = losses[0]
    for i in range(losses.size):
        smallest = min(smallest, losses[i])
    for i in range(losses.size):
        losses[i] -= smallest
        state.weights[i] = math.exp(-params.learning_rate * losses[i])
    for block in range(state.blocks.size):
        state.blocks[block] = _sum_block(state.weights, block, params.block_bits)


register(Exp3Params, exp3_draw, exp3_update)

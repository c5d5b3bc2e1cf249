"""EXP3 with mixing (the paper's Algorithm 4; Auer, Cesa-Bianchi, Freund, Schapire 2002)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import kernel, python_source, step
from bandanna._core.streams import Stream, uniform
from bandanna._core.types import InputError
from bandanna.learners.base import CompiledLearner, State, aligned_zeros
from bandanna.learners.centring import entropy_baseline
from bandanna.learners.ftrl import centre, level_with_best
from bandanna.learners.sampling import MAX_IMPORTANCE, draw_arm, pick
from bandanna.learners.steps import Lesson, register

# --- weights ----------------------------------------------------------------------------------

ONE_LEVEL = 64
"""Up to this many arms one scan finds the arm; beyond it weights are also summed in blocks of
about the square root of their number, so that a round costs two short scans."""

SMALLEST, LARGEST = 1e-9, 1e9
"""Weights are rebuilt from the losses when their sum leaves this interval: no overflow, ever."""

REFRESH = 256
"""Sums follow single changes of weights, and are summed anew after so many of them or when they
have halved: rounding errors stay below 2**-44 of a sum."""


class Exp3Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    mixing: float
    block_bits: int


class Exp3State(NamedTuple):
    """Estimated losses (up to a common constant), their weights, and sums of weights."""

    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    total: NDArray[np.float64]
    """Sum of the weights, what it may not fall below, and updates since it was summed anew."""
    blocks: NDArray[np.float64]
    """Sums of blocks of weights; empty when there are few arms."""
    floors: NDArray[np.float64]
    """What each block's sum may not fall below before it is summed anew."""


def start_exp3(arms: int) -> Exp3State:
    """Return the state before the first round: all weights equal."""
    blocks = 0 if arms <= ONE_LEVEL else -(-arms // (1 << block_bits(arms)))
    state = Exp3State(*aligned_zeros(arms, arms, 3, blocks, blocks))
    state.weights[:] = 1.0
    python_source(refresh)(Exp3Params(1.0, 0.0, block_bits(arms)), state)
    return state


def mixed_chances(state: Exp3State, mixing: float) -> NDArray[np.float64]:
    """Return the weights' shares, mixed with the uniform."""
    shares: NDArray[np.float64] = state.weights / state.weights.sum()
    return (1.0 - mixing) * shares + mixing / state.weights.size


def block_bits(arms: int) -> int:
    """Return the base-two logarithm of the size of a block of weights."""
    return math.ceil(math.log2(arms) / 2)


@step
def sum_block(params: Exp3Params, state: Exp3State, block: int) -> float:
    """Sum a block of weights anew."""
    low = block << params.block_bits
    high = min(low + (1 << params.block_bits), state.weights.size)
    total = 0.0
    for i in range(low, high):
        total += state.weights[i]
    state.blocks[block] = total
    state.floors[block] = 0.5 * total
    return total


@step
def _sum_all(params: Exp3Params, state: Exp3State) -> float:
    """Sum all weights anew."""
    total = 0.0
    if state.blocks.size == 0:
        for i in range(state.weights.size):
            total += state.weights[i]
    for block in range(state.blocks.size):
        total += sum_block(params, state, block)
    return total


@step
def refresh(params: Exp3Params, state: Exp3State) -> None:
    """Sum all weights anew, rebuilding them from the losses if they have drifted too far."""
    total = _sum_all(params, state)
    if not SMALLEST < total < LARGEST:
        centre(state.losses)
        for i in range(state.losses.size):
            state.weights[i] = math.exp(-params.learning_rate * state.losses[i])
        total = _sum_all(params, state)
    state.total[0] = total
    state.total[1] = 0.5 * total
    state.total[2] = 0.0


# --- the learner ------------------------------------------------------------------------------


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
        Above 0. ``sqrt(2 log(K) / (K T))`` is the usual choice for T losses in [0, 1], twice
        that when centred. None, when centred, is ``2 sqrt(log(K) / (K t))`` at the t-th loss, for
        any number of losses: the bound is ``sqrt(K T log(K))`` and lower orders.
    mixing
        Share of uniform draws, from 0 to 1.
    centred
        Estimate losses with the baseline of ``bandanna.learners.centring``: half the regret bound,
        ``sqrt(K T log(K) / 2)``, for losses in [0, 1]. Not with mixing.
    share
        When centred, what is given to all arms alike after each loss, from 0 to below 1: it tracks
        a best arm that changes about once in ``1 / share`` losses.

    References
    ----------
    P. Auer, N. Cesa-Bianchi, Y. Freund, R. Schapire. The nonstochastic multiarmed bandit
    problem. SIAM Journal on Computing 32(1), 2002.

    Examples
    --------
    >>> from bandanna.learners.exp3 import Exp3
    >>> from bandanna._core.streams import new_stream
    >>> player = Exp3(arms=2, learning_rate=0.1).play(new_stream(0))
    >>> for _ in range(500):
    ...     arm, importance = player.draw()
    ...     player.update(arm, importance, loss=float(arm == 0))
    >>> player.draw()[0]
    1
    """

    arms: int
    learning_rate: float | None
    mixing: float = 0.0
    centred: bool = False
    share: float = 0.0
    name: ClassVar[str] = "exp3"
    per_arm: ClassVar[tuple[str, ...]] = ("losses", "weights", "chances")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning_rate is None and (self.share or not self.centred):
            raise InputError("learning_rate=None needs centred=True and no share.")
        if self.learning_rate is not None:
            checks.positive("learning_rate", self.learning_rate)
        checks.within("mixing", self.mixing, 0.0, 1.0)
        if not 0.0 <= checks.as_float(self.share) < 1.0:
            raise InputError(f"share must be a number from 0 to below 1; got {self.share!r}.")
        if self.centred and self.mixing:
            raise InputError(f"centred EXP3 has no mixing; got mixing {self.mixing!r}.")
        if self.share and not self.centred:
            raise InputError(f"share {self.share!r} needs centred=True.")

    def params(self) -> Exp3Params | CentredExp3Params:
        """Return the numbers for the compiled steps."""
        return self._centred() if self.centred else self._mixed()

    def _mixed(self) -> Exp3Params:
        rate = float(self.learning_rate or 0.0)
        return Exp3Params(rate, float(self.mixing), block_bits(self.arms))

    def _centred(self) -> CentredExp3Params:
        return CentredExp3Params(float(self.learning_rate or 0.0), float(self.share))

    def start(self) -> Exp3State | CentredExp3State:
        """Return the state before the first round: all weights equal."""
        return start_centred(self.arms) if self.centred else start_exp3(self.arms)

    def welcome(self, state: State, first: int) -> None:
        """Let new arms start level with the best, and make weights and their sums anew."""
        if self.centred:
            welcome_centred(self._centred(), state, first)
            return
        level_with_best(state.losses, first)
        state.weights[:] = 0.0  # out of bounds, so that they are made from the losses
        python_source(refresh)(self._mixed(), state)

    def take_back(self, state: State, arm: int, importance: float) -> None:
        """Forget a draw whose batch taught nothing: with late feedback, nearly."""
        if self.centred:
            take_back_once(self._centred(), state)

    def chances(self, state: State) -> NDArray[np.float64] | None:
        """Return the distribution of the next draw: the weights' shares, mixed with the uniform."""
        return super().chances(state) if self.centred else mixed_chances(state, self.mixing)


@step
def _pick_arm(params: Exp3Params, state: Exp3State, target: float) -> int:
    weights = state.weights
    blocks = state.blocks
    if blocks.size == 0:
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
def exp3_importance(params: Exp3Params, state: Exp3State, arm: int) -> float:
    """Return one over the probability of an arm, ``(1 - mixing) w / total + mixing / arms``."""
    arms, total, mixing = state.weights.size, float(state.total[0]), params.mixing
    importance: float = total * arms / ((1.0 - mixing) * arms * state.weights[arm] + mixing * total)
    return min(importance, MAX_IMPORTANCE)


@step
def exp3_draw(params: Exp3Params, state: Exp3State, stream: Stream) -> tuple[int, float]:
    """Draw an arm; one uniform number decides on mixing and on the arm."""
    mixing = params.mixing
    arms = state.weights.size
    total = state.total[0]
    u = uniform(stream)
    if u < mixing:
        arm = min(int(u / mixing * arms), arms - 1)
    else:
        arm = _pick_arm(params, state, (u - mixing) / (1.0 - mixing) * total)
    return arm, exp3_importance(params, state, arm)


@step
def exp3_update(params: Exp3Params, state: Exp3State, lesson: Lesson) -> None:
    """Add the importance-weighted loss; change one weight and the sums it is in."""
    arm = lesson.arm
    loss_so_far = state.losses[arm] + lesson.loss * lesson.importance
    state.losses[arm] = loss_so_far
    weight = math.exp(-params.learning_rate * loss_so_far)
    change = weight - state.weights[arm]
    state.weights[arm] = weight
    if state.blocks.size > 0:
        block = arm >> params.block_bits
        state.blocks[block] += change
        if state.blocks[block] < state.floors[block]:
            sum_block(params, state, block)
    total = state.total[0] + change
    state.total[0] = total
    state.total[2] += 1.0
    if not state.total[1] <= total <= LARGEST or state.total[2] >= REFRESH:
        refresh(params, state)


register(Exp3Params, exp3_draw, exp3_update)


# --- centred estimates, and a fixed share for tracking ------------------------------------------
#
# All arms move each time, so a step costs as much as there are arms. Estimated losses are kept, not
# weights: an arm whose weight has vanished still knows how far behind it is.


class CentredExp3Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    """0 where it falls with the number of losses."""
    share: float


class CentredExp3State(NamedTuple):
    """Estimated losses (up to a common constant), and the distribution that follows from them."""

    losses: NDArray[np.float64]
    chances: NDArray[np.float64]
    cost: NDArray[np.float64]
    """Updates so far, and the sum of their costs over all arms: what was really paid of the
    bound's ``updates * arms / 8``."""


def start_centred(arms: int) -> CentredExp3State:
    """Return the state before the first round: the uniform distribution."""
    state = CentredExp3State(*aligned_zeros(arms, arms, 2))
    state.chances[:] = 1.0 / arms
    return state


def welcome_centred(params: CentredExp3Params, state: CentredExp3State, first: int) -> None:
    """Let arms from ``first`` on start level with the best."""
    level_with_best(state.losses, first)
    rate = python_source(current_rate)(params, state)
    weights = np.exp(-rate * (state.losses - state.losses.min()))
    state.chances[:] = weights / weights.sum()


@step
def centred_draw(
    params: CentredExp3Params, state: CentredExp3State, stream: Stream
) -> tuple[int, float]:
    """Draw an arm, and add ``b_i - 1/2`` to every arm's loss.

    That part of the estimate does not depend on the loss. Added here it has the baselines of the
    draw, however late the loss comes.
    """
    arm, importance = draw_arm(state.chances, stream)
    add_baselines(params, state, 1.0)
    return arm, importance


@step
def add_baselines(params: CentredExp3Params, state: CentredExp3State, sign: float) -> None:
    """Add what an estimate adds to all arms, or take it away again."""
    rate = current_rate(params, state)
    for i in range(state.losses.size):
        baseline, cost = entropy_baseline(state.chances[i] / rate)
        state.losses[i] += sign * (baseline - 0.5)
        state.cost[1] += sign * cost


@step
def current_rate(params: CentredExp3Params, state: CentredExp3State) -> float:
    """Return the learning rate; where none is given, ``2 sqrt(ln(K) / (K t))`` of step t."""
    if params.learning_rate > 0.0:
        return params.learning_rate
    arms = state.losses.size
    return 2.0 * math.sqrt(math.log(arms) / (arms * (state.cost[0] + 1.0)))


@step
def centred_update(params: CentredExp3Params, state: CentredExp3State, lesson: Lesson) -> None:
    """Add ``(loss - b) / chance`` to the arm that was played, and follow the losses."""
    losses, chances = state.losses, state.chances
    baseline, _ = entropy_baseline(1.0 / (lesson.importance * current_rate(params, state)))
    losses[lesson.arm] += (lesson.loss - baseline) * lesson.importance
    state.cost[0] += 1.0
    rate = current_rate(params, state)
    centre(losses)
    total = 0.0
    for i in range(losses.size):
        chances[i] = math.exp(-rate * losses[i])
        total += chances[i]
    scale = 1.0 / total
    for i in range(losses.size):
        chances[i] *= scale
    if params.share > 0.0:
        _share(params, state)


@step
def _share(params: CentredExp3Params, state: CentredExp3State) -> None:
    """Give every arm a part of the whole, so that none is ever far behind."""
    floor = params.share / state.chances.size
    for i in range(state.chances.size):
        state.chances[i] = (1.0 - params.share) * state.chances[i] + floor
        state.losses[i] = -math.log(state.chances[i]) / params.learning_rate


@kernel
def take_back_once(params: CentredExp3Params, state: CentredExp3State) -> None:
    """Take back the newest draw, from Python."""
    add_baselines(params, state, -1.0)


register(CentredExp3Params, centred_draw, centred_update)

"""EXP4: exponential weights over experts (Auer, Cesa-Bianchi, Freund, Schapire 2002).

An expert's weight is ``exp(-learning_rate * L_j)``, with ``L_j`` its estimated loss. Each round an
expert is drawn by weight and its advice followed, or, with probability ``mixing``, any arm. The
loss, divided by the probability ``q`` of the arm, counts for every expert as far as it advised it.

Advice is what ``advice.py`` makes of it; ``ndim`` is known when the code is compiled, so each
kind gets its own loops. Sums are written in eight lanes, which compilers turn into vector
instructions without reordering them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import MAX_EXPERTS, Advice
from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform
from bandanna._core.types import InputError
from bandanna.learners.base import ExpertLearner, aligned_zeros
from bandanna.learners.exp4_learning import exp4_learn, exp4_learn_all, exp4_update
from bandanna.learners.exp4_weights import LANES, Exp4Params, Exp4State, lane_sum
from bandanna.learners.sampling import capped_inverse, pick

__all__ = [
    "Exp4",
    "Exp4Params",
    "Exp4State",
    "advised_arm",
    "exp4_choose",
    "exp4_learn",
    "exp4_learn_all",
    "exp4_update",
    "support",
]


@dataclass(frozen=True)
class Exp4(ExpertLearner):
    """Exponential weights over experts.

    Parameters
    ----------
    experts
        Number of experts N.
    arms
        Number of arms K, at least 2.
    learning_rate
        Above 0. ``sqrt(2 log(N) / (K T))`` is the usual choice for T losses in [0, 1], twice
        that when centred.
    mixing
        Share of uniform draws of arms, from 0 to 1.
    centred
        Estimate losses with the baseline of ``bandanna.learners.centring``: half the regret bound,
        ``sqrt(K T log(N) / 2)``, for losses in [0, 1]. Not with mixing.
    """

    experts: int
    arms: int
    learning_rate: float
    mixing: float = 0.0
    centred: bool = False
    name: ClassVar[str] = "exp4"

    def __post_init__(self) -> None:
        experts = checks.whole("experts", self.experts, at_least=1, at_most=MAX_EXPERTS)
        checks.set_fields(self, experts=experts, arms=checks.arms(self.arms))
        checks.positive("learning_rate", self.learning_rate)
        checks.within("mixing", self.mixing, 0.0, 1.0)
        if self.centred and self.mixing:
            raise InputError(f"centred EXP4 has no mixing; got mixing {self.mixing!r}.")

    def params(self) -> Exp4Params:
        """Return the numbers for the compiled steps."""
        rates = float(self.learning_rate), float(self.mixing)
        return Exp4Params(*rates, self.arms, bool(self.centred))

    def start(self) -> Exp4State:
        """Return the state before the first round: all weights 1."""
        experts, arms = self.experts, self.arms if self.centred else 0
        state = Exp4State(*aligned_zeros(experts, experts, 2, experts, arms, 2))
        state.weights[:] = 1.0
        state.total[0] = self.experts
        return state

    @property
    def needs_all_advice(self) -> bool:
        """Whether its baselines need what was advised on all arms."""
        return self.centred

    def chances(self, state: NamedTuple) -> NDArray[np.float64] | None:
        """Return the weight of each expert."""
        assert isinstance(state, Exp4State)
        found: NDArray[np.float64] = state.weights / state.weights.sum()
        return found


@step
def exp4_choose(
    params: Exp4Params, state: Exp4State, advice: Advice, stream: Stream
) -> tuple[int, float]:
    """Draw an arm; returns it with one over its probability."""
    arms, mixing = params.arms, params.mixing
    total = state.total[0]
    u = uniform(stream)
    if u < mixing:
        arm = min(int(u / mixing * arms), arms - 1)
    else:
        expert = _pick_expert(state.weights, (u - mixing) / (1.0 - mixing) * total)
        arm = advised_arm(advice, expert, stream)
    share = support(advice, state.weights, arm, state.scratch) / total
    return arm, capped_inverse((1.0 - mixing) * share + mixing / arms)


@step
def _pick_expert(weights: NDArray[np.float64], target: float) -> int:
    """Find the expert a target falls to, eight at a time first."""
    low, size = 0, weights.size
    while low + LANES < size:
        block = (
            ((weights[low] + weights[low + 1]) + (weights[low + 2] + weights[low + 3]))
            + ((weights[low + 4] + weights[low + 5]) + (weights[low + 6] + weights[low + 7]))
        )  # fmt: skip
        if target < block:
            return pick(weights, low, low + LANES, target)
        target -= block
        low += LANES
    while low > 0:  # where rounding lets the target pass the total, someone with a weight
        for i in range(low, size):
            if weights[i] > 0.0:
                return pick(weights, low, size, target)
        low -= 1
    return pick(weights, low, size, target)


@step
def advised_arm(advice: Advice, expert: int, stream: Stream) -> int:
    """Follow one expert: the arm it names, or one drawn from its distribution.

    Either way one number is drawn: what comes later on the stream, such as the next expert to
    follow, must not depend on how a round's advice was written.
    """
    target = uniform(stream)
    if advice.ndim == 1:
        return int(advice[expert])
    arm, last = 0, advice.shape[0] - 1
    while arm < last and target >= advice[arm, expert]:
        target -= advice[arm, expert]
        arm += 1
    while arm > 0 and advice[arm, expert] <= 0.0:
        arm -= 1
    return arm


@step
def support(
    advice: Advice, weights: NDArray[np.float64], arm: int, scratch: NDArray[np.float64]
) -> float:
    """Return the weight behind an arm."""
    # Through memory, because compilers vectorise either loop and not both in one.
    if advice.ndim == 1:
        for j in range(weights.size):
            scratch[j] = weights[j] if advice[j] == arm else 0.0
    else:
        for j in range(weights.size):
            scratch[j] = weights[j] * advice[arm, j]
    return lane_sum(scratch)

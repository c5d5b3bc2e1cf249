"""EXP4: exponential weights over experts (Auer, Cesa-Bianchi, Freund, Schapire 2002).

An expert's weight is ``exp(-learning_rate * L_j)``, with ``L_j`` its estimated loss. Each round an
expert is drawn by weight and its advice followed, or, with probability ``mixing``, any arm. The
loss, divided by the probability ``q`` of the arm, counts for every expert as far as it advised it.

Advice is what ``advice.py`` makes of it; ``ndim`` is known when the code is compiled, so each
kind gets its own loops. Sums are written in eight lanes, which compilers turn into vector
instructions without reordering them.
"""

from __future__ import annotations

import math
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
from bandanna.learners.centring import entropy_baseline
from bandanna.learners.ftrl import centre
from bandanna.learners.sampling import capped_inverse, pick

# --- weights ----------------------------------------------------------------------------------

SMALLEST, LARGEST = 1e-9, 1e9
"""Weights are rebuilt from the losses when their sum leaves this interval."""

NEGLIGIBLE = 1e-280
"""Weights below this become zero until they are rebuilt: numbers near the end of the range of
floats are slow, and the share of such an expert is below 10**-270 anyway."""

MOST_GROWTH = 300.0
"""Negative losses let weights grow, zeros excepted. Before a zero could have grown by more than
``exp(300)``, which is still negligible, all are rebuilt."""

LANES = 8
TINY, SMALL = 1.0 / 16.0, 0.25
"""Up to these the exponential is a short polynomial, exact to rounding, and vectorised."""


class Exp4Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    mixing: float
    arms: int
    centred: bool


class Exp4State(NamedTuple):
    """Estimated losses of the experts (up to a common constant), their weights, and their sum."""

    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    total: NDArray[np.float64]
    """Sum of the weights, and by how much they may have grown since they were rebuilt."""
    scratch: NDArray[np.float64]
    """Room to compute in; means nothing between steps."""
    scratch_arms: NDArray[np.float64]
    """The same, for arms; empty unless centred."""
    cost: NDArray[np.float64]
    """When centred, updates so far and what they cost (``bandanna.learners.exp3``)."""


@step
def lane_sum(weights: NDArray[np.float64]) -> float:
    """Sum in eight lanes."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    size = weights.size
    whole = size - size % LANES
    for j in range(0, whole, LANES):
        a0 += weights[j]
        a1 += weights[j + 1]
        a2 += weights[j + 2]
        a3 += weights[j + 3]
        a4 += weights[j + 4]
        a5 += weights[j + 5]
        a6 += weights[j + 6]
        a7 += weights[j + 7]
    for j in range(whole, size):
        a0 += weights[j]
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@step
def exp_tiny(x: float) -> float:
    """The exponential for |x| <= 1/16: the first neglected term is below 2**-54."""
    return _exp_from(x, 1.0 / 5040.0 + x * (1.0 / 40320.0))


@step
def exp_small(x: float) -> float:
    """The exponential for |x| <= 1/4: the first neglected term is below 2**-52."""
    p = 1.0 / 3628800.0 + x * (1.0 / 39916800.0)
    p = 1.0 / 362880.0 + x * p
    p = 1.0 / 40320.0 + x * p
    return _exp_from(x, 1.0 / 5040.0 + x * p)


@step
def _exp_from(x: float, p: float) -> float:
    p = 1.0 / 720.0 + x * p
    p = 1.0 / 120.0 + x * p
    p = 1.0 / 24.0 + x * p
    p = 1.0 / 6.0 + x * p
    p = 0.5 + x * p
    p = 1.0 + x * p
    return 1.0 + x * p


@step
def _kept(weight: float) -> float:
    """Return a weight, or 0 where it is negligible."""
    return weight if weight > NEGLIGIBLE else 0.0


@step
def rebuild(params: Exp4Params, state: Exp4State) -> None:
    """Compute the weights anew from the losses, the smallest of which becomes zero."""
    losses = state.losses
    centre(losses)
    for j in range(losses.size):
        state.weights[j] = _kept(math.exp(-params.learning_rate * losses[j]))
    state.total[0] = lane_sum(state.weights)
    state.total[1] = 0.0


@step
def resum(params: Exp4Params, state: Exp4State, growth: float) -> None:
    """Sum the weights anew after an update in which they grew by ``exp(growth)`` at most."""
    state.total[0] = lane_sum(state.weights)
    state.total[1] += max(growth, 0.0)
    if not SMALLEST < state.total[0] < LARGEST or state.total[1] > MOST_GROWTH:
        rebuild(params, state)


# --- the learner, and how it draws -------------------------------------------------------------


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

    def chances(self, state: Exp4State) -> NDArray[np.float64] | None:
        """Return the weight of each expert."""
        chances: NDArray[np.float64] = state.weights / state.weights.sum()
        return chances


@step
def exp4_choose(
    params: Exp4Params, state: Exp4State, advice: Advice, stream: Stream
) -> tuple[int, float]:
    """Draw an arm; returns it with one over its probability.

    Centred EXP4 adds ``b_i - 1/2`` to the losses of all arms, which does not depend on the loss:
    so it has the baselines of the draw, however late that comes.
    """
    arms, mixing = params.arms, params.mixing
    total = state.total[0]
    u = uniform(stream)
    if u < mixing:
        arm = min(int(u / mixing * arms), arms - 1)
    else:
        expert = _pick_expert(state.weights, (u - mixing) / (1.0 - mixing) * total)
        arm = advised_arm(advice, expert, stream)
    share = support(advice, state.weights, arm, state.scratch) / total
    importance = capped_inverse((1.0 - mixing) * share + mixing / arms)
    if params.centred:
        _add_baselines(params, state, advice)
    return arm, importance


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
    expert = pick(weights, low, size, target)
    while expert > 0 and weights[expert] <= 0.0:  # where rounding lets the target pass the total
        expert -= 1
    return expert


@step
def advised_arm(advice: Advice, expert: int, stream: Stream) -> int:
    """Follow one expert: the arm it names, or one drawn from its distribution.

    Either way one number is drawn: what comes later on the stream, such as the next expert to
    follow, must not depend on how a round's advice was written.
    """
    target = uniform(stream)
    if advice.ndim == 1:
        return int(advice[expert])
    return pick(advice[:, expert], 0, advice.shape[0], target)


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


# --- learning ---------------------------------------------------------------------------------
#
# Several loops are written more than once: one that chooses inside would not be vectorised.


@step
def exp4_update(
    params: Exp4Params, state: Exp4State, advice: Advice, arm: int, importance: float, loss: float
) -> None:
    """Learn from one loss of an arm that was drawn with that importance on that advice.

    Only the advice on the arm that was played is needed.
    """
    baseline = 0.0
    if params.centred:
        baseline, _ = entropy_baseline(1.0 / (importance * params.learning_rate))
        state.cost[0] += 1.0
    exp4_learn(params, state, advice, arm, (loss - baseline) * importance)


@step
def _add_baselines(params: Exp4Params, state: Exp4State, advice: Advice) -> None:
    """Add the baselines of all arms, and count them for every expert as far as it advised them."""
    estimates, losses, weights = state.scratch_arms, state.losses, state.weights
    _probabilities(state, advice)
    cost = 0.0
    growth = 0.0
    for i in range(params.arms):
        z = estimates[i] / params.learning_rate
        baseline, arm_cost = entropy_baseline(z)
        cost += arm_cost
        estimates[i] = baseline - 0.5
        growth = max(growth, -params.learning_rate * estimates[i])
    state.cost[1] += cost
    if advice.ndim == 1:
        for j in range(weights.size):
            losses[j] += estimates[advice[j]]
        for i in range(params.arms):
            estimates[i] = math.exp(-params.learning_rate * estimates[i])
        for j in range(weights.size):
            weights[j] = _kept(weights[j] * estimates[advice[j]])
    else:
        scratch = state.scratch
        for j in range(weights.size):
            scratch[j] = 0.0
        for i in range(params.arms):
            for j in range(weights.size):
                scratch[j] += estimates[i] * advice[i, j]
        for j in range(weights.size):
            losses[j] += scratch[j]
            weights[j] = _kept(weights[j] * math.exp(-params.learning_rate * scratch[j]))
    resum(params, state, growth)


@step
def _probabilities(state: Exp4State, advice: Advice) -> None:
    """Fill the room for arms with their probabilities: the advice mixed by the weights."""
    chances, weights = state.scratch_arms, state.weights
    scale = 1.0 / state.total[0]
    for i in range(chances.size):
        chances[i] = 0.0
    if advice.ndim == 1:
        for j in range(weights.size):
            chances[advice[j]] += weights[j] * scale
    else:
        for i in range(chances.size):
            total = 0.0
            for j in range(weights.size):
                total += weights[j] * advice[i, j]
            chances[i] = total * scale


@step
def exp4_learn(
    params: Exp4Params, state: Exp4State, advice: Advice, arm: int, estimate: float
) -> None:
    """Count an estimated loss of an arm for every expert, as far as it advised the arm."""
    losses, weights = state.losses, state.weights
    exponent = -params.learning_rate * estimate
    if advice.ndim == 1:
        factor = math.exp(exponent)
        for j in range(weights.size):
            says_so = advice[j] == arm
            losses[j] += estimate if says_so else 0.0
            weights[j] = _kept(weights[j] * (factor if says_so else 1.0))
    # Three times the same loop: one that chooses inside would not be vectorised.
    elif abs(exponent) <= TINY:
        for j in range(weights.size):
            losses[j] += estimate * advice[arm, j]
            weights[j] = _kept(weights[j] * exp_tiny(exponent * advice[arm, j]))
    elif abs(exponent) <= SMALL:
        for j in range(weights.size):
            losses[j] += estimate * advice[arm, j]
            weights[j] = _kept(weights[j] * exp_small(exponent * advice[arm, j]))
    else:
        for j in range(weights.size):
            losses[j] += estimate * advice[arm, j]
            weights[j] = _kept(weights[j] * math.exp(exponent * advice[arm, j]))
    resum(params, state, exponent)


@step
def exp4_learn_all(params: Exp4Params, state: Exp4State, estimates: NDArray[np.float64]) -> None:
    """Count an estimated loss for each expert."""
    for j in range(estimates.size):
        state.losses[j] += estimates[j]
    rebuild(params, state)

"""The parameters of the algorithms with expert advice, and the range they hold in.

``arms`` is K, ``experts`` N (at least 2), ``rounds`` T.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from bandanna.privacy.calibration import (
    GRID,
    MAX_BATCH,
    Calibration,
    smallest_closed_form,
)
from bandanna.theory.parameters import require_horizon
from bandanna.theory.search import lowest_point


class Exp4Parameters(NamedTuple):
    """What EXP4 needs."""

    learning_rate: float
    mixing: float


class BatchedExp4Parameters(NamedTuple):
    """What batched EXP4 needs."""

    batch: int
    learning_rate: float
    mixing: float


def bounded_exp4(arms: int, experts: int, rounds: int) -> Exp4Parameters:
    """Return what suits EXP4 on losses in [0, 1]: no mixing is needed."""
    return Exp4Parameters(math.sqrt(2.0 * math.log(experts) / (rounds * arms)), 0.0)


def one_bit_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> Exp4Parameters:
    """Return what suits EXP4 on single released bits, whose mean is at most ``(1 + s)/2``."""
    slope = math.tanh(epsilon / 2.0)
    rate = math.sqrt(4.0 * math.log(experts) / (rounds * arms * (1.0 + slope)))
    return Exp4Parameters(rate, 0.0)


def local_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> Exp4Parameters:
    """Theorem "Locally Private EXP4"."""
    epsilon = min(epsilon, 1.0)

    def at(horizon: int) -> Exp4Parameters:
        log_term = math.log(arms * horizon)
        spread = 3.0 * horizon * arms * (1.0 + 10.0 * log_term**2 / epsilon**2)
        rate = math.sqrt(math.log(experts) / spread)
        return Exp4Parameters(rate, 4.0 * rate * arms * log_term / epsilon)

    require_horizon(
        "local-exp4",
        "its mixing would be above 1",
        rounds,
        lambda horizon: at(horizon).mixing <= 1.0,
        problem=f"{arms} arms, {experts} experts and epsilon {epsilon:g}",
    )
    return at(rounds)


def batched_exp4(
    arms: int, experts: int, rounds: int, epsilon: float, delta: float
) -> BatchedExp4Parameters:
    """Theorem "Private, Batched EXP4": as printed, with the batch rounded to a whole number."""
    spread, log_n = experts * math.log(1.0 / delta), math.log(experts)

    def at(horizon: int) -> tuple[float, float, float]:
        logs = math.log(experts * horizon)
        eta = spread ** (1 / 6) * (logs * log_n / (horizon * epsilon)) ** (1 / 3) / math.sqrt(arms)
        tau = (spread * logs**2 * horizon / (epsilon**2 * log_n)) ** (1 / 3)
        gamma = max(
            (eta * experts * arms**2 * logs**2 / (epsilon * tau) ** 2) ** (1 / 3),
            12.0 * eta * arms * math.sqrt(spread) * logs / (epsilon * tau),
        )
        return tau, eta, gamma

    def works(horizon: int) -> bool:
        tau, eta, gamma = at(horizon)
        return gamma <= 1.0 and round(tau) <= horizon and eta <= 1.0

    tau, eta, gamma = at(rounds)
    require_horizon(
        "batched-exp4",
        f"its parameters leave their range: gamma = {gamma:.3g}, eta = {eta:.3g} (at most 1), "
        f"tau = {tau:.3g} (at most T)",
        rounds,
        works,
        problem=f"{arms} arms, {experts} experts, epsilon {epsilon:g} and delta {delta:g}",
    )
    return BatchedExp4Parameters(max(1, round(tau)), eta, gamma)


def calibrated_terms(
    arms: int, experts: int, rounds: int, noise: Calibration, parameters: BatchedExp4Parameters
) -> dict[str, float]:
    """Bound the regret of batched EXP4 by what ``docs/theory/batched-exp4.md`` proves.

    Infinite where the noise is too large for the learning rate.
    """
    batch, eta, gamma = parameters
    played = rounds // batch * batch
    keep = 1.0 - gamma
    per_unit = arms / (gamma * batch)
    return {
        "gamma T": gamma * played,
        "tau log(N) / eta": keep * batch * math.log(experts) / eta,
        "eta T (1 + (K - 1)/tau) / 2": 0.5 * eta * keep * played * (1.0 + (arms - 1.0) / batch),
        "noise: T log E exp(eta Z) / eta": keep * played * _log_moment(noise, eta, per_unit) / eta,
        "rounding": 3.0 * played * arms / (gamma * GRID),
        "last rounds": float(rounds - played),
    }


def _log_moment(noise: Calibration, eta: float, per_unit: float) -> float:
    """Bound the logarithm of ``E exp(eta Z)`` for the noise on one expert's mean loss."""
    if noise.law == "gaussian":
        return 0.5 * (eta * noise.deviation * per_unit) ** 2
    square = (eta * noise.deviation * per_unit) ** 2 / 2.0
    return -math.log1p(-square) if square < 1.0 else math.inf


@lru_cache(maxsize=1024)
def calibrated_exp4(
    arms: int, experts: int, rounds: int, epsilon: float, delta: float
) -> tuple[BatchedExp4Parameters, Calibration]:
    """Return the batch, learning rate and mixing with the smallest bound, and the noise.

    For a batch and a mixing the best learning rate is known up to Laplace noise's higher
    moments; the bound falls and then rises in either of the other two, so a golden-section search
    over their logarithms finds the best. Of pure Laplace and Gaussian noise, the smaller.
    """
    noise = smallest_closed_form(epsilon, delta, experts)

    def tuned(batch: int, gamma: float) -> BatchedExp4Parameters:
        played = rounds // batch * batch
        deviation = noise.deviation * arms / (gamma * batch)
        cost = 0.5 * played * (1.0 + (arms - 1.0) / batch + deviation**2)
        eta = math.sqrt(batch * math.log(experts) / cost)
        most = 1.0 if noise.law == "gaussian" else min(1.0, 1.2 / deviation)
        return BatchedExp4Parameters(batch, max(min(eta, most), 1e-300), gamma)

    def bound(parameters: BatchedExp4Parameters) -> float:
        return math.fsum(calibrated_terms(arms, experts, rounds, noise, parameters).values())

    def best_mixing(batch: int) -> BatchedExp4Parameters:
        log_mixing = lowest_point(lambda x: bound(tuned(batch, math.exp(x))), math.log(1e-7), 0.0)
        return tuned(batch, math.exp(log_mixing))

    top = min(rounds, MAX_BATCH)
    log_batch = lowest_point(
        lambda x: bound(best_mixing(min(round(math.exp(x)), top))), 0.0, math.log(top)
    )
    count = rounds // min(round(math.exp(log_batch)), top)
    # For each number of batches the longest ones, which leave the fewest rounds over; and where a
    # few batches make the whole run, the bound jumps with their number, so all are tried.
    counts = {*range(1, 6), count - 1, count, count + 1}
    candidates = [rounds // each for each in counts if 1 <= each <= rounds]
    tried = [best_mixing(batch) for batch in candidates if batch <= MAX_BATCH]
    return min(tried, key=bound), noise

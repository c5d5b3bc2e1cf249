"""EXP4 that releases a number for every expert once a batch: the paper's noise, and ours.

Ours is the smallest noise of three kinds, with everything tuned to its own bound (``calibrated``).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from bandanna.privacy.calibration import (
    GRID,
    MAX_BATCH,
    MOST_NOISE,
    Calibration,
    calibrate,
    paper_noise,
    smallest_closed_form,
)
from bandanna.spec import Problem
from bandanna.theory import exp4
from bandanna.theory.tuning import (
    PAPER,
    Bound,
    Tuning,
    Weights,
    check_epsilon,
    checked_batch,
    lowest_point,
    require_horizon,
)


class Batched(NamedTuple):
    """What batched EXP4 is tuned by."""

    batch: int
    learning_rate: float
    mixing: float


def tuning(problem: Problem, chosen: Batched, preset: str) -> Tuning:
    """Name EXP4 and its vector release."""
    batch, rate, mixing = chosen
    size = {"arms": problem.arms, "experts": problem.experts}
    promise = {"epsilon": problem.epsilon, "delta": problem.delta}
    through = {"name": "vector", **size, **promise, "batch": batch, "mixing": mixing}
    return Tuning(exp4.learner(problem, Weights(rate, mixing)), {**through, "preset": preset})


def theorem(problem: Problem) -> Batched:
    """Theorem "Private, Batched EXP4": as printed, with the batch rounded to a whole number."""
    rounds = problem.horizon("batched-exp4")
    arms, _, epsilon = problem.size
    delta, experts = problem.delta, problem.num_experts
    paper_noise(epsilon, delta, experts)  # before the parameters: refuses what cannot be
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
        problem,
        works,
    )
    return Batched(max(1, round(tau)), eta, gamma)


def paper(problem: Problem) -> Tuning:
    """Theorem "Private, Batched EXP4"."""
    return tuning(problem, theorem(problem), "paper")


def paper_bound(problem: Problem) -> Bound:
    """Theorem "Private, Batched EXP4", where its parameters are in range."""
    arms, rounds, epsilon = problem.size
    check_epsilon(problem)
    chosen = theorem(problem)
    experts = problem.num_experts
    spread, logs = experts * math.log(1.0 / problem.delta), math.log(experts * rounds)
    log_n = math.log(experts)
    first = 100.0 * math.sqrt(arms) * rounds ** (2 / 3) * (logs * log_n / epsilon) ** (1 / 3)
    return Bound(
        f"{PAPER}, Theorem 'Private, Batched EXP4'",
        {
            "100 (N log(1/delta))^(1/6) K^(1/2) T^(2/3) (log(NT) log(N) / eps)^(1/3)": first
            * spread ** (1 / 6),
            "sqrt(N log(1/delta)) log(NT) log(N) / eps": math.sqrt(spread) * logs * log_n / epsilon,
        },
        batch=chosen.batch,
    )


def calibrated(problem: Problem, batch: int | None = None) -> Tuning:
    """Our batched EXP4: the smallest noise, and parameters that make its bound smallest."""
    return tuning(problem, best_calibrated(problem, batch)[0], "calibrated")


def calibrated_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Our batched EXP4: the smallest noise, and parameters that make this bound smallest."""
    chosen, noise = best_calibrated(problem, batch)
    deviation = noise.deviation * problem.arms / chosen.mixing / chosen.batch
    return Bound(
        f"calibrated batched EXP4, {noise.law} noise (research/tight-constants.md)",
        calibrated_terms(problem, noise, chosen),
        chosen.batch,
        {"learning_rate": chosen.learning_rate, "mixing": chosen.mixing, "noise": deviation},
    )


def calibrated_delta(problem: Problem) -> float:
    """Return what it spends of delta: nothing where pure noise is the smallest."""
    noise = calibrate(problem.epsilon, problem.delta, problem.num_experts)
    return 0.0 if math.isfinite(noise.pure) else problem.delta


def calibrated_terms(problem: Problem, noise: Calibration, chosen: Batched) -> dict[str, float]:
    """Bound the regret of batched EXP4 by what ``research/tight-constants.md`` proves.

    Infinite where the noise is too large for the learning rate.
    """
    arms, rounds, _ = problem.size
    batch, eta, gamma = chosen
    played = rounds // batch * batch
    keep = 1.0 - gamma
    per_unit, unit = arms / (gamma * batch), arms / (gamma * GRID)
    return {
        "gamma T": gamma * played,
        "tau log(N) / eta": keep * batch * math.log(problem.num_experts) / eta,
        "eta T (1 + (K - 1)/tau) / 2": 0.5 * eta * keep * played * (1.0 + (arms - 1.0) / batch),
        "noise: T log E exp(eta Z) / eta": keep * played * _log_moment(noise, eta, per_unit) / eta,
        "rounding": played * unit * (3.0 + unit / 2.0),
        "last rounds": float(rounds - played),
    }


def _log_moment(noise: Calibration, eta: float, per_unit: float) -> float:
    """Bound the logarithm of ``E exp(eta Z)`` for the noise on one expert's mean loss."""
    if noise.law == "gaussian":
        return 0.5 * (eta * noise.deviation * per_unit) ** 2
    square = (eta * noise.deviation * per_unit) ** 2 / 2.0
    return -math.log1p(-square) if square < 1.0 else math.inf


@lru_cache(maxsize=1024)
def best_calibrated(problem: Problem, batch: int | None = None) -> tuple[Batched, Calibration]:
    """Return the batch, learning rate and mixing with the smallest bound, and the noise.

    For a batch and a mixing the best learning rate is known up to Laplace noise's higher
    moments; the bound falls and then rises in either of the other two, so a golden-section search
    over their logarithms finds the best. Of pure Laplace and Gaussian noise, the smaller.
    """
    arms, rounds, epsilon = problem.size
    experts = problem.num_experts
    noise = smallest_closed_form(epsilon, problem.delta, experts)
    if noise.deviation * GRID > MOST_NOISE:
        calibrate(epsilon, problem.delta, experts)  # refuses, unless composed noise still fits

    def tuned(size: int, gamma: float) -> Batched:
        played = rounds // size * size
        deviation = noise.deviation * arms / (gamma * size)
        cost = 0.5 * played * (1.0 + (arms - 1.0) / size + deviation**2)
        eta = math.sqrt(size * math.log(experts) / cost)
        most = 1.0 if noise.law == "gaussian" else min(1.0, 1.2 / deviation)
        return Batched(size, max(min(eta, most), 1e-300), gamma)

    def bound(chosen: Batched) -> float:
        return math.fsum(calibrated_terms(problem, noise, chosen).values())

    def best_mixing(size: int) -> Batched:
        log_mixing = lowest_point(lambda x: bound(tuned(size, math.exp(x))), math.log(1e-7), 0.0)
        return tuned(size, math.exp(log_mixing))

    if batch is not None:
        return best_mixing(checked_batch(batch, problem)), noise
    top = min(rounds, MAX_BATCH)
    log_batch = lowest_point(
        lambda x: bound(best_mixing(min(round(math.exp(x)), top))), 0.0, math.log(top)
    )
    count = rounds // min(round(math.exp(log_batch)), top)
    # For each number of batches the longest ones, which leave the fewest rounds over; and where a
    # few batches make the whole run, the bound jumps with their number, so all are tried.
    counts = {*range(1, 6), count - 1, count, count + 1}
    candidates = [rounds // each for each in counts if 1 <= each <= rounds]
    tried = [best_mixing(each) for each in candidates if each <= MAX_BATCH]
    return min(tried, key=bound), noise

"""EXP4 that releases a number for every expert once a batch, with the paper's noise."""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna.privacy.calibration import paper_noise
from bandanna.spec import Problem
from bandanna.theory import exp4
from bandanna.theory.noisy_weights import Weights
from bandanna.theory.search import best_batch, lowest_point
from bandanna.theory.tuning import (
    PAPER,
    PROOF,
    Bound,
    TooFewRoundsError,
    Tuning,
    check_epsilon,
    require_horizon,
)


class Batched(NamedTuple):
    """What batched EXP4 is tuned by."""

    batch: int
    learning_rate: float
    mixing: float


def tuning(problem: Problem, found: Batched, preset: str) -> Tuning:
    """Name EXP4 and its vector release."""
    batch, rate, mixing = found
    size = {"arms": problem.arms, "experts": problem.experts}
    promise = {"epsilon": problem.epsilon, "delta": problem.delta}
    through = {"name": "vector", **size, **promise, "batch": batch, "mixing": mixing}
    return Tuning(exp4.learner(problem, Weights(rate, mixing)), {**through, "preset": preset})


def theorem(problem: Problem) -> Batched:
    """Theorem "Private, Batched EXP4": as printed, with the batch rounded to a whole number."""
    rounds = problem.horizon("batched-exp4")
    arms, epsilon, delta, experts = (
        problem.arms,
        problem.epsilon,
        problem.delta,
        problem.num_experts,
    )
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
    found = theorem(problem)
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
        batch=found.batch,
    )


def tight(problem: Problem, batch: int | None = None) -> Tuning:
    """Batched EXP4 with the paper's noise and our constants."""
    found = tight_bound(problem, batch)
    settings = found.settings
    parts = Batched(found.batch, settings["learning_rate"], settings["mixing"])
    return tuning(problem, parts, "paper")


def tight_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Batched EXP4 with the paper's noise, the rest chosen to make the bound smallest."""
    arms, rounds, epsilon = problem.size
    check_epsilon(problem)
    experts = problem.num_experts
    multiple = arms * paper_noise(epsilon, problem.delta, experts).composed
    log_n = math.log(experts)

    # With u = theta^2 / (1 - theta^2) and the best learning rate, the bound is
    # 2 sqrt(paid(u) earned(u)) + tau; its logarithm is convex in log u.
    def paid(size: float, count: float, u: float) -> float:
        return size * (log_n + count * u)

    def earned(size: float, count: float, u: float) -> float:
        moment = (size + arms - 1.0) * (1.0 + u) / 2.0
        return count * (moment + multiple * math.sqrt((1.0 + u) / u))

    def best_u(size: float, count: float) -> float:
        def product(log_u: float) -> float:
            u = math.exp(log_u)
            return paid(size, count, u) * earned(size, count, u)

        return math.exp(lowest_point(product, -35.0, 5.0))

    def whole(size: float, count: float) -> float:
        u = best_u(size, count)
        return 2.0 * math.sqrt(paid(size, count, u) * earned(size, count, u)) + size

    if batch is None:
        batch = best_batch(whole, rounds)
    count = rounds // batch
    u = best_u(batch, count)
    rate = math.sqrt(paid(batch, count, u) / earned(batch, count, u))
    noise = math.sqrt(u / (1.0 + u)) / rate
    mixing = multiple / (noise * batch)
    if mixing > 1.0:
        raise TooFewRoundsError(f"{rounds} rounds are too few: its mixing would be above 1.")
    return Bound(
        f"batched EXP4, tight constants ({PROOF})",
        {
            "tau log(N) / eta": batch * log_n / rate,
            "eta tau n (1 + (K - 1)/tau) / (2 (1 - theta^2))": (
                rate * count * (batch + arms - 1.0) * (1.0 + u) / 2.0
            ),
            "eta tau n lam^2 / (1 - theta^2)": rate * batch * count * noise**2 * (1.0 + u),
            "gamma tau n": mixing * batch * count,
            "tau": float(batch),
        },
        batch,
        {"learning_rate": rate, "mixing": mixing, "noise": noise},
    )

"""FTPL behind Laplace noise: the paper's corollary, and our constants."""

from __future__ import annotations

import math

from bandanna.spec import Problem
from bandanna.theory.tuning import (
    PAPER,
    PROOF,
    Bound,
    Spread,
    TooFewRoundsError,
    Tuning,
    batch_for,
    check_epsilon,
    laplace_noise,
    noisy_ftpl,
    paper_batch,
    release,
    require_horizon,
)


def paper(problem: Problem) -> Tuning:
    """Corollary "FTPL Conversion", with the number of resamples rounded up."""
    epsilon = min(problem.epsilon, 1.0)
    require_horizon(
        "ftpl", "log(epsilon T) must be above 0", problem, lambda rounds: epsilon * rounds > 1.0
    )
    tuned = noisy_ftpl(problem.arms, epsilon * problem.horizon("ftpl"), noise=1.0)
    return Tuning(tuned, release("laplace", problem, paper_batch(problem.epsilon)))


def paper_bound(problem: Problem) -> Bound:
    """Corollary "FTPL Conversion", for eps in [1/T, 1]."""
    arms, rounds, epsilon = problem.size
    check_epsilon(problem)
    paper(problem)
    leading = math.sqrt(arms * rounds / epsilon) * math.log(arms) * math.log(arms * rounds)
    return Bound(
        f"{PAPER}, Corollary 'FTPL Conversion'",
        {"32 sqrt(K T / eps) log(K) log(K T)": 32.0 * leading, "2 / eps": 2.0 / epsilon},
        paper_batch(epsilon),
    )


def tight_bound(problem: Problem, batch: int | None = None) -> Bound:
    """FTPL behind Laplace noise, with as many repeats as its proof can use."""
    arms, rounds, epsilon = problem.size
    leader = most_of_laplace(arms)

    def whole(size: float, count: float) -> float:
        spread = ftpl_spread(arms, laplace_noise(size, epsilon)).value
        return size * (2.0 * math.sqrt(spread * leader * count * arms) + 1.0)

    batch = batch_for(problem, batch, whole)
    noise, count = laplace_noise(batch, epsilon), rounds // batch
    spread = ftpl_spread(arms, noise)
    rate = math.sqrt(leader / (count * arms * spread.value))
    repeats = math.floor(spread.theta / (rate * noise))
    if repeats < 1:
        raise TooFewRoundsError(f"{rounds} rounds are too few: it could not repeat even one draw.")
    moment = 1.0 + noise**2 * (1.0 + (1.0 - rate * noise * repeats) ** -2)
    return Bound(
        f"FTPL conversion, tight constants ({PROOF})",
        {
            "tau E[max of K Laplace] / eta": batch * leader / rate,
            "tau eta n (2 K - 1) (1 + lam^2 (1 + 1/(1 - theta)^2))": (
                batch * rate * count * (2.0 * arms - 1.0) * moment
            ),
            "tau n K / (e M)": batch * count * arms / (math.e * repeats),
            "tau": float(batch),
        },
        batch,
        {"learning_rate": rate, "resamples": repeats, "noise": noise},
    )


def most_of_laplace(count: int) -> float:
    """Bound the expected largest of several Laplace variables of scale 1, within 1/(2 count)."""
    euler = 0.57721566490153287
    return math.log(count / 2.0) + euler + 0.5 / count


def ftpl_spread(arms: int, noise: float) -> Spread:
    """Return the least ``(2 - 1/K) (1 + lam^2 (1 + 1/(1 - theta)^2)) + lam / (e theta)``."""
    # The minimum is where w^2 + c w^3 = c for w = theta^(1/3). The left side is convex, so
    # Newton's method comes down to it without overshooting.
    twice = 2.0 - 1.0 / arms
    c = (2.0 * math.e * twice * noise) ** (-1.0 / 3.0)
    w = min(1.0, math.sqrt(c))
    for _ in range(6):
        w -= (w**2 + c * w**3 - c) / (2.0 * w + 3.0 * c * w**2)
    theta = w**3
    moment = 1.0 + noise**2 * (1.0 + (1.0 - theta) ** -2)
    return Spread(twice * moment + noise / (math.e * theta), theta)

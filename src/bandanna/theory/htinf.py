"""HTINF behind Laplace noise: the paper's corollary, and our constants."""

from __future__ import annotations

import math

from bandanna.spec import Problem
from bandanna.theory.tuning import (
    PAPER,
    PROOF,
    Bound,
    Tuning,
    batch_for,
    check_epsilon,
    check_one_batch,
    laplace_noise,
    learner,
    paper_batch,
    release,
)


def paper(problem: Problem) -> Tuning:
    """Corollary "FTRL Conversion"; it needs no horizon."""
    check_one_batch("htinf", problem)
    tuned = learner("htinf", problem.arms, alpha=2.0, sigma=math.sqrt(6.0))
    return Tuning(tuned, release("laplace", problem, paper_batch(problem.epsilon)))


def paper_bound(problem: Problem) -> Bound:
    """Corollary "FTRL Conversion": ``208 sqrt(KT/eps) + 2/eps`` for eps in [1/T, 1]."""
    arms, rounds, epsilon = problem.size
    check_epsilon(problem)
    check_one_batch("the corollary", problem)
    return Bound(
        f"{PAPER}, Corollary 'FTRL Conversion'",
        {
            "208 sqrt(K T / eps)": 208.0 * math.sqrt(arms * rounds / epsilon),
            "2 / eps": 2.0 / epsilon,
        },
        paper_batch(epsilon),
    )


def tight_bound(problem: Problem, batch: int | None = None) -> Bound:
    """HTINF behind Laplace noise: ``30 tau sqrt((1 + 2 lam^2) K (n + 1)) + tau``."""
    arms, rounds, epsilon = problem.size

    def learning(size: float, count: float) -> float:
        moment = 1.0 + 2.0 * laplace_noise(size, epsilon) ** 2
        return 30.0 * size * math.sqrt(moment * arms * (count + 1.0))

    batch = batch_for(problem, batch, lambda size, count: learning(size, count) + size)
    noise = laplace_noise(batch, epsilon)
    formula = "30 tau sqrt((1 + 2 lam^2) K (floor(T/tau) + 1))"
    return Bound(
        f"HTINF conversion, tight constants ({PROOF})",
        {formula: learning(batch, rounds // batch), "tau": float(batch)},
        batch,
        {"sigma": math.sqrt(1.0 + 2.0 * noise**2), "noise": noise},
    )

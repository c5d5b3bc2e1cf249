"""Regret bounds with our own constants for expert advice; see ``theory.tight_bounds``."""

from __future__ import annotations

import math

from bandanna.privacy.calibration import paper_noise
from bandanna.theory import expert_bounds
from bandanna.theory.bounds import Bound
from bandanna.theory.search import best_batch, lowest_point
from bandanna.theory.tight_bounds import PROOF, noisy_weights
from bandanna.types import InputError


def local_exp4_tight(arms: int, experts: int, rounds: int, epsilon: float) -> Bound:
    """Locally private EXP4, ``2 sqrt(C(1/eps) T K log N)``, for any epsilon."""
    expert_bounds.check_advice(arms, experts, rounds, epsilon)
    terms, settings = noisy_weights(math.log(experts), arms, rounds, 1.0 / epsilon)
    return Bound(
        f"local EXP4, tight constants ({PROOF})",
        {
            "log(N) / eta": terms.choices,
            "eta T K (1/2 + lam^2) / (1 - theta^2)": terms.variance,
            "gamma T": terms.mixing,
        },
        settings=settings,
    )


def batched_exp4_tight(
    arms: int, experts: int, rounds: int, epsilon: float, delta: float, batch: int | None = None
) -> Bound:
    """Batched EXP4 with the paper's noise, the rest chosen to make the bound smallest."""
    expert_bounds.check_advice(arms, experts, rounds, epsilon, largest=1.0)
    multiple = arms * paper_noise(epsilon, delta, experts).composed
    log_n = math.log(experts)

    # With u = theta^2 / (1 - theta^2) and the best learning rate, the bound is
    # 2 sqrt(paid(u) earned(u)) + tau; its logarithm is convex in log u.
    def paid(size: int, u: float) -> float:
        return size * (log_n + (rounds // size) * u)

    def earned(size: int, u: float) -> float:
        moment = (size + arms - 1.0) * (1.0 + u) / 2.0
        return (rounds // size) * (moment + multiple * math.sqrt((1.0 + u) / u))

    def best_u(size: int) -> float:
        def product(log_u: float) -> float:
            return paid(size, math.exp(log_u)) * earned(size, math.exp(log_u))

        return math.exp(lowest_point(product, -35.0, 5.0))

    def whole(size: int) -> float:
        u = best_u(size)
        return 2.0 * math.sqrt(paid(size, u) * earned(size, u)) + size

    if batch is None:
        batch = best_batch(whole, rounds)
    u, count = best_u(batch), rounds // batch
    rate = math.sqrt(paid(batch, u) / earned(batch, u))
    noise = math.sqrt(u / (1.0 + u)) / rate
    mixing = multiple / (noise * batch)
    if mixing > 1.0:
        raise InputError(f"{rounds} rounds are too few: its mixing would be above 1.")
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

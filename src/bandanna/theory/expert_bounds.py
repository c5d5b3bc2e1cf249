"""Regret bounds for bandits with expert advice, as numbers; see ``bandanna.theory.bounds``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from bandanna import checks
from bandanna.theory import bounds
from bandanna.theory.bounds import PAPER, Bound
from bandanna.types import InputError


def over_experts(
    conversion: Callable[[int, int, float], Bound], experts: int, rounds: int, epsilon: float
) -> Bound:
    """Bound a conversion with every expert a meta-arm: the bound for N arms."""
    bound = conversion(_several(experts), rounds, epsilon)
    terms = {name.replace("K", "N"): value for name, value in bound.terms.items()}
    return replace(bound, terms=terms, source=f"{bound.source}, over experts")


def local_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> Bound:
    """Theorem "Locally Private EXP4": ``16 sqrt(T K log N) log(K T) / eps + 1`` for eps <= 1."""
    check_advice(arms, experts, rounds, epsilon, largest=1.0)
    log_term = math.log(arms * rounds)
    rate = math.sqrt(
        math.log(experts) / (3.0 * rounds * arms * (1.0 + 10.0 * log_term**2 / epsilon**2))
    )
    if 4.0 * rate * arms * log_term / epsilon > 1.0:
        raise InputError(f"{rounds} rounds are too few: its mixing would be above 1.")
    leading = 16.0 * math.sqrt(rounds * arms * math.log(experts)) * log_term / epsilon
    source = f"{PAPER}, Theorem 'Locally Private EXP4'"
    return Bound(source, {"16 sqrt(T K log N) log(K T) / eps": leading, "1": 1.0})


def one_bit_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> Bound:
    """EXP4 on single released bits: ``sqrt(2 T K log N) / tanh(eps/2)``, for any epsilon."""
    check_advice(arms, experts, rounds, epsilon)
    leading = math.sqrt(2.0 * rounds * arms * math.log(experts)) / math.tanh(epsilon / 2.0)
    return Bound("one-bit EXP4", {"sqrt(2 T K log N) / tanh(eps/2)": leading})


def batched_exp4(arms: int, experts: int, rounds: int, epsilon: float, delta: float) -> Bound:
    """Theorem "Private, Batched EXP4", where its parameters are in range."""
    check_advice(arms, experts, rounds, epsilon, largest=1.0)
    check_composition(epsilon, delta)
    spread, logs = experts * math.log(1.0 / delta), math.log(experts * rounds)
    log_n = math.log(experts)
    eta = spread ** (1 / 6) * (logs * log_n / (rounds * epsilon)) ** (1 / 3) / math.sqrt(arms)
    tau = (spread * logs**2 * rounds / (epsilon**2 * log_n)) ** (1 / 3)
    gamma = max(
        (eta * experts * arms**2 * logs**2 / (epsilon * tau) ** 2) ** (1 / 3),
        12.0 * eta * arms * math.sqrt(spread) * logs / (epsilon * tau),
    )
    if not (gamma <= 1.0 and tau <= rounds and eta <= 1.0):
        raise InputError(
            f"its parameters leave their range: gamma = {gamma:.3g}, eta = {eta:.3g} (at most 1), "
            f"tau = {tau:.3g} (at most T)."
        )
    first = 100.0 * math.sqrt(arms) * rounds ** (2 / 3) * (logs * log_n / epsilon) ** (1 / 3)
    return Bound(
        f"{PAPER}, Theorem 'Private, Batched EXP4'",
        {
            "100 (N log(1/delta))^(1/6) K^(1/2) T^(2/3) (log(NT) log(N) / eps)^(1/3)": first
            * spread ** (1 / 6),
            "sqrt(N log(1/delta)) log(NT) log(N) / eps": math.sqrt(spread) * logs * log_n / epsilon,
        },
        batch=round(tau),
    )


def no_privacy_experts(arms: int, experts: int, rounds: int) -> Bound:
    """EXP4 without privacy: ``sqrt(2 T K log N)``."""
    check_advice(arms, experts, rounds, 1.0)
    return Bound(
        "EXP4 (Auer and others 2002)",
        {"sqrt(2 T K log N)": math.sqrt(2.0 * rounds * arms * math.log(experts))},
    )


def _several(experts: int) -> int:
    return checks.whole("experts", experts, at_least=2)


def check_advice(
    arms: int, experts: int, rounds: int, epsilon: float, largest: float = math.inf
) -> None:
    """Require a problem of a possible size, and an epsilon the statement is about."""
    bounds.check_problem(arms, rounds, epsilon, largest)
    _several(experts)


def check_composition(epsilon: float, delta: float) -> None:
    """Require a delta for which the paper's noise on N numbers is private."""
    if not 0.0 < delta < 1.0:
        raise InputError(f"needs a delta above 0 and below 1; got {delta:g}.")
    if delta > math.exp(-0.908 * epsilon):
        raise InputError(
            f"its composition step needs delta <= exp(-0.908 eps) = "
            f"{math.exp(-0.908 * epsilon):.3g}; got {delta:g}."
        )

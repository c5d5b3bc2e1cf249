"""Regret bounds for bandits with expert advice, as numbers; see ``bandanna.theory.bounds``."""

from __future__ import annotations

import math
from dataclasses import replace

from bandanna import checks
from bandanna.privacy.calibration import paper_noise
from bandanna.theory import bounds, expert_parameters
from bandanna.theory.bounds import PAPER, Bound


def htinf_over_experts(experts: int, rounds: int, epsilon: float) -> Bound:
    """Corollary "FTRL Conversion" with every expert a meta-arm: ``208 sqrt(NT/eps) + 2/eps``."""
    bound = bounds.htinf_conversion(_several(experts), rounds, epsilon)
    terms = {name.replace("K", "N"): value for name, value in bound.terms.items()}
    return replace(bound, terms=terms, source=f"{bound.source}, over experts")


def one_bit_over_experts(experts: int, rounds: int, epsilon: float) -> Bound:
    """Our one-bit conversion with every expert a meta-arm."""
    bound = bounds.one_bit_conversion(_several(experts), rounds, epsilon)
    terms = {name.replace("K", "N"): value for name, value in bound.terms.items()}
    return replace(bound, terms=terms, source=f"{bound.source}, over experts")


def local_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> Bound:
    """Theorem "Locally Private EXP4": ``16 sqrt(T K log N) log(K T) / eps`` for eps <= 1."""
    _check(arms, experts, rounds, epsilon, largest=1.0)
    expert_parameters.local_exp4(arms, experts, rounds, epsilon)
    log_term = math.log(arms * rounds)
    leading = 16.0 * math.sqrt(rounds * arms * math.log(experts)) * log_term / epsilon
    source = f"{PAPER}, Theorem 'Locally Private EXP4'"
    return Bound(source, {"16 sqrt(T K log N) log(K T) / eps": leading})


def one_bit_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> Bound:
    """EXP4 on single released bits: ``sqrt(2 T K log N) / tanh(eps/2)``, for any epsilon."""
    _check(arms, experts, rounds, epsilon)
    leading = math.sqrt(2.0 * rounds * arms * math.log(experts)) / math.tanh(epsilon / 2.0)
    return Bound("one-bit EXP4", {"sqrt(2 T K log N) / tanh(eps/2)": leading})


def batched_exp4(arms: int, experts: int, rounds: int, epsilon: float, delta: float) -> Bound:
    """Theorem "Private, Batched EXP4", where its parameters are in range."""
    _check(arms, experts, rounds, epsilon, largest=1.0)
    paper_noise(epsilon, delta, experts)
    parameters = expert_parameters.batched_exp4(arms, experts, rounds, epsilon, delta)
    spread, logs = experts * math.log(1.0 / delta), math.log(experts * rounds)
    log_n = math.log(experts)
    first = 100.0 * math.sqrt(arms) * rounds ** (2 / 3) * (logs * log_n / epsilon) ** (1 / 3)
    return Bound(
        f"{PAPER}, Theorem 'Private, Batched EXP4'",
        {
            "100 (N log(1/delta))^(1/6) K^(1/2) T^(2/3) (log(NT) log(N) / eps)^(1/3)": first
            * spread ** (1 / 6),
            "sqrt(N log(1/delta)) log(NT) log(N) / eps": math.sqrt(spread) * logs * log_n / epsilon,
        },
        batch=parameters.batch,
    )


def calibrated_exp4(arms: int, experts: int, rounds: int, epsilon: float, delta: float) -> Bound:
    """Our batched EXP4: the smallest noise, and parameters that make this bound smallest."""
    _check(arms, experts, rounds, epsilon)
    parameters, noise = expert_parameters.calibrated_exp4(arms, experts, rounds, epsilon, delta)
    terms = expert_parameters.calibrated_terms(arms, experts, rounds, noise, parameters)
    source = f"calibrated batched EXP4, {noise.law} noise (docs/theory/batched-exp4.md)"
    return Bound(source, terms, batch=parameters.batch)


def no_privacy_experts(arms: int, experts: int, rounds: int) -> Bound:
    """EXP4 without privacy: ``sqrt(2 T K log N)``."""
    _check(arms, experts, rounds, 1.0)
    return Bound(
        "EXP4 (Auer and others 2002)",
        {"sqrt(2 T K log N)": math.sqrt(2.0 * rounds * arms * math.log(experts))},
    )


def _several(experts: int) -> int:
    return checks.whole("experts", experts, at_least=2)


def _check(arms: int, experts: int, rounds: int, epsilon: float, largest: float = math.inf) -> None:
    bounds.check_problem(arms, rounds, epsilon, largest)
    _several(experts)

"""Regret bounds for bandits with expert advice, as numbers; see ``bandanna.theory.bounds``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from bandanna import checks
from bandanna.privacy.calibration import paper_noise
from bandanna.theory import bounds, expert_parameters
from bandanna.theory.bounds import PAPER, Bound


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
    expert_parameters.local_exp4(arms, experts, rounds, epsilon)
    log_term = math.log(arms * rounds)
    leading = 16.0 * math.sqrt(rounds * arms * math.log(experts)) * log_term / epsilon
    source = f"{PAPER}, Theorem 'Locally Private EXP4'"
    return Bound(source, {"16 sqrt(T K log N) log(K T) / eps": leading, "1": 1.0})


def one_bit_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> Bound:
    """EXP4 on single released bits: ``sqrt((1 + s) T K log N) / s``, ``s = tanh(eps/2)``."""
    check_advice(arms, experts, rounds, epsilon)
    slope = math.tanh(epsilon / 2.0)
    leading = math.sqrt((1.0 + slope) * rounds * arms * math.log(experts)) / slope
    rate = expert_parameters.one_bit_exp4(arms, experts, rounds, epsilon).learning_rate
    return Bound(
        "one-bit EXP4 (docs/theory/tight-constants.md)",
        {"sqrt((1 + s) T K log N) / s": leading},
        settings={"learning_rate": rate},
    )


def batched_exp4(arms: int, experts: int, rounds: int, epsilon: float, delta: float) -> Bound:
    """Theorem "Private, Batched EXP4", where its parameters are in range."""
    check_advice(arms, experts, rounds, epsilon, largest=1.0)
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
    check_advice(arms, experts, rounds, epsilon)
    parameters, noise = expert_parameters.calibrated_exp4(arms, experts, rounds, epsilon, delta)
    terms = expert_parameters.calibrated_terms(arms, experts, rounds, noise, parameters)
    batch, rate, mixing = parameters
    return Bound(
        f"calibrated batched EXP4, {noise.law} noise (docs/theory/batched-exp4.md)",
        terms,
        batch,
        {"learning_rate": rate, "mixing": mixing, "noise": noise.deviation * arms / mixing / batch},
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

"""Regret bounds as numbers: one function for each theorem, with its source, range and terms.

Each function returns a ``Bound`` or raises ``InputError`` where its statement does not apply.
``arms`` is K, ``experts`` N, ``rounds`` T. The paper's constants are kept where it proves them; the
same algorithms with constants of our own are in ``bandanna.theory.tight_bounds``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from bandanna import checks
from bandanna.theory import parameters
from bandanna.theory.one_bit import best_one_bit_batch, one_bit_price, tsallis_inf_regret
from bandanna.types import InputError

PAPER = "Asi, Raman, Talwar"


@dataclass(frozen=True)
class Bound:
    """An upper bound on expected regret."""

    source: str
    terms: dict[str, float]
    """What it adds up, by formula."""
    batch: int = 1
    settings: dict[str, float] = field(default_factory=dict)
    """What to run the algorithm with, where the bound chooses it."""

    @property
    def regret(self) -> float:
        """The whole bound."""
        return math.fsum(self.terms.values())

    def share(self, rounds: int) -> float:
        """The bound as a share of the rounds; from 1 on it says nothing."""
        return self.regret / rounds


def htinf_conversion(arms: int, rounds: int, epsilon: float) -> Bound:
    """Corollary "FTRL Conversion": ``208 sqrt(KT/eps) + 2/eps`` for eps in [1/T, 1]."""
    check_problem(arms, rounds, epsilon, largest=1.0)
    parameters.check_one_batch("the corollary", rounds, epsilon)
    return Bound(
        f"{PAPER}, Corollary 'FTRL Conversion'",
        {
            "208 sqrt(K T / eps)": 208.0 * math.sqrt(arms * rounds / epsilon),
            "2 / eps": 2.0 / epsilon,
        },
        parameters.paper_batch(epsilon),
    )


def exp3_conversion(arms: int, rounds: int, epsilon: float) -> Bound:
    """Corollary "EXP3 Conversion", where its mixing is at most 1."""
    check_problem(arms, rounds, epsilon, largest=1.0)
    parameters.exp3_corollary(arms, rounds, epsilon)
    leading = math.sqrt(rounds * arms * math.log(arms) / epsilon) * math.log(arms * rounds)
    return Bound(
        f"{PAPER}, Corollary 'EXP3 Conversion'",
        {"36 sqrt(T K log K / eps) log(K T)": 36.0 * leading, "4 / eps": 4.0 / epsilon},
        parameters.paper_batch(epsilon),
    )


def ftpl_conversion(arms: int, rounds: int, epsilon: float) -> Bound:
    """Corollary "FTPL Conversion", for eps in [1/T, 1]."""
    check_problem(arms, rounds, epsilon, largest=1.0)
    parameters.ftpl_corollary(arms, rounds, epsilon)
    leading = math.sqrt(arms * rounds / epsilon) * math.log(arms) * math.log(arms * rounds)
    return Bound(
        f"{PAPER}, Corollary 'FTPL Conversion'",
        {"32 sqrt(K T / eps) log(K) log(K T)": 32.0 * leading, "2 / eps": 2.0 / epsilon},
        parameters.paper_batch(epsilon),
    )


def one_bit_conversion(arms: int, rounds: int, epsilon: float, batch: int | None = None) -> Bound:
    """Our one-bit conversion of Tsallis-INF (``docs/theory/one-bit.md``), for any epsilon."""
    check_problem(arms, rounds, epsilon)
    if batch is None:
        batch = best_one_bit_batch(rounds, arms, epsilon)
    checks.whole("batch", batch, 1, rounds)
    count = rounds // batch
    price = one_bit_price(batch, epsilon)
    logarithm = math.log(max(count / 15.0, 1.0))
    return Bound(
        "one-bit conversion of Tsallis-INF (docs/theory/one-bit.md)",
        {
            "(tau/s) 2 sqrt(K n)": price * 2.0 * math.sqrt(arms * count),
            "(tau/s) 4.07 K log(n/15)": price * 4.07 * arms * logarithm,
            "(tau/s) 16": price * 16.0,
            "tau": float(batch),
        },
        batch,
    )


def local_exp3(arms: int, rounds: int, epsilon: float) -> Bound:
    """EXP3 on single noisy losses, from the proof of Corollary "EXP3 Conversion" at batch 1.

    Prior work (Agarwal, Singh 2017; Tossou, Dimitrakakis 2017) has the same rate.
    """
    check_problem(arms, rounds, epsilon)
    parameters.local_exp3(arms, rounds, epsilon)
    noise = 1.0 / epsilon
    spread = 1.0 + 10.0 * max(noise, noise**2) * math.log(arms * rounds) ** 2
    leading = 2.0 * math.sqrt(2.0 * rounds * arms * math.log(arms) * spread)
    return Bound(
        "Agarwal and Singh 2017, Theorem 4.1, with the paper's constants",
        {"2 sqrt(2 T K log K (1 + 10 log^2(K T) / eps^2))": leading, "1": 1.0},
    )


def no_privacy(arms: int, rounds: int) -> Bound:
    """Tsallis-INF with reduced variance (``docs/theory/tsallis-inf.md``), or EXP3 if it is less."""
    check_problem(arms, rounds, 1.0)
    tsallis_inf = Bound(
        "Tsallis-INF (docs/theory/tsallis-inf.md)",
        {"2 sqrt(K T) + 4.07 K max(0, log(T/15)) + 16": tsallis_inf_regret(rounds, arms)},
    )
    exp3 = Bound(
        "EXP3 (Auer and others 2002)",
        {"sqrt(2 T K log K)": math.sqrt(2.0 * rounds * arms * math.log(arms))},
    )
    return min(tsallis_inf, exp3, key=lambda bound: bound.regret)


def smallest_possible(arms: int, rounds: int) -> float:
    """The minimax lower bound without privacy: ``min(sqrt(KT), T) / 20`` (Auer and others 2002)."""
    check_problem(arms, rounds, 1.0)
    return min(math.sqrt(arms * rounds), float(rounds)) / 20.0


def check_problem(arms: int, rounds: int, epsilon: float, largest: float = math.inf) -> None:
    """Require a problem of a possible size, and an epsilon the statement is about."""
    checks.arms(arms)
    checks.rounds(rounds)
    if checks.epsilon(epsilon) > largest:
        raise InputError(f"stated for epsilon up to {largest:g}; got {epsilon:g}.")

"""Regret bounds as numbers: one function for each theorem, with its source, range and terms.

Each function returns a ``Bound`` or raises ``InputError`` where its statement does not apply.
``arms`` is K, ``experts`` N, ``rounds`` T. The paper's constants are kept where it proves them;
bounds marked "tight" are ours, from the same proofs with the exact second moment of a noisy loss,
``1 + 2 lam^2``, the exact number of batches, and the best integer batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bandanna import checks
from bandanna.theory import parameters
from bandanna.theory.one_bit import best_one_bit_batch, tsallis_inf_regret
from bandanna.types import InputError

PAPER = "Asi, Raman, Talwar"


@dataclass(frozen=True)
class Bound:
    """An upper bound on expected regret."""

    source: str
    terms: dict[str, float]
    """What it adds up, by formula."""
    batch: int = 1

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


def htinf_conversion_tight(
    arms: int, rounds: int, epsilon: float, batch: int | None = None
) -> Bound:
    """The same conversion with tight constants, at a batch or at the best one."""
    check_problem(arms, rounds, epsilon)

    def at(size: np.ndarray) -> np.ndarray:
        noise = 1.0 / (size * epsilon)
        moment = 1.0 + 2.0 * noise**2
        regret = 30.0 * np.sqrt(moment * arms * (np.floor(rounds / size) + 1.0))
        whole: np.ndarray = size * regret + size
        return whole

    if batch is None:
        sizes = np.unique(np.rint(np.geomspace(1, rounds, 4000)))
        batch = int(sizes[np.argmin(at(sizes))])
    checks.whole("batch", batch, 1, rounds)
    leading = float(at(np.array([float(batch)]))[0]) - batch
    formula = "30 tau sqrt((1 + 2 lam^2) K (floor(T/tau) + 1))"
    return Bound(
        "Theorem 'Generic Conversion' with HTINF, tight constants",
        {formula: leading, "tau": float(batch)},
        batch,
    )


def one_bit_conversion(arms: int, rounds: int, epsilon: float, batch: int | None = None) -> Bound:
    """Our one-bit conversion of Tsallis-INF (``docs/theory/one-bit.md``), for any epsilon."""
    check_problem(arms, rounds, epsilon)
    if batch is None:
        batch = best_one_bit_batch(rounds, arms, epsilon)
    checks.whole("batch", batch, 1, rounds)
    count = rounds // batch
    price = batch + 2.0 / math.expm1(epsilon)
    logarithm = max(0.0, math.log(count / 15.0)) if count else 0.0
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
    """Tsallis-INF with reduced variance (``docs/theory/tsallis-inf.md``)."""
    check_problem(arms, rounds, 1.0)
    return Bound(
        "Tsallis-INF (docs/theory/tsallis-inf.md)",
        {
            "2 sqrt(K T) + 4.07 K max(0, log(T/15)) + 16": float(
                tsallis_inf_regret(np.array([float(rounds)]), arms)[0]
            )
        },
    )


def smallest_possible(arms: int, rounds: int) -> float:
    """The minimax lower bound without privacy: ``min(sqrt(KT), T) / 20`` (Auer and others 2002)."""
    check_problem(arms, rounds, 1.0)
    return min(math.sqrt(arms * rounds), float(rounds)) / 20.0


def check_problem(arms: int, rounds: int, epsilon: float, largest: float = math.inf) -> None:
    """Require a problem of a possible size, and an epsilon the statement is about."""
    checks.arms(arms)
    checks.rounds(rounds)
    if checks.positive("epsilon", epsilon) > largest:
        raise InputError(f"stated for epsilon up to {largest:g}; got {epsilon:g}.")

"""EXP3 behind Laplace noise and behind bits: the paper's, prior work's and ours."""

from __future__ import annotations

import math

from bandanna._core.types import JSON, InputError
from bandanna.spec import Problem
from bandanna.theory.centred import one_bit_centred_exp3, tracking_choices, tracking_share
from bandanna.theory.delay import late_exp3
from bandanna.theory.tsallis import default_one_bit_batch
from bandanna.theory.tuning import (
    PAPER,
    PROOF,
    Bound,
    Tuning,
    Weights,
    batch_for,
    check_epsilon,
    checked_batch,
    laplace_noise,
    learner,
    noisy_spread,
    noisy_weights,
    one_bit_price,
    paper_batch,
    release,
    require_horizon,
)

CHANGES = 10
"""How often the best arm is expected to change, where nobody says."""


def _tuned(problem: Problem, weights: Weights, batch: int) -> Tuning:
    parts = learner("exp3", problem.arms, **weights._asdict())
    return Tuning(parts, release("laplace", problem, batch))


def corollary(problem: Problem) -> Weights:
    """Corollary "EXP3 Conversion".

    ``learning_rate = sqrt(log K / (22 eps K T log(eps K T)^2))`` and
    ``mixing = 4 learning_rate K log(eps K T)``, at most 1 from ``eps T >= 16/22 K log K`` on.
    """
    arms, epsilon = problem.arms, min(problem.epsilon, 1.0)

    def mixing_at(horizon: int) -> float:
        # The logarithm cancels, so this is finite even where the learning rate is not.
        return 4.0 * arms * math.sqrt(math.log(arms) / (22.0 * epsilon * arms * horizon))

    def works(horizon: int) -> bool:
        return epsilon * arms * horizon > 1.0 and mixing_at(horizon) <= 1.0

    require_horizon("exp3", "its mixing would be above 1", problem, works)
    rounds = problem.horizon("exp3")
    mixing = mixing_at(rounds)
    return Weights(mixing / (4.0 * arms * math.log(epsilon * arms * rounds)), mixing)


def paper(problem: Problem) -> Tuning:
    """Corollary "EXP3 Conversion"."""
    return _tuned(problem, corollary(problem), paper_batch(problem.epsilon))


def paper_bound(problem: Problem) -> Bound:
    """Corollary "EXP3 Conversion", where its mixing is at most 1."""
    arms, rounds, epsilon = problem.size
    check_epsilon(problem)
    corollary(problem)
    leading = math.sqrt(rounds * arms * math.log(arms) / epsilon) * math.log(arms * rounds)
    return Bound(
        f"{PAPER}, Corollary 'EXP3 Conversion'",
        {"36 sqrt(T K log K / eps) log(K T)": 36.0 * leading, "4 / eps": 4.0 / epsilon},
        paper_batch(epsilon),
    )


def tight_bound(problem: Problem, batch: int | None = None) -> Bound:
    """EXP3 behind Laplace noise: ``2 tau sqrt(C(lam) n K log K) + tau``."""
    arms, rounds, epsilon = problem.size

    def whole(size: float, count: float) -> float:
        spread = noisy_spread(laplace_noise(size, epsilon)).value
        return size * (2.0 * math.sqrt(spread * count * arms * math.log(arms)) + 1.0)

    batch = batch_for(problem, batch, whole)
    noise = laplace_noise(batch, epsilon)
    terms, settings = noisy_weights(math.log(arms), arms, rounds // batch, noise)
    return Bound(
        f"EXP3 conversion, tight constants ({PROOF})",
        {
            "tau log(K) / eta": batch * terms.choices,
            "tau eta n K (1/2 + lam^2) / (1 - theta^2)": batch * terms.variance,
            "tau gamma n": batch * terms.mixing,
            "tau": float(batch),
        },
        batch,
        settings,
    )


def local_tight_bound(problem: Problem, batch: int | None = None) -> Bound:
    """EXP3 on single losses with Laplace noise, locally private: the conversion at batch 1."""
    return tight_bound(problem, 1 if batch is None else batch)


def theorem(problem: Problem) -> Weights:
    """Agarwal and Singh 2017, Theorem 4.1, with the mixing that their proof needs."""
    arms, noise = problem.arms, 1.0 / problem.epsilon

    def at(horizon: int) -> Weights:
        log_term = math.log(arms * horizon)
        spread = 1.0 + 2.0 * noise**2 * log_term**2
        rate = math.sqrt(math.log(arms) / (2.0 * arms * horizon * spread))
        return Weights(rate, rate * arms * (1.0 + 4.0 * noise * log_term))

    require_horizon(
        "ldp-exp3", "its mixing would be above 1", problem, lambda rounds: at(rounds).mixing <= 1.0
    )
    return at(problem.horizon("ldp-exp3"))


def local(problem: Problem) -> Tuning:
    """EXP3 on single noisy losses, as Agarwal and Singh tune it."""
    return _tuned(problem, theorem(problem), 1)


def local_bound(problem: Problem) -> Bound:
    """EXP3 on single noisy losses at the rate and mixing that are run, by our claim for EXP3.

    It holds for every rate and mixing with ``theta = eta lam K / gamma < 1``; here theta is
    ``lam / (1 + 4 lam log(K T))``.
    """
    arms, rounds, epsilon = problem.size
    rate, mixing = theorem(problem)
    noise = laplace_noise(1, epsilon)
    theta = rate * noise * arms / mixing
    variance = (0.5 + noise**2) / (1.0 - theta**2)
    return Bound(
        f"Agarwal and Singh 2017, Theorem 4.1, at the rate that is run ({PROOF})",
        {
            "log(K) / eta": math.log(arms) / rate,
            "eta T K (1/2 + lam^2) / (1 - theta^2)": rate * rounds * arms * variance,
            "gamma T": mixing * rounds,
        },
    )


def one_bit_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Centred EXP3 on released bits: ``(tau/s) sqrt(n K log(K) / 2) + ... + tau``.

    Told how often the best arm changes, it keeps a fixed share, and the bound is against every
    sequence of arms that changes so often; the best arm of all is one of these.
    """
    if problem.delay and problem.changes:
        raise InputError("none is proved for late feedback where the best arm changes.")
    if problem.delay:
        return late_exp3(problem, batch)
    return _centred_bound(problem, batch, problem.changes or 0)


def one_bit_exp3(problem: Problem, batch: int | None = None) -> Tuning:
    """Centred EXP3 on released bits; without a horizon, its rate falls with the number of bits."""
    if problem.changes:
        problem.horizon("one-bit-exp3 with changes=", instead="adaptive")
        problem = problem.but(delay=0)
    if problem.rounds is None:
        parts: JSON = {**learner("exp3", problem.arms, centred=True), "learning_rate": None}
        batch = default_one_bit_batch(problem.epsilon) if batch is None else batch
        return Tuning(parts, release("one-bit", problem, batch))
    bound = one_bit_bound(problem, batch)
    parts = learner("exp3", problem.arms, **bound.settings)
    return Tuning(parts, release("one-bit", problem, bound.batch))


def _centred_bound(problem: Problem, batch: int | None, changes: int) -> Bound:
    arms, rounds, epsilon = problem.size
    if batch is not None:
        checked_batch(batch, problem)
    centred = one_bit_centred_exp3(arms, rounds, epsilon, batch, changes)
    count, price = rounds // centred.batch, one_bit_price(centred.batch, epsilon)
    choices = tracking_choices(changes, count, arms)
    leading = price * math.sqrt(count * arms * choices / 2.0)
    lost = float((changes + 1) * centred.batch)
    settings = {"learning_rate": centred.learning_rate, "centred": True}
    among = "log(K)" if not changes else "C(S, K)"
    if changes:
        settings["share"] = min(tracking_share(changes, count), 1.0 - 1e-9)
    return Bound(
        "one-bit conversion of centred EXP3 (docs/theory/centred.md)",
        {
            f"(tau/s) sqrt(n K {among} / 2)": leading,
            f"(tau/s) 0.254 exp(eta/2) {among}": centred.regret - leading - lost,
            "tau" if not changes else "(S + 1) tau": lost,
        },
        centred.batch,
        settings,
    )

"""Regret bounds with our own constants, proved in ``docs/theory/tight-constants.md``.

``lam`` is the scale of the Laplace noise on a loss, ``tau`` the batch, ``n = floor(T / tau)``. No
bound here needs the noise to be small in every round, as the paper's do: its exact moments are
used instead, and the logarithms of T disappear.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna import checks
from bandanna.theory.bounds import Bound, check_problem
from bandanna.theory.one_bit import one_bit_price
from bandanna.theory.search import best_batch
from bandanna.types import InputError

PROOF = "docs/theory/tight-constants.md"


def htinf_conversion_tight(
    arms: int, rounds: int, epsilon: float, batch: int | None = None
) -> Bound:
    """HTINF behind Laplace noise: ``30 tau sqrt((1 + 2 lam^2) K (n + 1)) + tau``."""
    check_problem(arms, rounds, epsilon)

    def learning(size: int) -> float:
        moment = 1.0 + 2.0 * _noise(size, epsilon) ** 2
        return 30.0 * size * math.sqrt(moment * arms * (rounds // size + 1.0))

    if batch is None:
        batch = best_batch(lambda size: learning(size) + size, rounds)
    checks.whole("batch", batch, 1, rounds)
    noise = _noise(batch, epsilon)
    formula = "30 tau sqrt((1 + 2 lam^2) K (floor(T/tau) + 1))"
    return Bound(
        f"HTINF conversion, tight constants ({PROOF})",
        {formula: learning(batch), "tau": float(batch)},
        batch,
        {"sigma": math.sqrt(1.0 + 2.0 * noise**2), "noise": noise},
    )


def exp3_conversion_tight(
    arms: int, rounds: int, epsilon: float, batch: int | None = None
) -> Bound:
    """EXP3 behind Laplace noise: ``2 tau sqrt(C(lam) n K log K) + tau``."""
    check_problem(arms, rounds, epsilon)

    def whole(size: int) -> float:
        spread = noisy_spread(_noise(size, epsilon)).value
        return size * (2.0 * math.sqrt(spread * (rounds // size) * arms * math.log(arms)) + 1.0)

    if batch is None:
        batch = best_batch(whole, rounds)
    checks.whole("batch", batch, 1, rounds)
    terms, settings = noisy_weights(math.log(arms), arms, rounds // batch, _noise(batch, epsilon))
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


def local_exp3_tight(arms: int, rounds: int, epsilon: float) -> Bound:
    """EXP3 on single losses with Laplace noise, locally private: the conversion at batch 1."""
    return exp3_conversion_tight(arms, rounds, epsilon, batch=1)


def ftpl_conversion_tight(
    arms: int, rounds: int, epsilon: float, batch: int | None = None
) -> Bound:
    """FTPL behind Laplace noise, with as many repeats as its proof can use."""
    check_problem(arms, rounds, epsilon)
    leader = most_of_laplace(arms)

    def whole(size: int) -> float:
        spread = ftpl_spread(arms, _noise(size, epsilon)).value
        return size * (2.0 * math.sqrt(spread * leader * (rounds // size) * arms) + 1.0)

    if batch is None:
        batch = best_batch(whole, rounds)
    checks.whole("batch", batch, 1, rounds)
    noise, count = _noise(batch, epsilon), rounds // batch
    spread = ftpl_spread(arms, noise)
    rate = math.sqrt(leader / (count * arms * spread.value))
    repeats = math.floor(spread.theta / (rate * noise))
    if repeats < 1:
        raise InputError(f"{rounds} rounds are too few: it could not repeat even one draw.")
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
        {"learning_rate": rate, "resamples": float(repeats), "noise": noise},
    )


def one_bit_exp3(arms: int, rounds: int, epsilon: float, batch: int | None = None) -> Bound:
    """EXP3 without mixing on released bits: ``(tau/s) sqrt((1 + s) n K log K) + tau``."""
    check_problem(arms, rounds, epsilon)

    def learning(size: int) -> float:
        price = one_bit_price(size, epsilon)
        return price * math.sqrt((1.0 + size / price) * (rounds // size) * arms * math.log(arms))

    if batch is None:
        batch = best_batch(lambda size: learning(size) + size, rounds)
    checks.whole("batch", batch, 1, rounds)
    slope = batch / one_bit_price(batch, epsilon)
    rate = math.sqrt(4.0 * math.log(arms) / ((rounds // batch) * arms * (1.0 + slope)))
    return Bound(
        f"one-bit conversion of EXP3 ({PROOF})",
        {"(tau/s) sqrt((1 + s) n K log K)": learning(batch), "tau": float(batch)},
        batch,
        {"learning_rate": rate},
    )


class Spread(NamedTuple):
    """A constant of a bound, and the share of the noise's range that makes it smallest."""

    value: float
    theta: float


def noisy_spread(noise: float) -> Spread:
    """Return ``C(lam)``, the least ``(1/2 + lam^2) / (1 - theta^2) + lam / theta``."""
    # The minimum is where theta^3 = m (1 - theta^2)^2. Newton's method comes down to it from
    # m^(1/3) without overshooting, and any theta below 1 would do.
    m = noise / (1.0 + 2.0 * noise**2)
    theta = m ** (1.0 / 3.0)
    for _ in range(5):
        gap = 1.0 - theta**2
        theta -= (theta**3 - m * gap**2) / (3.0 * theta**2 + 4.0 * m * theta * gap)
    return Spread((0.5 + noise**2) / (1.0 - theta**2) + noise / theta, theta)


class WeightTerms(NamedTuple):
    """What exponential weights on noisy losses pay for."""

    choices: float
    variance: float
    mixing: float


def noisy_weights(
    choices: float, arms: int, losses: int, noise: float
) -> tuple[WeightTerms, dict[str, float]]:
    """Bound the regret of EXP3 and EXP4 on losses with Laplace noise, and say how to run them.

    ``choices`` is the logarithm of how many arms or experts the best is sought among.
    """
    spread = noisy_spread(noise)
    rate = math.sqrt(choices / (losses * arms * spread.value))
    mixing = rate * noise * arms / spread.theta
    if mixing > 1.0:
        raise InputError(f"{losses} losses are too few: its mixing would be above 1.")
    variance = rate * losses * arms * (0.5 + noise**2) / (1.0 - spread.theta**2)
    settings = {"learning_rate": rate, "mixing": mixing, "noise": noise}
    return WeightTerms(choices / rate, variance, mixing * losses), settings


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


def _noise(batch: int, epsilon: float) -> float:
    return 1.0 / (batch * epsilon)

"""The parameters the paper's corollaries and prior work prescribe, with the range they hold in.

Every function refuses a horizon that is too short for its formula and names the smallest that
works. ``rounds`` is T, ``arms`` is K. Where the paper asks for epsilon <= 1 a larger one is
allowed, with the formula at 1: the batch is then 1 and the noise only smaller than the formula
assumes, so its proof still holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from bandanna.types import InputError


class Exp3Parameters(NamedTuple):
    """What EXP3 with mixing needs."""

    learning_rate: float
    mixing: float


class FtplParameters(NamedTuple):
    """What FTPL with geometric resampling needs."""

    learning_rate: float
    resamples: int


def paper_batch(epsilon: float) -> int:
    """Return the batch of all the paper's corollaries, ceil(1 / epsilon)."""
    return math.ceil(1.0 / epsilon)


def check_one_batch(algorithm: str, rounds: int, epsilon: float) -> None:
    """Refuse a horizon in which not even one batch ends; the corollaries ask for 1/epsilon."""
    smallest = paper_batch(epsilon)
    if rounds < smallest:
        raise InputError(
            f"{algorithm} needs at least 1/epsilon rounds: with epsilon {epsilon:g} a batch has "
            f"{smallest} and rounds is {rounds}. The smallest rounds that works is {smallest}."
        )


def exp3_corollary(arms: int, rounds: int, epsilon: float) -> Exp3Parameters:
    """Corollary "EXP3 Conversion".

    ``learning_rate = sqrt(log K / (22 eps K T log(eps K T)^2))`` and
    ``mixing = 4 learning_rate K log(eps K T)``, at most 1 from ``eps T >= 16/22 K log K`` on.
    """
    epsilon = min(epsilon, 1.0)

    def mixing_at(horizon: int) -> float:
        # The logarithm cancels, so this is finite even where the learning rate is not.
        return 4.0 * arms * math.sqrt(math.log(arms) / (22.0 * epsilon * arms * horizon))

    def works(horizon: int) -> bool:
        return epsilon * arms * horizon > 1.0 and mixing_at(horizon) <= 1.0

    require_horizon(
        "exp3", "its mixing would be above 1", rounds, works, problem=_problem(arms, epsilon)
    )
    log_term = math.log(epsilon * arms * rounds)
    mixing = mixing_at(rounds)
    return Exp3Parameters(mixing / (4.0 * arms * log_term), mixing)


def ftpl_corollary(arms: int, rounds: int, epsilon: float) -> FtplParameters:
    """Corollary "FTPL Conversion", with the number of resamples rounded up."""
    epsilon = min(epsilon, 1.0)

    def works(horizon: int) -> bool:
        return epsilon * horizon > 1.0

    require_horizon(
        "ftpl", "log(epsilon T) must be above 0", rounds, works, problem=_problem(arms, epsilon)
    )
    return noisy_ftpl(arms, epsilon * rounds, noise=1.0)


def local_exp3(arms: int, rounds: int, epsilon: float) -> Exp3Parameters:
    """Agarwal and Singh 2017, Theorem 4.1, with the mixing that their proof needs."""
    noise = 1.0 / epsilon

    def at(horizon: int) -> Exp3Parameters:
        log_term = math.log(arms * horizon)
        spread = 1.0 + 2.0 * noise**2 * log_term**2
        rate = math.sqrt(math.log(arms) / (2.0 * arms * horizon * spread))
        return Exp3Parameters(rate, rate * arms * (1.0 + 4.0 * noise * log_term))

    def works(horizon: int) -> bool:
        return at(horizon).mixing <= 1.0

    require_horizon(
        "ldp-exp3", "its mixing would be above 1", rounds, works, problem=_problem(arms, epsilon)
    )
    return at(rounds)


def clipped_exp3(arms: int, rounds: int, epsilon: float) -> tuple[float, float]:
    """DP-EXP3-Lap (Tossou, Dimitrakakis 2017): the mixing of EXP3 for gains, and the clip."""

    def works(horizon: int) -> bool:
        return horizon >= 2

    require_horizon(
        "dp-exp3-lap", "log(T) must be above 0", rounds, works, problem=_problem(arms, epsilon)
    )
    mixing = min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1.0) * rounds)))
    return mixing, math.log(rounds) / epsilon


def bounded_exp3(arms: int, losses: int) -> Exp3Parameters:
    """Return what suits EXP3 on a number of losses in [0, 1]: no mixing is needed."""
    return Exp3Parameters(math.sqrt(2.0 * math.log(arms) / (arms * losses)), 0.0)


def noisy_exp3(arms: int, losses: int, noise: float) -> Exp3Parameters:
    """Return the paper's EXP3 parameters for any number of losses and any noise scale.

    From the proof of Corollary "EXP3 Conversion", before it sets noise to 1.
    """
    log_term = math.log(arms * losses)
    spread = 1.0 + 10.0 * max(noise, noise**2) * log_term**2
    rate = math.sqrt(math.log(arms) / (2.0 * losses * arms * spread))
    return Exp3Parameters(rate, min(1.0, 4.0 * rate * noise * arms * log_term))


def noisy_ftpl(arms: int, losses: float, noise: float) -> FtplParameters:
    """Return the paper's FTPL parameters for any number of losses and noise (its Lemma)."""
    size = arms * losses
    resamples = math.sqrt(size)
    return FtplParameters(
        learning_rate=min(
            math.sqrt(math.log(arms) / (size + 10.0 * size * (noise * math.log(size)) ** 2)),
            1.0 / (resamples * (1.0 + 4.0 * noise * math.log(losses))),
        ),
        resamples=math.ceil(resamples),
    )


def _problem(arms: int, epsilon: float) -> str:
    return f"{arms} arms and epsilon {epsilon:g}"


def require_horizon(
    algorithm: str, reason: str, rounds: int, works: Callable[[int], bool], *, problem: str
) -> None:
    """Refuse a horizon for which a formula does not work; ``works`` must be monotone."""
    if works(rounds):
        return
    high = max(rounds, 1)
    while not works(high):
        high *= 2
    low = max(rounds, 1)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    raise InputError(
        f"{algorithm} does not work for {rounds} rounds with {problem}: {reason}. "
        f"The smallest rounds that works is {high}."
    )

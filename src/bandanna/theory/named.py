"""Learners by name, tuned to the number of releases they will see and their noise."""

from __future__ import annotations

import math
from collections.abc import Callable

from bandanna._core.types import JSON, InputError
from bandanna.problem import Problem
from bandanna.theory.tuning import laplace_noise, learner


def exp3_spread(noise: float, log_term: float) -> float:
    """Return the paper's bound on the second moment of noisy losses, for its EXP3."""
    return 1.0 + 10.0 * max(noise, noise**2) * log_term**2


def noisy_exp3(arms: int, losses: int, noise: float) -> JSON:
    """Return the paper's EXP3 for any number of losses and noise; without noise, no mixing.

    From the proof of Corollary "EXP3 Conversion", before it sets noise to 1.
    """
    if not noise:
        rate = math.sqrt(2.0 * math.log(arms) / (arms * losses))
        return learner("exp3", arms, learning_rate=rate, mixing=0.0)
    log_term = math.log(arms * losses)
    rate = math.sqrt(math.log(arms) / (2.0 * losses * arms * exp3_spread(noise, log_term)))
    mixing = min(1.0, 4.0 * rate * noise * arms * log_term)
    return learner("exp3", arms, learning_rate=rate, mixing=mixing)


def noisy_ftpl(arms: int, losses: float, noise: float) -> JSON:
    """Return the paper's FTPL for any number of losses and noise (its Lemma)."""
    size = arms * losses
    resamples = math.sqrt(size)
    rate = min(
        math.sqrt(math.log(arms) / (size + 10.0 * size * (noise * math.log(size)) ** 2)),
        1.0 / (resamples * (1.0 + 4.0 * noise * math.log(losses))),
    )
    return learner("ftpl", arms, learning_rate=rate, resamples=math.ceil(resamples))


LEARNERS_BY_NAME: dict[str, Callable[[int, Callable[[], int], float], JSON]] = {
    "tsallis-inf": lambda arms, losses, noise: learner("tsallis-inf", arms),
    "tsallis-inf-iw": lambda arms, losses, noise: {
        **learner("tsallis-inf", arms),
        "estimator": "importance-weighted",
    },
    "htinf": lambda arms, losses, noise: learner(
        "htinf", arms, sigma=math.sqrt(1.0 + 2.0 * noise**2)
    ),
    "exp3": lambda arms, losses, noise: noisy_exp3(arms, losses(), noise),
    "ftpl": lambda arms, losses, noise: noisy_ftpl(arms, losses(), noise),
    "adaptive": lambda arms, losses, noise: learner("adaptive", arms),
    "kl-ucb": lambda arms, losses, noise: learner("kl-ucb", arms),
    "thompson": lambda arms, losses, noise: learner("thompson", arms),
    "uniform": lambda arms, losses, noise: learner("uniform", arms),
}
"""For a number of arms, of losses where it must be known, and the scale of their Laplace noise."""


def named_learner(name: str, problem: Problem, through: JSON) -> JSON:
    """Tune a learner to a release."""
    if name not in LEARNERS_BY_NAME:
        known = ", ".join(LEARNERS_BY_NAME)
        raise InputError(f"unknown learner {name!r}; there are {known}.")
    batch = int(through["batch"])

    def losses() -> int:
        return max(1, problem.horizon(name, instead="tsallis-inf or htinf") // batch)

    noise = laplace_noise(batch, through["epsilon"]) if through["name"] == "laplace" else 0.0
    return LEARNERS_BY_NAME[name](problem.arms, losses, noise)

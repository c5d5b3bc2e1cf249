"""Parts of a tuning: learners and releases by name, and what every formula asks of a horizon.

Where the paper asks for epsilon <= 1 a larger one is allowed, with the formula at 1: the batch is
then 1 and the noise only smaller than the formula assumes, so its proof still holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.types import JSON, InputError
from bandanna.problem import Problem

PAPER = "Asi, Raman, Talwar"
PROOF = "docs/theory/tight-constants.md"


class Tuning(NamedTuple):
    """What an algorithm runs with: its parts by name and parameters, as ``to_dict`` has them.

    Plain values, so that planning loads no compiled code; ``policies.recipe`` makes the objects.
    """

    learner: JSON
    release: JSON


class TooFewRoundsError(InputError):
    """The horizon is too short for a tuning; ``Algorithm.tuned`` says how long is enough."""


def learner(name: str, arms: int, **parameters: float) -> JSON:
    """Name a learner and its parameters."""
    return {"name": name, "arms": arms, **parameters}


def release(name: str, problem: Problem, batch: int) -> JSON:
    """Name a release of one number for each batch."""
    private = {} if name == "plain" else {"epsilon": problem.epsilon}
    return {"name": name, **private, "batch": batch}


def paper_batch(epsilon: float) -> int:
    """Return the batch of all the paper's corollaries, ceil(1 / epsilon)."""
    return math.ceil(1.0 / epsilon)


def laplace_noise(batch: float, epsilon: float) -> float:
    """Return the scale of the Laplace noise on the mean of a batch."""
    return 1.0 / (batch * epsilon)


def checked_batch(batch: int, problem: Problem) -> int:
    """Require a batch that ends within the rounds."""
    return checks.whole("batch", batch, 1, problem.rounds or 10**18)


def check_epsilon(problem: Problem, largest: float = 1.0) -> None:
    """Refuse an epsilon that a statement is not about."""
    if problem.epsilon > largest:
        raise InputError(f"stated for epsilon up to {largest:g}; got {problem.epsilon:g}.")


def check_one_batch(name: str, problem: Problem) -> None:
    """Refuse a horizon in which not even one batch ends; the corollaries ask for 1/epsilon."""
    smallest = paper_batch(problem.epsilon)
    if problem.rounds is not None and problem.rounds < smallest:
        raise InputError(
            f"{name} needs at least 1/epsilon rounds: with epsilon {problem.epsilon:g} a batch has "
            f"{smallest} and rounds is {problem.rounds}. The smallest rounds that works is "
            f"{smallest}."
        )


def require_horizon(name: str, reason: str, problem: Problem, works: Callable[[int], bool]) -> None:
    """Refuse a horizon for which a formula does not work; ``works`` must be monotone."""
    rounds = problem.horizon(name)
    if works(rounds):
        return
    high = max(rounds, 1)
    while not works(high):
        high *= 2
    low = max(rounds, 1)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    parts = [f"{problem.arms} arms"]
    if problem.advised:
        parts.append(f"{problem.experts} experts")
    parts.append(f"epsilon {problem.epsilon:g}")
    if problem.delta:
        parts.append(f"delta {problem.delta:g}")
    raise InputError(
        f"{name} does not work for {rounds} rounds with {', '.join(parts[:-1])} and {parts[-1]}: "
        f"{reason}. The smallest rounds that works is {high}."
    )

"""Regret bounds of the adaptive learner, and how to run it behind Laplace batches.

Proofs and tuning: ``docs/theory/adaptive.md``. Regret of the learner is in units of a loss; behind
batches of ``tau`` rounds it is multiplied by ``tau``, and ``tau`` is added for the last batch.
"""

from __future__ import annotations

import math

from bandanna._core.types import InputError
from bandanna.problem import Problem
from bandanna.theory.tuning import Bound, Tuning, checked_batch, laplace_noise, learner, release

BEARABLE = 0.9
COSTLIEST = 2.55
"""No step costs more than this times its surprise: ``0.9 H(0.9) / 2``."""
STEPS, GROWTH = 60, 1.25


def adaptive_regret(
    arms: int,
    losses: int,
    noise: float,
    memory: float | None = None,
    first_rate: float = 0.5,
    clamp: float = 0.5,
    doubts: float = 0.3,
) -> float:
    """Bound the regret before anything was met: every surprise as large as can be.

    ``noise`` is the scale of the Laplace noise on a loss. The last two terms are what is cut off.

    Examples
    --------
    >>> round(adaptive_regret(arms=10, losses=10**6, noise=0.1) / 10**6, 3)
    0.157
    """
    horizon = float(losses)
    fading = doubts * math.log(losses)
    if memory is not None:
        horizon = min(horizon, memory / (1.0 - 0.25 / memory))
        fading += losses / memory
    g = max(math.log(min(float(losses), memory or math.inf)), 1.0)
    spread = (1.0 + 2.0 * noise**2) * horizon / arms
    rate = _largest_rate(spread / g, first_rate, 1.0 + clamp, g)
    penalty = math.log(losses * arms) * (arms - 1) * rate * (1.0 + fading)
    cost = g * arms * (rate - first_rate) * (1.0 + fading / 2.0)
    cut = 0.5 * noise * losses * (1.0 + math.exp(-clamp / noise)) if noise > 0.0 else 0.0
    return penalty + cost + cut + 1.0


def _largest_rate(spread: float, first_rate: float, largest: float, g: float) -> float:
    """Return the least bound on a rate after surprises of that sum of squares, over ``g``.

    Above a rate ``r`` its square grows by at most ``H(largest / r)`` times a surprise's; below,
    it is not above ``r`` and a step. Every ``r`` gives a bound.
    """
    one_step = COSTLIEST * largest / g
    most = math.inf
    for k in range(STEPS):
        rate = first_rate + largest * GROWTH**k
        higher = _higher_orders(min(BEARABLE, largest / rate))
        start = rate - first_rate + one_step
        most = min(most, math.sqrt(start**2 + higher * spread) + one_step)
    low = math.sqrt(_higher_orders(BEARABLE) * spread) + one_step
    return first_rate + min(most, low)


def _higher_orders(u: float) -> float:
    return 1.0 + 2.0 / 3.0 * u + 0.5 * u * u / (1.0 - u)


# --- how to run it --------------------------------------------------------------------------


def adaptive_batch(epsilon: float, rounds: int | None = None) -> int:
    """Return the batch: ``m sqrt(8) / epsilon``, m from 1.5 for short runs to 2.5 for long ones.

    Examples
    --------
    >>> adaptive_batch(0.1, 1_000_000), adaptive_batch(1.0, 2_000), adaptive_batch(0.1)
    (71, 4, 71)
    """
    short = math.sqrt(8.0) / epsilon
    multiple = 2.5
    if rounds is not None:
        multiple = min(max(1.5 * (rounds / short / 1000.0) ** 0.18, 1.5), 2.5)
    batch = max(1, round(multiple * short))
    return batch if rounds is None else min(batch, rounds)


def adaptive_memory(epsilon: float, rounds: int, changes: int | None = None) -> float:
    """Return how many rounds to remember: as many as there are, more in a short run.

    Where the world changes a known number of times, a third of what lies between changes.
    """
    if changes:
        return rounds / (3.0 * changes)
    return rounds / min(1.0, rounds * epsilon / math.sqrt(8.0) / 2500.0)


def adaptive(problem: Problem, batch: int | None = None) -> Tuning:
    """Run it on Laplace batches; with the rounds it chooses better ones, and what to remember."""
    rounds, epsilon = problem.rounds, problem.epsilon
    if batch is None:
        batch = adaptive_batch(epsilon, rounds)
    memory: float | None = problem.memory
    numbers: dict[str, float] = {}
    if rounds is not None:
        numbers["losses"] = rounds // checked_batch(batch, problem)
        memory = memory or adaptive_memory(epsilon, rounds, problem.changes)
    elif problem.changes is not None:
        raise InputError("changes= are so many in rounds=: give both, or give memory=.")
    if memory is not None:
        numbers["memory"] = max(memory / batch, 1.0)
    return Tuning(learner("adaptive", problem.arms, **numbers), release("laplace", problem, batch))


def adaptive_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Bound it before anything is met; ``policy.regret_bound`` knows what was."""
    arms, _, epsilon = problem.size
    parts = adaptive(problem, batch)
    size, found = int(parts.release["batch"]), parts.learner
    noise = laplace_noise(size, epsilon)
    learning = adaptive_regret(arms, found["losses"], noise, found["memory"])
    return Bound(
        "adaptive learner behind Laplace batches (docs/theory/adaptive.md)",
        {"tau R(n, K)": size * learning, "tau": float(size)},
        size,
        {"memory": found["memory"] * size},
    )

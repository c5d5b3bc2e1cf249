"""Regret bounds of the adaptive learner, and how to run it behind Laplace batches.

Proofs: ``docs/theory/adaptive.md``. Regret of the learner is in units of a loss; behind
batches of ``tau`` rounds it is multiplied by ``tau``, and ``tau`` is added for the last batch.
"""

from __future__ import annotations

import math

from bandanna._core.types import UNITS, InputError
from bandanna.spec import Problem
from bandanna.theory.centred import centred_regret, smallest_guarantee
from bandanna.theory.tuning import Bound, Tuning, checked_batch, learner, release

BEARABLE = 0.9
COSTLIEST = 2.55
"""No step costs more than this times its surprise: ``0.9 H(0.9) / 2``."""
STEPS, GROWTH = 60, 1.25
FIRST_RATE = 0.6
CUT = 0.7
"""How much noise may be cut from losses: see ``bandanna.learners.adaptive``."""
LARGEST_CLAMP = 1e6
"""Losses are cut no further out: there noise is all that is left."""
PROMISE = 3.0
"""With the net, regret is at most this times the smallest guarantee known."""


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
    0.162
    """
    horizon = float(losses)
    fading = doubts * math.log(losses)
    if memory is not None:
        horizon = min(horizon, memory / (1.0 - 0.25 / memory))
        fading += losses / memory
    g = max(math.log(min(float(losses), memory or math.inf)), 1.0)
    spread = (1.0 + 2.0 * noise**2) * horizon / (arms - 1)
    rate = _largest_rate(spread / g, first_rate, 1.0 + clamp, g)
    choices = math.log(losses * arms) + 1.0 / max(losses - 1, 1)
    penalty = choices * (arms - 1) * rate * (1.0 + fading)
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
    noise = released_noise(batch, epsilon)
    numbers: dict[str, float] = {"first_rate": FIRST_RATE, "noise": noise}
    if rounds is not None:
        losses = rounds // checked_batch(batch, problem)
        numbers |= {"losses": losses, "clamp": adaptive_clamp(problem.arms, losses, noise)}
        memory = memory or adaptive_memory(epsilon, rounds, problem.changes)
        promised = adaptive_promise(problem, batch)
        if promised is not None and memory >= rounds:
            numbers["budget"] = promised / batch
    elif problem.changes is not None:
        raise InputError("changes= is counted over the run: give rounds=, too, or give memory=.")
    if memory is not None:
        numbers["memory"] = max(memory / batch, 1.0)
    return Tuning(learner("adaptive", problem.arms, **numbers), release("laplace", problem, batch))


def adaptive_clamp(arms: int, losses: int, noise: float) -> float:
    """Return how far outside [0, 1] losses are cut: further in longer runs."""
    allowed = 2.0 * CUT * math.sqrt(0.5 * arms * math.log(arms))
    scales = math.log(max(math.sqrt(losses) * noise / allowed, 1.0))
    return min(max(0.5, noise * (max(scales, 1.0) + 1.0)), LARGEST_CLAMP)


def adaptive_promise(problem: Problem, batch: int) -> float | None:
    """Return what the net keeps: ``PROMISE`` times the smallest guarantee; None without a net.

    There is no net where it would promise no more than choosing at random does, where the batch is
    so long or short that centred EXP3 on it cannot keep the promise, nor with a memory shorter than
    the run: each time the learner forgets, its bound starts again.
    """
    arms, rounds, epsilon = problem.size
    promised = PROMISE * smallest_guarantee(arms, rounds, epsilon)
    if promised >= (1.0 - 1.0 / arms) * rounds or promised < net_regret(problem, batch):
        return None
    return promised


def net_regret(problem: Problem, batch: int) -> float:
    """Bound what centred EXP3 loses on the same releases, if it plays all of the run."""
    arms, rounds, epsilon = problem.size
    price = 1.0 + 2.0 * released_noise(batch, epsilon)
    return batch * (price * centred_regret(math.log(arms), rounds // batch, arms) + 1.0)


def released_noise(batch: int, epsilon: float) -> float:
    """Return the scale of the noise on a batch's mean, as if it were continuous.

    The noise is a whole number of grid units; this makes ``within_unit`` of ``learners.net`` exact
    for it. It is larger than ``1 / (batch epsilon)`` by about one part in two million over epsilon.
    """
    return -1.0 / (batch * UNITS * math.expm1(-epsilon / UNITS))


def adaptive_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Bound it before anything is met; ``policy.regret_bound`` knows what was."""
    arms, _, _ = problem.size
    parts = adaptive(problem, batch)
    size, learner = int(parts.release["batch"]), parts.learner
    settings = {"memory": learner["memory"] * size}
    if "budget" in learner:
        return Bound(
            "adaptive learner with a net under it (docs/theory/adaptive.md)",
            {f"{PROMISE:g} times the smallest guarantee": learner["budget"] * size},
            size,
            settings,
        )
    shape = learner["memory"], FIRST_RATE, learner["clamp"]
    learning = adaptive_regret(arms, learner["losses"], learner["noise"], *shape)
    return Bound(
        "adaptive learner behind Laplace batches (docs/theory/adaptive.md)",
        {"tau R(n, K)": size * learning, "tau": float(size)},
        size,
        settings,
    )

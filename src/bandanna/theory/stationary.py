"""When losses are stationary: what any private policy must pay, and how DP-KLUCB is run.

Proofs: ``docs/theory/stationary.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bandanna._core import checks
from bandanna._core.types import JSON, InputError
from bandanna.spec import Problem
from bandanna.theory.tuning import Tuning, growing_release

LONGEST = checks.MAX_ROUNDS
"""No batch is longer."""


def stationary_lower_bound(means: Sequence[float], rounds: int, epsilon: float) -> float:
    """Return ``sum_i (mu_i - mu*) ln T / d(mu_i, mu*)``: the least regret for long horizons.

    For Bernoulli losses with these means and any epsilon-private policy that is good on all such
    problems. It is a statement about long runs; short ones can have less regret. An infinite
    epsilon gives the bound without privacy.

    Examples
    --------
    >>> round(stationary_lower_bound([0.45] + 9 * [0.55], 1_000_000, epsilon=0.1))
    1420
    """
    best = min(means)
    total = math.fsum(
        (mean - best) / loss_divergence(mean, best, epsilon) for mean in means if mean > best
    )
    return total * math.log(rounds)


def stationary_least_plays(means: Sequence[float], rounds: int, epsilon: float) -> float:
    """Return how many plays of worse arms the lower bound counts: ``sum_i ln T / d(mu_i, mu*)``.

    Where that is not small against the rounds, the bound says nothing about them.

    Examples
    --------
    >>> round(stationary_least_plays([0.45] + 9 * [0.55], 1_000_000, epsilon=0.1))
    14196
    """
    best = min(means)
    total = math.fsum(1.0 / loss_divergence(mean, best, epsilon) for mean in means if mean > best)
    return total * math.log(rounds)


def loss_divergence(worse: float, best: float, epsilon: float) -> float:
    """Return ``d``: how well an epsilon-private policy can tell a mean loss from a smaller one.

    ``min over z of epsilon |z - x| + kl(z, y)`` for mean rewards ``x = 1 - worse`` and
    ``y = 1 - best``.
    """
    x, y = 1.0 - worse, 1.0 - best
    if y <= x:
        return 0.0
    e = math.exp(-epsilon)
    if y * e / (1.0 - y + y * e) <= x:
        return _kl(x, y)
    return -epsilon * x - math.log1p(y * math.expm1(-epsilon))


def _kl(x: float, y: float) -> float:
    total = 0.0
    for p, q in ((x, y), (1.0 - x, 1.0 - y)):
        if p > 0.0:
            total += p * math.log(p / q) if q > 0.0 else math.inf
    return total


RACE = "race"
OPENING, LEAST_OPENING = 30.0, 80
"""An arm's first batch has so many rounds over epsilon, and at least so many."""


def race_opening(epsilon: float) -> int:
    """Return how many rounds an arm's first batch has in a race, if there are rounds enough."""
    return math.ceil(max(OPENING / epsilon, LEAST_OPENING))


def race(
    problem: Problem,
    batch: int | None = None,
    *,
    confidence: float = 0.95,
    tolerance: float = 0.0,
    evidence: str = "squares",
    opening: int | None = None,
) -> Tuning:
    """The race for the best arm on Laplace batches that grow; ``opening`` is the first of an arm.

    With few rounds it is shorter, and 2 / epsilon at least.
    """
    least, first = math.ceil(2.0 / problem.epsilon), race_opening(problem.epsilon)
    if problem.rounds is not None:
        first = max(least, min(first, problem.rounds // (8 * problem.arms)))
    first = min(opening or first, LONGEST)
    asked = {"confidence": confidence, "tolerance": tolerance, "evidence": evidence}
    return _growing(RACE, problem, first, {**asked, "opening": first})


def dp_klucb(problem: Problem, batch: int | None = None, *, guard: bool = True) -> Tuning:
    """DP-KLUCB on Laplace batches whose sizes grow; the first of an arm has ``2 / epsilon``.

    Without the guard it is as it was published: it begins with single rounds, and no squares are
    released.
    """
    first = math.ceil(2.0 / problem.epsilon) if guard else 1
    return _growing("dp-klucb", problem, first, {"guard": guard}, squares=guard)


def _growing(
    name: str, problem: Problem, first: int, asked: JSON, *, squares: bool = True
) -> Tuning:
    """Name a learner whose batches grow from a first one, and its release."""
    if problem.rounds is not None and problem.rounds < first:
        raise InputError(
            f"{name} begins with batches of {first} and rounds is {problem.rounds}. The smallest "
            f"rounds that works is {first}."
        )
    size = {"arms": problem.arms, "epsilon": problem.epsilon, "rounds": problem.rounds}
    return Tuning({"name": name, **size, **asked}, growing_release(problem, first, squares=squares))

"""Policies by name, for whoever compares them: every private algorithm, and the two ends."""

from __future__ import annotations

from bandanna.policies.bandit import Bandit, PrivateBandit
from bandanna.policies.batched import BatchedBandit
from bandanna.policies.recipe import ALGORITHMS
from bandanna.types import InputError

NO_PRIVACY, UNIFORM = "no-privacy", "uniform"
WITHOUT_EPSILON = (NO_PRIVACY, UNIFORM)
CONTESTANTS = (*ALGORITHMS, *WITHOUT_EPSILON)


def make_policy(
    name: str, arms: int, epsilon: float | None, rounds: int, batch: int | None = None
) -> BatchedBandit:
    """Make a policy by name; ``batch`` replaces the algorithm's own.

    Examples
    --------
    >>> make_policy("htinf", arms=3, epsilon=0.5, rounds=1000).batch
    2
    """
    if name not in CONTESTANTS:
        raise InputError(f"unknown algorithm {name!r}; there are {', '.join(CONTESTANTS)}.")
    if name in WITHOUT_EPSILON:
        learner = "tsallis-inf" if name == NO_PRIVACY else "uniform"
        return Bandit(arms, learner, batch=1 if batch is None else batch)
    if epsilon is None:
        raise InputError(f"algorithm {name!r} is private and needs an epsilon, such as 0.1.")
    return PrivateBandit(arms, epsilon, rounds, name, batch=batch)

"""Policies by name, for whoever compares them: every private algorithm, and the two ends."""

from __future__ import annotations

from bandanna.policies.bandit import Bandit, PrivateBandit
from bandanna.policies.expert_recipe import EXPERT_ALGORITHMS
from bandanna.policies.experts import Experts, PrivateExperts
from bandanna.policies.policy import Policy
from bandanna.policies.recipe import ALGORITHMS
from bandanna.types import InputError

NO_PRIVACY, UNIFORM, RANDOM_EXPERT = "no-privacy", "uniform", "random-expert"
WITHOUT_EPSILON = (NO_PRIVACY, UNIFORM, RANDOM_EXPERT)
CONTESTANTS = (*ALGORITHMS, NO_PRIVACY, UNIFORM)
EXPERT_CONTESTANTS = ("auto", *EXPERT_ALGORITHMS, *WITHOUT_EPSILON)


def make_policy(
    name: str, arms: int, epsilon: float | None, rounds: int, batch: int | None = None
) -> Policy:
    """Make a policy by name; ``batch`` replaces the algorithm's own.

    Examples
    --------
    >>> make_policy("htinf", arms=3, epsilon=0.5, rounds=1000).batch
    2
    """
    if name not in CONTESTANTS:
        raise InputError(f"unknown algorithm {name!r}; there are {', '.join(CONTESTANTS)}.")
    if name in (NO_PRIVACY, UNIFORM):
        learner = "tsallis-inf" if name == NO_PRIVACY else "uniform"
        return Bandit(arms, learner, batch=1 if batch is None else batch)
    if epsilon is None:
        raise InputError(f"algorithm {name!r} is private and needs an epsilon, such as 0.1.")
    return PrivateBandit(arms, epsilon, rounds, name, batch=batch)


def make_expert_policy(
    name: str,
    experts: int,
    arms: int,
    epsilon: float | None,
    delta: float,
    rounds: int,
    batch: int | None = None,
) -> Policy:
    """Make a policy with experts by name; ``batch`` replaces a conversion's own.

    Examples
    --------
    >>> make_expert_policy("auto", 3, 2, epsilon=0.5, delta=0.0, rounds=1000).algorithm
    'one-bit-exp4'
    """
    if name not in EXPERT_CONTESTANTS:
        known = ", ".join(EXPERT_CONTESTANTS)
        raise InputError(f"unknown algorithm with experts {name!r}; there are {known}.")
    if name in WITHOUT_EPSILON:
        if batch not in (None, 1):
            raise InputError(f"{name} with experts learns every round; got batch {batch}.")
        return Experts(experts, arms, rounds, "exp4" if name == NO_PRIVACY else name)
    if epsilon is None:
        raise InputError(f"algorithm {name!r} is private and needs an epsilon, such as 0.1.")
    return PrivateExperts(experts, arms, epsilon, delta, rounds, name, batch=batch)

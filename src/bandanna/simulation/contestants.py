"""Policies by name, for whoever compares them: every algorithm of the catalogue, and two more.

``auto`` is the smallest guarantee with experts; ``best-expert`` follows the expert who is best in
hindsight, and so needs the environment.
"""

from __future__ import annotations

import math

from bandanna.environments import Environment, ExpertEnvironment
from bandanna.grid import LossRange
from bandanna.learners import FixedArm
from bandanna.policies import Bandit, Experts, Policy, PrivateBandit, PrivateExperts
from bandanna.problem import Problem
from bandanna.simulation.comparators import best_expert
from bandanna.theory.catalogue import AUTO, find
from bandanna.types import InputError

BEST_EXPERT = "best-expert"


def make_policy(
    name: str,
    problem: Problem,
    batch: int | None = None,
    loss_range: LossRange = (0.0, 1.0),
    per_person: int | None = None,
) -> Policy:
    """Make a policy by name; ``batch`` replaces the algorithm's own.

    With ``per_person`` a private one protects persons, who have so many places each.

    Examples
    --------
    >>> make_policy("htinf", Problem(arms=3, rounds=1000, epsilon=0.5)).batch
    2
    >>> make_policy("auto", Problem(arms=2, rounds=1000, epsilon=0.5, experts=3)).algorithm
    'one-bit-exp4'
    """
    arms, rounds, experts = problem.arms, problem.rounds, problem.experts
    entry = None if problem.advised and name == AUTO else find(name, advised=problem.advised)
    if entry is not None and not entry.private:
        if experts is None:
            return Bandit(arms, entry.learner, rounds, batch=batch or 1, loss_range=loss_range)
        if batch not in (None, 1):
            raise InputError(f"{name} with experts learns every round; got batch {batch}.")
        learner = "exp4" if name == "no-privacy" else name
        return Experts(experts, arms, rounds, learner, loss_range=loss_range)
    if problem.epsilon == math.inf:
        raise InputError(f"algorithm {name!r} is private and needs an epsilon, such as 0.1.")
    if experts is None:
        bandit = arms, problem.epsilon, rounds
        return PrivateBandit(
            *(*bandit, name),
            batch=batch,
            loss_range=loss_range,
            delay=problem.delay,
            changes=problem.changes,
            memory=problem.memory,
            per_person=per_person,
            delta=0.0 if per_person is None else problem.delta,
        )
    return PrivateExperts(
        *(experts, arms, problem.epsilon, problem.delta, rounds, name),
        batch=batch,
        loss_range=loss_range,
        delay=problem.delay,
        changes=problem.changes,
        memory=problem.memory,
        per_person=per_person,
    )


def make_contestant(
    name: str,
    environment: Environment | ExpertEnvironment,
    epsilon: float,
    delta: float = 0.0,
    per_person: int | None = None,
) -> Policy:
    """Make a policy by name for an environment, ``best-expert`` among them."""
    experts = environment.experts if isinstance(environment, ExpertEnvironment) else None
    if name == BEST_EXPERT and isinstance(environment, ExpertEnvironment):
        best = FixedArm(environment.experts, best_expert(environment))
        return Experts(environment.experts, environment.arms, learner=best)
    size = environment.arms, environment.rounds, epsilon
    problem, loss_range = Problem(*size, experts, delta), environment.loss_range
    return make_policy(name, problem, loss_range=loss_range, per_person=per_person)

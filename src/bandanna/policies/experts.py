"""The policies a person holds who has experts: private, and plain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from bandanna._core import checks
from bandanna._core.types import ArmName
from bandanna.algorithms import AUTO, check_changes, find
from bandanna.learners import Learner
from bandanna.planner.plan import place_problem
from bandanna.policies.choosing import choose_algorithm, within_people
from bandanna.policies.inputs import arm_names, check_experts, checked_learner, required_learner
from bandanna.policies.people import check_rule
from bandanna.policies.policy import Policy
from bandanna.policies.recipe import (
    NOTHING,
    Replaced,
    plain_recipe,
    private_recipe,
)
from bandanna.privacy import Release
from bandanna.problem import Problem


class PrivateExperts(Policy):
    """Choose among arms by experts' advice without revealing anyone's feedback.

    Parameters
    ----------
    experts
        Number of experts N.
    arms
        How many arms, or their names.
    epsilon, delta
        The privacy parameters. Only ``batched-exp4`` and ``calibrated-exp4`` use delta.
    rounds
        How many decisions are expected. Needed by all but ``one-bit-conversion`` and
        ``htinf-conversion``.
    algorithm
        ``auto`` (default) takes the smallest guaranteed regret; ``policy.why`` says which and
        why. Conversions treat each expert as an arm: ``one-bit-conversion``,
        ``one-bit-exp3-conversion``, ``adaptive-conversion``, ``tracking-conversion``,
        ``htinf-conversion``, ``exp3-conversion``, ``ftpl-conversion``. EXP4 weighs them:
        ``one-bit-exp4``, ``calibrated-exp4``, and the paper's ``local-exp4`` and
        ``batched-exp4``. With ``-tight`` at the end of the paper's names, tuned to constants of
        ours.
    changes, memory
        As for ``PrivateBandit``, with ``adaptive-conversion`` and ``tracking-conversion``.
    learner, release, batch
        Replace a part of a conversion, as for ``PrivateBandit``.
    loss_range, default_loss, clip, seed, delay
        As for ``PrivateBandit``.
    per_person, rounds_per_place, people
        As for ``PrivateBandit``. With a conversion a place follows one expert; EXP4 credits each
        round by its own advice, so there a place is one round.

    Examples
    --------
    >>> import bandanna as bd
    >>> policy = bd.PrivateExperts(experts=3, arms=2, epsilon=0.5, rounds=10_000)
    >>> decision = policy.decide([0, 0, 1])
    >>> policy.observe(decision, loss=0.3)
    >>> policy.algorithm
    'one-bit-exp4'
    """

    saved_as: ClassVar[str | None] = "PrivateExperts"

    def __init__(
        self,
        experts: int,
        arms: int | Sequence[ArmName],
        epsilon: float,
        delta: float = 0.0,
        rounds: int | None = None,
        algorithm: str = AUTO,
        *,
        changes: int | None = None,
        memory: int | None = None,
        learner: object = None,
        release: Release | str | None = None,
        batch: int | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
        delay: int = 0,
        per_person: int | None = None,
        rounds_per_place: int | None = None,
        people: int | None = None,
    ) -> None:
        names = arm_names(arms)
        count = check_experts(experts)
        rule = check_rule(epsilon, delta, per_person, rounds_per_place, people)
        size = len(names), rounds, checks.epsilon(epsilon), count, delta, delay
        problem = Problem(*size, changes=changes, memory=memory)
        replaced = Replaced(checked_learner(learner, tuple(range(count))), release, batch)
        self.why = f"{algorithm} was asked for."
        if algorithm == AUTO:
            algorithm, self.why = choose_algorithm(problem, replaced=replaced != NOTHING, rule=rule)
        check_changes(algorithm, problem)
        if rule is not None:
            problem = place_problem(problem, rule.per_person, find(algorithm, advised=True))
        self.delta, self.delay = problem.delta, problem.delay
        self.changes, self.memory = problem.changes, problem.memory
        recipe = private_recipe(algorithm, problem, replaced)
        if rule is not None:
            recipe = within_people(recipe, algorithm, problem, replaced, rule)
        super().__init__(
            recipe,
            names,
            algorithm=algorithm,
            loss_range=loss_range,
            experts=count,
            default_loss=default_loss,
            clip=clip,
            rounds=problem.rounds,
            seed=seed,
            people=rule,
        )


class Experts(Policy):
    """The same without privacy, for comparison and for feedback that is not about people.

    Parameters
    ----------
    experts, arms, rounds
        As for ``PrivateExperts``.
    learner
        ``exp4`` (default) and ``centred-exp4``, which need ``rounds``; ``uniform`` (any arm, no
        advice), ``random-expert`` (a new expert each round); or a bandit learner over experts, by
        name or object.
    loss_range, default_loss, clip, seed
        As for ``PrivateBandit``.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Experts(experts=3, arms=2, rounds=1000).guarantee.private
    False
    """

    saved_as: ClassVar[str | None] = "Experts"

    def __init__(
        self,
        experts: int,
        arms: int | Sequence[ArmName],
        rounds: int | None = None,
        learner: Learner | str = "exp4",
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        count = check_experts(experts)
        problem = Problem(len(names), rounds, math.inf, count)
        chosen = required_learner(learner, tuple(range(count)))
        super().__init__(
            plain_recipe(chosen, problem),
            names,
            algorithm=chosen if isinstance(chosen, str) else chosen.name,
            loss_range=loss_range,
            experts=count,
            default_loss=default_loss,
            clip=clip,
            rounds=problem.rounds,
            seed=seed,
        )

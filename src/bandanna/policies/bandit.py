"""The policies a person holds: private, plain, and around another library's learner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from bandanna._core import checks
from bandanna._core.types import ArmName, InputError
from bandanna.algorithms import resolve
from bandanna.policies.choosing import within_people
from bandanna.policies.inputs import arm_names, checked_learner, required_learner
from bandanna.policies.people import check_rule
from bandanna.policies.policy import Policy
from bandanna.policies.recipe import NOTHING, Replaced, plain_recipe, private_recipe, without_guard
from bandanna.privacy import Release
from bandanna.privacy.composition import place_for
from bandanna.problem import Problem


class PrivateBandit(Policy):
    """Choose among arms, again and again, without revealing anyone's feedback.

    Parameters
    ----------
    arms
        How many arms, or their names.
    epsilon
        The privacy parameter: smaller is more private. 0.1 to 1 is common.
    rounds
        How many decisions are expected. ``adaptive``, ``one-bit`` and ``htinf`` do without it; the
        first two choose a better batch with it. Going on beyond it costs no privacy.
    algorithm
        ``adaptive`` (default), ``one-bit``, ``one-bit-exp3`` (the smallest guarantee for few arms),
        ``tracking``, ``dp-klucb``, the paper's ``htinf``, ``exp3`` and ``ftpl``, or
        prior work's ``ldp-exp3`` and ``dp-exp3-lap``. With ``-tight`` at the end of the paper's
        names and ``ldp-exp3``, tuned to constants of ours.
    losses
        What the world is like, instead of an algorithm: ``"any"`` (default; ``adaptive``),
        ``"steady"`` if each arm's losses are drawn from one law (``dp-klucb``), or ``"changing"``
        if the best arm changes and you want to follow it (``adaptive`` with a short memory).
    changes
        How often the best arm changes, about, in all rounds; with ``adaptive`` and ``tracking``.
    memory
        How many rounds ``adaptive`` remembers; by default it follows ``rounds`` and ``changes``.
    guard
        Without it ``dp-klucb`` is the algorithm as published, which does not notice changes.
    learner, release, batch
        Replace a part of the algorithm, of ``one-bit`` unless another is named: a learner by name,
        object or adapter; ``"one-bit"``, ``"laplace"``, or ``"device"`` for bits that people's own
        devices released, which ``observe_bit`` takes; rounds in a batch.
    loss_range
        Smallest and largest possible loss, known beforehand.
    default_loss
        What ``give_up`` counts for feedback that never comes; by default the middle of the range.
    clip
        Count feedback outside the range as its nearer end. Refused, as it is by default, it might
        be dropped, and then whether feedback arrives would depend on what it says.
    seed
        Makes the draws of arms repeatable. The noise that protects people never is.
    delay
        How many further decisions may be made before the feedback of one has come, for the rate of
        ``one-bit-exp3`` and its bound. Privacy does not depend on it.
    per_person
        Protect persons instead of rounds: how many places each may have, one in a batch. Then
        ``epsilon`` and ``delta`` are for everything a person contributes, ``batch`` and ``rounds``
        count places, and ``decide`` asks who it is for. ``docs/people.md`` explains.
    delta
        With ``per_person``: what a person's places may cost besides epsilon; 0 is pure.
    rounds_per_place
        With ``per_person``: rounds after which a place takes no more. By default it takes them
        until ``finish``.
    people
        With ``per_person``: how many people there are. Batches that are not given have at most half
        as many slots, so that they fill. By default the fewest who can take all slots,
        ``rounds / per_person``.

    Examples
    --------
    >>> import bandanna as bd
    >>> bandit = bd.PrivateBandit(arms=["drug A", "drug B"], epsilon=0.5, rounds=10_000)
    >>> decision = bandit.decide()
    >>> bandit.observe(decision, loss=0.3)
    >>> bandit.guarantee.epsilon, bandit.guarantee.delta, bandit.guarantee.model
    (0.5, 0.0, 'central')
    """

    saved_as: ClassVar[str | None] = "PrivateBandit"

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        epsilon: float,
        rounds: int | None = None,
        algorithm: str | None = None,
        *,
        losses: str | None = None,
        changes: int | None = None,
        memory: int | None = None,
        guard: bool = True,
        learner: object = None,
        release: Release | str | None = None,
        batch: int | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
        delay: int = 0,
        per_person: int | None = None,
        delta: float = 0.0,
        rounds_per_place: int | None = None,
        people: int | None = None,
    ) -> None:
        names = arm_names(arms)
        rule = check_rule(epsilon, delta, per_person, rounds_per_place, people)
        if rule is None and delta != 0.0:
            raise InputError("a delta is of use with per_person= only: one place is pure.")
        size = len(names), rounds, checks.epsilon(epsilon)
        problem = Problem(*size, delay=delay, changes=changes, memory=memory)
        replaced = Replaced(checked_learner(learner, names), release, batch)
        in_parts = replaced != NOTHING
        algorithm, problem, self.why = resolve(algorithm, losses, problem, in_parts=in_parts)
        if rule is not None:
            each = place_for(rule.epsilon, rule.delta, rule.per_person)
            problem = problem.but(epsilon=each.epsilon)
        self.delay, self.changes, self.memory = problem.delay, problem.changes, problem.memory
        recipe = private_recipe(algorithm, problem, replaced)
        if rule is not None:
            recipe = within_people(recipe, algorithm, problem, replaced, rule)
        super().__init__(
            recipe if guard else without_guard(recipe, problem),
            names,
            algorithm=algorithm,
            loss_range=loss_range,
            default_loss=default_loss,
            clip=clip,
            rounds=problem.rounds,
            seed=seed,
            people=rule,
        )
        if replaced.learner is not None:
            self.around = getattr(self.recipe.learner, "label", self.recipe.learner.name)


class Bandit(Policy):
    """The same bandit without privacy, for comparison and for feedback that is not about people.

    Parameters
    ----------
    arms
        How many arms, or their names.
    learner
        ``tsallis-inf`` (default), ``tsallis-inf-iw``, ``htinf``, ``exp3``, ``ftpl``, ``adaptive``,
        ``kl-ucb`` and ``thompson`` (the strongest where losses are steady), ``uniform``, a learner
        object, or one of another library.
    rounds
        How many decisions are expected; ``exp3`` and ``ftpl`` need it.
    batch
        Rounds for which an arm is kept.
    loss_range, default_loss, clip, seed
        As for ``PrivateBandit``.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Bandit(arms=2, learner="exp3", rounds=1000).guarantee.private
    False
    """

    saved_as: ClassVar[str | None] = "Bandit"

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        learner: object = "tsallis-inf",
        rounds: int | None = None,
        *,
        batch: int = 1,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        problem = Problem(len(names), rounds, math.inf)
        given = required_learner(learner, names)
        super().__init__(
            plain_recipe(given, problem, batch),
            names,
            algorithm=given if isinstance(given, str) else given.name,
            loss_range=loss_range,
            default_loss=default_loss,
            clip=clip,
            rounds=problem.rounds,
            seed=seed,
        )


def privatize(
    learner: object,
    arms: int | Sequence[ArmName],
    epsilon: float,
    rounds: int | None = None,
    *,
    release: Release | str = "one-bit",
    batch: int | None = None,
    loss_range: tuple[float, float] = (0.0, 1.0),
    default_loss: float | None = None,
    clip: bool = False,
    seed: int | None = None,
    per_person: int | None = None,
    delta: float = 0.0,
    rounds_per_place: int | None = None,
    people: int | None = None,
) -> PrivateBandit:
    """Make any bandit without contexts private (the paper's Theorem "Generic Conversion").

    A learner object is copied, so that nobody else can feed it what was not released; it must not
    have learned from private data before. With the default one-bit release it sees losses that
    are 0 or 1; with ``"laplace"`` it must survive negative and unbounded ones.

    Parameters
    ----------
    learner
        A learner by name or object; river's ``bandit.Policy``; MABWiser's ``MAB``; any object
        with ``draw()`` and ``update(arm, loss)``; or a function that takes a seed and makes one.
    arms, epsilon, rounds, release, batch, loss_range, default_loss, clip, seed, per_person
        As for ``PrivateBandit``.
    delta, rounds_per_place, people
        As for ``PrivateBandit``.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.privatize("htinf", arms=3, epsilon=0.5).guarantee.epsilon
    0.5
    """
    return PrivateBandit(
        arms,
        epsilon,
        rounds,
        learner=required_learner(learner, arm_names(arms)),
        release=release,
        batch=batch,
        loss_range=loss_range,
        default_loss=default_loss,
        clip=clip,
        seed=seed,
        per_person=per_person,
        delta=delta,
        rounds_per_place=rounds_per_place,
        people=people,
    )

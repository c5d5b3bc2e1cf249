"""The policies a person holds: private, plain, and around another library's learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from bandanna import checks
from bandanna.learners import Learner
from bandanna.policies.batched import BatchedBandit
from bandanna.policies.foreign import adapt
from bandanna.policies.recipe import Request, plain_recipe, private_recipe
from bandanna.privacy import Release
from bandanna.types import ArmName, InputError


class PrivateBandit(BatchedBandit):
    """Choose among arms, again and again, without revealing anyone's feedback.

    Parameters
    ----------
    arms
        How many arms, or their names.
    epsilon
        The privacy parameter: smaller is more private. 0.1 to 1 is common.
    rounds
        How many decisions are expected. ``one-bit`` and ``htinf`` do without it; ``one-bit``
        chooses a better batch with it. Going on beyond it costs no privacy.
    algorithm
        ``one-bit`` (default), ``one-bit-exp3`` (a smaller guarantee for few arms, though it
        gains less where losses are easy), the paper's ``htinf``, ``exp3`` and ``ftpl``, or
        prior work's ``ldp-exp3`` and ``dp-exp3-lap``.
    learner, release, batch
        Replace a part of the algorithm: a learner by name, object or adapter; ``"one-bit"`` or
        ``"laplace"``; rounds in a batch.
    loss_range
        Smallest and largest possible loss, known beforehand.
    default_loss
        What ``give_up`` counts for feedback that never comes; by default the middle of the range.
    seed
        Makes the draws of arms repeatable. The noise that protects people never is.

    Examples
    --------
    >>> import bandanna as bd
    >>> bandit = bd.PrivateBandit(arms=["drug A", "drug B"], epsilon=0.5, rounds=10_000)
    >>> decision = bandit.decide()
    >>> bandit.observe(decision, loss=0.3)
    >>> bandit.guarantee.epsilon, bandit.guarantee.delta, bandit.guarantee.model
    (0.5, 0.0, 'central')
    """

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        epsilon: float,
        rounds: int | None = None,
        algorithm: str = "one-bit",
        *,
        learner: Any = None,
        release: Release | str | None = None,
        batch: int | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        horizon = check_rounds(rounds)
        request = Request(
            algorithm=algorithm,
            arms=len(names),
            epsilon=checks.positive("epsilon", epsilon),
            rounds=horizon,
            learner=checked_learner(learner, names),
            release=release,
            batch=batch,
        )
        super().__init__(
            private_recipe(request),
            names,
            algorithm=algorithm,
            loss_range=loss_range,
            default_loss=default_loss,
            rounds=horizon,
            seed=seed,
        )


class Bandit(BatchedBandit):
    """The same bandit without privacy, for comparison and for feedback that is not about people.

    Parameters
    ----------
    arms
        How many arms, or their names.
    learner
        ``tsallis-inf`` (default), ``tsallis-inf-iw``, ``htinf``, ``exp3``, ``ftpl``, ``uniform``,
        a learner object, or one of another library.
    rounds
        How many decisions are expected; ``exp3`` and ``ftpl`` need it.
    batch
        Rounds for which an arm is kept.
    loss_range, default_loss, seed
        As for ``PrivateBandit``.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Bandit(arms=2, learner="exp3", rounds=1000).guarantee.private
    False
    """

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        learner: Any = "tsallis-inf",
        rounds: int | None = None,
        *,
        batch: int = 1,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        horizon = check_rounds(rounds)
        chosen = required_learner(learner, names)
        recipe = plain_recipe(arms=len(names), rounds=horizon, learner=chosen, batch=batch)
        super().__init__(
            recipe,
            names,
            algorithm=chosen if isinstance(chosen, str) else chosen.name,
            loss_range=loss_range,
            default_loss=default_loss,
            rounds=horizon,
            seed=seed,
        )


def privatize(
    learner: Any,
    arms: int | Sequence[ArmName],
    epsilon: float,
    rounds: int | None = None,
    *,
    release: Release | str = "one-bit",
    batch: int | None = None,
    loss_range: tuple[float, float] = (0.0, 1.0),
    default_loss: float | None = None,
    seed: int | None = None,
) -> PrivateBandit:
    """Make any bandit private (the paper's Theorem "Generic Conversion").

    A learner object is copied, so that nobody else can feed it what was not released; it must not
    have learned from private data before. With the default one-bit release it sees losses that
    are 0 or 1; with ``"laplace"`` it must survive negative and unbounded ones.

    Parameters
    ----------
    learner
        A learner by name or object; river's ``bandit.Policy``; MABWiser's ``MAB``; any object
        with ``draw()`` and ``update(arm, loss)``; or a function that takes a seed and makes one.
    arms, epsilon, rounds, release, batch, loss_range, default_loss, seed
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
        seed=seed,
    )


def arm_names(arms: Any) -> tuple[ArmName, ...]:
    """Turn a number of arms or their names, in order, into names."""
    if isinstance(arms, str | bytes | set | frozenset) or not isinstance(
        arms, Iterable | float | Integral
    ):
        raise InputError(f"arms must be a number or a list of names; got {arms!r}.")
    if not isinstance(arms, Iterable):
        return tuple(range(checks.arms(arms)))
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in arms)
    if len(names) < 2:
        raise InputError(f"a bandit needs at least 2 arms; got {len(names)}: {list(names)!r}.")
    for name in names:
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InputError(f"names of arms must be texts or whole numbers; got {name!r}.")
    repeated = [str(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"names of arms must differ; repeated: {', '.join(repeated)}.")
    return names


def check_rounds(rounds: Any) -> int | None:
    """Require a positive whole number of rounds, or none."""
    return None if rounds is None else checks.rounds(rounds)


def required_learner(learner: Any, names: tuple[ArmName, ...]) -> Learner | str:
    """Require a learner, checked as by ``checked_learner``."""
    chosen = checked_learner(learner, names)
    if chosen is None:
        raise InputError("learner must be a name or a learner; got None.")
    return chosen


def checked_learner(learner: Any, names: tuple[ArmName, ...]) -> Learner | str | None:
    """Take names as they are, adapt foreign learners, and require the right number of arms."""
    if learner is None or isinstance(learner, str):
        return learner
    adapted = learner if isinstance(learner, Learner) else adapt(learner, names)
    if adapted.arms != len(names):
        raise InputError(f"the learner has {adapted.arms} arms and the bandit {len(names)}.")
    return adapted

"""Bandits of other libraries as learners: river, MABWiser, and anything that draws and updates.

None of these libraries is imported here; an object is recognised by where its class comes from.
Each adapter turns a released loss ``x`` into what the library wants, usually the reward ``1 - x``.

A library that keeps the probability of its last draw only, as river's ``Exp3`` does, is slightly
biased when feedback comes out of order. Our own learners are not.
"""

from __future__ import annotations

import copy
import inspect
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bandanna.learners import Learner
from bandanna.learners.base import Player
from bandanna.policies.replay import Drawer, ForeignPlayer
from bandanna.privacy.statements import FOREIGN_LEARNER
from bandanna.streams import Stream
from bandanna.types import JSON, ArmName, InputError

KNOWN = (
    "river's bandit.Policy, MABWiser's MAB, an object with draw() and update(arm, loss), "
    "or a function that takes a seed and returns one of these"
)


class ForeignLearner(Learner):
    """A bandit of another library, or of yours.

    Parameters
    ----------
    make
        Makes a fresh one from a seed.
    arms
        Number of arms.
    """

    name = "foreign"
    assumptions = (FOREIGN_LEARNER,)

    def __init__(self, make: Callable[[int], Drawer], arms: int, label: str) -> None:
        self._make = make
        self.arms = arms
        self.label = label

    def play(self, stream: Stream) -> Player:
        """Start a fresh copy; its seed comes from the stream that would draw the arms."""
        seed = int(stream[0] >> np.uint64(33))
        return ForeignPlayer(self._make, seed, self.arms, self.label)

    def to_dict(self) -> JSON:
        """Return its name: what another library keeps inside is not ours to write down."""
        return {"name": self.name, "label": self.label}


class RiverDrawer:
    """A river bandit policy; it wants rewards."""

    def __init__(self, policy: Any, arms: int) -> None:
        self.policy = policy
        self._arms = list(range(arms))

    def draw(self) -> int:
        """Pull an arm."""
        return int(self.policy.pull(self._arms))

    def update(self, arm: int, loss: float) -> None:
        """Pass on the reward."""
        self.policy.update(arm, 1.0 - loss)


class MabwiserDrawer:
    """A MABWiser bandit; it wants rewards, and some data before its first prediction."""

    def __init__(self, mab: Any, names: tuple[ArmName, ...], seed: int) -> None:
        self.mab = mab
        # Its arms in our order: by name where ours have names, by position where they are numbers.
        self._arms = list(names) if set(names) == set(mab.arms) else list(mab.arms)
        self._fitted = bool(getattr(mab, "_is_initial_fit", False))
        self._first = random.Random(seed)  # noqa: S311  # draws an arm, protects nothing

    def draw(self) -> int:
        """Predict an arm; before any feedback, choose one at random."""
        if not self._fitted:
            return self._first.randrange(len(self._arms))
        return self._arms.index(self.mab.predict())

    def update(self, arm: int, loss: float) -> None:
        """Pass on the reward."""
        decisions, rewards = [self._arms[arm]], [1.0 - loss]
        if self._fitted:
            self.mab.partial_fit(decisions, rewards)
        else:
            self.mab.fit(decisions, rewards)
            self._fitted = True


def adapt(learner: Any, names: tuple[ArmName, ...]) -> ForeignLearner:
    """Wrap a foreign bandit, or a function that makes one."""
    label = type(learner).__name__
    if _is_bandit(learner):
        _drawer(learner, names, 0)  # refuse now what could not be played later

        def make(seed: int) -> Drawer:
            fresh = copy.deepcopy(learner)
            reseed(fresh, seed)
            return _drawer(fresh, names, seed)

        return ForeignLearner(make, len(names), label)
    if inspect.isroutine(learner):
        factory: Callable[[int], Any] = learner
        label = getattr(learner, "__name__", label)
        return ForeignLearner(lambda seed: _drawer(factory(seed), names, seed), len(names), label)
    if inspect.isclass(learner):
        raise InputError(
            f"learner is the class {learner.__name__}; pass an instance of it, or a function that "
            f"takes a seed and returns one."
        )
    raise InputError(f"learner must be {KNOWN}; got {label}.")


def _is_bandit(learner: object) -> bool:
    if inspect.isclass(learner):
        return False
    return (
        _comes_from(learner, "river.bandit")
        or _comes_from(learner, "mabwiser")
        or (callable(getattr(learner, "draw", None)) and callable(getattr(learner, "update", None)))
    )


def _comes_from(learner: object, package: str) -> bool:
    return any(f"{base.__module__}.".startswith(f"{package}.") for base in type(learner).__mro__)


def _drawer(learner: Any, names: tuple[ArmName, ...], seed: int) -> Drawer:
    label = type(learner).__name__
    if _comes_from(learner, "river.bandit"):
        if any(base.__name__ == "ContextualPolicy" for base in type(learner).__mro__):
            raise InputError(f"river's {label} needs a context, which a bandit here does not have.")
        _warn_if_fitted(label, getattr(learner, "_n", 0) > 0)
        return RiverDrawer(learner, len(names))
    if _comes_from(learner, "mabwiser"):
        if getattr(learner, "is_contextual", False):
            raise InputError("this MAB needs a context, which a bandit here does not have.")
        _warn_if_fitted("MAB", getattr(learner, "_is_initial_fit", False))
        if len(learner.arms) != len(names):
            raise InputError(f"the MAB has {len(learner.arms)} arms and the bandit {len(names)}.")
        if names != tuple(range(len(names))) and set(names) != set(learner.arms):
            raise InputError(
                f"the MAB's arms are {list(learner.arms)} and the bandit's {list(names)}; give "
                f"the same names, or only their number."
            )
        return MabwiserDrawer(learner, names, seed)
    if not _is_bandit(learner):
        raise InputError(f"learner must be {KNOWN}; got {label}.")
    return learner  # type: ignore[no-any-return]


def _warn_if_fitted(label: str, fitted: bool) -> None:
    if fitted:
        warnings.warn(
            f"this {label} has learned already; what it learned from is not protected. Give a new "
            f"one, unless that was public.",
            stacklevel=2,
        )


def reseed(thing: object, seed: int, depth: int = 3) -> None:
    """Give the random generators inside an object a new seed, so that copies differ."""
    if depth == 0 or not hasattr(thing, "__dict__"):
        return
    for key, value in vars(thing).items():
        if isinstance(value, random.Random):
            value.seed(seed)
        elif isinstance(value, np.random.Generator):
            setattr(thing, key, np.random.default_rng(seed))
        elif isinstance(value, np.random.RandomState):
            value.seed(seed % 2**32)
        else:
            reseed(value, seed, depth - 1)

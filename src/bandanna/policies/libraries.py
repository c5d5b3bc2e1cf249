"""What other libraries' bandits look like, and how each is asked for an arm and told a loss.

None of them is imported here; an object is recognised by where its class comes from. Each adapter
turns a released loss ``x`` into what the library wants, usually the reward ``1 - x``.
"""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Sequence
from typing import Protocol, TypeGuard

from bandanna._core.types import ArmName, InputError
from bandanna.policies.replay import Drawer

KNOWN = (
    "river's bandit.Policy, MABWiser's MAB, an object with draw() and update(arm, loss), "
    "or a function that takes a seed and returns one of these"
)


class RiverPolicy(Protocol):
    """What is used of river's ``bandit.Policy``."""

    def pull(self, arm_ids: list[int]) -> int:
        """Choose one of some arms."""

    def update(self, arm_id: int, reward: float) -> object:
        """Learn from a reward of an arm."""


class Mab(Protocol):
    """What is used of MABWiser's ``MAB``."""

    arms: Sequence[ArmName]

    def predict(self) -> ArmName:
        """Choose an arm."""

    def fit(self, decisions: list[ArmName], rewards: list[float]) -> object:
        """Learn from the first rewards."""

    def partial_fit(self, decisions: list[ArmName], rewards: list[float]) -> object:
        """Learn from further ones."""


class RiverDrawer:
    """A river bandit policy; it wants rewards."""

    def __init__(self, policy: RiverPolicy, arms: int) -> None:
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

    def __init__(self, mab: Mab, names: tuple[ArmName, ...], seed: int) -> None:
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


def is_bandit(learner: object) -> TypeGuard[Drawer]:
    """Whether something is a bandit that can be played."""
    if inspect.isclass(learner):
        return False
    return (
        _is_river(learner)
        or _is_mab(learner)
        or (callable(getattr(learner, "draw", None)) and callable(getattr(learner, "update", None)))
    )


def _is_river(learner: object) -> TypeGuard[RiverPolicy]:
    return _comes_from(learner, "river.bandit")


def _is_mab(learner: object) -> TypeGuard[Mab]:
    return _comes_from(learner, "mabwiser")


def _comes_from(learner: object, package: str) -> bool:
    return any(f"{base.__module__}.".startswith(f"{package}.") for base in type(learner).__mro__)


def drawer_of(learner: object, names: tuple[ArmName, ...], seed: int) -> Drawer:
    """Return what plays a bandit, or say why it cannot be played."""
    label = type(learner).__name__
    if _is_river(learner):
        if any(base.__name__ == "ContextualPolicy" for base in type(learner).__mro__):
            raise InputError(f"river's {label} needs a context, which a bandit here does not have.")
        _warn_if_fitted(label, getattr(learner, "_n", 0) > 0)
        return RiverDrawer(learner, len(names))
    if _is_mab(learner):
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
    if not is_bandit(learner):
        raise InputError(f"learner must be {KNOWN}; got {label}.")
    return learner


def _warn_if_fitted(label: str, fitted: bool) -> None:
    if fitted:
        warnings.warn(
            f"this {label} has learned already; what it learned from is not protected. Give a new "
            f"one, unless that was public.",
            stacklevel=2,
        )

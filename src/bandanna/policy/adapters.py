"""Bandits of other libraries as learners: river, MABWiser, and anything that draws and updates.

None of the libraries is imported here; an object is recognised by where its class comes from. Each
adapter turns a released loss ``x`` into what the library wants, usually the reward ``1 - x``.

What such a bandit keeps inside is not ours to write down. What it was given is: the released
losses, which are public, in order with the arms it drew. A fresh one with the same seed that draws
the same arms and is given the same losses is where the old one was; so it goes on from a file.

A library that keeps the probability of its last draw only, as river's ``Exp3`` does, is slightly
biased when feedback comes out of order. Our own learners are not.
"""

from __future__ import annotations

import copy
import inspect
import random
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Protocol, TypeGuard

import numpy as np

from bandanna._core.streams import Stream
from bandanna._core.types import JSON, ArmName, InputError, StateFileError
from bandanna.learners import Learner
from bandanna.learners.base import Player
from bandanna.learners.steps import register
from bandanna.privacy.statements import FOREIGN_LEARNER


class Drawer(Protocol):
    """A bandit with two methods."""

    def draw(self) -> int:
        """Choose an arm, by index."""

    def update(self, arm: int, loss: float) -> None:
        """Learn from a loss of an arm."""


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


def adapt(learner: object, names: tuple[ArmName, ...]) -> ForeignLearner:
    """Wrap a foreign bandit, or a function that makes one."""
    label = type(learner).__name__
    if is_bandit(learner):
        drawer_of(learner, names, 0)  # refuse now what could not be played later

        def make(seed: int) -> Drawer:
            fresh = copy.deepcopy(learner)
            reseed(fresh, seed)
            return drawer_of(fresh, names, seed)

        return ForeignLearner(make, len(names), label)
    if inspect.isroutine(learner):
        factory: Callable[[int], object] = learner
        label = getattr(learner, "__name__", label)
        return ForeignLearner(lambda seed: drawer_of(factory(seed), names, seed), len(names), label)
    if inspect.isclass(learner):
        raise InputError(
            f"learner is the class {learner.__name__}; pass an instance of it, or a function that "
            f"takes a seed and returns one."
        )
    raise InputError(f"learner must be {KNOWN}; got {label}.")


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


def required_learner(learner: object, names: tuple[ArmName, ...]) -> Learner | str:
    """Require a learner, checked as by ``checked_learner``."""
    chosen = checked_learner(learner, names)
    if chosen is None:
        raise InputError("learner must be a name or a learner; got None.")
    return chosen


def checked_learner(learner: object, names: tuple[ArmName, ...]) -> Learner | str | None:
    """Take names as they are, adapt foreign learners, and require the right number of arms."""
    if learner is None or isinstance(learner, str):
        return learner
    adapted = learner if isinstance(learner, Learner) else adapt(learner, names)
    if adapted.arms != len(names):
        raise InputError(f"the learner has {adapted.arms} arms and the bandit {len(names)}.")
    return adapted


# --- playing one, and going on from a file -----------------------------------------------------


class ForeignPlayer:
    """Plays a foreign bandit; importance is its own business."""

    def __init__(self, make: Callable[[int], Drawer], seed: int, arms: int, label: str) -> None:
        self._make = make
        self._seed = seed
        self._arms = arms
        self._label = label
        self.bandit = make(seed)
        self._history: list[int | tuple[int, float]] = []
        """Arms drawn, and losses released of an arm, in order."""

    def draw(self) -> tuple[int, float]:
        """Choose an arm."""
        arm = self.bandit.draw()
        if not isinstance(arm, Integral) or not 0 <= arm < self._arms:
            raise InputError(
                f"{self._label} drew arm {arm!r}; draw() must return an index from 0 to "
                f"{self._arms - 1}."
            )
        self._history.append(int(arm))
        return int(arm), 1.0

    def update(self, arm: int, importance: float, loss: float, rounds: int = 1) -> None:
        """Learn from one released loss."""
        self._history.append((int(arm), float(loss)))
        self.bandit.update(arm, loss)

    def state_dict(self) -> JSON:
        """Return the seed, and what was drawn and released so far."""
        return {"seed": self._seed, "history": [*self._history]}

    def load_state(self, state: JSON) -> None:
        """Tell a fresh bandit all that was released, and check that it draws the same arms."""
        self._seed, history = int(state["seed"]), list(state["history"])
        self._history = []
        try:
            self.bandit = self._make(self._seed)
            for index, event in enumerate(history):
                if not isinstance(event, int):
                    self.update(int(event[0]), 1.0, float(event[1]), 1)
                elif self.draw()[0] != event:
                    raise StateFileError(self._differs(index))
        except StateFileError:
            raise
        except Exception as error:
            raise StateFileError(
                f"cannot replay what was released to the {self._label} given: "
                f"{type(error).__name__}: {error}"
            ) from None

    def _differs(self, index: int) -> str:
        return (
            f"the {self._label} given does not draw the arms that the saved one drew, from event "
            f"{index + 1:,} of its history on. Give a fresh one with the same settings. If it is, "
            f"its randomness is not its own: it must come from a generator that it holds, or from "
            f"the seed that a function making it takes."
        )


register(
    ForeignPlayer,
    lambda player, state, stream: player.draw(),
    lambda player, state, lesson: player.update(*lesson),
)


# --- what libraries look like ------------------------------------------------------------------

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

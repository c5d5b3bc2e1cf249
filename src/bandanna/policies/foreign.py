"""Bandits of other libraries as learners: river, MABWiser, and anything that draws and updates.

``libraries.py`` knows how each is asked and told.

A library that keeps the probability of its last draw only, as river's ``Exp3`` does, is slightly
biased when feedback comes out of order. Our own learners are not.
"""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable

import numpy as np

from bandanna._core.streams import Stream
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.learners import Learner
from bandanna.learners.base import Player
from bandanna.policies.libraries import KNOWN, drawer_of, is_bandit
from bandanna.policies.replay import Drawer, ForeignPlayer
from bandanna.privacy.statements import FOREIGN_LEARNER


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

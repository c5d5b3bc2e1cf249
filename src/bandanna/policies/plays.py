"""How a policy plays: what opens a batch, how an arm is chosen in it, what its release teaches.

- ``PlayArm``: an arm is drawn for a batch and played (the paper's Algorithm 1).
- ``FollowExpert``: an expert is drawn for a batch and followed; the learner is any bandit learner
  over experts (Algorithm 6).
- ``WeighExperts``: EXP4 on single released losses.
- ``WeighInBatches``: EXP4 on batches, each expert's estimate released (Algorithm 2).

The steps below are written once; the object a user holds and the simulator both call them. They
are plain functions, because another library's learner has to be played in Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice
from bandanna._core.dispatch import dispatched
from bandanna._core.streams import Stream
from bandanna.learners import Compiled, Exp4
from bandanna.learners.base import Player as LearnerPlayer
from bandanna.learners.exp4 import (
    Exp4Params,
    Exp4State,
    advised_arm,
    exp4_choose,
    exp4_learn_all,
    exp4_update,
)
from bandanna.learners.steps import draw, length, update
from bandanna.policies.recipe import Recipe
from bandanna.privacy.estimates import EstimateRelease


class PlayArm(NamedTuple):
    """An arm is drawn for a batch and played."""

    params: NamedTuple | LearnerPlayer
    state: NamedTuple | None


class FollowExpert(NamedTuple):
    """An expert is drawn for a batch and followed."""

    params: NamedTuple | LearnerPlayer
    state: NamedTuple | None


class WeighExperts(NamedTuple):
    """EXP4 on single losses."""

    params: Exp4Params
    state: Exp4State


class WeighInBatches(NamedTuple):
    """EXP4 on batches: weights change when a batch has been released."""

    params: Exp4Params
    state: Exp4State


Estimates = NDArray[np.float64]
Play = PlayArm | FollowExpert | WeighExperts | WeighInBatches


@dispatched
def open_batch(play: Play, stream: Stream) -> tuple[int, float, int]:
    """Begin a batch: which arm or expert, its importance, and for how many rounds."""
    raise NotImplementedError


@dispatched
def choose(play: Play, choice: int, advice: Advice, stream: Stream) -> tuple[int, float]:
    """Choose an arm in a round of a batch; returns it with its importance."""
    raise NotImplementedError


@dispatched
def learn(
    play: Play,
    choice: int,
    weight: float,
    advice: Advice,
    arm: int,
    importance: float,
    value: float,
    estimates: Estimates,
    rounds: int,
) -> None:
    """Learn from what a batch released: a value, or an estimate for each expert.

    Advice, arm and importance are those of the batch's last round; ``rounds`` is its length.
    """
    raise NotImplementedError


def _draw(play: PlayArm | FollowExpert, stream: Stream) -> tuple[int, float, int]:
    choice, weight = draw(play.params, play.state, stream)
    return choice, weight, length(play.params, play.state, choice)


def _nothing_drawn(play: WeighExperts | WeighInBatches, stream: Stream) -> tuple[int, float, int]:
    return 0, 1.0, 0


def _follow(play: FollowExpert, choice: int, advice: Advice, stream: Stream) -> tuple[int, float]:
    return advised_arm(advice, choice, stream), 1.0


def _weigh(
    play: WeighExperts | WeighInBatches, choice: int, advice: Advice, stream: Stream
) -> tuple[int, float]:
    return exp4_choose(play.params, play.state, advice, stream)


def _credit_choice(
    play: PlayArm | FollowExpert,
    choice: int,
    weight: float,
    advice: Advice,
    arm: int,
    importance: float,
    value: float,
    estimates: Estimates,
    rounds: int,
) -> None:
    update(play.params, play.state, choice, weight, value, rounds)


def _credit_experts(
    play: WeighExperts,
    choice: int,
    weight: float,
    advice: Advice,
    arm: int,
    importance: float,
    value: float,
    estimates: Estimates,
    rounds: int,
) -> None:
    exp4_update(play.params, play.state, advice, arm, importance, value)


def _weigh_anew(
    play: WeighInBatches,
    choice: int,
    weight: float,
    advice: Advice,
    arm: int,
    importance: float,
    value: float,
    estimates: Estimates,
    rounds: int,
) -> None:
    exp4_learn_all(play.params, play.state, estimates)


for _kind, _open, _choose, _learn in (
    (PlayArm, _draw, None, _credit_choice),
    (FollowExpert, _draw, _follow, _credit_choice),
    (WeighExperts, _nothing_drawn, _weigh, _credit_experts),
    (WeighInBatches, _nothing_drawn, _weigh, _weigh_anew),
):
    open_batch.register(_kind, _open)
    learn.register(_kind, _learn)
    if _choose is not None:  # whoever plays an arm has chosen when the batch opens
        choose.register(_kind, _choose)


def kind_of_play(recipe: Recipe, experts: int | None) -> type[Play]:
    """Return how a recipe is played."""
    if experts is None:
        return PlayArm
    if not isinstance(recipe.learner, Exp4):
        return FollowExpert
    return WeighInBatches if isinstance(recipe.release, EstimateRelease) else WeighExperts


def weighs_all_arms(recipe: Recipe) -> bool:
    """Whether crediting a round needs what was advised on all arms, not only on the one played."""
    return isinstance(recipe.learner, Exp4) and recipe.learner.centred


def start_play(recipe: Recipe, experts: int | None, stream: Stream) -> Play:
    """Begin to play a recipe; only another library's learner looks at the stream."""
    kind, learner = kind_of_play(recipe, experts), recipe.learner
    if isinstance(learner, Exp4):
        weighs = WeighInBatches if kind is WeighInBatches else WeighExperts
        return weighs(learner.params(), learner.start())
    draws = PlayArm if kind is PlayArm else FollowExpert
    if isinstance(learner, Compiled):
        return draws(learner.params(), learner.start())
    return draws(learner.play(stream), None)


NO_ADVICE: Advice = np.zeros(0, dtype=np.uint8)
NO_ESTIMATES: Estimates = np.zeros(0)

"""Decisions among some of the arms: what is played then, and whose loss is learned.

A learner that draws at random draws as ever. If what it drew may not be played, another arm is
drawn in its stead, from the same probabilities renormalised, and its loss is learned as the loss of
the one that was drawn. So every arm is played with its renormalised probability, and the learner
plays an ordinary bandit in which an arm that may not be played loses what the others do.
``docs/theory/arms.md`` has the proof, and what it says of regret.

A learner that ranks arms by what it knows of each one ranks those that may be played.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel
from bandanna._core.streams import Stream, uniform
from bandanna.learners.sampling import pick
from bandanna.policies.plays import FollowExpert, Play, PlayArm

Among = tuple[int, ...]
"""Indices of the arms that may be played, in their order."""

Open = Callable[[Play, Stream], tuple[int, float, int]]


class Drawn(NamedTuple):
    """What a batch is opened with."""

    choice: int
    """The arm that is played, or the expert that is followed."""
    importance: float
    size: int
    """For how many rounds; 0 leaves it to the release."""
    credited: int
    """Whose loss is learned: what was drawn, before another took its place."""
    chance: float | None
    """With which probability the arm is played, where that is known."""


@kernel
def pick_once(weights: NDArray[np.float64], stream: Stream) -> int:
    """Draw an index from weights that add up to 1, from Python."""
    return pick(weights, 0, weights.size, uniform(stream))


def draw_renormalised(
    opened: Open, play: Play, stream: Stream, among: Among, chances: NDArray[np.float64]
) -> Drawn:
    """Draw an arm; if it may not be played, draw one that may be, in its stead."""
    shares = chances[list(among)]
    whole = float(shares.sum())
    # Probabilities may be too small for floating point: then nothing is known of these arms.
    shares = shares / whole if whole > 0.0 else np.full(len(among), 1.0 / len(among))
    credited, importance, size = opened(play, stream)
    choice = credited if credited in among else among[pick_once(shares, stream)]
    return Drawn(choice, importance, size, credited, float(shares[among.index(choice)]))


def draw_ranked(
    opened: Open,
    play: PlayArm | FollowExpert,
    stream: Stream,
    among: Among,
    per_arm: tuple[str, ...],
) -> tuple[int, float, int]:
    """Let a learner rank some arms: it sees a state that holds these alone."""
    assert isinstance(play.state, tuple)
    arms = list(among)
    arrays = {name: getattr(play.state, name) for name in per_arm}
    part = play.state._replace(**{name: array[arms] for name, array in arrays.items()})
    position, importance, size = opened(play._replace(state=part), stream)
    for name, array in arrays.items():  # what drawing changed
        array[arms] = getattr(part, name)
    return among[position], importance, size

"""What a learner does, dispatched on its parameters.

Each step is written once for each learner and called from everywhere: the online object, the
simulator, other learners.
"""

from __future__ import annotations

from collections.abc import Callable

from bandanna._core.compiled import kernel
from bandanna._core.dispatch import dispatched
from bandanna._core.streams import Stream

OWN_BATCH = 0
"""A length of this means: the batch of the release."""

CHOSEN = 0.0
"""Importance of an arm that was chosen by a rule, where others are drawn at random."""


@dispatched
def draw(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Choose an arm; returns it with its importance, the number its loss is multiplied by."""
    raise NotImplementedError


@dispatched
def update(
    params: object, state: object, arm: int, importance: float, loss: float, rounds: int
) -> None:
    """Learn from the loss of a batch of an arm.

    ``importance`` is what came with its draw, ``loss`` the batch's released mean, ``rounds`` how
    many rounds (or slots, where there is a rule for people) the batch had.
    """
    raise NotImplementedError


@dispatched
def length(params: object, state: object, arm: int) -> int:
    """Return for how many rounds the arm just drawn is to be played, or ``OWN_BATCH``."""
    raise NotImplementedError


def own_batch(params: object, state: object, arm: int) -> int:
    """Play as long as the release says; plain Python, for other libraries' learners too."""
    return OWN_BATCH


def register(
    params: type,
    draw_step: Callable[..., tuple[int, float]],
    update_step: Callable[..., None],
    length_step: Callable[..., int] = own_batch,
) -> None:
    """Say which steps belong to a type of parameters."""
    draw.register(params, draw_step)
    update.register(params, update_step)
    length.register(params, length_step)


@kernel
def draw_once(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Make one draw, from Python."""
    return draw(params, state, stream)


@kernel
def update_once(
    params: object, state: object, arm: int, importance: float, loss: float, rounds: int
) -> None:
    """Make one update, from Python."""
    update(params, state, arm, importance, loss, rounds)

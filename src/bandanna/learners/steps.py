"""What a learner does, dispatched on its parameters.

Each step is written once for each learner and called from everywhere: the online object, the
simulator, other learners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel
from bandanna._core.dispatch import dispatched
from bandanna._core.streams import Stream

OWN_BATCH = 0
"""A length of this means: the batch of the release."""

CHOSEN = 0.0
"""Importance of an arm that was chosen by a rule, where others are drawn at random."""


class Lesson(NamedTuple):
    """What a batch of an arm taught."""

    arm: int
    importance: float
    """What came with its draw."""
    loss: float
    """The batch's released mean."""
    rounds: int
    """How many rounds the batch had; slots, where there is a rule for people."""


@dispatched
def draw(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Choose an arm; returns it with its importance, the number its loss is multiplied by."""
    raise NotImplementedError


@dispatched
def update(params: object, state: object, lesson: Lesson) -> None:
    """Learn from the loss of a batch of an arm."""
    raise NotImplementedError


@dispatched
def length(params: object, state: object, arm: int) -> int:
    """Return for how many rounds the arm just drawn is to be played, or ``OWN_BATCH``."""
    raise NotImplementedError


@dispatched
def note_square(params: object, state: object, arm: int, square: float, rounds: int) -> None:
    """Note the released mean of squares around mid-range of the batch that is learned from next."""
    raise NotImplementedError


def no_square(params: object, state: object, arm: int, square: float, rounds: int) -> None:
    """Have no use for it."""


def own_batch(params: object, state: object, arm: int) -> int:
    """Play as long as the release says; plain Python, for other libraries' learners too."""
    return OWN_BATCH


def register(
    params: type,
    draw_step: Callable[..., tuple[int, float]],
    update_step: Callable[..., None],
    length_step: Callable[..., int] = own_batch,
    square_step: Callable[..., None] = no_square,
) -> None:
    """Say which steps belong to a type of parameters."""
    draw.register(params, draw_step)
    update.register(params, update_step)
    length.register(params, length_step)
    note_square.register(params, square_step)


@kernel
def draw_once(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Make one draw, from Python."""
    return draw(params, state, stream)


@kernel
def update_once(
    params: object, state: object, arm: int, importance: float, loss: float, rounds: int
) -> None:
    """Make one update, from Python."""
    update(params, state, Lesson(arm, importance, loss, rounds))


# --- learners that play phases --------------------------------------------------------------


@dispatched
def open_phase(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Fix how many rounds each arm has in the next phase; returns its size and a memo.

    The memo is handed back when the phase has been released.
    """
    raise NotImplementedError


@dispatched
def draw_round(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Draw the arm of the next round of the open phase; returns it with its chance."""
    raise NotImplementedError


@dispatched
def draw_round_among(
    params: object, state: object, allowed: NDArray[np.bool_], stream: Stream
) -> tuple[int, float]:
    """Draw the arm of the next round among eligible arms; returns it with its chance."""
    raise NotImplementedError


@dispatched
def learn_phase(
    params: object,
    state: object,
    memo: float,
    counts: NDArray[np.float64],
    values: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Learn from a phase: how many rounds each arm had in it, and their released means.

    ``squares`` are the means of squares around the middle of the range, and NaN where none were
    released. Arms without rounds have no mean. Phases may be learned from in any order.
    """
    raise NotImplementedError


def register_phases(
    params: type,
    open_step: Callable[..., tuple[int, float]],
    draw_step: Callable[..., tuple[int, float]],
    among_step: Callable[..., tuple[int, float]],
    learn_step: Callable[..., None],
) -> None:
    """Say which steps belong to a type of parameters of a learner that plays phases."""
    open_phase.register(params, open_step)
    draw_round.register(params, draw_step)
    draw_round_among.register(params, among_step)
    learn_phase.register(params, learn_step)


@kernel
def open_phase_once(params: object, state: object, stream: Stream) -> tuple[int, float]:
    """Open a phase, from Python."""
    return open_phase(params, state, stream)


@kernel
def learn_phase_once(
    params: object,
    state: object,
    memo: float,
    counts: NDArray[np.float64],
    values: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Learn from a phase, from Python."""
    learn_phase(params, state, memo, counts, values, squares)

"""Losses as integers.

A loss in [0, 1] becomes a whole number of grid units at the edge and stays one until a release:
sums are exact, the same everywhere, and floating point never touches private data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks, types
from bandanna._core.checks import as_float
from bandanna._core.types import InputError, plain

UNITS = types.UNITS
LossRange = tuple[float, float]

check_range = checks.loss_range

UNNAMED_FEEDBACK = (
    "give the feedback by name: observe(decision, loss=...) or observe(decision, reward=...). "
    "A number alone does not say whether more of it is better."
)


def to_units(name: str, value: object, loss_range: LossRange, *, clip: bool = False) -> int:
    """Turn one loss into grid units, refusing what is not a number inside the public range.

    With ``clip`` a number outside it counts as the nearer end. The error does not repeat the
    value: feedback is private, and errors end up in logs.
    """
    low, high = loss_range
    if isinstance(value, bool | np.bool_):
        value = int(value)  # clicked or not
    number = as_float(value)  # first of all: small NumPy floats compare in their own precision
    if clip and not math.isnan(number):
        number = min(max(number, low), high)
    if not low <= number <= high:
        got = f"a value of type {type(value).__name__} that is none"
        if not math.isnan(number):
            got = "a number outside it (clip=True counts such as the nearer end)"
        elif isinstance(value, Real):
            got = "NaN"
        raise InputError(
            f"{name} must be a number from {plain(low)} to {plain(high)}, the range fixed when the "
            f"policy was made; got {got}. The value is not repeated here because it is private."
        )
    units = round((number - low) / (high - low) * UNITS)
    return min(max(units, 0), UNITS)


def feedback_to_units(
    loss: object, reward: object, loss_range: LossRange, *, clip: bool = False
) -> int:
    """Turn a loss, or a reward, its mirror image in the range, into grid units of loss."""
    if (loss is None) == (reward is None):
        raise InputError(
            "give either loss= or reward=, not both."
            if loss is not None
            else "give the feedback as loss= or reward=."
        )
    if loss is not None:
        return to_units("loss", loss, loss_range, clip=clip)
    return UNITS - to_units("reward", reward, loss_range, clip=clip)


def array_to_units(
    losses: object,
    where: Callable[[int, int], str] | None = None,
    loss_range: LossRange = (0.0, 1.0),
) -> NDArray[np.int64]:
    """Turn a (rounds, arms) table of losses in a range into grid units.

    ``where`` says for people what is in a row and a column, both counted from 0.
    """
    if np.ma.isMaskedArray(losses) or getattr(getattr(losses, "dtype", None), "kind", "") == "c":
        raise InputError("losses must be a plain table of real numbers, not masked or complex.")
    table = _as_table(losses)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise InputError(
            f"losses must have shape (rounds, arms) with at least 1 round and 2 arms; "
            f"got shape {table.shape}."
        )
    low, high = loss_range
    ends = plain(low), plain(high)
    outside = (table < low) | (table > high)
    for wrong, what in (
        (np.isnan(table), "missing (empty or NaN). Fill them in, or leave those rounds out."),
        (
            outside,
            f"below {ends[0]} or above {ends[1]}. Rescale them first, or say what range they have.",
        ),
    ):
        if wrong.any():
            position = (where or _where)(*np.argwhere(wrong)[0])
            raise InputError(
                f"losses must be numbers from {ends[0]} to {ends[1]}; {position} is the first of "
                f"{int(wrong.sum()):,} that are {what}"
            )
    return np.rint((table - low) / (high - low) * UNITS).astype(np.int64)


def _as_table(losses: object) -> NDArray[np.float64]:
    try:
        return np.asarray(losses, dtype=np.float64)
    except (TypeError, ValueError):
        pass  # what NumPy says repeats values
    raise InputError(
        "losses must be a table of numbers, a row for each round and a column for each arm; some "
        "rows are longer than others, or something is no number."
    )


def _where(row: int, column: int) -> str:
    return f"round {row + 1}, arm {column + 1} (counted from 1)"

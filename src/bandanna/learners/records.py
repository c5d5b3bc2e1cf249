"""Numbers with names in a learner's state: arrays of one record.

A class names the numbers. A step reads ``state.phase[0].rounds`` and changes it in place, compiled
or not; ``phase = state.phase[0]`` is no copy. Saved documents have a plain list, in the order of
the names, so new names go to the end.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

N_co = TypeVar("N_co", covariant=True)


class Record(Protocol[N_co]):
    """An array of one record with the numbers that a class names."""

    def __getitem__(self, at: int, /) -> N_co:
        """Return the record, at 0: it changes with the array."""


def record_of(names: type) -> np.dtype[np.void]:
    """Return what such an array is made of: for each name a float."""
    fields = np.dtype([(name, np.float64) for name in names.__annotations__], align=True)
    assert not any(hasattr(np.record, name) for name in names.__annotations__), "NumPy's own names"
    return np.dtype((np.record, fields))


def numbers_in(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return an array without names, in the same memory."""
    return array if array.dtype.names is None else array.view(np.float64)

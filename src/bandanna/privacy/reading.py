"""What released values say of the losses behind them: post-processing, so it costs no privacy."""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """What a release has told of one arm: values of batches, all of them public."""

    batches: int = 0
    total: float = 0.0
    """Sum of the values."""
    squares: float = 0.0
    """Sum of one over the squared size of each batch."""
    largest: float = 0.0
    """The largest one over a size."""

    def and_also(self, value: float, size: int) -> Told:
        """Add the value of a batch."""
        share = 1.0 / size
        squares = self.squares + share * share
        return Told(self.batches + 1, self.total + value, squares, max(self.largest, share))


class Reading(NamedTuple):
    """An estimate of the mean loss of batches, and how far noise may have moved it."""

    mean: float
    radius: float

"""What released values say of the losses behind them: post-processing, so it costs no privacy."""

from __future__ import annotations

from typing import NamedTuple


class ArmTotals(NamedTuple):
    """What a release has published of one arm: values of batches, all of them public."""

    batches: int = 0
    total: float = 0.0
    """Sum of the values, each times the size of its batch."""
    rounds: float = 0.0
    """Sum of the sizes."""

    def and_also(self, value: float, size: int) -> ArmTotals:
        """Add the value of a batch."""
        return ArmTotals(self.batches + 1, self.total + size * value, self.rounds + size)

    @property
    def mean(self) -> float:
        """The mean value of a round."""
        return self.total / self.rounds

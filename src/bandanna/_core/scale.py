"""How outcomes are counted once something is subtracted from them: a range of its own."""

from __future__ import annotations

from typing import NamedTuple

from bandanna._core.types import UNITS


class Scale(NamedTuple):
    """How outcomes are counted: what is subtracted, and the range of what is left."""

    low: float
    high: float
    slope: float = 0.0
    """What was known before is subtracted so many times."""

    @property
    def ends(self) -> tuple[float, float]:
        """The range."""
        return self.low, self.high

    def units(
        self, sent: int, before: float, loss_range: tuple[float, float], *, reward: bool
    ) -> int:
        """Return what is counted of an outcome as it was sent, a loss in grid units of its range.

        What is left once the slope times what was known before is subtracted is moved into the
        range of this scale: one person moves a sum by no more than that range.

        Examples
        --------
        >>> Scale(-1.0, 1.0, 0.5).units(UNITS, 1.0, (0.0, 2.0), reward=False) / UNITS  # 2 - 0.5
        1.0
        >>> Scale(-1.0, 1.0, 0.5).units(UNITS // 2, 1.0, (0.0, 2.0), reward=False) / UNITS
        0.75
        """
        low, high = loss_range
        outcome = low + (high - low) * ((UNITS - sent if reward else sent) / UNITS)
        left = outcome - self.slope * min(max(before, low), high)
        inside = min(max(left, self.low), self.high)
        units = round((inside - self.low) / (self.high - self.low) * UNITS)
        return UNITS - units if reward else units

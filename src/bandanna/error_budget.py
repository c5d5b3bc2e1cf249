"""One budget of error for all that is said in a policy's life.

Every interval of an arm's mean, every comparison of two arms and every name of a best arm rests on
an event of small probability that must not happen at any time. ``ErrorBudget`` says how small it
is for each, so that together they add up to at most ``alpha``, for any number of arms and for arms
that are added later. Arms are counted in the order in which they came, retired ones included: what
was said of them, and that they were chosen to be retired, counts too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MEANS = 0.2
"""Share for the arms' means; the rest is for what is said of two arms, and of the best one."""
BEST = 0.6
"""Share for the best of three and more arms: one of them is best, and only it can be wronged."""
OF_SQUARES = 0.1
"""Share of all of it for how much outcomes vary, where proofs rest on that."""
LATER = 0.05
"""Share of each of these that waits for arms that may be added."""


class ErrorBudget(NamedTuple):
    """The probability with which each statement may be wrong at any time.

    Examples
    --------
    >>> budget = ErrorBudget(alpha=0.05, first=2)
    >>> round(budget.pair(0, 1), 6), round(budget.mean(0), 6)
    (0.019, 0.00475)
    """

    alpha: float
    first: int
    """Arms that there were when something was first released."""
    transitive: bool = True
    """Whether arms have an order, and with it one best arm. Averages over different phases of
    outcomes that change have none."""
    grows: bool = True
    """Whether arms may be added."""
    part: float = 1.0
    """The part of it, where two kinds of statements share it."""

    def mean(self, arm: int) -> float:
        """Return the error probability of an arm's interval, both sides together."""
        return self._of_arm(MEANS * self.part, arm)

    def pair(self, a: int, b: int) -> float:
        """Return the error probability of each side of what is said of two arms."""
        newest = max(a, b)
        kept, rank = self._kept(newest)
        share = (1.0 - MEANS - self._for_best) * self.alpha * self.part * kept
        if rank == 0:
            return share / max(self.first * (self.first - 1), 1)
        return share / (rank * (rank + 1) * 2 * newest)

    @property
    def with_squares(self) -> ErrorBudget:
        """The rest, where ``square`` takes its share."""
        return self._replace(part=(1.0 - OF_SQUARES) * self.part)

    def square(self, arm: int) -> float:
        """Return the error probability of how much an arm's outcomes vary at most."""
        return self._of_arm(OF_SQUARES, arm)

    @property
    def best(self) -> float:
        """The error probability with which any arm is better than the best of the first ones.

        Zero where what is said of pairs must do.
        """
        kept, _ = self._kept(0)
        return self._for_best * self.alpha * self.part * kept / max(self.first, 1)

    @property
    def half(self) -> ErrorBudget:
        """The same with half of it, for one of two kinds of statements that share it."""
        return self._replace(part=0.5 * self.part)

    def of_pairs(self, arms: int) -> NDArray[np.float64]:
        """Return by arm the error probability of each side of a pair in which it is the newer."""
        return np.array([self.pair(0, arm) if arm else self.pair(0, 1) for arm in range(arms)])

    @property
    def _for_best(self) -> float:
        return BEST if self.transitive and self.first > 2 else 0.0

    def _of_arm(self, share: float, arm: int) -> float:
        """Return an arm's part of a share of alpha."""
        kept, rank = self._kept(arm)
        return share * self.alpha * kept / (self.first if rank == 0 else rank * (rank + 1))

    def _kept(self, arm: int) -> tuple[float, int]:
        """Return what is left for arms of its time, and as which of the added ones it came."""
        if not self.grows:
            return 1.0, 0
        rank = max(arm - self.first + 1, 0)
        return (LATER if rank else 1.0 - LATER), rank

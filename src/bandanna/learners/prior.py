"""What a learner knows before its first round: released sums of a log, arm by arm.

A log may have been released with more noise than the run has. Then a learner that counts every
release with the noise of the run takes a part ``w`` of its sums and of its rows, so that the noise
is no larger than the run's. ``docs/theory/answers.md`` proves that evidence stays valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.start import MOST_SQUARE, part_within
from bandanna._core.types import InputError

Floats = NDArray[np.float64]


class PriorArm(NamedTuple):
    """What was released of one arm; all zeros where nothing was."""

    rounds: float = 0.0
    mean: float = 0.0
    """The released mean loss, which noise may take out of [0, 1]."""
    releases: float = 0.0
    scale: float = 0.0
    """Scale of the Laplace noise on each released sum."""
    square: float = MOST_SQUARE
    """The released mean square of losses around 1/2, with noise of the same scale."""

    @property
    def noise(self) -> float:
        """The variance of the noise on the mean."""
        return 2.0 * self.releases * (self.scale / self.rounds) ** 2 if self.rounds else 0.0


Prior = tuple[PriorArm, ...]


def check_prior(prior: object, arms: int) -> Prior | None:
    """Require what is known of each arm; None where nothing is."""
    if prior is None:
        return None
    if not isinstance(prior, Iterable):
        raise InputError("a learner's prior must be a list with an entry for each arm.")
    checked = tuple(PriorArm(*map(checks.as_float, one)) for one in prior)
    if len(checked) != arms or not np.isfinite(checked).all():
        raise InputError(
            f"a learner's prior must have four or five finite numbers for each of {arms} arms."
        )
    return checked


class Weighed(NamedTuple):
    """What counts of a prior, by arm."""

    sums: Floats
    rounds: Floats
    releases: Floats
    squares: Floats
    """Sums of squares of losses around 1/2."""


def weighed(prior: Prior, scale: float) -> Weighed:
    """Return what counts of a prior, with the noise of this scale."""
    parts = [part_within(one.scale, scale) for one in prior]
    both = list(zip(parts, prior, strict=True))
    return Weighed(
        np.array([part * one.rounds * one.mean for part, one in both]),
        np.array([part * one.rounds for part, one in both]),
        np.array([one.releases for one in prior]),
        np.array([part * one.rounds * one.square for part, one in both]),
    )

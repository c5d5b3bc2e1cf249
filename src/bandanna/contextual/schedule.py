"""When epochs end: at lengths that grow, set before the first round."""

from __future__ import annotations

import math

from bandanna.privacy.epoch_sums import OfEpochs

GROWTH = 1.6
"""Each epoch ends at this multiple of the one before."""

FIRST = {False: 1.0, True: 3.0}
SMALLEST = 50


def first_end(rounds: int, arms: int, features: int, deviation: float, *, both: bool) -> int:
    """Return the shortest first epoch worth releasing with noise of a deviation."""
    worth = FIRST[both] * arms * math.sqrt(features) * deviation
    return max(1, int(min(rounds / 4, max(SMALLEST, worth))))


def planned_ends(rounds: int, release: OfEpochs) -> tuple[int, ...]:
    """Return the rounds at which epochs end, with what publishes them."""
    size = release.arms, release.features, release.scale
    return epoch_ends(rounds, first_end(rounds, *size, both=release.both))


def epoch_ends(rounds: int, first: int) -> tuple[int, ...]:
    """Return the rounds at which epochs end; the last is ``rounds``.

    Ends are counted back from the last, so that what is learned is used for a fixed share.

    Examples
    --------
    >>> epoch_ends(10_000, 1_000)
    (1527, 2442, 3907, 6250, 10000)
    """
    ends = [rounds]
    while ends[-1] / GROWTH >= first:
        before = math.ceil(ends[-1] / GROWTH)
        if before == ends[-1]:  # 1 or 2
            break
        ends.append(before)
    return tuple(reversed(ends))


def epoch_length(ends: tuple[int, ...], epoch: int) -> int:
    """Return how many rounds an epoch has, counted from 0, beyond the planned ones too."""
    ends = (0, *ends)
    while len(ends) < epoch + 2:
        ends = (*ends, math.ceil(ends[-1] * GROWTH))
    return ends[epoch + 1] - ends[epoch]

"""What a log says of each arm, by time; and how many rounds it is enough for."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.environments.log import Log

BLOCKS, ROWS = 20, 50
"""By default a log in order of time is cut into at most so many blocks, and so that every arm has
at least so many rows in each, where it can be."""

SURE = 6.0
"""Standard deviations: what is sure that far goes wrong less often than once in 10^8 runs."""


class Tables(NamedTuple):
    """The different losses of each block and arm."""

    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    chances: NDArray[np.float64]
    upto: NDArray[np.float64]
    means: NDArray[np.float64]
    """(blocks, arms), as losses from 0 to 1."""


def usual_blocks(log: Log) -> int:
    """Return how many blocks to cut a log into."""
    if not log.ordered:
        return 1
    rarest = int(np.bincount(log.arms).min())
    return max(1, min(BLOCKS, rarest // ROWS))


def block_tables(log: Log, blocks: int) -> Tables:
    """Weigh rows by one over their propensity, and add up equal losses."""
    weights = 1.0 / log.chances()
    ends = np.rint(np.linspace(0, log.size, blocks + 1)).astype(np.int64)
    block_of = np.searchsorted(ends, np.arange(log.size), side="right") - 1
    width = len(log.arm_names)
    starts, values, chances = [0], [], []
    means = np.zeros((blocks, width))
    for block in range(blocks):
        for arm in range(width):
            rows = (block_of == block) & (log.arms == arm)
            if not rows.any():
                raise InputError(
                    f"in block {block + 1} of {blocks} no row has arm {log.arm_names[arm]!r}; use "
                    f"fewer blocks."
                )
            found, which = np.unique(log.units[rows], return_inverse=True)
            share = np.bincount(which, weights=weights[rows]) / weights[rows].sum()
            values.append(found)
            chances.append(share)
            starts.append(starts[-1] + found.size)
            means[block, arm] = float(share @ found) / UNITS
    upto = [np.minimum(np.cumsum(share), 1.0) for share in chances]
    return Tables(
        np.array(starts, dtype=np.int64),
        np.concatenate(values).astype(np.int64),
        np.concatenate(chances),
        np.concatenate(upto),
        means,
    )


def replay_rounds(log: Log) -> int:
    """Return how many rounds a log is enough for, but for one run in 10^8.

    A row is taken with probability c, the smallest propensity, whatever arm is played: its arm
    was chosen with its propensity p, and it is kept with probability c/p.
    """
    chances = log.chances()
    for arm, name in enumerate(log.arm_names):
        weights = 1.0 / chances[log.arms == arm]
        off = abs(float(weights.sum()) - log.size)
        if off > SURE * math.sqrt(max(float((weights**2).sum()) - log.size, 0.0)) + 1e-6 * log.size:
            raise InputError(
                f"the propensities do not fit the log: arm {name!r} was played in {weights.size:,} "
                f"rows, far from as often as they say. A replay would be wrong; resample, or leave "
                f"the propensities out if arms were chosen at random."
            )
    taken = log.size * float(chances.min())
    rounds = math.floor(taken - SURE * math.sqrt(taken))
    if rounds < 1:
        raise InputError(
            f"a replay of {log.name} would take about {taken:.3g} of {log.size:,} rows, too few "
            f"to go on: some propensity is very small. Resample instead."
        )
    return rounds

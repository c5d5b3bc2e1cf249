"""One run of a learner that plays phases, compiled: round by round, one release for each arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel
from bandanna._core.streams import Stream
from bandanna.environments.base import realised, sum_losses
from bandanna.learners.steps import draw_round, learn_phase, open_phase
from bandanna.privacy.release import publish

if TYPE_CHECKING:
    from bandanna.simulation.engine import Run

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

ARMS, RELEASES, LOSSES = 0, 1, 2


class Open(NamedTuple):
    """The open phase: rounds and losses of each arm so far, and what is released in the end."""

    counts: Floats
    totals: Integers
    values: Floats


def open_sums(arms: int) -> Open:
    """Return empty arrays for a phase."""
    return Open(np.zeros(arms), np.zeros(arms, dtype=np.int64), np.zeros(arms))


@kernel
def play_phases(
    params: NamedTuple,
    state: NamedTuple,
    release: NamedTuple,
    environment: NamedTuple,
    memory: Integers,
    streams: tuple[Stream, Stream, Stream],
    stops: Integers,
    result: Run,
    phase: Open,
) -> None:
    """Play until the last checkpoint. A last phase that is not full is not released."""
    counts, totals, values = phase
    arms = counts.size
    rounds = stops[-1]
    total = 0
    t = 0
    checkpoint = 0
    while t < rounds:
        size, memo = open_phase(params, state, streams[ARMS])
        for i in range(arms):
            counts[i] = 0.0
            totals[i] = 0
        end = t + size
        while t < end and t < rounds:
            until = min(end, stops[checkpoint])
            for now in range(t, until):
                arm, _ = draw_round(params, state, streams[ARMS])
                loss = sum_losses(environment, memory, arm, now, now + 1, streams[LOSSES])
                totals[arm] += loss
                counts[arm] += 1.0
                total += loss
            t = until
            if t == stops[checkpoint]:
                result.losses[checkpoint] = total
                realised(environment, memory, result.realised[checkpoint])
                for i in range(arms):
                    result.played[checkpoint, i] = result.plays[i] + int(counts[i])
                checkpoint += 1
        for i in range(arms):
            result.plays[i] += int(counts[i])
        if t == end:
            for i in range(arms):
                values[i] = 0.0
                if counts[i] > 0.0:
                    values[i] = publish(release, totals[i], int(counts[i]), streams[RELEASES])
                    result.published[0, i] += counts[i] * values[i]
                    result.published[1, i] += counts[i]
            learn_phase(params, state, memo, counts, values)

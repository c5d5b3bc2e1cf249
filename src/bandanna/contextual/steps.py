"""The compiled steps of a contextual policy: the chances of arms, and a draw from them.

The online policy and the simulator call the same steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel, once, step
from bandanna._core.streams import Stream, uniform
from bandanna.privacy.epoch_sums import Counts, count

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Scores(NamedTuple):
    """A linear score for each arm, and how much gaps between them count."""

    coefficients: Floats
    """Shape (arms, features)."""
    sharpness: Floats
    """One number, gamma: arms are drawn with chance ``1 / (K + gamma gap)``; 0 is uniform."""
    chances: Floats
    """Of the arms in the last context: room to compute in."""

    def among(self, arms: list[int]) -> Scores:
        """Return the scores of some arms alone."""
        return Scores(self.coefficients[arms], self.sharpness, np.zeros(len(arms)))


@step
def set_chances(phi: Floats, scores: Scores) -> int:
    """Compute the chances of the arms in a context; returns the best arm.

    Every other arm has chance ``1 / (K + gamma gap)`` and the best arm the rest (Abe and Long
    1999; Foster and Rakhlin 2020).
    """
    arms, size = scores.coefficients.shape
    chances = scores.chances
    best = 0
    for a in range(arms):
        total = 0.0
        for i in range(size):
            total += scores.coefficients[a, i] * phi[i]
        chances[a] = total
        if total > chances[best]:
            best = a
    top = chances[best]
    rest = 1.0
    for a in range(arms):
        if a != best:
            chances[a] = 1.0 / (arms + scores.sharpness[0] * (top - chances[a]))
            rest -= chances[a]
    chances[best] = rest
    return best


@step
def choose(phi: Floats, scores: Scores, u: float) -> tuple[int, float]:
    """Draw an arm by one uniform number; returns it with its importance, one over its chance."""
    best = set_chances(phi, scores)
    target = u
    for a in range(scores.chances.size):
        if target < scores.chances[a]:
            return a, 1.0 / scores.chances[a]
        target -= scores.chances[a]
    return best, 1.0 / scores.chances[best]


@kernel
def draw(phi: Floats, scores: Scores, stream: Stream) -> tuple[int, float]:
    """Draw an arm for one context."""
    return choose(phi, scores, uniform(stream))


compute_chances = once(set_chances)


@kernel
def play(
    table: Floats,
    people: Integers,
    losses: Integers,
    scores: Scores,
    both: bool,
    counts: Counts,
    stream: Stream,
    arms: Integers,
) -> None:
    """Play one epoch in order, feedback at once: the loop of the simulator.

    ``people`` are rows of ``table``, ``losses`` has a loss for every round and arm. The arms that
    are played are written to ``arms``.
    """
    for t in range(people.size):
        phi = table[people[t]]
        arm, _ = choose(phi, scores, uniform(stream))
        arms[t] = arm
        count(phi, arm, losses[t, arm], both, counts)

"""The compiled steps of a contextual policy: draw an arm, and count a person's contribution.

The online policy and the simulator call the same steps. Contributions are integers, so sums do not
depend on the order in which feedback arrives.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel, step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, uniform
from bandanna.privacy.epochs import GRID

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EXACT_UNITS = 2**24
"""Units of products where contexts are public: they are not released with noise."""

_SAFE = GRID * (1.0 - 2.0**-40)
HALF = UNITS // 2


class Scores(NamedTuple):
    """The policy of an epoch: a linear score for each arm, and how much gaps count."""

    coefficients: Floats
    """Shape (arms, features)."""
    sharpness: Floats
    """One number, gamma: arms are drawn with chance ``1 / (K + gamma gap)``; 0 is uniform."""


class Counts(NamedTuple):
    """What an epoch adds up, in grid units, and the map that people's features go through."""

    transform: Floats
    """Shape (features, features)."""
    products: Integers
    """Shape (arms, pairs of features)."""
    sums: Integers
    """Shape (arms, features)."""
    rounds: Integers
    """Feedback counted, by arm."""


class Scratch(NamedTuple):
    """Room to compute in."""

    scores: Floats
    mapped: Floats
    whole: Integers


@step
def choose(phi: Floats, scores: Scores, scratch: Scratch, u: float) -> tuple[int, float]:
    """Draw an arm by one uniform number; returns it with its chance.

    Every other arm has chance ``1 / (K + gamma gap)`` and the best arm the rest (Abe and Long
    1999; Foster and Rakhlin 2020).
    """
    arms, size = scores.coefficients.shape
    found = scratch.scores
    best = 0
    for a in range(arms):
        total = 0.0
        for i in range(size):
            total += scores.coefficients[a, i] * phi[i]
        found[a] = total
        if total > found[best]:
            best = a
    top = found[best]
    rest = 1.0
    for a in range(arms):
        if a != best:
            found[a] = 1.0 / (arms + scores.sharpness[0] * (top - found[a]))
            rest -= found[a]
    found[best] = rest
    target = u
    for a in range(arms):
        if target < found[a]:
            return a, found[a]
        target -= found[a]
    return best, found[best]


@step
def count(phi: Floats, arm: int, loss: int, both: bool, counts: Counts, scratch: Scratch) -> None:
    """Add a person's features and outcome to the sums of the arm they had.

    The outcome is a reward, centred: ``1/2 - loss``. Features are mapped, shortened to length 1
    and rounded towards 0 to the grid.
    """
    size = phi.size
    mapped, whole = scratch.mapped, scratch.whole
    square = 0.0
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += counts.transform[i, j] * phi[j]
        mapped[i] = total
        square += total * total
    # Contexts public: the sum of phi y is shortened. Protected: phi is, in products and sums.
    shorten = 1.0 if square <= 1.0 else 1.0 / math.sqrt(square)
    norm = np.int64(0)
    for i in range(size):
        whole[i] = np.int64(mapped[i] * shorten * _SAFE)
        norm += whole[i] * whole[i]
    while norm > GRID * GRID:  # cannot happen but by rounding; the promise rests on it
        norm = np.int64(0)
        for i in range(size):
            whole[i] -= np.sign(whole[i])
            norm += whole[i] * whole[i]
    outcome = np.int64(HALF - min(max(loss, 0), UNITS))
    k = 0
    if both:
        outcome = np.int64(np.rint(outcome * shorten))
        for i in range(size):
            for j in range(i, size):
                counts.products[arm, k] += whole[i] * whole[j]
                k += 1
    else:
        for i in range(size):
            for j in range(i, size):
                product = shorten * mapped[i] * mapped[j]
                counts.products[arm, k] += np.int64(np.rint(product * EXACT_UNITS))
                k += 1
    for i in range(size):
        counts.sums[arm, i] += whole[i] * outcome
    counts.rounds[arm] += 1


@kernel
def draw(phi: Floats, scores: Scores, scratch: Scratch, stream: Stream) -> tuple[int, float]:
    """Draw an arm for one context."""
    return choose(phi, scores, scratch, uniform(stream))


@kernel
def add(phi: Floats, arm: int, loss: int, both: bool, counts: Counts, scratch: Scratch) -> None:
    """Count one person's feedback."""
    count(phi, arm, loss, both, counts, scratch)


@kernel
def play(
    table: Floats,
    people: Integers,
    losses: Integers,
    scores: Scores,
    both: bool,
    counts: Counts,
    scratch: Scratch,
    stream: Stream,
    arms: Integers,
) -> None:
    """Play one epoch in order, feedback at once: the loop of the simulator.

    ``people`` are rows of ``table``, ``losses`` has a loss for every round and arm. The arms that
    are played are written to ``arms``.
    """
    for t in range(people.size):
        phi = table[people[t]]
        arm, _ = choose(phi, scores, scratch, uniform(stream))
        arms[t] = arm
        count(phi, arm, losses[t, arm], both, counts, scratch)


def new_counts(transform: Floats, arms: int) -> Counts:
    """Return the sums of an epoch before the first feedback."""
    size = transform.shape[0]
    pairs = size * (size + 1) // 2
    return Counts(
        np.ascontiguousarray(transform),
        np.zeros((arms, pairs), dtype=np.int64),
        np.zeros((arms, size), dtype=np.int64),
        np.zeros(arms, dtype=np.int64),
    )


def new_scratch(size: int, arms: int) -> Scratch:
    """Return room to compute in."""
    return Scratch(np.zeros(arms), np.zeros(size), np.zeros(size, dtype=np.int64))


def uniform_scores(size: int, arms: int) -> Scores:
    """Return the scores before anything is known: all arms alike."""
    return Scores(np.zeros((arms, size)), np.zeros(1))

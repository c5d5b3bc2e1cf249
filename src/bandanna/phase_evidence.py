"""What phases tell of the difference of two arms, whatever losses are, if fixed in advance.

Within a phase each arm's rounds are a sample without replacement of the phase. Differences within
phases are averaged, and what moves all arms together cancels. What is said holds at all times
together, as in ``bandanna.inference``; ``docs/theory/answers.md`` has the proofs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.inference import CLOSE, NEWTON, Floats, Interval, around, law_of


class PhaseEvidence(NamedTuple):
    """The average effect over phases, and what speaks against effects that are away from it.

    Each phase is weighed by how precisely it is known.
    """

    difference: float
    """At most as far as losses go, so it is in its interval."""
    phases: int
    """Phases in which both arms were played."""
    slopes: Floats
    values: Floats
    """The log evidence at each rate, with its weight, is ``values + slopes * away``."""

    def against(self, away: float) -> float:
        """Return the log evidence against effects this far from the estimate, on one side."""
        if not self.values.size:
            return -math.inf
        return float(np.logaddexp.reduce(self.values + self.slopes * away))

    def interval(self, error: float) -> Interval:
        """Return the effects that are not refuted, with an error probability on each side."""
        return around(self.difference, self.radius(-math.log(error)), -1.0, 1.0)

    def radius(self, level: float) -> float:
        """Return from where on effects are refuted: Newton's method, from the refuted side.

        Evidence is convex in the distance, so every step stays on that side.
        """
        away = 2.0
        for _ in range(NEWTON):
            parts = self.values + self.slopes * away
            more = self.against(away) - level
            if more <= 0.0:
                break
            weights = np.exp(parts - parts.max())
            move = more * float(weights.sum() / (weights @ self.slopes))
            away -= move
            if move < CLOSE:
                break
        return away


def phase_evidence(
    counts: NDArray[np.float64], sums: NDArray[np.float64], a: int, b: int, *, scale: float
) -> PhaseEvidence | None:
    """Return what phases tell of the mean of ``b - a``, for any losses fixed in advance.

    Within a phase every round's arm was drawn from the same shares, or counts were fixed and their
    order drawn. Given the counts, each arm's rounds are then a sample without replacement of the
    phase. Nothing is assumed of the losses. The statement holds at all times together.

    Parameters
    ----------
    counts, sums
        Rounds and released sums of every phase (row) and arm (column).
    a, b
        Columns of the two arms.
    scale
        Scale of the Laplace noise on each sum, in units of the loss.

    Returns
    -------
    PhaseEvidence or None
        None if there is no phase in which both were played.
    """
    counts, sums = np.atleast_2d(counts), np.atleast_2d(sums)
    both = (counts[:, a] > 0) & (counts[:, b] > 0)
    if not both.any():
        return None
    n_a, n_b, length = counts[both, a], counts[both, b], counts[both].sum(axis=1)
    gaps = sums[both, b] / n_b - sums[both, a] / n_a
    spread = _phase_spread(n_a, n_b, length)
    weights = 1.0 / (spread + 2.0 * scale**2 * (n_a**-2.0 + n_b**-2.0))
    law = law_of()
    rates = law.rates[:, None] * weights
    tilts = np.maximum(rates * scale / n_a, rates * scale / n_b)
    usable = (tilts < 0.99).all(axis=1)
    rates = rates[usable]
    price = (0.5 * rates**2 * spread).sum(axis=1)
    for count in (n_a, n_b):
        price -= np.log1p(-((rates * scale / count) ** 2)).sum(axis=1)
    total = weights.sum()
    return PhaseEvidence(
        min(max(float((weights * gaps).sum() / total), -1.0), 1.0),
        int(np.count_nonzero(both)),
        law.rates[usable] * total,
        law.weights[usable] - price,
    )


def _phase_spread(n_a: Floats, n_b: Floats, length: Floats) -> Floats:
    """Return V with ``E exp(t (difference - its mean)) <= exp(t^2 V / 2)`` in each phase."""
    from scipy.special import polygamma  # loaded when first used

    def drawn(n: Floats, of: Floats) -> Floats:
        """Return V for the mean of n values drawn without replacement from ``of`` in [0, 1]."""
        left = np.maximum(of - n, 1.0)
        sums: Floats = np.where(of > n, left**2 * (polygamma(1, left) - polygamma(1, of)), 0.0)
        return sums / (4.0 * n**2)

    together = n_a + n_b
    wide = (together / (n_a * n_b)) ** 2
    split = wide * np.minimum(drawn(n_a, together) * n_a**2, drawn(n_b, together) * n_b**2)
    nested = split + 4.0 * drawn(together, length)
    apart = 2.0 * (drawn(n_a, length) + drawn(n_b, length))
    spread: Floats = np.minimum(nested, apart)
    return spread

"""Which parts of sequences tell two samples apart, by their means and covariances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Outputs = NDArray[Any]
"""Numbers of any kind, one or a sequence for each try."""

RESOLUTION = 1e-12
"""Variances smaller than this, against those they are computed from, are rounding errors."""


class Moments(NamedTuple):
    """How far two samples of sequences are apart, and how much they vary."""

    apart: Floats
    """Difference of the means of each part."""
    spread: Floats
    """Covariance of the parts, on average over both samples."""

    @classmethod
    def of(cls, first: Outputs, second: Outputs) -> Moments:
        """Compute the moments of two samples; what is not a number counts as 0."""
        one, other = (
            np.where(np.isfinite(sample), sample, 0.0).astype(np.float64)
            for sample in (first, second)
        )
        centred = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)])
        return cls(one.mean(axis=0) - other.mean(axis=0), centred.T @ centred / len(centred))

    def telling_parts(self, most: int) -> list[int]:
        """Return the parts that tell most."""
        scores = _scores(self.apart, self.spread.diagonal(), self.spread.diagonal())
        return sorted(np.argsort(-scores, kind="stable")[:most].tolist())

    def telling_pairs(self, most: int) -> list[tuple[int, int, int]]:
        """Return the sums (+1) and differences (-1) of two parts that tell most."""
        later, earlier = np.tril_indices(self.apart.size, -1)
        own = self.spread.diagonal()
        total = own[later] + own[earlier]
        scores = [
            _scores(
                self.apart[later] + sign * self.apart[earlier],
                total + 2.0 * sign * self.spread[later, earlier],
                total,
            )
            for sign in (-1, 1)
        ]
        best = np.argsort(-np.concatenate(scores), kind="stable")[:most]
        which, pair = np.divmod(best, later.size)
        signs = np.where(which == 0, -1, 1)
        rows = zip(signs.tolist(), later[pair].tolist(), earlier[pair].tolist(), strict=True)
        return list(rows)

    def best_weights(self) -> Floats:
        """Return the weights of the sum of parts that tells most (Fisher's discriminant)."""
        own = self.spread.diagonal()
        floor = RESOLUTION * max(float(own.max()), RESOLUTION)
        spread = self.spread + floor * np.eye(own.size)
        weights: Floats = np.linalg.solve(spread, self.apart).astype(np.float64)
        largest = float(np.abs(weights).max())
        return weights / largest if largest > 0 else np.ones_like(weights)


def _scores(apart: Floats, variance: Floats, scale: Floats) -> Floats:
    """Return how many deviations apart."""
    scores: Floats = np.abs(apart) / np.sqrt(np.maximum(variance, RESOLUTION * (scale + 1e-300)))
    return scores

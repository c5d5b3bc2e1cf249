"""From released statistics to scores: ridge regression for each arm that knows how noisy they are.

All of this is post-processing of releases; no private number comes here. Epoch ``j`` gave for each
arm the products ``A_j`` and sums ``b_j = A_j theta + noise``, in coordinates ``M_j phi``.

1. Epochs are weighted by how much they say against their noise, ``n_j / (s2 n_j + d v)``: short
   early epochs, which are mostly noise, hardly count.
2. Where products are noisy, an arm's products are pulled towards the average of all arms, by the
   positive-part James-Stein rule.
3. An arm's mean is pulled towards that of all arms; the rest of its coefficients towards zero, by a
   Gaussian prior whose variance maximises the likelihood over all arms.
4. The next epoch's map whitens the average products, so that noise, which is the same in all
   directions, is spread as the features are.
5. The sharpness is ``3 sqrt(K t / d)`` with the rounds ``t`` that count after weighting (Foster
   and Rakhlin 2020; Simchi-Levi and Xu 2021).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.contextual.steps import Scores
from bandanna.privacy.epoch_sums import EXACT_UNITS
from bandanna.privacy.epochs import PRODUCT_UNITS, SUM_UNITS
from bandanna.privacy.release import ReleasedEpoch

Floats = NDArray[np.float64]

OUTCOME_VARIANCE = 0.25
"""Variance of an outcome in [0, 1]: the largest there is."""

SHARPNESS = 3.0
STRETCH = {False: 1.0, True: 4.0}
"""Mean squared length of mapped features before they are shortened to 1, by whether contexts are
protected. Chosen with SHARPNESS on the problems of ``benchmarks/context.py``."""

RIDGE = 1e-3
"""Smallest variance of a direction, relative to the largest, that is stretched in full."""

PRIOR = 2.0 ** np.arange(-8.0, 8.1, 0.5)
"""Variances of coefficients that are tried."""

MEAN_VARIANCE = 1.0
"""Prior variance of mean rewards."""

SHORTEST, LONGEST = 0.1, 50.0
"""Limits of the squared length of coefficients that noise on products is multiplied by."""

TINY = 1e-300


class Noise(NamedTuple):
    """Standard deviations of the noise on sums and on squares of features."""

    sums: float
    products: float


class Reading(NamedTuple):
    """One epoch's release, in the coordinates of the encoder."""

    products: Floats
    """Shape (arms, features, features)."""
    sums: Floats
    shape: Floats
    """Covariance of the noise of sums, up to its variance."""
    rounds: Floats
    """Rounds of each arm; an estimate where contexts are protected."""
    observed: float
    """Rounds of all arms, which is public."""


class Fit(NamedTuple):
    """What is known after some epochs."""

    scores: Scores
    transform: Floats
    """The map for the next epoch."""
    length: float
    """Mean squared length of the coefficients in mapped coordinates."""
    moments: Floats
    """Mean products of features."""
    errors: Floats
    """Posterior covariance of each arm's coefficients, shape (arms, features, features)."""
    prior: float


def read_release(released: ReleasedEpoch, noise: Noise, *, both: bool) -> Reading:
    """Turn a release into numbers of the encoder's coordinates."""
    arms, size = released.sums.shape
    rounds = released.rounds
    rows, columns = np.triu_indices(size)
    products = np.zeros((arms, size, size))
    products[:, rows, columns] = released.products / (PRODUCT_UNITS if both else EXACT_UNITS)
    products[:, columns, rows] = products[:, rows, columns]
    inverse = np.linalg.inv(released.transform)
    observed = float(rounds.sum())
    if both:
        traces = np.maximum(products.trace(axis1=1, axis2=2), math.sqrt(size) * noise.products)
        each = observed * traces / max(traces.sum(), TINY)
    else:
        each = rounds.astype(np.float64)
    return Reading(
        inverse @ products @ inverse.T,
        released.sums / SUM_UNITS @ inverse.T,
        inverse @ inverse.T,
        each,
        observed,
    )


class _Pooled(NamedTuple):
    """Weighted sums over epochs, by arm, and the mean products of features over all arms."""

    products: Floats
    sums: Floats
    shape: Floats
    rounds: Floats
    """Weighted rounds of each arm."""
    sampling: Floats
    """Variance of sums by chance outcomes, for products of 1."""
    moments: Floats
    blur: float
    """How far off, by noise, an eigenvalue of the mean products may be."""


def fit(
    releases: list[Reading], noise: Noise, constant: float, length: float, *, both: bool
) -> Fit:
    """Return scores and the next map from everything that was released.

    ``constant`` is the first number of every encoded context; ``length`` is that of the fit before.
    """
    variance = noise.sums**2 + noise.products**2 * length
    pooled = _pool(releases, noise, variance)
    arms, size = pooled.sums.shape
    raw = float(np.trace(pooled.moments))
    values, vectors = np.linalg.eigh(_even(pooled.moments))
    values = np.maximum(values, max(RIDGE * max(values.max(), 1e-3), pooled.blur))
    moments = (vectors * values) @ vectors.T
    transform = _map(values, vectors, 1.0, STRETCH[both])
    frame = _map(values, vectors, 0.5, 1.0)
    if both:
        center = moments * (raw / np.trace(moments)) if raw > 0.0 else moments
        pooled = pooled._replace(products=_pulled(pooled, center, frame, noise.products))
    coefficients, posterior, prior = _regress(pooled, frame, variance, constant)
    mapped = np.linalg.solve(transform.T, coefficients.T)
    counted = OUTCOME_VARIANCE * float(pooled.rounds.sum())
    sharpness = SHARPNESS * math.sqrt(arms * counted / size)
    return Fit(
        Scores(np.ascontiguousarray(coefficients), np.array([sharpness]), np.zeros(arms)),
        transform,
        min(max(float((mapped**2).sum(axis=0).mean()), SHORTEST), LONGEST),
        moments,
        posterior,
        prior,
    )


def _pool(releases: list[Reading], noise: Noise, variance: float) -> _Pooled:
    """Add up epochs, each weighted by how much it says against its noise."""
    arms, size = releases[0].sums.shape
    products, shape = np.zeros((arms, size, size)), np.zeros((arms, size, size))
    sums = np.zeros((arms, size))
    rounds, squares = np.zeros(arms), np.zeros(arms)
    moments, people, squared = np.zeros((size, size)), TINY, 0.0
    for epoch in releases:
        whole = epoch.observed / (epoch.observed + size * arms * noise.products**2 + TINY)
        moments += whole * epoch.products.sum(axis=0)
        people += whole * epoch.observed
        squared += whole**2
        each = epoch.rounds / (OUTCOME_VARIANCE * epoch.rounds + size * variance + TINY)
        products += each[:, None, None] * epoch.products
        sums += each[:, None] * epoch.sums
        shape += (each**2)[:, None, None] * epoch.shape
        rounds += each * epoch.rounds
        squares += each**2 * epoch.rounds
    sampling = OUTCOME_VARIANCE * squares / np.maximum(rounds, TINY)
    blur = 2.0 * noise.products * math.sqrt(arms * size / 2.0 * squared) / people
    return _Pooled(products, sums, shape, rounds, sampling, moments / people, blur)


def _pulled(pooled: _Pooled, center: Floats, frame: Floats, deviation: float) -> Floats:
    """Pull each arm's noisy products towards the average, by the James-Stein rule."""
    products = pooled.products.copy()
    for a in range(len(products)):
        average = pooled.rounds[a] * center
        apart = frame @ (products[a] - average) @ frame.T
        expected = deviation**2 * float(np.trace(frame @ pooled.shape[a] @ frame.T)) ** 2 / 2.0
        keep = max(0.0, 1.0 - expected / max(float((apart * apart).sum()), TINY))
        products[a] = average + keep * (products[a] - average)
    return products


def _regress(
    pooled: _Pooled, frame: Floats, variance: float, constant: float
) -> tuple[Floats, Floats, float]:
    """Return coefficients, their posterior covariance, and the prior variance."""
    products, sums, shape = pooled.products, pooled.sums, pooled.shape
    noise = shape[:, 0, 0] * variance
    start = _means(products[:, 0, 0], sums[:, 0], noise, pooled.sampling, constant)
    gains, axes = np.linalg.eigh(_even(frame @ products @ frame.T))
    gains = np.maximum(gains, 0.0)
    left = (sums - products[:, :, 0] * start[:, None]) @ frame.T
    seen = np.einsum("aji,aj->ai", axes, left)
    spread = np.einsum("aji,ajk,aki->ai", axes, frame @ shape @ frame.T, axes) * variance
    error = pooled.sampling[:, None] * gains + spread + TINY
    prior = _likeliest(gains, seen, error)
    total = gains**2 * prior + error
    turned = frame.T @ axes
    coefficients = np.einsum("aij,aj->ai", turned, seen * gains * prior / total)
    coefficients[:, 0] += start
    posterior = np.einsum("aij,aj,akj->aik", turned, prior * error / total, turned)
    return coefficients, posterior, prior


def _even(matrix: Floats) -> Floats:
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2.0


def _map(values: Floats, vectors: Floats, power: float, square: float) -> Floats:
    """Return a power of the inverse root of the moments, scaled to a mean squared length."""
    scaled = values ** (-power / 2.0)
    scaled *= math.sqrt(square / float((scaled**2 * values).sum()))
    inverse: Floats = (vectors * scaled) @ vectors.T
    return inverse


def _means(
    counts: Floats, sums: Floats, noise: Floats, sampling: Floats, constant: float
) -> Floats:
    """Return the coefficient of the constant for each arm, pulled towards that of all arms."""
    wide = MEAN_VARIANCE / constant**2
    total = float(counts.sum())
    pooled = float(sums.sum()) * total / (total**2 + float(noise.sum()) / wide + TINY)
    known = np.maximum(counts, 0.0)
    error = noise + sampling * known
    pulled: Floats = pooled + known * (sums - counts * pooled) / (known**2 + error / wide + TINY)
    return pulled


def _likeliest(gain: Floats, seen: Floats, error: Floats) -> float:
    """Return the prior variance under which what was seen is likeliest."""
    best, likeliest = -math.inf, float(PRIOR[0])
    for prior in PRIOR:
        total = gain**2 * prior + error
        likelihood = -0.5 * float((np.log(total) + seen**2 / total).sum())
        if likelihood > best:
            best, likeliest = likelihood, float(prior)
    return likeliest

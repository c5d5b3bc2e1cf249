"""Attack someone else's mechanism: a noisy mean of ratings that claims epsilon = 1.

Two inputs that differ in one person's rating, a million runs on each: if some set of outputs is
more than exp(1) times likelier on one of them, the claim is false. The first version has too little
noise. The second has the right noise, in floating point: the low bits of its outputs give it away.
The third adds whole numbers to the sum; it survives, which proves nothing.

python examples/audit_mechanism.py [DRAWS]
"""

import sys
from math import exp

import numpy as np
from numpy.typing import NDArray

import bandanna as bd

EPSILON = 1.0
RATINGS = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
NEIGHBOUR = np.array([0.0, *RATINGS[1:]])  # the first person rated otherwise
NOISE = np.random.default_rng(0)

Numbers = NDArray[np.float64]


def too_little_noise(ratings: Numbers, draws: int) -> Numbers:
    """Release the mean with half the noise it needs."""
    return float(ratings.mean()) + NOISE.laplace(scale=0.5 / (ratings.size * EPSILON), size=draws)


def float_noise(ratings: Numbers, draws: int) -> Numbers:
    """Release the mean with the textbook's noise; the textbook has real numbers."""
    return float(ratings.mean()) + NOISE.laplace(scale=1 / (ratings.size * EPSILON), size=draws)


def whole_noise(ratings: Numbers, draws: int) -> Numbers:
    """Add z to the sum, of probability proportional to exp(-epsilon abs(z)), then divide."""
    stop = 1 - exp(-EPSILON)
    noise = NOISE.geometric(stop, draws) - NOISE.geometric(stop, draws)
    return (float(ratings.sum()) + noise) / ratings.size


def main(draws: int = 1_000_000) -> None:
    """Attack all three."""
    for mechanism in (too_little_noise, float_noise, whole_noise):
        result = bd.audit(
            lambda count, release=mechanism: release(RATINGS, count),
            lambda count, release=mechanism: release(NEIGHBOUR, count),
            claimed_epsilon=EPSILON,
            draws=draws,
        )
        print(f"{mechanism.__name__} {result}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

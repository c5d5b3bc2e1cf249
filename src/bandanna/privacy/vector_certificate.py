"""How the promise of a vector release is computed again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from bandanna.advice import MAX_EXPERTS
from bandanna.checks import SMALLEST_DELTA
from bandanna.privacy.calibration import (
    GRID,
    MAX_BATCH,
    SLACK,
    SMALLEST_COMPOSED,
    Calibration,
    Law,
    composed_laplace_delta,
    gaussian_delta,
    gaussian_loss,
)
from bandanna.privacy.vector import COMPOSED, NORMAL, PURE
from bandanna.types import JSON

VECTOR_ENTRIES = ("batch", "units", "experts", "multiplier", "least")

Found = tuple[str, bool, str]


def check_vector(mechanism: str, numbers: JSON, epsilon: float, delta: float) -> Iterator[Found]:
    """Check a vector release's numbers: noise enough, and a grid that is fine enough for it."""
    multiplier, experts = float(numbers["multiplier"]), int(numbers["experts"])
    for entry, good in {
        "units": numbers["units"] == GRID,
        "batch": numbers["batch"] <= MAX_BATCH,
        "experts": experts <= MAX_EXPERTS,
        "multiplier": 1e-3 <= multiplier <= 1e15,
        "delta": delta == 0 or delta >= SMALLEST_DELTA,
    }.items():
        if not good:
            yield entry, False, "no release has such a number"
            return
    if mechanism == PURE:
        enough = Fraction(multiplier) * Fraction(epsilon) >= 1 - Fraction(1, 2**50)
        yield "multiplier", enough, "scale times epsilon covers the total move of the sums"
        yield "delta", delta == 0, "pure noise needs no delta"
    elif mechanism == COMPOSED:
        found = composed_laplace_delta(epsilon * (1.0 - SLACK), multiplier, experts)
        why = f"dp-accounting finds delta {found:.6g} for {experts} Laplace mechanisms together"
        yield "epsilon", found <= delta, why
    else:
        found = gaussian_delta(epsilon * (1.0 - SLACK), multiplier)
        yield "epsilon", found <= delta, f"the Gaussian mechanism's exact delta is {found:.6g}"
        if found <= delta and delta >= SMALLEST_COMPOSED:
            numeric = gaussian_loss(multiplier).get_delta_for_epsilon(epsilon)
            agrees = bool(numeric <= delta * (1.0 + 1e-3))
            yield "epsilon", agrees, f"dp-accounting finds delta {numeric:.6g}"
    law: Law = "gaussian" if mechanism == NORMAL else "laplace"
    pure, composed, normal = (
        multiplier if mechanism == name else math.inf for name in (PURE, COMPOSED, NORMAL)
    )
    floor = Calibration(law, pure, composed, normal, experts, epsilon).least
    yield "least", numbers["least"] >= floor, "the noise is coarse enough against the grid"

"""Ways of looking at outputs: their value, lowest bit, and the parts of sequences that tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bandanna.audits.moments import Moments, Outputs

View = Callable[[Outputs], Outputs]

MOST_PARTS, MOST_PAIRS = 24, 24


def views(first: Outputs, second: Outputs) -> Iterator[tuple[str, View]]:
    """Yield ways of looking at outputs, each giving one value for every output.

    Of sequences, those parts and pairs of parts are looked at that tell the two samples apart
    best, and the weighted sum that would be best of all if the outputs were Gaussian.
    """
    floats = np.issubdtype(first.dtype, np.floating)
    if first.ndim == 1:
        yield "output", lambda outputs: outputs
        if floats:
            yield "lowest bit of the output", lowest_bit
        return
    moments = Moments.of(first, second)
    for part in moments.telling_parts(MOST_PARTS):
        yield f"part {part}", partial(_part, part)
        if floats:
            yield f"lowest bit of part {part}", partial(_lowest_bit_of, part)
    for sign, part, other in moments.telling_pairs(MOST_PAIRS):
        word = "plus" if sign > 0 else "minus"
        yield f"part {part} {word} part {other}", partial(_pair, sign, part, other)
    yield "sum of the parts", lambda outputs: outputs.sum(axis=1)
    yield "largest part", lambda outputs: outputs.max(axis=1)
    yield "smallest part", lambda outputs: outputs.min(axis=1)
    yield "weighted sum of the parts", partial(_weighted, moments.best_weights())


def lowest_bit(outputs: Outputs) -> NDArray[np.int64]:
    """Return the exponent of the lowest bit that is set in each float.

    Floating-point noise added to 0 and to 1 lands on grids of different fineness.
    """
    finite = np.where(np.isfinite(outputs), outputs, 0.0)
    mantissa, exponent = np.frexp(finite.astype(np.float64))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.log2(np.where(whole == 0, 1, whole & -whole)).astype(np.int64)
    bits: NDArray[np.int64] = np.where(whole == 0, 0, exponent.astype(np.int64) - 53 + trailing)
    return bits


def _part(part: int, outputs: Outputs) -> Outputs:
    return outputs[:, part]


def _lowest_bit_of(part: int, outputs: Outputs) -> Outputs:
    return lowest_bit(outputs[:, part])


def _pair(sign: int, part: int, other: int, outputs: Outputs) -> Outputs:
    total: Outputs = outputs[:, part] + sign * outputs[:, other]
    return total


def _weighted(weights: NDArray[np.float64], outputs: Outputs) -> Outputs:
    total: Outputs = np.where(np.isfinite(outputs), outputs, 0.0) @ weights
    return total

"""Do arms stay as good as they were? A test on released values alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bandanna._core.types import JSON
from bandanna.store.totals import Half

FEWEST = 20
"""Batches of an arm below which nothing is said about it."""


def steadiness(halves: Mapping[int, tuple[Half, Half]]) -> JSON:
    """Compare the first half of each arm's releases with the second.

    Under the hypothesis that an arm's losses have one law, which half a release fell into says
    nothing: the difference of means is compared with its spread by the normal law, and the
    smallest p-value over arms is multiplied by their number (Bonferroni).
    """
    tested = [
        _p_value(*both) for both in halves.values() if both[0].batches + both[1].batches >= FEWEST
    ]
    if not tested:
        return {"p_value": None, "says": f"Not enough yet: it needs {FEWEST} batches of an arm."}
    smallest = min(1.0, len(tested) * min(tested))
    says = (
        "The arms changed over time: old results say little about today."
        if smallest < 0.01
        else "No sign that arms changed over time. That is no proof."
    )
    return {"p_value": smallest, "says": says}


def _p_value(first: Half, second: Half) -> float:
    """Return how likely so large a difference between halves is, both having one law."""
    count = first.batches + second.batches
    total, squares = first.total + second.total, first.squares + second.squares
    variance = (squares - total * total / count) / (count - 1)
    if variance <= 1e-12 * squares / count:  # all are the same, but for rounding
        return 1.0
    gap = first.total / first.batches - second.total / second.batches
    spread = math.sqrt(variance * (1 / first.batches + 1 / second.batches))
    return math.erfc(abs(gap) / spread / math.sqrt(2.0))

"""Do arms stay as good as they were? A test on released values alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bandanna._core.types import JSON
from bandanna.store.rows import Release

FEWEST = 20
"""Batches of an arm below which nothing is said about it."""


def steadiness(releases: Sequence[Release], choices: int) -> JSON:
    """Compare the first half of each arm's releases with the second.

    Under the hypothesis that an arm's losses have one law, which half a release fell into says
    nothing: the difference of means is compared with its spread by the normal law, and the
    smallest p-value over arms is multiplied by their number (Bonferroni).
    """
    values = [
        [float(r.value) for r in releases if r.choice == k and not isinstance(r.value, list)]
        for k in range(choices)
    ]
    tested = [_p_value(some) for some in values if len(some) >= FEWEST]
    if not tested:
        return {"p_value": None, "says": f"Not enough yet: it needs {FEWEST} batches of an arm."}
    smallest = min(1.0, len(tested) * min(tested))
    says = (
        "The arms changed over time: old results say little about today."
        if smallest < 0.01
        else "No sign that arms changed over time. That is no proof."
    )
    return {"p_value": smallest, "says": says}


def _p_value(values: list[float]) -> float:
    """Return how likely so large a difference between halves is, both having one law."""
    half = len(values) // 2
    first, second = values[:half], values[half:]
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    if variance == 0.0:
        return 1.0
    gap = math.fsum(first) / len(first) - math.fsum(second) / len(second)
    spread = math.sqrt(variance * (1 / len(first) + 1 / len(second)))
    return math.erfc(abs(gap) / spread / math.sqrt(2.0))

"""How things are timed, and a row of the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

REPEATS = 15


class Row(NamedTuple):
    """One promise: what was measured, what was promised, and whether it holds."""

    what: str
    measured: str
    promised: str
    holds: bool


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Shortest of several timings, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)

"""What regret to expect of an algorithm, by what losses are like: measured, not proved.

The numbers are those of ``bandanna reproduce algorithms``, kept in a file beside this one.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import NamedTuple

from bandanna.theory.worlds import ALGORITHMS, ANY, CHANGING, STEADY, STEADY_WARNING


class Standing(NamedTuple):
    """How an algorithm does in a world; regrets are times the least for the same problem."""

    mean: float
    """Geometric mean over environments and sizes, of mean regret."""
    high: float
    """The same of the 90% quantile."""
    worst: float
    """The environment's with the largest mean over sizes."""
    where: str

    def merit(self, losses: str) -> float:
        """Return what decides in a world: on the whole, or the worst where nothing is known."""
        return self.worst if losses == ANY else self.mean


CHANGES = ", changes"
"""After an algorithm's name: told how often the best arm changes."""

EXPECTED = {
    ANY: "Smallest regret to expect: adaptive, whatever losses are like (losses='any'); dp-klucb, "
    "if each arm's are drawn from one law (losses='steady'); adaptive, told how often the best arm "
    "changes (losses='changing').",
    STEADY: f"Smallest regret to expect on steady losses: dp-klucb. {STEADY_WARNING} If you are "
    f"not sure: adaptive (losses='any').",
    CHANGING: "Smallest regret to expect where the best arm changes: adaptive, told how often. "
    "With a proof: tracking, whose bound is against all sequences of arms that change so often; "
    "other bounds are against the best fixed arm.",
}
"""What to run in each world, and why."""


@cache
def standings(losses: str) -> dict[str, Standing]:
    """Return every algorithm's standing in a world, the best first."""
    file = resources.files(__package__) / "measured.json"
    found = json.loads(file.read_text(encoding="utf-8"))[losses]
    return {name: Standing(*numbers) for name, numbers in found.items()}


def runs_in(losses: str) -> str:
    """Return what runs in a world, by the name it was measured under."""
    return ALGORITHMS[losses][0] + (CHANGES if losses == CHANGING else "")


def expected(algorithm: str, losses: str) -> float | None:
    """Return regret to expect, times the least; None for what was not measured.

    Where losses change an algorithm that can be told how often is.
    """
    found = standings(losses)
    told = found.get(algorithm + CHANGES) if losses == CHANGING else None
    known = told or found.get(algorithm)
    return None if known is None else known.merit(losses)

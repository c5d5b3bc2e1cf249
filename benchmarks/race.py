"""Rounds until ``goal="answer"`` is 95% sure of the best arm, at epsilon 0.5.

Beside the same test with all arms played alike, and without privacy. A run is wrong if it names
another arm. Run it with: python -m benchmarks.race [runs]
"""

from __future__ import annotations

import json
import sys

import numpy as np

from bandanna.planner.time_to_answer import PLAIN, RACE, UNIFORM, race_for

PROBLEMS = (
    (0.3, 0.4),
    (0.3, *[0.4] * 4),
    (0.45, *[0.5] * 9),
    (0.3, 0.35, 0.4, 0.5, 0.6),
)
"""Mean losses, the best first."""


def main(runs: int = 1_000) -> None:
    """Print mean rounds, those that nine of ten runs need at most, and wrong answers."""
    for means in PROBLEMS:
        for how in (RACE, UNIFORM, PLAIN):
            found = race_for(np.array(means), 0.5, how=how, runs=runs)
            said = {"means": means, "how": how, "runs": runs, "rounds": round(found.mean)}
            said |= {"90% by": round(found.most), "wrong": round(found.wrong * runs)}
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))

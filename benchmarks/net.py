"""What the net under adaptive costs: ``python -m benchmarks.net``.

Plays the environments of ``bandanna reproduce algorithms`` at its sizes (not the adaptive
adversaries), on the same random numbers, by three policies:

- *before*: first rate 0.5, no net, predictions as high as rates bear;
- *free*: what runs now, but without a budget;
- *now*: what runs by default.

Ratios are of mean regrets to *before*'s, once against the best arm of each of 60 pieces and once
against the best fixed arm, where less than nothing counts as nothing. A tenth of
``sqrt(K T / epsilon)`` is added to both sides, so that regrets near 0 do not decide.
"""

from __future__ import annotations

import argparse
import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from research.algorithms import (
    _environment,
    _sizes,
    above_the_best_of_each_piece,
    label,
)

import bandanna as bd
from bandanna.environments import Environment
from bandanna.learners import Adaptive
from research import frozen_settings

ASKED = [(4, 10**5, 0.1), (10, 10**6, 0.1), (10, 2 * 10**5, 1.0), (50, 5 * 10**5, 0.5)]
ASKED += [(2, 2 * 10**4, 0.5)]
BEFORE, FREE, NOW = "before", "free", "now"


def policies(arms: int, rounds: int, epsilon: float, factor: float) -> dict[str, bd.PrivateBandit]:
    """Return the three; ``factor`` is on the smallest guarantee, 3 by default."""
    now = bd.PrivateBandit(arms, epsilon, rounds)
    learner, release = now.recipe.learner, now.recipe.release
    assert isinstance(learner, Adaptive)
    if learner.budget is not None:
        learner = dataclasses.replace(learner, budget=learner.budget * factor / 3.0)
    rows = {
        BEFORE: Adaptive(arms, learner.losses, learner.memory),
        FREE: dataclasses.replace(learner, budget=None),
        NOW: learner,
    }
    return {
        name: bd.PrivateBandit(arms, epsilon, learner=row, release=release)
        for name, row in rows.items()
    }


def cases(sizes: list[tuple[int, int, float]]) -> list[tuple[str, Environment, float]]:
    """Return every environment at every size, once."""
    found = {}
    for place in frozen_settings("algorithms", quick=False)["environments"]:
        if place["world"] == "reacting":
            continue
        for size in _sizes(place["name"], sizes):
            arms, rounds, epsilon = int(size[0]), int(size[1]), float(size[2])
            name = f"{label(place)}, {arms} arms, {rounds:,} rounds, epsilon {epsilon:g}"
            found[name] = name, _environment(place, (arms, rounds, epsilon)), epsilon
    return list(found.values())


def main() -> None:
    """Print a Markdown table, and the cases in which the net took over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="of each case")
    parser.add_argument("--factor", type=float, default=3.0, help="on the smallest guarantee")
    parser.add_argument("--asked", action="store_true", help="five other sizes")
    given = parser.parse_args()
    sizes = ASKED if given.asked else frozen_settings("algorithms", quick=False)["sizes"]
    pieces: dict[str, list[float]] = {FREE: [], NOW: []}
    fixed: dict[str, list[float]] = {FREE: [], NOW: []}
    switched, where = [], []
    for name, world, epsilon in cases(sizes):
        size = world.arms, world.rounds, epsilon
        found = bd.simulate(
            policies(*size, given.factor), world, replicates=given.runs, checkpoints=1, cores=1
        )
        above = above_the_best_of_each_piece(world, 60)
        added = 0.1 * math.sqrt(world.arms * world.rounds / epsilon)
        means = {row: float(found.regret(row).mean()) for row in (BEFORE, FREE, NOW)}
        for row in (FREE, NOW):
            pieces[row].append((means[row] + above + added) / (means[BEFORE] + above + added))
            fixed[row].append((max(means[row], 0.0) + added) / (max(means[BEFORE], 0.0) + added))
        often = found.switched(NOW)
        if often is not None:
            switched.append(often)
        if often:
            where.append(f"- {name}: {often:.0%} of runs, {pieces[NOW][-1]:.2f} times before")
    print("| over before | geometric mean | largest | geometric mean, fixed arm |")
    print("|---|---|---|---|")
    for row in (FREE, NOW):
        numbers = typical(pieces[row]), max(pieces[row]), typical(fixed[row])
        print(f"| {row} | " + " | ".join(f"{number:.3f}" for number in numbers) + " |")
    print(f"\nThe net took over in {np.mean(switched):.1%} of runs with a net, namely in")
    print("\n".join(where) or "none")


def typical(ratios: list[float]) -> float:
    """Return the geometric mean."""
    logs: NDArray[np.float64] = np.log(ratios)
    return float(np.exp(logs.mean()))


if __name__ == "__main__":
    main()

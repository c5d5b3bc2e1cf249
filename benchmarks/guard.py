"""How often the guard of phases raises a false alarm: ``python -m benchmarks.guard``.

Arms are steady, so every alarm is a false one. Outcomes are rare, frequent, even or far apart, and
epsilon is small or so large that there is hardly any noise. The last column is without privacy.
"""

from __future__ import annotations

import sys

import bandanna as bd
from bandanna.environments import Segments

ROUNDS = 20_000
MEANS = ([0.02] * 4, [0.98] * 4, [0.5] * 4, [0.02, 0.03, 0.05, 0.1])
EPSILONS = (0.5, 3.0, 4.0, 8.0)


def main(runs: int = 1000) -> None:
    """Print the share of runs with an alarm."""
    print("| mean losses | " + " | ".join(f"{eps:g}" for eps in EPSILONS) + " | no privacy |")
    print("|---" * (len(EPSILONS) + 2) + "|")
    for means in MEANS:
        world = Segments([means], [ROUNDS], bernoulli=True)
        arms = len(means)
        policies: dict[str, bd.Policy] = {
            f"{eps:g}": bd.PrivateBandit(arms, eps, ROUNDS, "phased") for eps in EPSILONS
        }
        policies["no privacy"] = bd.Bandit(arms, "phased", ROUNDS)
        found = bd.simulate(policies, world, replicates=runs, checkpoints=1)
        seen = [found.guard(name) for name in policies]
        cells = [", ".join(f"{mean:g}" for mean in means)]
        cells += ["-" if one is None else f"{one.alarms:.1%}" for one in seen]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

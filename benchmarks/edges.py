"""The default where it has little to go by: ``python -m benchmarks.edges --runs 100``.

Without ``rounds=``, with few people, late feedback, many arms and tiny horizons. Prints mean regret
beside that of playing all arms alike, of dp-klucb and of the plain A/B test, and whether
``policy.why`` says that nothing is to be gained. Late feedback is played by the object itself. It
and many arms are slow, and played in a fifth of the runs.
"""

from __future__ import annotations

import argparse
import math
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.environments import Environment, Segments
from bandanna.environments.base import sum_losses_once
from bandanna.policy import Policy
from bandanna.simulation.engine import ARMS, LOSSES, RELEASES, run_streams
from bandanna.theory.phases import few_rounds

Floats = NDArray[np.float64]

OTHERS = ("dp-klucb", "ab-test")
SLOW, MANY = 5, 100
"""One run in so many is played where feedback is late, or where there are many arms."""


class Edge(NamedTuple):
    """A world and a size, and what the policy is told of it."""

    name: str
    world: Segments
    epsilon: float
    told: int | None
    """The rounds that it is told."""
    delay: int = 0
    """Feedback comes after so many further decisions."""


def one_better(arms: int, rounds: int, gap: float) -> Segments:
    """Return steady losses, 0 or 1; one arm in the middle is better."""
    means = np.full((1, arms), 0.5)
    means[0, arms // 2] -= gap
    return Segments(means, [rounds], bernoulli=True)


def line_of_arms(arms: int, rounds: int) -> Segments:
    """Return steady losses, 0 or 1, with means from 0.2 to 0.8 in a random order."""
    means = np.random.default_rng(1).permutation(np.linspace(0.2, 0.8, arms))
    return Segments(means[None], [rounds], bernoulli=True)


def edges() -> list[Edge]:
    """Return all that is tried."""
    found = []
    for arms, rounds, epsilon in ((5, 20_000, 0.5), (10, 200_000, 0.1), (2, 1_000_000, 0.1)):
        world = one_better(arms, rounds, 0.1)
        found += [Edge("gap 0.1", world, epsilon, rounds)]
        found += [Edge("gap 0.1, rounds not told", world, epsilon, None)]
    for people, gap in ((200, 0.2), (1_000, 0.2), (5_000, 0.1)):
        world = one_better(3, people, gap)
        found += [Edge(f"few people, gap {gap:g}", world, epsilon, people) for epsilon in (0.1, 1)]
    for share in (0.0, 0.01, 0.1, 0.5):
        world = one_better(5, 10_000, 0.1)
        name, delay = f"feedback late by {share:.0%} of the run", round(share * world.rounds)
        found.append(Edge(name, world, 0.5, world.rounds, delay))
    for rounds in (20_000, 100_000, 1_000_000):
        found.append(Edge("many arms, gap 0.3", one_better(1_000, rounds, 0.3), 1.0, rounds))
        found.append(Edge("many arms, a line", line_of_arms(1_000, rounds), 1.0, rounds))
    for arms, epsilon in ((4, 0.1), (10, 0.5)):
        for times in (2, 5, 10, 20, 50):
            rounds = round(times * arms / epsilon)
            world = one_better(arms, rounds, 0.3)
            found.append(Edge(f"{times} K / epsilon rounds, gap 0.3", world, epsilon, rounds))
    return found


def policies(edge: Edge) -> dict[str, Policy]:
    """Return the default and those beside it that can be played."""
    size = edge.world.arms, edge.epsilon, edge.told
    found: dict[str, Policy] = {"default": bd.PrivateBandit(*size)}
    for name in OTHERS:
        try:
            found[name] = bd.PrivateBandit(*size, name)
        except InputError:
            continue
    return found


def measure(edge: Edge, runs: int) -> Mapping[str, Floats]:
    """Return the regret of every run."""
    played = policies(edge)
    if edge.delay or edge.world.arms > MANY:
        runs = max(runs // SLOW, 2)
    if edge.delay:
        return {
            name: np.array([_late(policy, edge.world, edge.delay, run) for run in range(runs)])
            for name, policy in played.items()
        }
    found = bd.simulate(played, edge.world, replicates=runs, checkpoints=1, progress=False)
    return {name: found.regret(name) for name in played}


def _late(policy: Policy, world: Environment, delay: int, run: int) -> float:
    """Play once; feedback comes when ``delay`` further decisions were made."""
    streams = run_streams(0, run)
    online = policy.rehearse(streams[ARMS], streams[RELEASES])
    params, memory, waiting = world.params(), world.memory(), deque[tuple[bd.Decision, float]]()
    total = 0
    for now in range(world.rounds):
        decision = online.decide()
        lost = sum_losses_once(params, memory, decision.index, now, now + 1, streams[LOSSES])
        total += lost
        waiting.append((decision, lost / UNITS))
        if len(waiting) > delay:
            first, loss = waiting.popleft()
            online.observe(first, loss=loss)
    best = world.arm_totals(np.array([world.rounds]))[0].min()
    return total / UNITS - float(best)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="what an edge's name contains")
    given = parser.parse_args()
    print(f"| edge | K | T | epsilon | alike | default | {' | '.join(OTHERS)} | said |")
    print("|---" * (7 + len(OTHERS)) + "|")
    for edge in edges():
        if given.only not in edge.name:
            continue
        found, world = measure(edge, given.runs), edge.world
        totals = world.arm_totals(np.array([world.rounds]))[0]
        cells = [edge.name, f"{world.arms:,}", f"{world.rounds:,}", f"{edge.epsilon:g}"]
        cells.append(f"{totals.mean() - totals.min():,.0f}")
        for name in ("default", *OTHERS):
            regret = found.get(name)
            cells.append("-" if regret is None else shown(regret))
        problem = bd.Problem(world.arms, edge.told, edge.epsilon)
        cells.append("too few" if few_rounds(problem) else "")
        print(f"| {' | '.join(cells)} |", flush=True)


def shown(regret: Floats) -> str:
    """Return a mean and its standard error."""
    return f"{regret.mean():,.0f} ({regret.std(ddof=1) / math.sqrt(regret.size):,.0f})"


if __name__ == "__main__":
    main()

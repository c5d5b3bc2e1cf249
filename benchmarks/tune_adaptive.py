"""Tune the free constants of Adaptive: ``python -m benchmarks.tune_adaptive``.

Each setting plays this repository's environments (not the adaptive adversaries). Its score is the
geometric mean, over environments and epsilons, of its mean regret over that of the one-bit
conversion; regret is against the best arm of each of 60 pieces of the run, so that it is never
negative, and a tenth of ``sqrt(K T / epsilon)`` is added to both. The same for the 90% quantile.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna import environments as env
from bandanna.learners.adaptive import Adaptive
from bandanna.privacy import LaplaceRelease

PIECES = 60
ONE_BIT = "one-bit"


def worlds(arms: int, rounds: int, epsilon: float) -> list[env.Environment]:
    hard = min(1.0, 1.5 * math.sqrt(arms / (rounds * epsilon)))
    return [
        env.Bernoulli(arms, rounds, gap=0.1),
        env.Bernoulli(arms, rounds, gap=0.2),
        env.Bernoulli(arms, rounds, gap=0.5),
        env.Bernoulli(arms, rounds, gap=hard),
        env.Bernoulli([0.2 + 0.6 * arm / (arms - 1) for arm in range(arms)], rounds),
        env.ConstrainedAdversary(arms, rounds),
        env.Switching(arms, rounds),
        env.Switching(arms, rounds, gap=0.2, first=1 / 3, bernoulli=True),
        env.SinusoidalDrift(arms, rounds),
        env.ClinicalTrial(rounds),
        env.Barrier(rounds),
    ]


def above_the_best_of_each_piece(world: env.Environment) -> float:
    """Return how far the best fixed arm is above the best arm of each piece."""
    stops = np.unique(np.linspace(0, world.rounds, PIECES + 1)[1:].astype(np.int64))
    totals = world.arm_totals(stops)
    pieces = np.diff(totals, axis=0, prepend=0.0)
    return float(totals[-1].min() - pieces.min(axis=1).sum())


def policy(
    size: tuple[int, int, float], multiple: float, forget: float, **shape: float
) -> bd.PrivateBandit:
    """Batches of ``multiple sqrt(8) / epsilon``; remembers a ``forget``-th of the run."""
    arms, rounds, epsilon = size
    batch = min(max(1, round(multiple * math.sqrt(8.0) / epsilon)), rounds)
    losses = max(rounds // batch, 1)
    memory = max(losses / forget, 1.0) if forget else None
    learner = Adaptive(arms, losses, memory, **shape)
    return bd.PrivateBandit(
        arms, epsilon=epsilon, learner=learner, release=LaplaceRelease(epsilon, batch)
    )


def scores(
    settings: dict[str, dict[str, float]], sizes: list[tuple[int, int, float]], runs: int
) -> dict[str, NDArray[np.float64]]:
    """Return for each setting the ratios to one-bit: one row a case, mean and 90% quantile."""
    ratios: dict[str, list[NDArray[np.float64]]] = {name: [] for name in settings}
    for arms, rounds, epsilon in sizes:
        for world in worlds(arms, rounds, epsilon):
            size = world.arms, rounds, epsilon
            policies = {name: policy(size, **shape) for name, shape in settings.items()}
            policies[ONE_BIT] = bd.PrivateBandit(world.arms, epsilon=epsilon, rounds=rounds)
            results = bd.simulate(policies, world, replicates=runs, checkpoints=1)
            extra = above_the_best_of_each_piece(world)
            extra += 0.1 * math.sqrt(world.arms * rounds / epsilon)
            regrets = {name: results.regret(name) + extra for name in policies}
            measured = {
                name: np.array([regret.mean(), np.quantile(regret, 0.9)])
                for name, regret in regrets.items()
            }
            for name in settings:
                ratios[name].append(measured[name] / measured[ONE_BIT])
    return {name: np.array(rows) for name, rows in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, nargs="+", default=[10])
    parser.add_argument("--rounds", type=int, nargs="+", default=[200_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--multiple", type=float, nargs="+", default=[2.5])
    parser.add_argument("--forget", type=float, nargs="+", default=[1.0])
    parser.add_argument("--first-rate", type=float, nargs="+", default=[0.5])
    parser.add_argument("--level", type=float, nargs="+", default=[0.1])
    parser.add_argument("--fresh", type=float, nargs="+", default=[0.0])
    parser.add_argument("--doubts", type=float, nargs="+", default=[0.3])
    parser.add_argument("--clamp", type=float, nargs="+", default=[0.5])
    parser.add_argument("--runs", type=int, default=40)
    given = vars(parser.parse_args())
    free = ("multiple", "forget", "first_rate", "level", "fresh", "doubts", "clamp")
    settings = {}
    for values in itertools.product(*(given[name] for name in free)):
        shape = dict(zip(free, values, strict=True))
        changed = {name: value for name, value in shape.items() if len(given[name]) > 1}
        settings[" ".join(f"{name} {value:g}" for name, value in changed.items())] = shape
    sizes = list(itertools.product(given["arms"], given["rounds"], given["epsilon"]))
    print("mean: geometric, largest | 90% quantile: geometric, largest | (over one-bit's)")
    for name, ratios in scores(settings, sizes, given["runs"]).items():
        typical, largest = np.exp(np.log(ratios).mean(axis=0)), ratios.max(axis=0)
        print(f"{typical[0]:5.2f} {largest[0]:5.2f} | {typical[1]:5.2f} {largest[1]:5.2f} | {name}")


if __name__ == "__main__":
    main()

"""How much contextual policies learn: the problems their constants were chosen on, and others.

    python -m benchmarks.context [tuned|judged] [--rounds 100000] [--epsilon 1] [--seeds 3]
    python -m benchmarks.context speed

``tuned`` and ``judged`` were written down before anything was measured. Constants were chosen on
the first and are judged on the second. The digits of scikit-learn are judged in two encodings: 16
pooled pixels with declared ranges, and 20 principal components of the first 600 images, which
count as public; people are then drawn from the other images. ``speed`` measures processor time of a
decision, of a million simulated rounds, and of a round of trees by depth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from research.context import one_category

from bandanna import PrivateContextual
from bandanna._core.streams import new_stream
from bandanna.contextual import ContextTable, simulate_context
from bandanna.contextual.simulation import digits_table
from bandanna.learners.context_trees import TreeParams, play_trees, start_tree
from bandanna.privacy.epochs import PROTECTS


def numbered(rows: NDArray[Any]) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[float, float]]]:
    """Return columns and ranges for a table of numbers."""
    columns = {f"x{i}": column for i, column in enumerate(rows.T)}
    ranges = {name: (float(c.min()), float(c.max()) + 1e-9) for name, c in columns.items()}
    return columns, ranges


def classes(rows: NDArray[Any], labels: NDArray[Any]) -> ContextTable:
    columns, ranges = numbered(rows)
    return ContextTable.from_labels(columns, ranges, labels)  # type: ignore[arg-type]


def made(features: int, arms: int, informative: int, clusters: int, seed: int) -> ContextTable:
    from sklearn.datasets import make_classification

    rows, labels = make_classification(
        4000, features, n_informative=informative, n_redundant=3, n_classes=arms,
        n_clusters_per_class=clusters, class_sep=1.5, random_state=seed,
    )  # fmt: skip
    return classes(rows, labels)


def linear() -> ContextTable:
    rng = np.random.default_rng(6)
    rows = rng.uniform(-1, 1, (4000, 8))
    columns, ranges = numbered(rows)
    rewards = np.clip(0.4 + rows @ rng.normal(0, 0.12, (8, 4)), 0, 1)
    return ContextTable.from_rewards(columns, ranges, rewards)


def tuned() -> dict[str, ContextTable]:
    from sklearn import datasets

    found = {}
    for name in ("wine", "iris", "breast_cancer"):
        data = getattr(datasets, f"load_{name}")()
        found[name] = classes(data.data, data.target)
    for seed, (size, arms, informative) in enumerate([(18, 7, 8), (10, 5, 4), (20, 10, 10)]):
        found[f"made {size}x{arms}"] = made(size, arms, informative, 1, seed)
    found["linear"] = linear()
    found["category"] = one_category(informative=True)
    found["none"] = one_category(informative=False)
    return found


def judged() -> dict[str, ContextTable]:
    found = {"digits, 16 pixels": digits_table(None), "digits, 20 components": digits_table(20)}
    for seed, (size, arms, informative) in enumerate([(18, 7, 10), (12, 6, 5)], start=50):
        found[f"made {size}x{arms}, two clusters"] = made(size, arms, informative, 2, seed)
    return found


def speed() -> None:
    """Print the processor time of decisions and of simulated rounds: 20 features, 10 arms."""
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.uniform(-1, 1, 1_000) for i in range(19)}
    features = dict.fromkeys(columns, (-1.0, 1.0))  # and the constant
    table = ContextTable.from_rewards(columns, features, rng.random((1_000, 10)))
    context = {name: float(column[0]) for name, column in columns.items()}
    for protects in PROTECTS:
        simulate_context(table, 1.0, rounds=1_000, protects=protects)  # compiles
        began = time.process_time()
        simulate_context(table, 1.0, rounds=1_000_000, protects=protects)
        print(f"{protects}: 10^6 rounds in {time.process_time() - began:.1f} s")
        policy = PrivateContextual(10, features, 1.0, 1e-6, 100_000, protects)
        policy.decide(context)
        print(f"{protects}: decide in {least(partial(policy.decide, context), 2_000):.1f} us")
    for depth in (3, 6, 9, 12):
        people, losses = rng.integers(0, 500, 20_000), np.full((20_000, 8), 0.5)
        state = start_tree(8, depth, 2, nodes=1 << 14)
        run = TreeParams(0.01, 8), state, rng.integers(0, 2, (500, depth)), people, losses
        streams, played = (new_stream(1), new_stream(2)), np.empty(20_000, dtype=np.int64)
        play_trees(*run, *streams, played)
        took = least(partial(play_trees, *run, *streams, played), 1) / 20_000
        print(f"trees of depth {depth}, 8 arms: a round in {1000.0 * took:.0f} ns")


def least(work: Callable[[], object], times: int) -> float:
    """Return the least processor time of several measurements, in microseconds for each call."""
    found = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - began) / times)
    return 1e6 * min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="?", default="judged", choices=["tuned", "judged", "speed"])
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    if given.which == "speed":
        speed()
        return
    print(f"mean reward in the last fifth of {given.rounds:,} rounds, epsilon {given.epsilon:g}")
    print(f"{'problem':28s} {'one arm':>8s} {'feedback':>9s} {'both':>6s} {'no noise':>9s}")
    for name, table in (tuned() if given.which == "tuned" else judged()).items():
        started = time.perf_counter()
        row = []
        for protects in PROTECTS:
            runs = [
                simulate_context(
                    table, given.epsilon, given.delta, given.rounds, protects, seed=seed,
                    bernoulli=True,
                )
                for seed in range(given.seeds)
            ]  # fmt: skip
            row.append(float(np.mean([run.last_fifth for run in runs])))
        free = simulate_context(table, None, rounds=given.rounds, bernoulli=True)
        print(
            f"{name:28s} {free.single:8.3f} {row[0]:9.3f} {row[1]:6.3f} {free.last_fifth:9.3f}"
            f"   {time.perf_counter() - started:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()

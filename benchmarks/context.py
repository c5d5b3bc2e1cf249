"""How much contextual policies learn: the problems their constants were chosen on, and others.

    python -m benchmarks.context [tuned|judged] [--rounds 100000] [--epsilon 1] [--seeds 3]

``tuned`` and ``judged`` were written down before anything was measured. Constants were chosen on
the first and are judged on the second. The digits of scikit-learn are judged in two encodings: 16
pooled pixels with declared ranges, and 20 principal components of the first 600 images, which
count as public; people are then drawn from the other images.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandanna.contextual import ContextTable, simulate_context
from bandanna.contextual.digits import digits_table
from bandanna.privacy.epochs import PROTECTS
from bandanna.reproduce.context import one_category


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="?", default="judged", choices=["tuned", "judged"])
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
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

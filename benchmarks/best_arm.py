"""Rounds until the best arm is named, 99% sure, beside published private algorithms.

Each by its own public code, which is fetched and never copied. Rewards are Bernoulli. A run is
wrong if it names another arm than the best.

- ``python -m benchmarks.best_arm [runs]``: our race (``goal="answer"``), simulated.
- ``python -m benchmarks.best_arm --authors DIR [runs] [seconds]``: AdaP-TT and DP-SE, from a clone
  of github.com/achraf-azize/DP-BAI in DIR. A row ends after so many seconds if it has ten runs.
- ``python -m benchmarks.best_arm --sequential [runs]``: ``dpsprt`` (PyPI), which tests one arm with
  two possible rates, both known. Our race knows neither, and plays two arms that have them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bandanna.planner.time_to_answer import race_for

DELTA = 0.01
EPSILONS = (1.0, 0.1)
PROBLEMS = ((0.75, 0.625, 0.5, 0.375, 0.25), (0.95, 0.9, 0.9, 0.9, 0.5))
"""Mean rewards, the best first."""
PAIRS = ((0.7, 0.6), (0.03, 0.02))
"""The two rates of a test of one arm."""


def say(
    algorithm: str, means: tuple[float, ...], epsilon: float, took: list[float], wrong: int
) -> None:
    """Print a row."""
    row = {"algorithm": algorithm, "means": means, "epsilon": epsilon, "runs": len(took)}
    row |= {"rounds": round(np.mean(took)), "error": round(np.std(took) / len(took) ** 0.5)}
    print(json.dumps(row | {"90% by": round(np.quantile(took, 0.9)), "wrong": wrong}), flush=True)


def ours(runs: int = 1_000) -> None:
    """Print the rounds of our race."""
    for means in (*PROBLEMS, *PAIRS):
        for epsilon in EPSILONS:
            found = race_for(1.0 - np.array(means), epsilon, 1.0 - DELTA, runs=runs, proved=True)
            row = {"algorithm": "race", "means": means, "epsilon": epsilon, "runs": runs}
            row |= {"rounds": round(found.mean), "90% by": round(found.most)}
            print(json.dumps(row | {"wrong": round(found.wrong * runs)}), flush=True)


def authors(folder: str, runs: int = 200, seconds: float = 600.0) -> None:
    """Print the rounds of AdaP-TT and DP-SE, as their authors run them."""
    sys.path.insert(0, folder)
    from algorithms.adapTT import AdaPTopTwo  # type: ignore[import-not-found]
    from algorithms.dp_se import DPSE  # type: ignore[import-not-found]
    from bandit import Bandit  # type: ignore[import-not-found]

    os.chdir(tempfile.mkdtemp())  # it writes a file for each run
    for epsilon in EPSILONS:
        for means in PROBLEMS:
            for name, algorithm in (("AdaP-TT", AdaPTopTwo), ("DP-SE", DPSE)):
                took, wrong, began = [], 0, time.perf_counter()
                for run in range(runs):
                    if run >= 10 and time.perf_counter() - began > seconds:
                        break
                    np.random.seed(run)  # it draws from NumPy's global stream
                    config = {"K": len(means), "beta": 0.5, "eps": epsilon, "delta": DELTA}
                    rounds, named = algorithm(config).run(Bandit(np.array(means)))
                    took.append(float(rounds))
                    wrong += int(named != 0)
                say(name, means, epsilon, took, wrong)


def sequential(runs: int = 200) -> None:
    """Print the rounds of dpsprt, told both rates, for one arm that has the higher."""
    from dpsprt import DPSPRT  # type: ignore[import-not-found]

    for high, low in PAIRS:
        for epsilon in EPSILONS:
            took, wrong, began = [], 0, time.perf_counter()
            for run in range(runs):
                if run >= 10 and time.perf_counter() - began > 300.0:
                    break
                stream = np.random.default_rng(run)
                test = DPSPRT(
                    mu0=low, mu1=high, alpha=DELTA, beta=DELTA, epsilon=epsilon, random_seed=run
                )
                rounds, done, decision = 0, False, None
                while not done:
                    rounds += 1
                    done, decision = test.add_sample(int(stream.random() < high))
                took.append(float(rounds))
                wrong += int(decision != 1)
            say("dpsprt, rates known", (high, low), epsilon, took, wrong)


def main(arguments: list[str]) -> None:
    """Print the rows that were asked for."""
    if arguments[:1] == ["--authors"]:
        authors(str(Path(arguments[1]).resolve()), *map(int, arguments[2:]))
    elif arguments[:1] == ["--sequential"]:
        sequential(*map(int, arguments[1:]))
    else:
        ours(*map(int, arguments))


if __name__ == "__main__":
    main(sys.argv[1:])

"""What a policy gains from a log that it starts from: regret, and rounds until the answer.

Logs of several lengths are drawn and answered with epsilon 0.5, and for each a policy with epsilon
1 plays runs that start from it, beside the same without. In the third world the log is about other
outcomes than the run. Run it with: python -m benchmarks.start [logs] [runs for each]
"""

from __future__ import annotations

import json
import sys

import numpy as np

import bandanna as bd
from bandanna.environments import Bernoulli

ROUNDS = 5_000
WORLDS = {
    "like the log": ((0.3, 0.4, 0.4, 0.5), (0.3, 0.4, 0.4, 0.5)),
    "close arms": ((0.30, 0.33, 0.33, 0.36), (0.30, 0.33, 0.33, 0.36)),
    "unlike the log": ((0.4, 0.3, 0.4, 0.5), (0.3, 0.4, 0.4, 0.5)),
}
"""Mean losses in the log, and in the run."""
ARMS = ["A", "B", "C", "D"]


def answered(means: tuple[float, ...], rows: int, seed: int) -> bd.logs.LogAnswer:
    """Draw a log and answer it."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, len(means), rows)
    lost = rng.random(rows) < np.array(means)[arm]
    log = {"arm": np.array(ARMS)[arm], "lost": lost}
    return bd.answer(log, arm="arm", outcome="lost", epsilon=0.5)


def main(logs: int = 20, runs: int = 10) -> None:
    """Print mean regret with its standard error, and mean rounds to an answer."""
    for name, (logged, means) in WORLDS.items():
        world = Bernoulli(means, rounds=ROUNDS)
        for rows in (0, 500, 2_000, 8_000):
            regrets: list[float] = []
            rounds: list[float] = []
            for seed in range(logs):
                start = answered(logged, rows, seed) if rows else None
                named = {
                    "phased": bd.PrivateBandit(ARMS, 1.0, ROUNDS, "phased", start_from=start),
                    "answer": bd.PrivateBandit(ARMS, 1.0, goal="answer", start_from=start),
                }
                found = bd.simulate(named, world, replicates=runs, seed=seed, progress=False)
                regrets.append(float(found.regret("phased").mean()))
                after = found.answers("answer")
                assert after is not None
                took = np.where(after.rounds < 0, ROUNDS, after.rounds)
                rounds.append(float(took.mean()))
            said = {"world": name, "rows": rows, "regret": round(float(np.mean(regrets)), 1)}
            said["standard error"] = round(float(np.std(regrets) / np.sqrt(logs)), 1)
            print(
                json.dumps(said | {"rounds to answer": round(float(np.mean(rounds)))}), flush=True
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))

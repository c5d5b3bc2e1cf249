"""``python -m benchmarks.against REVISION``: this version beside an earlier one, in one run.

Each operation is timed in processes of both versions, which take turns. What both can do is
compared: public names alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TURNS = 7
PROGRAM = """
import json, sys, time
start = time.perf_counter()
import bandanna as bd
found = {"import bandanna": time.perf_counter() - start}
import numpy as np
from benchmarks.timing import seconds

def best(work):
    return seconds(work, repeats=5)

def played(**options):
    policy = bd.PrivateBandit(10, 1.0, 10**6, seed=0, **options)
    def rounds():
        for _ in range(2000):
            policy.observe(policy.decide(), loss=0.5)
    return best(rounds) / 2000

def advised(algorithm):
    policy = bd.PrivateExperts(20, 4, 1.0, 1e-6, 10**6, algorithm, seed=0)
    advice = np.arange(20) % 4
    def rounds():
        for _ in range(1000):
            policy.observe(policy.decide(advice), loss=0.5)
    return best(rounds) / 1000

for name in ("adaptive", "one-bit", "htinf", "dp-klucb"):
    found[f"decide + observe, {name}"] = played(algorithm=name)
policy = bd.PrivateBandit(10, 1.0, 10**6, "one-bit", per_person=1, delta=0.0, seed=0)
people = iter(range(10**9))
def rounds():
    for _ in range(2000):
        policy.observe(policy.decide(person=next(people)), loss=0.5)
found["decide + observe, a person each"] = best(rounds) / 2000
for name in ("one-bit", "one-bit-exp4"):
    found[f"decide + observe with experts, {name}"] = advised(name)
world = bd.environments.Bernoulli(10, 10**6)
for name in ("adaptive", "one-bit", "htinf", "dp-klucb"):
    policy = bd.PrivateBandit(10, 1.0, 10**6, name)
    simulated = lambda: bd.simulate(policy, world, replicates=4, cores=1)
    found[f"simulate 4 runs of 10^6 rounds, {name}"] = best(simulated)
found["plan"] = best(lambda: bd.plan(10, 10**6, 0.1))
policy = bd.PrivateBandit(1000, 1.0, 10**6, "one-bit", seed=0)
for _ in range(3000):
    policy.observe(policy.decide(), loss=0.5)
found["to_dict, 1,000 arms"] = best(policy.to_dict)
print(json.dumps(found))
"""


HERE = Path(__file__).parents[1]


def timed(source: Path) -> dict[str, float]:
    """Return seconds by operation, in a new process of a version."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(HERE)])}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=source
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(revision: str) -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", revision, "src"], check=True, capture_output=True, cwd=HERE
        )
        subprocess.run(["tar", "-x", "-C", folder], check=True, input=archive.stdout)
        before, now = Path(folder) / "src", HERE / "src"
        timed(before)  # what is compiled is kept
        timed(now)
        turns = [(timed(before), timed(now)) for _ in range(TURNS)]
    print(f"| what | {revision} | this version | ratio, smallest to largest |")
    print("|---|---|---|---|")
    for what in turns[0][0]:
        old, new = (statistics.median(turn[version][what] for turn in turns) for version in (0, 1))
        ratios = sorted(turn[1][what] / turn[0][what] for turn in turns)
        span = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"| {what} | {old * 1e6:,.1f} us | {new * 1e6:,.1f} us | {span} |")


if __name__ == "__main__":
    main(*sys.argv[1:])

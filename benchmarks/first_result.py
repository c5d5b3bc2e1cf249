"""``python -m benchmarks.first_result``: how long a new process takes to its first result.

Each row is the median of several processes, and their range: with nothing compiled before, and
with the machine code on disk.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

PROCESSES = 5

QUESTIONS = {
    "one decision and its feedback": "bandit = bd.PrivateBandit(4, 0.1, 1000); "
    "bandit.observe(bandit.decide(), loss=0.5)",
    "simulate the default": "bd.simulate(bd.PrivateBandit(4, 0.1, 1000), table, replicates=1)",
    "simulate one-bit and htinf": "bd.simulate({name: bd.PrivateBandit(4, 0.1, 1000, name) "
    "for name in ('one-bit', 'htinf')}, table, replicates=1)",
    "simulate the default on two environments": "bd.simulate(bd.PrivateBandit(4, 0.1, 1000), "
    "table, "
    "replicates=1); bd.simulate(bd.PrivateBandit(4, 0.1, 1000), "
    "bd.environments.Bernoulli(4, 1000), replicates=1)",
}
PROGRAM = """
import json, sys, time
start = time.perf_counter()
import numpy as np
import bandanna as bd
from bandanna.policy import PrivateBandit
from bandanna.simulation import simulate
table = np.random.default_rng(0).random((1000, 4))
imported = time.perf_counter()
from numba.core import event
compiling = []
with event.install_timer("numba:compile", compiling.append):
    exec(sys.argv[1])
done = time.perf_counter()
exec(sys.argv[1])
print(json.dumps([imported - start, done - imported, sum(compiling), time.perf_counter() - done]))
"""


def measure(question: str, folder: str) -> list[float]:
    """Return seconds to import, to the first result, of it compiling, and to the second result."""
    command = [sys.executable, "-c", PROGRAM, question]
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: list[float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a Markdown table."""
    print("| what | on disk | import | first result | of it compiling | the same again |")
    print("|---|---|---|---|---|---|")
    for what, question in QUESTIONS.items():
        cold, warm = [], []
        for _ in range(PROCESSES):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(measure(question, folder))
                warm.append(measure(question, folder))
        for state, found in (("nothing", cold), ("all", warm)):
            cells = [_range(column) for column in zip(*found, strict=True)]
            print(f"| {what} | {state} | {' | '.join(cells)} |")


def _range(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()

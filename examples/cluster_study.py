"""Run a study on a Dask cluster, by its scheduler's address, and read the answer.

Here the scheduler and two workers are started on this machine, each a process of its own; with a
real cluster only the address is another one. The numbers depend on the settings and the seed
alone: one cell is run again without the cluster to show it.

python examples/cluster_study.py [ROUNDS [REPLICATES]]
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from distributed import LocalCluster

import bandanna as bd


def main(rounds: int = 100_000, replicates: int = 50) -> None:
    """Ask what privacy costs in a clinical trial."""
    grid: dict[str, list[Any]] = {
        "algorithm": ["one-bit", "htinf", "ldp-exp3"],
        "environment": ["trial"],
        "epsilon": [1.0, 0.1],
        "rounds": [rounds],
    }
    study = bd.Study(grid, replicates=replicates, seed=1)
    with TemporaryDirectory() as folder:
        with LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster:
            print(f"{len(study.cells)} cells on {cluster.scheduler_address}")
            results = study.run(Path(folder) / "cluster", cluster=cluster.scheduler_address)
        table = results.table().sort("mean")
        print(table.select("algorithm", "epsilon", "mean", "standard_error", "q95"))

        here = bd.Study({**grid, "epsilon": [0.1]}, replicates=replicates, seed=1)
        again = here.run(Path(folder) / "here", workers=1).table().sort("mean")
        same = again["mean"].equals(table.filter(table["epsilon"] == 0.1)["mean"])
        print("the same numbers without the cluster" if same else "OTHER NUMBERS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

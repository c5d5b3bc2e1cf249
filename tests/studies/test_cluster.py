"""Studies on a real Dask cluster over TCP: a scheduler and two workers, one of them killed."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import bandanna as bd
from bandanna.studies.study import Study
from tests.soak import mostly_slow

STUDY = Study(
    {
        "algorithm": ["one-bit", "ldp-exp3"],
        "environment": ["bernoulli"],
        "epsilon": [1.0, 0.9, 0.8, 0.7, 0.6, 0.5],
        "rounds": [30_000],
    },
    replicates=100,
)


class Cluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        here = ("--host", "127.0.0.1", "--no-dashboard")
        self.scheduler = _start("dask_scheduler", "--port", str(port), *here)
        alone = ("--no-nanny", "--nthreads", "1")
        self.workers = [_start("dask_worker", self.address, *alone, *here) for _ in range(2)]

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def _start(command: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{command}", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_dies_and_the_numbers_are_the_same(cluster: Cluster, tmp_path: Path) -> None:
    left = []

    def kill_one_midway() -> None:
        while len(list((tmp_path / "there").glob("*.parquet"))) < 3:
            time.sleep(0.01)
        left.append(len(STUDY.cells) - len(list((tmp_path / "there").glob("*.parquet"))))
        cluster.workers[0].kill()

    killer = threading.Thread(target=kill_one_midway, daemon=True)
    killer.start()
    _wait_for_workers(cluster)
    there = STUDY.run(tmp_path / "there", cluster=cluster.address)
    killer.join()
    assert left[0] >= 2, "the worker was killed too late to matter"
    assert there.missing == 0
    here = STUDY.run(tmp_path / "here", workers=1)
    assert there.frame.equals(here.frame)


def _wait_for_workers(cluster: Cluster) -> None:
    from distributed import Client

    with Client(cluster.address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)


@pytest.mark.parametrize(
    "kind", mostly_slow(["nobody", "silent", "nonsense", "no workers"], ["nonsense"])
)
def test_clusters_that_do_not_answer_are_told_quickly(kind: str, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        scheduler = None
        if kind == "silent":
            silent.listen()
        elif kind == "nonsense":
            address = "nonsense"
        elif kind == "no workers":
            silent.close()
            port = address.rsplit(":", 1)[1]
            here = ("--host", "127.0.0.1", "--no-dashboard")
            scheduler = _start("dask_scheduler", "--port", port, *here)
            _wait_for_scheduler(int(port))
        start = time.monotonic()
        try:
            with pytest.raises(bd.InputError, match=r"no Dask scheduler answers|has no workers"):
                STUDY.run(tmp_path / "r", cluster=address)
        finally:
            if scheduler is not None:
                scheduler.kill()
                scheduler.wait()
        assert time.monotonic() - start < 10
    assert not (tmp_path / "r").exists()


def _wait_for_scheduler(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)

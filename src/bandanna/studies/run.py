"""Runs the cells of a study, in this process, in several, or on a cluster."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bandanna._core import checks
from bandanna._core.extras import need
from bandanna._core.types import BandannaError, InputError
from bandanna.simulation.progress import Progress
from bandanna.studies.cell import Cell, Shard
from bandanna.studies.play import Played, frame_of, play
from bandanna.studies.results import ResultsFolder
from bandanna.version import __version__

if TYPE_CHECKING:
    from distributed import Client


PATIENCE = 4.0
"""Seconds to wait for the scheduler, and again for its first worker."""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler whose workers run this version of Bandanna."""
    need("cluster", "a cluster")
    from distributed import CancelledError, Client, KilledWorker

    _probe(address)
    client = Client(address, timeout=PATIENCE, set_as_default=False)
    try:
        _check_workers(client, address)
        yield client
    except (CancelledError, KilledWorker) as error:
        raise BandannaError(
            f"the cluster at {address} was lost ({str(error).splitlines()[0]}). Finished cells "
            f"are kept; the same command goes on."
        ) from None
    finally:
        client.close(timeout=PATIENCE)


def _probe(address: str) -> None:
    """Ask who is there, first: a client waits long for something that is no scheduler."""
    from distributed.core import rpc

    async def ask() -> str:
        async with rpc(address) as server:
            return str((await server.identity())["type"])

    try:
        kind = asyncio.run(asyncio.wait_for(ask(), PATIENCE))
    except Exception as error:  # whatever answers may say anything
        kind = f"{type(error).__name__} {error}".splitlines()[0]
    if kind != "Scheduler":
        raise InputError(
            f"no Dask scheduler answers at {address!r}; it should look like tcp://host:8786 "
            f"({kind.strip()})."
        )


def _check_workers(client: Client, address: str) -> None:
    """Require a worker, and this version everywhere: others might give other numbers."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InputError(f"the scheduler at {address} has no workers; start one.") from None
    for worker, version in client.run(_version, on_error="return").items():
        if version != __version__:
            raise InputError(
                f"worker {worker} runs another Bandanna or none ({version}); here it is "
                f"{__version__}, and the numbers must not depend on who runs them."
            )


def _version() -> str:
    return __version__


PlayAll = Callable[[Sequence[Shard]], Iterable[tuple[str, Played]]]


def worker_count(workers: int | None) -> int:
    """Return how many processes to use, by default one for each core."""
    return checks.whole("workers", (os.cpu_count() or 1) if workers is None else workers, 1, 4096)


def waiting_parts(cells: Iterable[Cell], folder: ResultsFolder) -> list[Shard]:
    """Return what has not been played yet of cells without results, the longest first.

    Thus no worker is left alone with a long part at the end.
    """
    waiting = [cell for cell in cells if not folder.has(cell.key)]
    parts = [part for cell in waiting for part in cell.parts() if not folder.has_part(part)]
    return sorted(parts, key=Shard.seconds, reverse=True)


def run_cells(
    cells: Sequence[Cell],
    folder: ResultsFolder,
    before: Callable[[], None],
    *,
    cluster: str | None,
    workers: int,
    progress: bool | None,
) -> None:
    """Play cells that have no results yet and keep what is finished.

    ``before`` is called once there is someone to play them.
    """
    waiting = waiting_parts(cells, folder)
    by_key = {part.key: part for part in waiting}
    with (
        _stoppable(),
        _players(cluster, min(workers, max(1, len(waiting))), waiting) as play_all,
    ):
        before()
        for cell in cells:
            if not folder.has(cell.key):  # whoever was stopped may have had all parts
                _finish(cell, folder)
        work = sum(part.seconds() for part in waiting)
        with Progress(work, show=progress, label="cells") as bar:
            for key, played in play_all(waiting):
                part = by_key[key]
                if part.whole:
                    folder.write(part.cell.key, frame_of(part.cell, [played]))
                else:
                    folder.write_part(part, played)
                    _finish(part.cell, folder)
                bar.advance(part.seconds())


def _finish(cell: Cell, folder: ResultsFolder) -> None:
    """Put a cell together once all its parts are there."""
    parts = cell.parts()
    if all(folder.has_part(part) for part in parts):
        folder.write(cell.key, frame_of(cell, [folder.read_part(part) for part in parts]))
        folder.drop_parts(parts)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let being told to stop end the workers as well, who would go on by themselves."""

    def stop(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        known = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
        for number in known:  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _players(cluster: str | None, workers: int, waiting: Sequence[Shard]) -> Iterator[PlayAll]:
    """Give a function that plays somewhere and yields what it comes to, in any order."""
    import joblib

    def play_all(parts: Sequence[Shard]) -> Iterable[tuple[str, Played]]:
        one = joblib.delayed(play)
        jobs = (
            one(part._replace(cell=part.cell.carrying(None)), part.cell.environment.data)
            for part in parts
        )
        finished: Iterable[tuple[str, Played]] = joblib.Parallel(
            return_as="generator_unordered", batch_size=1
        )(jobs)
        return finished

    if cluster is None:
        with joblib.parallel_config("loky", n_jobs=workers):
            yield play_all
        return

    sources = {part.cell.environment.content: part.cell.environment for part in waiting}
    tables = [source.data for source in sources.values() if source.data is not None]
    with (
        connected(cluster) as client,
        joblib.parallel_config("dask", client=client, scatter=tables, n_jobs=-1),
    ):
        yield play_all

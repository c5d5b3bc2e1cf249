"""Running cells through joblib, on this machine's cores or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bandanna import checks
from bandanna.simulation.progress import Progress
from bandanna.studies.cell import Cell
from bandanna.studies.play import play_cell
from bandanna.studies.results import ResultsFolder

if TYPE_CHECKING:
    import polars as pl

PlayAll = Callable[[Sequence[Cell]], "Iterable[tuple[str, pl.DataFrame]]"]


def worker_count(workers: int | None) -> int:
    """Return how many processes to use, by default one for each core."""
    return checks.whole("workers", (os.cpu_count() or 1) if workers is None else workers, 1, 4096)


def run_cells(
    cells: Sequence[Cell],
    folder: ResultsFolder,
    before: Callable[[], None],
    *,
    cluster: str | None,
    workers: int,
    progress: bool | None,
) -> None:
    """Play cells that have no results yet and keep each when it is finished.

    ``before`` is called once there is someone to play them.
    """
    waiting = [cell for cell in cells if not folder.has(cell.key)]
    # Longest first, so that no worker is left alone with a long cell at the end.
    waiting.sort(key=Cell.cost, reverse=True)
    with _players(cluster, min(workers, max(1, len(waiting))), waiting) as play_all:
        before()
        with Progress(len(waiting), show=progress, label="cells") as bar:
            for key, frame in play_all(waiting):
                folder.write(key, frame)
                bar.advance()


@contextmanager
def _players(cluster: str | None, workers: int, cells: Sequence[Cell]) -> Iterator[PlayAll]:
    """Give a function that plays cells somewhere and yields their results as they come."""
    import joblib

    def play_all(cells: Sequence[Cell]) -> Iterable[tuple[str, pl.DataFrame]]:
        play = joblib.delayed(play_cell)
        jobs = (play(cell.carrying(None), cell.environment.table) for cell in cells)
        results: Iterable[tuple[str, pl.DataFrame]] = joblib.Parallel(
            return_as="generator_unordered", batch_size=1
        )(jobs)
        return results

    if cluster is None:
        with joblib.parallel_config("loky", n_jobs=workers):
            yield play_all
        return
    from bandanna.studies.cluster import connected

    tables = {cell.environment.content: cell.environment.table for cell in cells}
    tables.pop("", None)
    with (
        connected(cluster) as client,
        joblib.parallel_config("dask", client=client, scatter=[*tables.values()], n_jobs=-1),
    ):
        yield play_all

"""Running a study: cells through joblib, on this machine's cores or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bandanna import checks
from bandanna.simulation.progress import Progress
from bandanna.studies.cell import Cell, play_cell
from bandanna.studies.results import ResultsFolder, StudyResults
from bandanna.studies.study import Study
from bandanna.types import InputError


def run_study(
    study: Study,
    folder: str | Path,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> StudyResults:
    """Run the cells of a study that have not been run yet and keep each when it is finished.

    The numbers do not depend on where or in what order cells are run. Whoever is stopped midway
    goes on with the cells that are missing.

    Parameters
    ----------
    study
        What to run.
    folder
        Where the results go, or are already.
    cluster
        Address of a Dask scheduler, such as ``tcp://host:8786``; by default the cells run in
        processes on this machine.
    workers
        How many processes to use here, by default one for each core.
    progress
        Show a progress bar; by default on a terminal.
    """
    count = checks.whole("workers", (os.cpu_count() or 1) if workers is None else workers, 1, 4096)
    if not study.cells:
        raise InputError(
            f"no cell of the study can be run; for one: {study.skipped[0].reason}"
            if study.skipped
            else "the study has no cells."
        )
    results = ResultsFolder(folder)
    results.check(study)
    waiting = [cell for cell in study.cells if not results.has(cell.key)]
    # Longest first, so that no worker is left alone with a long cell at the end.
    waiting.sort(key=Cell.cost, reverse=True)
    with _parallel(cluster, min(count, max(1, len(waiting))), study) as parallel:
        results.write_index(study)
        with Progress(len(waiting), show=progress, label="cells") as bar:
            for key, frame in parallel(waiting):
                results.write(key, frame)
                bar.advance()
    return StudyResults.read(results.path)


@contextmanager
def _parallel(cluster: str | None, workers: int, study: Study) -> Iterator[Any]:
    """Give a function that plays cells somewhere and yields their results as they come."""
    import joblib

    def play_all(cells: list[Cell]) -> Any:
        jobs = []
        for cell in cells:
            losses = study.losses_of(cell)
            jobs.append(joblib.delayed(play_cell)(cell, losses.losses if losses else None))
        return joblib.Parallel(return_as="generator_unordered", batch_size=1)(jobs)

    if cluster is None:
        with joblib.parallel_config("loky", n_jobs=workers):
            yield play_all
        return
    from bandanna.studies.cluster import connected

    tables = [losses.losses for _, losses in study.sources if losses is not None]
    with (
        connected(cluster) as client,
        joblib.parallel_config("dask", client=client, scatter=tables, n_jobs=-1),
    ):
        yield play_all

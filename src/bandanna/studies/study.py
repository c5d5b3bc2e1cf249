"""A study: a grid of settings, read from a file, run, and resumed."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

from bandanna._core import checks
from bandanna._core.documents import read_toml
from bandanna._core.types import JSON, InputError
from bandanna.spec import parameters
from bandanna.studies.cell import Cell, Skipped
from bandanna.studies.environments import Source, read_source
from bandanna.studies.results import ResultsFolder, StudyResults
from bandanna.studies.run import run_cells, waiting_parts, worker_count
from bandanna.studies.schema import AXES, Setting, is_private, whole_number

MOST_CELLS = 100_000


def checked_grid(grid: object) -> dict[str, tuple[object, ...]]:
    """Require lists of different values for known axes, and read every value."""
    if not isinstance(grid, Mapping):
        raise InputError(f"the grid must be a table of lists; got {grid!r}.")
    refuse_unknown("keys in [grid]", grid, AXES)
    missing = [name for name in ("algorithm", "environment") if name not in grid]
    if missing:
        example = '[grid] with algorithm = ["one-bit"] and environment = ["trial"]'
        raise InputError(f"the grid needs {' and '.join(missing)}; for instance {example}.")
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InputError(f"{name} must be a list of values, such as [...]; got {values!r}.")
        if not values:
            raise InputError(f"{name} is empty; give it a value, or leave it out.")
    size = math.prod(len(values) for values in grid.values())
    if size > MOST_CELLS:
        raise InputError(f"the grid has {size:,} combinations, more than {MOST_CELLS:,}.")
    checked = {}
    for name, axis in AXES.items():
        if name in grid:
            values = tuple(axis.read(value) for value in grid[name])
            if any(value in values[:index] for index, value in enumerate(values)):
                raise InputError(f"{name} names a value twice: {list(grid[name])!r}.")
            checked[name] = values
    private = [name for name in map(str, checked["algorithm"]) if is_private(name)]
    if private and "epsilon" not in checked:
        raise InputError(f"the grid needs epsilon for {private[0]}, such as epsilon = [1.0, 0.1].")
    return checked


def refuse_unknown(what: str, given: Mapping[str, object], known: Collection[str]) -> None:
    """Refuse names that mean nothing here, and say which do."""
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        raise InputError(f"unknown {what}: {', '.join(unknown)}; there are {', '.join(known)}.")


TABLES = ("study", "grid", "policy", "metrics")
OPTIONS = ("metrics", "metrics_share", "guardrails", "control", "least_share", "confidence")
"""Parameters that all private policies of a study may have alike."""


def checked_options(options: object) -> JSON:
    """Require parameters of a policy that a study may set for all of its policies."""
    if not isinstance(options, Mapping):
        raise InputError(f"policy must be a table, [policy]; got {options!r}.")
    refuse_unknown("keys in [policy]", options, OPTIONS)
    for name, value in options.items():
        parameters()[name].check(value)
    return dict(options)


def checked_metrics(metrics: object, options: Mapping[str, object]) -> JSON:
    """Require a mean for each arm by metric, of metrics that the policies have."""
    if not isinstance(metrics, Mapping):
        raise InputError(f"metrics must be a table, [metrics], of lists; got {metrics!r}.")
    declared = options.get("metrics") or {}
    assert isinstance(declared, Mapping)
    refuse_unknown("keys in [metrics]", metrics, list(declared))
    for name, means in metrics.items():
        numbers = isinstance(means, Sequence) and not isinstance(means, str)
        if not numbers or not all(math.isfinite(checks.as_float(mean)) for mean in means):
            raise InputError(f"metric {name!r} must have a list of numbers, one for each arm.")
    return {name: [float(mean) for mean in means] for name, means in metrics.items()}


SETTINGS = ("title", "question", "replicates", "seed", "checkpoints")


@dataclass(frozen=True)
class Study:
    """A grid of algorithms and settings, each combination simulated many times.

    Parameters
    ----------
    grid
        Lists of values: ``algorithm`` and ``environment``, and if wanted ``epsilon``, ``rounds``,
        ``arms`` and ``batch``. An environment is a name, a dict of its name and options, a file
        of losses, or a dict about a log, ``{"log": ..., "arm": ..., "outcome": ...}``.
    replicates, seed, checkpoints
        As for ``simulate``.
    title, question
        For the report.
    folder
        Where files of losses are looked for.
    policy
        What all private policies without experts have in common: ``metrics``, ``metrics_share``,
        ``guardrails``, ``control`` (the index of an arm), ``least_share`` and ``confidence``.
    metrics
        With guardrails: for each metric its mean for each arm.

    Examples
    --------
    >>> study = Study(
    ...     {"algorithm": ["one-bit", "exp3"], "environment": ["trial"], "epsilon": [1.0],
    ...      "arms": [4, 5]},
    ... )
    >>> len(study.cells), study.skipped[0].reason
    (2, "environment 'trial' has 4 arms; got 5.")
    """

    grid: Mapping[str, Sequence[object]]
    replicates: int = 100
    seed: int = 0
    checkpoints: int = 50
    title: str = ""
    question: str = ""
    folder: Path = field(default_factory=Path, repr=False, compare=False)
    policy: Mapping[str, object] = field(default_factory=dict)
    metrics: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = checked_options(self.policy)
        checks.set_fields(
            self,
            policy=options,
            metrics=checked_metrics(self.metrics, options),
            grid=checked_grid(self.grid),
            replicates=whole_number("replicates", 1)(self.replicates),
            seed=checks.whole("seed", self.seed, at_least=0),
            checkpoints=checks.whole("checkpoints", self.checkpoints, 1, 10_000),
        )
        for name in ("title", "question"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} must be a text; got {getattr(self, name)!r}.")
        _ = self.sources  # a missing file is better known now

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a TOML file: tables ``[study]`` and ``[grid]``, ``[policy]`` and ``[metrics]``."""
        path = Path(path)
        data = read_toml(path)
        try:
            return cls.from_dict(data, path.parent)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, data: JSON, folder: Path = Path()) -> Self:
        """Make a study from what a file says."""
        refuse_unknown("tables", data, TABLES)
        settings = data.get("study", {})
        for name in ("study", "grid"):
            if not isinstance(data.get(name, {}), Mapping):
                raise InputError(f"{name} must be a table, [{name}]; got {data[name]!r}.")
        refuse_unknown("keys in [study]", settings, SETTINGS)
        further = {name: data[name] for name in ("policy", "metrics") if name in data}
        return cls(data.get("grid", {}), **settings, folder=folder, **further)

    def to_dict(self) -> JSON:
        """Return the study as its file would say it."""
        settings = {name: getattr(self, name) for name in SETTINGS if getattr(self, name) != ""}
        tables = {"study": settings, "grid": dict(self.grid)}
        further = {"policy": dict(self.policy), "metrics": dict(self.metrics)}
        return tables | {name: table for name, table in further.items() if table}

    def to_toml(self) -> str:
        """Return the study as a file."""
        lines = []
        for table, entries in self.to_dict().items():
            lines.append(f"[{table}]")
            lines += [f"{_toml_key(name)} = {_toml(value)}" for name, value in entries.items()]
        return "\n".join(lines) + "\n"

    def run(
        self,
        folder: str | Path,
        *,
        cluster: str | None = None,
        workers: int | None = None,
        progress: bool | None = None,
    ) -> StudyResults:
        """Run the cells that have not been run yet and keep what is finished.

        The numbers do not depend on where or in what order cells are run. After an
        interruption, run it again to continue with the missing cells.

        Parameters
        ----------
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
        count = worker_count(workers)
        if not self.cells:
            raise InputError(
                f"no cell of the study can be run; for one: {self.skipped[0].reason}"
                if self.skipped
                else "the study has no cells."
            )
        results = ResultsFolder(folder)
        results.check(cell.key for cell in self.cells)
        run_cells(
            self.cells,
            results,
            lambda: results.write_index(self.index()),
            cluster=cluster,
            workers=count,
            progress=progress,
        )
        return StudyResults.read(results.path)

    def estimate(self, folder: str | Path, *, workers: int | None = None) -> float:
        """Guess how many seconds ``run`` would take, within a factor of five or so."""
        waiting = waiting_parts(self.cells, ResultsFolder(folder))
        longest = max((part.seconds() for part in waiting), default=0.0)
        return max(longest, sum(part.seconds() for part in waiting) / worker_count(workers))

    def index(self) -> JSON:
        """Return what a results folder says about its study."""
        return {
            **self.to_dict(),
            "toml": self.to_toml(),
            "cells": [cell.key for cell in self.cells],
            "skipped": [[item.values, item.reason] for item in self.skipped],
            "places": {source.label: source.described() for source in self.sources},
        }

    @property
    def cells(self) -> list[Cell]:
        """The different cells that can be run."""
        return self._expanded[0]

    @property
    def skipped(self) -> list[Skipped]:
        """The combinations that cannot apply, with the reason."""
        return self._expanded[1]

    @cached_property
    def sources(self) -> list[Source]:
        """The environments, with the losses of those that are files."""
        return [read_source(value, self.folder) for value in self.grid["environment"]]

    @cached_property
    def _expanded(self) -> tuple[list[Cell], list[Skipped]]:
        axes = {name: list(self.grid.get(name, [None])) for name in AXES}
        axes["environment"] = list(self.sources)
        cells: dict[str, Cell] = {}
        skipped = []
        runs: JSON = {name: getattr(self, name) for name in ("replicates", "seed", "checkpoints")}
        runs |= {"options": self.policy, "metrics": self.metrics}
        for combination in itertools.product(*axes.values()):
            values: JSON = dict(zip(axes, combination, strict=True))
            try:
                cell = Cell.of(Setting(**values), **runs)
            except InputError as error:
                skipped.append(Skipped(_shown(values), str(error)))
            else:
                cells.setdefault(cell.key, cell)
        return list(cells.values()), skipped


def _shown(values: JSON) -> JSON:
    return {
        name: value.label if isinstance(value, Source) else value
        for name, value in values.items()
        if value is not None
    }


def _toml(value: object) -> str:
    """Write a value as TOML; texts and numbers look as in JSON."""
    if isinstance(value, Mapping):
        entries = (f"{_toml_key(name)} = {_toml(entry)}" for name, entry in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return json.dumps(value)


def _toml_key(name: str) -> str:
    """Write a key as TOML: in quotes unless it is a plain word."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)

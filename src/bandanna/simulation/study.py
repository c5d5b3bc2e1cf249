"""Studies: a question, written down once as a grid of algorithms and settings."""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from bandanna import checks
from bandanna.environments import check_environment
from bandanna.policies import CONTESTANTS, WITHOUT_EPSILON
from bandanna.simulation.cells import Cell, Source, make_cell
from bandanna.simulation.tables import SUFFIXES, LossFile, read_losses
from bandanna.types import JSON, InputError

if TYPE_CHECKING:
    from bandanna.simulation.study_results import StudyResults

MOST_CELLS = 100_000


class Skipped(NamedTuple):
    """A combination of the grid that cannot apply."""

    values: dict[str, Any]
    reason: str


def _algorithm(value: Any) -> str:
    if value not in CONTESTANTS:
        raise InputError(f"unknown algorithm {value!r}; there are {', '.join(CONTESTANTS)}.")
    return str(value)


def _count(name: str, at_least: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        try:
            number = float(value) if isinstance(value, str) else value
        except ValueError:
            number = value
        return checks.whole(name, number, at_least, checks.MAX_ROUNDS)

    return check


def _epsilon(value: Any) -> float:
    try:
        return checks.positive("epsilon", float(value) if isinstance(value, str) else value)
    except ValueError:
        raise InputError(f"epsilon must be a finite number above 0; got {value!r}.") from None


AXES: dict[str, Callable[[Any], Any]] = {
    "algorithm": _algorithm,
    "environment": lambda value: value,  # needs the study's folder: see Study
    "epsilon": _epsilon,
    "rounds": _count("rounds", 1),
    "arms": _count("arms", 2),
    "batch": _count("batch", 1),
}
"""What a grid may vary, and how each value is read. Left out, an axis has one value: None."""

NEEDED = ("algorithm", "environment")
SETTINGS = ("title", "question", "replicates", "seed", "checkpoints")


@dataclass(frozen=True)
class Study:
    """A grid of algorithms and settings, each combination simulated many times.

    Parameters
    ----------
    grid
        Lists of values: ``algorithm`` and ``environment``, and if wanted ``epsilon``, ``rounds``,
        ``arms`` and ``batch``. An environment is a name, a dict of its name and options, or a
        file of losses.
    replicates, seed, checkpoints
        As for ``simulate``.
    title, question
        For the report.
    folder
        Where files of losses are looked for.

    Examples
    --------
    >>> study = Study(
    ...     {"algorithm": ["one-bit", "exp3"], "environment": ["trial"], "epsilon": [1.0],
    ...      "arms": [4, 5]},
    ... )
    >>> len(study.cells), study.skipped[0].reason
    (2, "environment 'trial' has 4 arms; got arms 5.")
    """

    grid: Mapping[str, Sequence[Any]]
    replicates: int = 100
    seed: int = 0
    checkpoints: int = 50
    title: str = ""
    question: str = ""
    folder: Path = field(default_factory=Path, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks.settle(
            self,
            grid=_checked_grid(self.grid),
            replicates=_count("replicates", 1)(self.replicates),
            seed=checks.whole("seed", self.seed, at_least=0),
            checkpoints=checks.whole("checkpoints", self.checkpoints, 1, 10_000),
        )
        for name in ("title", "question"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} must be a text; got {getattr(self, name)!r}.")
        _ = self.sources  # a missing file is better known now

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a TOML file with the tables ``[study]`` and ``[grid]``."""
        path = Path(path)
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"{path} is not a TOML file: {error}.") from None
        try:
            return cls.from_dict(data, path.parent)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, data: JSON, folder: Path = Path()) -> Self:
        """Make a study from what a file says."""
        _refuse_unknown("tables", data, ("study", "grid"))
        settings = data.get("study", {})
        for name in ("study", "grid"):
            if not isinstance(data.get(name, {}), Mapping):
                raise InputError(f"{name} must be a table, [{name}]; got {data[name]!r}.")
        _refuse_unknown("keys in [study]", settings, SETTINGS)
        return cls(data.get("grid", {}), **settings, folder=folder)

    def to_dict(self) -> JSON:
        """Return the study as its file would say it."""
        settings = {name: getattr(self, name) for name in SETTINGS if getattr(self, name) != ""}
        return {"study": settings, "grid": dict(self.grid)}

    def to_toml(self) -> str:
        """Return the study as a file."""
        lines = []
        for table, entries in self.to_dict().items():
            lines.append(f"[{table}]")
            lines += [f"{name} = {_toml(value)}" for name, value in entries.items()]
        return "\n".join(lines) + "\n"

    def run(
        self,
        folder: str | Path,
        *,
        cluster: str | None = None,
        workers: int | None = None,
        progress: bool | None = None,
    ) -> StudyResults:
        """Run what has not been run yet and return all results; see ``run_study``."""
        from bandanna.simulation.run_study import run_study

        return run_study(self, folder, cluster=cluster, workers=workers, progress=progress)

    @property
    def cells(self) -> list[Cell]:
        """The different cells that can be run."""
        return self._expanded[0]

    @property
    def skipped(self) -> list[Skipped]:
        """The combinations that cannot apply, with the reason."""
        return self._expanded[1]

    @cached_property
    def sources(self) -> list[tuple[Source, LossFile | None]]:
        """The environments, and the losses of those that are files."""
        return [_source(value, self.folder) for value in self.grid["environment"]]

    def losses_of(self, cell: Cell) -> LossFile | None:
        """Return the file of losses a cell plays on, if any."""
        return dict(self.sources)[cell.environment]

    @cached_property
    def _expanded(self) -> tuple[list[Cell], list[Skipped]]:
        axes = {name: list(self.grid.get(name, [None])) for name in AXES}
        axes["environment"] = [source for source, _ in self.sources]
        cells: dict[str, Cell] = {}
        skipped = []
        runs = {name: getattr(self, name) for name in ("replicates", "seed", "checkpoints")}
        losses = dict(self.sources)
        for combination in itertools.product(*axes.values()):
            values = dict(zip(axes, combination, strict=True))
            try:
                cell = make_cell(values, losses[values["environment"]], **runs)
            except InputError as error:
                skipped.append(Skipped(_shown(values), str(error)))
            else:
                cells.setdefault(cell.key, cell)
        return list(cells.values()), skipped


def _checked_grid(grid: Any) -> dict[str, tuple[Any, ...]]:
    if not isinstance(grid, Mapping):
        raise InputError(f"the grid must be a table of lists; got {grid!r}.")
    _refuse_unknown("keys in [grid]", grid, AXES)
    missing = [name for name in NEEDED if name not in grid]
    if missing:
        raise InputError(f"the grid needs {' and '.join(missing)}, each a list of values.")
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InputError(f"{name} must be a list of values, such as [...]; got {values!r}.")
        if not values:
            raise InputError(f"{name} is empty; give it a value, or leave it out.")
    size = math.prod(len(values) for values in grid.values())
    if size > MOST_CELLS:
        raise InputError(f"the grid has {size:,} combinations, more than {MOST_CELLS:,}.")
    checked = {}
    for name, read in AXES.items():
        if name in grid:
            values = tuple(read(value) for value in grid[name])
            if any(value in values[:place] for place, value in enumerate(values)):
                raise InputError(f"{name} names a value twice: {list(grid[name])!r}.")
            checked[name] = values
    private = [name for name in checked["algorithm"] if name not in WITHOUT_EPSILON]
    if private and "epsilon" not in checked:
        raise InputError(f"the grid needs epsilon for {private[0]}, such as epsilon = [1.0, 0.1].")
    return checked


def _source(value: Any, folder: Path) -> tuple[Source, LossFile | None]:
    """Read one environment of a grid: a name, a name with options, or a file."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        options = {name: option for name, option in value.items() if name != "name"}
        fixed = [name for name in ("arms", "rounds") if name in options]
        if fixed:
            raise InputError(f"{' and '.join(fixed)} of an environment belong into the grid.")
        check_environment(value["name"], options)
        if not all(isinstance(option, bool | int | float) for option in options.values()):
            raise InputError(f"an environment's options are numbers; got {value!r}.")
        return Source(value["name"], tuple(sorted(options.items()))), None
    if not isinstance(value, str):
        raise InputError(
            f"an environment is a name, a file, or {{name = ..., option = ...}}; got {value!r}."
        )
    if not value.endswith(SUFFIXES):
        check_environment(value)
        return Source(value), None
    losses = read_losses(folder / value)
    return Source(value, content=losses.content, arms=losses.arms), losses


def _shown(values: JSON) -> JSON:
    return {
        name: value.label if isinstance(value, Source) else value
        for name, value in values.items()
        if value is not None
    }


def _refuse_unknown(what: str, given: Any, known: Any) -> None:
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        raise InputError(f"unknown {what}: {', '.join(unknown)}; there are {', '.join(known)}.")


def _toml(value: Any) -> str:
    """Write a value as TOML; texts and numbers look as in JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_toml(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return json.dumps(value)

"""The environment of a cell: one by name, or from a table, a log, or people's contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from bandanna._core.grid import LossRange, check_range
from bandanna._core.types import JSON, InputError, plain
from bandanna.environments import (
    ENVIRONMENTS,
    Environment,
    ExpertEnvironment,
    Logged,
    check_environment,
    make_environment,
)
from bandanna.environments.frames import is_table
from bandanna.environments.tables import LossFile, read_losses
from bandanna.studies.contexts import ContextData, read_context, refuse_options

GENERATED_ROUNDS = 100_000

TABLE_OPTIONS = ("range", "advice", "person")
LOG_COLUMNS = ("arm", "outcome", "propensity", "segment", "time", "person")
LOG_OPTIONS = (*LOG_COLUMNS, "advice", "range", "reward", "how", "blocks", "clip")
MOST_NAMES = 1000

Data = LossFile | Logged | ContextData


@dataclass(frozen=True)
class Source:
    """An environment by name with its options, or what a file holds."""

    name: str
    options: tuple[tuple[str, float], ...] = ()
    content: str = ""
    """Hash of a file's losses; empty for environments."""
    loss_range: LossRange = (0.0, 1.0)
    detail: str = ""
    """What of a file is meant, in a word or two."""
    data: Data | None = field(default=None, repr=False, compare=False)
    """The losses themselves: two sources are the same when their hashes are."""

    @property
    def label(self) -> str:
        """What people call it."""
        chosen = [f"{name} {value}" for name, value in self.options]
        said = ", ".join([*chosen, *([self.detail] if self.detail else [])])
        return f"{self.name} ({said})" if said else self.name

    def identity(self) -> JSON:
        """Return what its losses depend on: not a file's name, but its content."""
        which: JSON = {"content": self.content} if self.content else {"name": self.name}
        if self.loss_range != (0.0, 1.0):
            which["range"] = list(self.loss_range)
        return which | dict(self.options)

    @lru_cache(maxsize=4)  # noqa: B019  # large tables take a while, and cells share them
    def make(
        self, arms: int | None, rounds: int | None, experts: int | None
    ) -> Environment | ExpertEnvironment:
        """Make the environment; a table is cut to the first ``rounds`` of its rows."""
        if self.data is None:
            size = GENERATED_ROUNDS if rounds is None else rounds
            return make_environment(self.name, arms, size, experts, **dict(self.options))
        made = _environment_of(self.data, rounds)
        if experts not in (None, made.experts):
            known = "no" if made.experts is None else made.experts
            raise InputError(f"{self.name} has {known} experts; got experts {experts}.")
        if arms not in (None, made.arms):
            raise InputError(f"{self.name} has {made.arms} arms; got arms {arms}.")
        return made

    def described(self) -> JSON:
        """Return for reports what its arms and experts are called, and what its losses are."""
        data = self.data
        made = ENVIRONMENTS[self.name] if data is None else _environment_of(data, None)
        return {
            "file": self.name if data is not None else "",
            "arms": list(getattr(made, "arm_names", ())),
            "experts": list(getattr(made, "expert_names", ()))[:MOST_NAMES],
            "range": list(self.loss_range),
            "about": getattr(made, "about", ""),
            "outcome": data.outcome if isinstance(data, Logged) else getattr(made, "outcome", ""),
            "reward": isinstance(data, Logged) and data.reward,
            "sample": data.sample.to_dict() if isinstance(data, Logged) else None,
        }


def _environment_of(data: Data, rounds: int | None) -> Environment | ExpertEnvironment:
    return data.as_environment(rounds) if isinstance(data, Logged) else data.environment(rounds)


def read_source(value: object, folder: Path) -> Source:
    """Read one environment of a grid: a name, with options, a file, a log, or contexts."""
    if isinstance(value, Mapping) and isinstance(value.get("log"), str):
        return _read_log(dict(value), folder)
    if isinstance(value, Mapping) and isinstance(value.get("context"), str):
        people = read_context(dict(value), folder)
        return Source(people.name, (), people.content, detail="context", data=people)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        options = {name: option for name, option in value.items() if name != "name"}
        if is_table(value["name"]):
            return _read_table(value["name"], options, folder)
        fixed = [name for name in ("arms", "rounds", "experts") if name in options]
        if fixed:
            raise InputError(f"{' and '.join(fixed)} of an environment belong into the grid.")
        check_environment(value["name"], options)
        if not all(isinstance(option, bool | int | float) for option in options.values()):
            raise InputError(f"an environment's options are numbers; got {value!r}.")
        return Source(value["name"], tuple(sorted(options.items())))
    if not isinstance(value, str):
        raise InputError(
            f"an environment is a name, a file, {{name = ..., option = ...}}, {{log = ..., "
            f"arm = ..., outcome = ...}} or {{context = ..., features = ...}}; got {value!r}."
        )
    if is_table(value):
        return _read_table(value, {}, folder)
    check_environment(value)
    return Source(value)


def _read_table(name: str, options: JSON, folder: Path) -> Source:
    refuse_options(f"table {name}", options, TABLE_OPTIONS)
    loss_range = check_range(options.get("range", (0.0, 1.0)))
    advice = options.get("advice")
    if advice is not None and not isinstance(advice, str):
        raise InputError(f"advice is a file beside the study; got {advice!r}.")
    said, person = None if advice is None else folder / advice, options.get("person")
    if person is not None and not isinstance(person, str):
        raise InputError(f"person is the name of a column; got {person!r}.")
    losses = read_losses(folder / name, loss_range, said, person)
    label = Path(name).name
    return Source(label, (), losses.content, loss_range, _detail("", loss_range), losses)


def _read_log(value: JSON, folder: Path) -> Source:
    """Read a log: {log = "visits.csv", arm = "plan", outcome = "visits", range = [0, 20]}."""
    name = value.pop("log")
    refuse_options(f"log {name}", value, LOG_OPTIONS)
    missing = [what for what in ("arm", "outcome") if what not in value]
    if missing:
        raise InputError(f"log {name} needs {' and '.join(missing)}: the name of a column.")
    if "range" in value:
        value["loss_range"] = check_range(value.pop("range"))
    log = Logged(folder / name, **value)
    detail = _detail(value["outcome"], log.loss_range)
    detail += ", replay" if log.how == "replay" else ""
    return Source(Path(name).name, (), log.content, log.loss_range, detail, log)


def _detail(outcome: str, loss_range: LossRange) -> str:
    said = [outcome] if outcome else []
    if loss_range != (0.0, 1.0):
        said.append(f"{plain(loss_range[0])} to {plain(loss_range[1])}")
    return ", ".join(said)

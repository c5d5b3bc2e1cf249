"""Where a cell's losses come from: an environment by name, or a table in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from bandanna.environments import (
    TREATMENTS,
    Environment,
    ExpertEnvironment,
    LossTable,
    check_environment,
    make_environment,
)
from bandanna.studies.loss_file import SUFFIXES, LossFile, read_losses
from bandanna.types import JSON, InputError

GENERATED_ROUNDS = 100_000


@dataclass(frozen=True)
class Source:
    """An environment by name with its options, or a table of losses."""

    name: str
    options: tuple[tuple[str, float], ...] = ()
    content: str = ""
    """Hash of the table's losses; empty for environments."""
    table: LossFile | None = field(default=None, repr=False, compare=False)
    """The losses themselves: two sources are the same when their hashes are."""

    @property
    def label(self) -> str:
        """What people call it."""
        chosen = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{self.name} ({chosen})" if chosen else self.name

    def identity(self) -> JSON:
        """Return what its losses depend on: not a file's name, but its content."""
        which = {"content": self.content} if self.content else {"name": self.name}
        return which | dict(self.options)

    @lru_cache(maxsize=4)  # noqa: B019  # large tables take a while, and cells share them
    def make(
        self, arms: int | None, rounds: int | None, experts: int | None
    ) -> Environment | ExpertEnvironment:
        """Make the environment; a table is cut to the first ``rounds`` of its rows."""
        if self.table is None:
            size = GENERATED_ROUNDS if rounds is None else rounds
            return make_environment(self.name, arms, size, experts, **dict(self.options))
        if experts is not None:
            raise InputError(f"{self.name} has no experts; got experts {experts}.")
        height, width = self.table.losses.shape
        if arms not in (None, width):
            raise InputError(f"{self.name} has {width} arms; got arms {arms}.")
        if rounds is not None and rounds > height:
            raise InputError(f"{self.name} has {height} rounds; got rounds {rounds}.")
        return LossTable(self.table.losses[:rounds])

    def arm_names(self) -> list[str]:
        """Return the arms' names, for charts, where they have any."""
        if self.name in ("trial", "trial-rules"):
            return list(TREATMENTS)
        return [] if self.table is None else list(self.table.arms)


def read_source(value: object, folder: Path) -> Source:
    """Read one environment of a grid: a name, a name with options, or a file."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        options = {name: option for name, option in value.items() if name != "name"}
        fixed = [name for name in ("arms", "rounds", "experts") if name in options]
        if fixed:
            raise InputError(f"{' and '.join(fixed)} of an environment belong into the grid.")
        check_environment(value["name"], options)
        if not all(isinstance(option, bool | int | float) for option in options.values()):
            raise InputError(f"an environment's options are numbers; got {value!r}.")
        return Source(value["name"], tuple(sorted(options.items())))
    if not isinstance(value, str):
        raise InputError(
            f"an environment is a name, a file, or {{name = ..., option = ...}}; got {value!r}."
        )
    if not value.endswith(SUFFIXES):
        check_environment(value)
        return Source(value)
    losses = read_losses(folder / value)
    return Source(value, content=losses.content, table=losses)

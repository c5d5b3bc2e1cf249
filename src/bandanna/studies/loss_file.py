"""Losses from people's own files: CSV, Parquet or NumPy, one row for each round."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bandanna.extras import need
from bandanna.grid import array_to_units
from bandanna.types import InputError

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".parquet", ".npy")
MISSING = ["NA", "NaN", "nan", "NULL", "null", "None"]
"""What else than nothing a CSV file says where a loss is missing."""


@dataclass(frozen=True, eq=False)
class LossFile:
    """A (rounds, arms) table of losses in [0, 1], with its file's name and its content's hash."""

    name: str
    losses: NDArray[np.float64]
    arms: tuple[str, ...]
    """The columns' names."""
    content: str


@dataclass(frozen=True)
class _Table:
    """What a file holds."""

    losses: NDArray[np.generic]
    arms: tuple[str, ...]
    first_line: int | None = None
    """Where in a text file the first round is."""

    def where(self, row: int, column: int) -> str:
        """Say for people where a loss is."""
        line = "" if self.first_line is None else f" (line {row + self.first_line})"
        return f"row {row + 1}{line}, column {self.arms[column]!r}"


def read_losses(path: Path) -> LossFile:
    """Read a table of losses; the file's name says what it is.

    The first line of a CSV file may name the arms. NumPy files hold one two-dimensional array.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"a loss table is a file {', '.join(SUFFIXES)}; got {path.name!r}.")
    try:
        table = _read_numpy(path) if path.suffix == ".npy" else _read_frame(path)
        units = array_to_units(table.losses, table.where)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    content = hashlib.sha256(repr(units.shape).encode() + units.tobytes()).hexdigest()
    return LossFile(path.name, np.asarray(table.losses, dtype=np.float64), table.arms, content)


def _read_numpy(path: Path) -> _Table:
    try:
        losses = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"not a NumPy array of numbers: {error}.") from None
    count = losses.shape[1] if losses.ndim == 2 else 0
    return _Table(losses, _numbered(count))


def _read_frame(path: Path) -> _Table:
    need("studies", f"reading {path.name}")
    import polars as pl
    from polars import selectors

    try:
        if path.suffix == ".parquet":
            frame, first_line = pl.read_parquet(path), None
        else:
            frame, first_line = _read_csv(path)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"cannot be read as a table: {str(error).splitlines()[0]}.") from None
    if frame.is_empty():
        raise InputError("there are names of arms but no losses; give one row for each round.")
    frame = frame.with_columns(selectors.boolean().cast(pl.Int8))  # clicked or not
    words = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    if words:
        raise InputError(
            f"every column must hold the losses of one arm; not numbers: {', '.join(words)}."
        )
    return _Table(frame.to_numpy(), tuple(frame.columns), first_line)


def _read_csv(path: Path) -> tuple[pl.DataFrame, int]:
    """Read a CSV file, with or without a line of names; also the line its rounds begin at."""
    import polars as pl

    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline().strip().split(",")
    if not all(_is_loss(field) for field in first):
        return pl.read_csv(path, infer_schema_length=None, null_values=MISSING), 2
    frame = pl.read_csv(path, has_header=False, infer_schema_length=None, null_values=MISSING)
    return frame.rename(dict(zip(frame.columns, _numbered(frame.width), strict=True))), 1


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"arm {arm + 1}" for arm in range(count))


def _is_loss(text: str) -> bool:
    if text.strip().lower() in ("true", "false"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True

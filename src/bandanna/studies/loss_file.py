"""Losses from people's own files: CSV, Parquet or NumPy, one row for each round."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandanna.extras import need
from bandanna.grid import array_to_units
from bandanna.types import InputError

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".parquet", ".npy")


@dataclass(frozen=True, eq=False)
class LossFile:
    """A (rounds, arms) table of losses in [0, 1], with its file's name and its content's hash."""

    name: str
    losses: NDArray[np.float64]
    arms: tuple[str, ...]
    """The columns' names."""
    content: str


def read_losses(path: Path) -> LossFile:
    """Read a table of losses; the file's name says what it is.

    The first line of a CSV file may name the arms. NumPy files hold one two-dimensional array.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"a loss table is a file {', '.join(SUFFIXES)}; got {path.name!r}.")
    try:
        losses, names = _read_numpy(path) if path.suffix == ".npy" else _read_frame(path)
        units = array_to_units(losses)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    content = hashlib.sha256(repr(units.shape).encode() + units.tobytes()).hexdigest()
    return LossFile(path.name, np.asarray(losses, dtype=np.float64), names, content)


def _read_numpy(path: Path) -> tuple[Any, tuple[str, ...]]:
    try:
        losses = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"not a NumPy array of numbers: {error}.") from None
    count = losses.shape[1] if losses.ndim == 2 else 0
    return losses, tuple(f"arm {arm + 1}" for arm in range(count))


def _read_frame(path: Path) -> tuple[Any, tuple[str, ...]]:
    need("studies", f"reading {path.name}")
    import polars as pl

    try:
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"cannot be read as a table: {str(error).splitlines()[0]}.") from None
    words = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    if words:
        raise InputError(
            f"every column must hold the losses of one arm; not numbers: {', '.join(words)}."
        )
    return frame.to_numpy(), tuple(frame.columns)


def _read_csv(path: Path) -> pl.DataFrame:
    """Read a CSV file, with or without a first line that names the arms."""
    import polars as pl

    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline().strip().split(",")
    if not all(_is_number(field) for field in first):
        return pl.read_csv(path, infer_schema_length=None)
    frame = pl.read_csv(path, has_header=False, infer_schema_length=None)
    return frame.rename({name: f"arm {arm + 1}" for arm, name in enumerate(frame.columns)})


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

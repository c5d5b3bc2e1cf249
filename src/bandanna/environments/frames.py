"""Columns from files and data frames, read with polars where they are files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandanna._core.extras import need
from bandanna._core.types import InputError

if TYPE_CHECKING:
    import polars as pl

FRAMES = (".csv", ".parquet")
SUFFIXES = (*FRAMES, ".npy")
MISSING = ["NA", "NaN", "nan", "NULL", "null", "None"]
"""What else than nothing a CSV file says where a value is missing."""

Column = NDArray[Any]


def is_table(name: object) -> bool:
    """Whether something looks like the name of a file and not like that of an environment."""
    return isinstance(name, Path) or (isinstance(name, str) and Path(name).suffix != "")


def read_frame(path: Path) -> tuple[pl.DataFrame, int | None]:
    """Read a file, with or without a line of names; also the line of a text its rows begin at."""
    need("studies", f"reading {path.name}")
    import polars as pl

    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path), None
        first = _first_line(path).split(",")
        named = not all(_is_number(field) for field in first)
        return (
            pl.read_csv(path, has_header=named, infer_schema_length=None, null_values=MISSING),
            2 if named else 1,
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(f"cannot be read as a table: {str(error).splitlines()[0]}.") from None


def read_columns(source: object, names: Sequence[str]) -> dict[str, Column]:
    """Return some columns of a file or a data frame, and look at no others.

    Parameters
    ----------
    source
        The name of a CSV or Parquet file, a polars frame (also a lazy one), a pandas frame, or
        anything with columns by name.
    names
        Which columns.
    """
    if isinstance(source, str | Path):
        return _read_file(Path(source), names)
    if hasattr(source, "collect_schema") and hasattr(source, "select"):  # polars, lazy or not
        _require(names, source.collect_schema().names(), "the log")
        chosen: Any = source.select(list(dict.fromkeys(names)))
        frame = chosen.collect() if hasattr(chosen, "collect") else chosen
        return {name: frame[name].to_numpy() for name in names}
    known = getattr(source, "columns", None)
    if known is None and isinstance(source, Mapping):
        known = source.keys()
    if known is None:
        raise InputError(
            f"a log is a file, a data frame or a dict of columns; got {type(source).__name__}."
        )
    _require(names, [str(name) for name in known], "the log")
    return {name: np.asarray(source[name]) for name in names}  # type: ignore[index]


def _read_file(path: Path, names: Sequence[str]) -> dict[str, Column]:
    if path.suffix not in FRAMES:
        raise InputError(f"a log is a file {' or '.join(FRAMES)}; got {path.name!r}.")
    need("studies", f"reading {path.name}")
    import polars as pl

    try:
        if path.suffix == ".parquet":
            lazy = pl.scan_parquet(path)
        else:
            _first_line(path)
            lazy = pl.scan_csv(path, infer_schema_length=None, null_values=MISSING)
        _require(names, lazy.collect_schema().names(), str(path))
        frame = lazy.select(list(dict.fromkeys(names))).collect()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} cannot be read as a table: {reason}.") from None
    return {name: frame[name].to_numpy() for name in names}


def _first_line(path: Path) -> str:
    """Return the first line of a CSV file; refuse other encodings and separators."""
    with path.open("rb") as file:
        return check_first_line(path.name, file.read(2**16))


def check_first_line(name: str, head: bytes) -> str:
    """Return the first line of how a CSV file begins; refuse other encodings and separators."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head:
        raise InputError(
            f"{name} looks like UTF-16, or is no text; save it as CSV in UTF-8, or give a "
            f"data frame."
        )
    first = head.splitlines()[0].decode("utf-8-sig", errors="replace").strip() if head else ""
    for separator, called in ((";", "semicolons"), ("\t", "tabs")):
        if separator in first and "," not in first:
            raise InputError(
                f"{name} separates its columns by {called}; save it with commas, and points in "
                f"decimal numbers, or read it yourself and give a data frame."
            )
    return first


def _require(names: Sequence[str], known: Sequence[str], where: str) -> None:
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(
            f"{where} has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, known))}."
        )


def _is_number(text: str) -> bool:
    if text.strip().lower() in ("true", "false"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True

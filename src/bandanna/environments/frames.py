"""Columns from files and data frames: files are read with polars, frames through narwhals.

No error here repeats what a column holds: also not that of a library, which is left out. Where a
file seems to have no line of names, its first line is taken for people's values.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import InputError

if TYPE_CHECKING:
    import polars as pl
    from narwhals.typing import Frame

FRAMES = (".csv", ".parquet")
SUFFIXES = (*FRAMES, ".npy")
PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst", ".7z", ".tgz")
MISSING = ["NA", "NaN", "nan", "NULL", "null", "None"]
"""What else than nothing a CSV file says where a value is missing."""
MOST_NAMED = 50
"""Names of columns that an error lists."""

Column = NDArray[Any]


def is_table(name: object) -> bool:
    """Whether something looks like the name of a file and not like that of an environment."""
    return isinstance(name, Path) or (isinstance(name, str) and Path(name).suffix != "")


def read_frame(path: Path) -> tuple[pl.DataFrame, int | None]:
    """Read a file, with or without a line of names; also the line of a text its rows begin at."""
    import polars as pl

    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path), None
        named = not all(map(_is_number, _first_line(path)))
        frame = pl.read_csv(path, has_header=named, infer_schema_length=None, null_values=MISSING)
        return frame, 2 if named else 1
    except pl.exceptions.PolarsError as error:
        raise InputError(f"cannot be read as a table: {_why(path, error)}.") from None


def read_columns(source: object, names: Sequence[str]) -> dict[str, Column]:
    """Return some columns of a file or a data frame, and look at no others.

    Parameters
    ----------
    source
        The name of a CSV or Parquet file; a frame of pandas, polars (also a lazy one) or any other
        library that narwhals knows; an Arrow table or batch; a relation of DuckDB or Ibis; a dict
        of columns; or anything with columns by name.
    names
        Which columns.
    """
    if isinstance(source, str | Path):
        columns = _read_file(Path(source), names)
    elif isinstance(source, Mapping):
        require_names(names, [str(name) for name in source], "the log")
        columns = {name: _array(name, source[name]) for name in names}
    else:
        columns = _of_frame(source, names)
    sizes = {name: values.size for name, values in columns.items()}
    for name, values in columns.items():
        if values.ndim != 1:
            raise InputError(
                f"column {name!r} must be a list of values; got {values.ndim}-dim. ones."
            )
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{name!r} has {size:,}" for name, size in sizes.items())
        raise InputError(f"all columns must have as many rows: {said}.")
    return columns


def _of_frame(source: object, names: Sequence[str]) -> dict[str, Column]:
    """Return columns of something that is like a table."""
    frame = _narwhals(source)
    if frame is None:
        known = getattr(getattr(source, "dtype", None), "names", None)  # NumPy's records
        known = getattr(source, "columns", None) if known is None else known
        if known is None or callable(known) or not all(isinstance(name, str) for name in known):
            rows = isinstance(source, list | tuple | np.ndarray)
            hint = " Name its columns: pandas.DataFrame(rows, columns=[...])." if rows else ""
            raise InputError(
                f"a log is a file, a data frame, an Arrow table or a dict of columns; got "
                f"{type(source).__name__}.{hint}"
            )
        require_names(names, list(known), "the log")
        return {name: _array(name, source[name]) for name in names}  # type: ignore[index]
    require_names(names, [str(name) for name in frame.collect_schema().names()], "the log")
    chosen = frame.select(list(dict.fromkeys(names)))
    failed = ""
    try:
        chosen = chosen.collect() if hasattr(chosen, "collect") else chosen
    except ImportError as error:
        failed = f"it needs {error.name or 'another package'}, which is not installed"
    except Exception as error:  # what it says may repeat values
        failed = f"{type(error).__name__}; what it says is left out, as it may repeat values"
    if failed:
        raise InputError(f"the log, a {type(source).__name__}, cannot be read: {failed}.")
    return {name: chosen[name].to_numpy() for name in names}


def _narwhals(source: object) -> Frame | None:
    """Return what narwhals makes of a frame, or of what Arrow can read; None of anything else."""
    import narwhals as nw

    twice: list[str] = []
    try:
        if not isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame):
            if not (hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")):
                return None
            import polars as pl

            source = pl.DataFrame(source)  # type: ignore[arg-type]
        frame: Frame = nw.from_native(source)
        frame.collect_schema()
    except nw.exceptions.DuplicateError as error:
        twice = re.findall(r"'(.*)'", str(error))
    if twice:
        raise InputError(
            f"the log has several columns named {', '.join(map(repr, twice))}; rename them."
        )
    return frame


def _array(name: str, values: object) -> Column:
    """Return a column as an array."""
    if np.ma.isMaskedArray(values):
        return np.asarray(values.astype(object).filled(None))  # type: ignore[attr-defined]
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        pass
    raise InputError(f"column {name!r} must be a list of values, one for each row.")


def _read_file(path: Path, names: Sequence[str]) -> dict[str, Column]:
    if path.suffix in PACKED:
        raise InputError(
            f"{path.name} is compressed: unpack it first, such as with gunzip, or read it yourself "
            f"and give a data frame."
        )
    if path.suffix not in FRAMES:
        raise InputError(f"a log is a file {' or '.join(FRAMES)}; got {path.name!r}.")
    import polars as pl

    failed = ""
    try:
        if path.suffix == ".parquet":
            lazy = pl.scan_parquet(path)
            require_names(names, lazy.collect_schema().names(), str(path))
        else:
            known = _first_line(path)
            require_names(names, known, str(path))
            require_once(names, known, str(path))
            lazy = pl.scan_csv(path, infer_schema_length=None, null_values=MISSING)
        frame = lazy.select(list(dict.fromkeys(names))).collect()
    except OSError as error:
        failed = f"cannot read {path}: {error.strerror or 'it is no such file'}."
    except pl.exceptions.PolarsError as error:
        failed = f"{path} cannot be read as a table: {_why(path, error)}."
    if failed:
        raise InputError(failed)
    return {name: frame[name].to_numpy() for name in names}


def _why(path: Path, error: Exception) -> str:
    """Say why a file cannot be read, without what polars says, which may repeat values."""
    if path.suffix == ".csv":
        with path.open("rb") as file:
            other = other_encoding(path.name, file)
        if other:
            return other
        if "NoDataError" in type(error).__name__:
            return "it is empty"
        if "fields" in str(error):
            return "some line has more fields than the first one, or fewer"
    return "it is damaged, or of another kind than its name says"


def other_encoding(name: str, lines: Iterable[bytes]) -> str:
    """Say which line of a file is not UTF-8 and what to do; nothing if all are."""
    for number, line in enumerate(lines, start=1):
        try:
            codecs.decode(line, "utf-8")
        except UnicodeDecodeError:
            return (
                f"line {number:,} is not in UTF-8. Save it as CSV in UTF-8, or read it yourself, "
                f"such as with pandas.read_csv({name!r}, encoding='latin-1'), and give the frame"
            )
    return ""


def _first_line(path: Path) -> list[str]:
    """Return the fields of a CSV file's first line; refuse other encodings and separators."""
    with path.open("rb") as file:
        return check_first_line(path.name, file.read(2**16))


def check_first_line(name: str, head: bytes) -> list[str]:
    """Return the fields of a CSV file's first line; refuse other encodings and separators."""
    if head[:2] == b"\x1f\x8b":
        raise InputError(f"{name} is compressed with gzip: unpack it, or name it {name}.gz.")
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
    return next(csv.reader([first]), [""])


def require_once(names: Sequence[str], known: Sequence[str], where: str) -> None:
    """Refuse columns that are there several times."""
    twice = [name for name in names if known.count(name) > 1]
    if twice:
        raise InputError(f"{where} has several columns named {twice[0]!r}; rename them.")


def require_names(names: Sequence[str], known: Sequence[str], where: str) -> None:
    """Require columns; what is there instead is said only if it is no line of people's values."""
    missing = [name for name in names if name not in known]
    if missing and any(_is_number(name) for name in known):
        raise InputError(
            f"{where} seems to have no line of names: its first line has numbers in it. Write the "
            f"names of the columns there, {', '.join(map(repr, names))} among them."
        )
    if missing:
        more = f" and {len(known) - MOST_NAMED:,} more" if len(known) > MOST_NAMED else ""
        raise InputError(
            f"{where} has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, known[:MOST_NAMED]))}{more}."
        )


def _is_number(text: str) -> bool:
    if text.strip().lower() in ("true", "false"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True

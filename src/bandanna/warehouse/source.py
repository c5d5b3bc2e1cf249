"""What can be counted: one table, or exposures and facts, wherever they are, opened by Ibis.

A place is a file, a folder, a pattern such as ``logs/*.parquet``, a data frame, an Arrow table, or
the address of a database such as ``duckdb:///shop.duckdb``. Files and frames are read by an
embedded DuckDB. Engines say in their errors which value they could not read: none of their words
are repeated.
"""

from __future__ import annotations

import gzip
import itertools
import math
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from bandanna._core import checks
from bandanna._core.extras import need
from bandanna._core.grid import LossRange
from bandanna._core.types import BandannaError, InputError
from bandanna.environments.frames import (
    MISSING,
    check_first_line,
    other_encoding,
    require_once,
)

if TYPE_CHECKING:
    import ibis

SUFFIXES = (".parquet", ".csv", ".csv.gz")
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|d|w)\s*")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 100 * 366 * 86_400
AS_WRITTEN = {"auto_detect": False, "header": True, "delim": ",", "quote": '"', "escape": '"'}
"""How CSV files are read: DuckDB would find out from rows, and one could change all others."""
DUCKDB = "duckdb://"
UNREADABLE = (
    "{where} could not be counted: the engine refused the query ({kind}). What it said is not "
    "repeated, because it may show a value; bandanna.warehouse.sql_of returns the query."
)


@dataclass(frozen=True)
class Table:
    """One table with a row for each decision.

    Parameters
    ----------
    place
        A file, folder or pattern, a data frame, an Arrow table, or the address of a database.
    table
        In a database: the name of a table, or a SELECT.
    time
        The column by which a person's first row is found. Files have an order of their own.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Table("duckdb:///shop.duckdb", "visits").table
    'visits'
    """

    place: object
    table: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Exposures:
    """Who met which arm and when, and what happened to them, as experiment platforms keep them.

    Only the first exposure of a unit counts. Facts count from then until the end of the window,
    added up to one value a unit, moved into the range. A unit without facts counts 0.

    Parameters
    ----------
    exposures, facts
        Each a file, folder, pattern, frame or Arrow table; with ``address`` the name of a table,
        or a SELECT.
    unit, time
        Columns that both have: whose row it is, and when.
    window
        For how long after the first exposure facts count, such as ``"7d"``.
    arms
        The arms there are, in their order. Exposures to others are left out.
    address
        Of the database.
    since, until
        Exposures count from the first of these times until before the second.
    only
        A column of the exposures and the value that it must have.

    Examples
    --------
    >>> import bandanna as bd
    >>> shown = {"user": [1, 2], "arm": ["A", "B"], "time": ["2026-01-01", "2026-01-01"]}
    >>> bought = {"user": [2], "value": [7.5], "time": ["2026-01-03"]}
    >>> bd.Exposures(shown, bought, unit="user", time="time", window="7d", arms=("A", "B")).arms
    ('A', 'B')
    """

    exposures: object
    facts: object
    unit: str
    time: str
    window: str
    arms: tuple[str, ...]
    address: str | None = field(default=None, repr=False)
    since: str | None = None
    until: str | None = None
    only: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        duration(self.window)
        names = tuple(str(name) for name in self.arms)
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"arms must be at least two different names; got {self.arms!r}.")
        if len(names) > MOST_ARMS:
            raise InputError(f"exposures may have at most {MOST_ARMS} arms; got {len(names)}.")
        object.__setattr__(self, "arms", names)


OTHER = "other"
"""The category of all values that were not declared."""


class Bins(NamedTuple):
    """How a column divides rows: by categories, or by the edges of bins."""

    column: str
    categories: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()

    @classmethod
    def of(cls, column: str, declared: object) -> Bins:
        """Read what was declared of a column: three and more numbers are edges."""
        if isinstance(declared, str) or not isinstance(declared, Sequence) or len(declared) < 2:
            raise InputError(f"by needs at least two categories or edges for {column!r}.")
        edges = [checks.as_float(checks.spelled(edge)) for edge in declared]
        if len(edges) < 3 or not all(map(math.isfinite, edges)):
            return cls(column, categories=tuple(dict.fromkeys(map(str, declared))))
        if sorted(set(edges)) != edges:
            raise InputError(f"edges of the bins of {column!r} must grow; got {list(declared)!r}.")
        return cls(column, edges=tuple(edges))

    @property
    def names(self) -> tuple[str, ...]:
        """What its parts are called; the last one is for all other values."""
        ranges = (f"{low:g} to {high:g}" for low, high in itertools.pairwise(self.edges))
        return (*self.categories, *ranges, OTHER)

    @property
    def size(self) -> int:
        """How many parts there are."""
        return len(self.names)


class Asked(NamedTuple):
    """What is asked of one table."""

    arm: str
    outcome: str
    loss_range: LossRange
    person: str | None = None
    time: str | None = None
    bins: tuple[Bins, ...] = ()
    arms: tuple[str, ...] | None = None
    """The arms there are, where they are declared: other rows are not looked at."""


MOST_ARMS = 100
Source = Table | Exposures


def duration(text: str) -> timedelta:
    """Read a length of time.

    Examples
    --------
    >>> duration("7d").days, duration("90m").seconds
    (7, 5400)
    """
    parts = DURATION.fullmatch(text) if isinstance(text, str) else None
    seconds = float(parts[1]) * SECONDS[parts[2]] if parts else 0.0
    if not 0.0 < seconds <= LONGEST:
        raise InputError(
            f"a length of time is a number above 0 with s, m, h, d or w, such as 7d, of at most "
            f"100 years; got {text!r}."
        )
    return timedelta(seconds=seconds)


def is_address(place: object) -> bool:
    """Whether something looks like the address of a database."""
    return isinstance(place, str) and re.match(r"[a-zA-Z][\w+.-]*://", place) is not None


def named(place: object) -> str:
    """Return how to speak of a place: never by its whole address, which may hold a password."""
    if isinstance(place, Table):
        place = place.place if place.table is None else f"{place.table} of {named(place.place)}"
    if isinstance(place, Exposures):
        return f"{named(place.exposures)} and {named(place.facts)}"
    if is_address(place):
        return f"the database ({str(place).partition(':')[0]})"
    return str(place) if isinstance(place, str | Path) else "the log"


def _places(source: Source) -> tuple[object, ...]:
    return (source.place,) if isinstance(source, Table) else (source.exposures, source.facts)


def _address(source: Source) -> object | None:
    """Return the address of the database, or one that is open; None of files and frames."""
    if isinstance(source, Exposures):
        return source.address
    place = source.place
    if not is_address(place) and not hasattr(place, "list_tables"):
        return None
    if source.table is None:
        raise InputError("name the table of the database: --set table=, or table=.")
    return place


@contextmanager
def connected(source: Source) -> Iterator[ibis.BaseBackend]:
    """Connect to a database, or to an embedded DuckDB; its errors do not get out."""
    address, first = _address(source), _places(source)[0]
    where = named(first if address is None else address)
    need("warehouse", f"reading {where}")
    import ibis

    backend: ibis.BaseBackend | None = None
    try:
        if address is None:
            backend = ibis.duckdb.connect()
        elif _is_open(address):
            backend = address
        elif str(address).startswith(DUCKDB):
            backend = _duckdb(str(address))
        else:
            backend = ibis.connect(str(address))
        _in_utc(backend)
        yield backend
    except BandannaError:
        raise
    except (OSError, ImportError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{where} cannot be read: {reason or type(error).__name__}.") from None
    except Exception as error:
        kind, other = type(error).__name__, "" if address else _other_encoding(source)
        if backend is None:
            raise InputError(f"{where} does not answer, or not this user: {kind}.") from None
        if other:
            raise InputError(f"{where} cannot be read as a table: {other}.") from None
        raise InputError(UNREADABLE.format(where=where, kind=kind)) from None
    finally:
        if backend is not None and backend is not address:
            with suppress(Exception):
                backend.disconnect()


def seen_from(address: str, folder: Path) -> str:
    """Return an address whose file is seen from a folder; others as they are."""
    place = address.removeprefix(DUCKDB)
    elsewhere = place.startswith(("//", "md:")) or "?" in place or Path(place).is_file()
    if not address.startswith(DUCKDB) or elsewhere:
        return address
    return f"{DUCKDB}/{(folder / place.removeprefix('/')).absolute()}"


def _duckdb(address: str) -> ibis.BaseBackend:
    """Open a file of DuckDB's to read it: others may read it too, and none is made.

    ``duckdb:///shop.duckdb`` is in the current folder, as in the addresses of other libraries; with
    a further slash, or where there is no such file, the path is absolute.
    """
    import duckdb
    import ibis

    place = address.removeprefix(DUCKDB)
    if "?" in place or place.startswith("md:"):  # options, or a database in the cloud
        return ibis.connect(address)
    path = next((one for one in map(Path, (place.removeprefix("/"), place)) if one.is_file()), None)
    if path is None:
        raise InputError(
            f"there is no file of DuckDB's at {place.removeprefix('/')}, nor at {place}."
        )
    try:
        return ibis.duckdb.connect(path, read_only=True)
    except duckdb.ConnectionException:  # this program has opened it to write
        return ibis.duckdb.connect(path)


def _is_open(address: object) -> TypeGuard[ibis.BaseBackend]:
    """Whether something is a connection that the caller opened."""
    return hasattr(address, "list_tables")


def _in_utc(backend: ibis.BaseBackend) -> None:
    """Let times without a zone be read as UTC, and errors not come from values."""
    if backend.name == "duckdb":
        backend.raw_sql("SET TimeZone = 'UTC'")
        backend.raw_sql("SET enable_progress_bar = false")
        backend.raw_sql("SET ieee_floating_point_ops = true")
    elif backend.name == "postgres":
        backend.raw_sql("SET TIME ZONE 'UTC'").close()
    elif backend.name == "pyspark":
        backend._session.conf.set("spark.sql.session.timeZone", "UTC")


def opened(
    backend: ibis.BaseBackend, place: object, table: str | None, texts: Sequence[str]
) -> ibis.Table:
    """Return a place as a table of Ibis.

    All columns of CSV files are texts, and become numbers and times where they are ones: a file
    does not fail for what is in it. ``texts`` are columns that must be there once.
    """
    if table is not None:
        stored: ibis.Table
        if re.match(r"\s*(select|with)\b", table, re.IGNORECASE):
            return _chosen(backend, table)
        *path, name = table.split(".")
        stored = backend.table(name, database=tuple(path) if path else None)
        return stored
    if isinstance(place, str | Path):
        return _read_files(backend, str(place), texts)
    return _memory(place)


def _chosen(backend: ibis.BaseBackend, select: str) -> ibis.Table:
    """Return what a SELECT chooses."""
    if backend.name not in ("postgres", "duckdb"):
        return backend.sql(select)
    # There Ibis asks for the columns in a way that fails.
    name = f"bandanna_{secrets.token_hex(8)}"
    made = backend.raw_sql(f'CREATE TEMPORARY VIEW "{name}" AS {select}')
    if backend.name == "postgres":
        made.close()
    return backend.table(name)


def _read_files(backend: ibis.BaseBackend, place: str, texts: Sequence[str]) -> ibis.Table:
    files = _files(place)
    kinds = {"parquet" if name.endswith(".parquet") else "csv" for name in files}
    if kinds == {"parquet"}:
        return backend.read_parquet(files)
    if kinds != {"csv"}:
        raise InputError(f"{place} has CSV and Parquet files; name those of one kind.")
    first: list[str] = []
    for name in files:
        with _binary(name) as file:
            known = check_first_line(Path(name).name, file.read(2**16))
        require_once(texts, known, place)
        first = first or known
        if known != first:
            raise InputError(f"the files of {place} have other columns; name those that are alike.")
    named = [
        one if one and first.index(one) == k else f"{one} ({k})" for k, one in enumerate(first)
    ]
    require_once(named, named, place)
    columns = dict.fromkeys(named, "VARCHAR")
    return backend.read_csv(files, columns=columns, nullstr=["", *MISSING], **AS_WRITTEN)


def _binary(name: str) -> BufferedIOBase:
    """Open a file, unpacked."""
    return gzip.open(name) if name.endswith(".gz") else open(name, "rb")


def _other_encoding(source: Source) -> str:
    """Say which file is not in UTF-8, and what to do; nothing if all are."""
    for place in _places(source):
        for name in _files(str(place)) if isinstance(place, str | Path) else ():
            if not name.endswith(".parquet"):
                with _binary(name) as file:
                    other = other_encoding(Path(name).name, file)
                if other:
                    return other
    return ""


def _files(place: str) -> list[str]:
    """Return the files that a path or a pattern names."""
    path = Path(place)
    if path.is_dir():
        files = [one for one in sorted(path.rglob("*")) if one.name.endswith(SUFFIXES)]
    elif any(mark in place for mark in "*?["):
        root = Path(path.anchor or ".")
        pattern = str(path.relative_to(root)) if path.is_absolute() else place
        files = sorted(one for one in root.glob(pattern) if one.name.endswith(SUFFIXES))
    else:
        if not place.endswith(SUFFIXES):
            raise InputError(
                f"a log is a file {', '.join(SUFFIXES)}, a folder or pattern of such, a data "
                f"frame, or the address of a database; got {path.name!r}."
            )
        if not path.is_file():
            raise InputError(f"cannot read {place}: there is no such file.")
        files = [path]
    if not files:
        raise InputError(f"{place} names no files {', '.join(SUFFIXES)}.")
    return [str(one) for one in files]


def _memory(place: object) -> ibis.Table:
    """Return a frame, an Arrow table or a dict of columns as a table."""
    import ibis
    import pyarrow as pa

    if isinstance(place, Mapping):
        place = pa.table({str(name): pa.array(values) for name, values in place.items()})
    try:
        return ibis.memtable(place.collect() if hasattr(place, "collect") else place)
    except Exception:
        raise InputError(
            f"a log is a file, a folder, a data frame, an Arrow table, a dict of columns or the "
            f"address of a database; got {type(place).__name__}."
        ) from None

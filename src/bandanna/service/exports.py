"""Released values as JSON, CSV and Parquet, page by page: nothing else may leave in an export."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Sequence

from bandanna._core.extras import need
from bandanna._core.types import JSON, InputError
from bandanna.service.models import moment
from bandanna.spec import expert_names
from bandanna.store import SqlStore
from bandanna.store.rows import Experiment, Release

PAGE = 1_000


def export_pages(store: SqlStore, parts: Sequence[Experiment]) -> Iterator[list[JSON]]:
    """Return everything that was released, in pages.

    After each page others have as much time as it took: a large export keeps no decision waiting.
    """
    for part in parts:
        after = 0
        while True:
            began = time.monotonic()
            found = store.releases(part.number, after, PAGE)
            if rows := export_rows(part, found):
                yield rows
            if len(found) < PAGE:
                break
            after += PAGE
            time.sleep(min(0.1, time.monotonic() - began))


def json_lines(pages: Iterable[list[JSON]]) -> Iterator[str]:
    """Write pages as one JSON array."""
    begin = "["
    for rows in pages:
        yield begin + ", ".join(map(json.dumps, rows))
        begin = ", "
    yield "[]" if begin == "[" else "]"


def csv_lines(pages: Iterable[list[JSON]]) -> Iterator[str]:
    """Write pages as one CSV file."""
    header = True
    for rows in pages:
        yield as_csv(rows, header=header)
        header = False
    if header:
        yield as_csv([])


def export_rows(part: Experiment, releases: Sequence[Release]) -> list[JSON]:
    """Return released values and what they are about: all that an export may hold."""
    experts = part.settings.get("experts")
    what = "arm" if experts is None else "expert"
    names = expert_names(experts) if experts is not None else part.settings["arms"]
    begin = {"segment": part.segment} if part.segment else {}
    by_context = part.settings.get("features") is not None  # then a release is of all arms
    return [
        begin
        | {
            "batch": release.batch,
            what: None if by_context else names[release.choice],
            "rounds": release.size,
            "released": release.value,
            "released_at": moment(release.released_at),
        }
        for release in releases
        if release.size > 0  # otherwise nothing in it counted, and nothing was released
    ]


def as_csv(rows: Sequence[JSON], *, header: bool = True) -> str:
    """Write rows as CSV; cells that a spreadsheet would run as formulas are quoted as text."""
    text = io.StringIO()
    writer = csv.writer(text)
    if header:
        names = rows[0] if rows else ["batch", "arm", "rounds", "released", "released_at"]
        writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def as_parquet(rows: list[JSON]) -> bytes:
    """Write rows as Parquet."""
    need("studies", "an export as Parquet")
    import polars

    if not rows:
        raise InputError("nothing has been released yet.")
    data = io.BytesIO()
    flat = [{name: _flat(value) for name, value in row.items()} for row in rows]
    polars.DataFrame(flat).write_parquet(data)
    return data.getvalue()


def _flat(value: object) -> object:
    return json.dumps(value) if isinstance(value, list) else value


def _cell(value: object) -> object:
    text = _flat(value)
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t") else text

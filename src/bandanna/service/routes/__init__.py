"""The HTTP API, one file for each group of calls.

Here is what they share: which keys may call them, how paths are written and bodies are read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import Depends, HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON, InputError
from bandanna.service.core import Core
from bandanna.service.errors import said_of
from bandanna.service.keys import opens
from bandanna.service.models import Document, moment
from bandanna.store import KeyRow
from bandanna.store.writer import UnknownError


async def core_of(request: Request) -> Core:
    """Return the service. Plain functions would wait for a thread each time."""
    core: Core = request.app.state.core
    return core


async def require(request: Request, *scopes: str, everywhere: bool = False) -> KeyRow:
    """Require a key that opens one of the scopes: in the path's experiment, or everywhere."""
    key: KeyRow = request.state.key
    experiment = key.experiment if not everywhere else None
    wanted = request.path_params.get("experiment")
    if wanted is not None and key.experiment not in (None, wanted):
        raise UnknownError(f"there is no experiment {wanted!r}.")
    project = None
    if key.projects and not everywhere and wanted is not None:
        opened = await request.app.state.core.find(wanted)
        project = opened[0].settings.get("project")
        if not key.scopes and project not in key.projects:
            raise UnknownError(f"there is no experiment {wanted!r}.")
    elif key.projects and not everywhere:  # what it sees is left to the call
        project = next((one for one in key.projects if opens(key, scopes[0], None, one)), None)
    if not any(opens(key, scope, experiment, project) for scope in scopes):
        raise HTTPException(403, f"this key does not open {scopes[0]!r} here.")
    return key


def key_for(scope: str, *, everywhere: bool = False) -> Callable[[Request], Awaitable[KeyRow]]:
    """Return ``require`` as FastAPI wants it."""

    async def check(request: Request) -> KeyRow:
        return await require(request, scope, everywhere=everywhere)

    return check


CoreHere = Annotated[Core, Depends(core_of)]
CanDecide = Annotated[KeyRow, Depends(key_for("decide"))]
CanReward = Annotated[KeyRow, Depends(key_for("reward"))]
CanRead = Annotated[KeyRow, Depends(key_for("read"))]
CanReadAll = Annotated[KeyRow, Depends(key_for("read", everywhere=True))]
CanManage = Annotated[KeyRow, Depends(key_for("edit"))]
CanManageAll = Annotated[KeyRow, Depends(key_for("manage", everywhere=True))]

ExperimentPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
ArmPath = Annotated[str, Path(pattern=r"^[^\x00-\x1f/]{1,200}$")]
EventPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.:-]{1,200}$")]

Body = TypeVar("Body", bound=Document)


async def read_body(request: Request, kind: type[Body]) -> Body:
    """Read a document from a request."""
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False, include_url=False)) from None


MOST_LINES = 10_000
NDJSON = "application/x-ndjson"

Lines = tuple[list[tuple[int, Body]], dict[int, JSON]]
"""Documents that could be read, and why others were not, by the numbers of their lines."""


async def read_lines(request: Request, kind: type[Body]) -> Lines[Body]:
    """Read documents, one a line; empty lines are left out."""
    numbered = enumerate((await request.body()).split(b"\n"), 1)
    given = [(place, line) for place, line in numbered if line.strip()]
    if len(given) > MOST_LINES:
        raise InputError(f"send at most {MOST_LINES:,} lines at once; got {len(given):,}.")
    return await run_in_threadpool(_read_lines, given, kind)


def _read_lines(given: list[tuple[int, bytes]], kind: type[Body]) -> Lines[Body]:
    good: list[tuple[int, Body]] = []
    refused: dict[int, JSON] = {}
    for place, line in given:
        try:
            good.append((place, kind.model_validate_json(line)))
        except ValidationError as error:
            refused[place] = said_of(error)
    return good, refused


def lines_shown(what: str) -> JSON:
    """Describe documents, one a line, for OpenAPI."""
    content = {NDJSON: {"schema": {"type": "string"}}}
    said = f"At most {MOST_LINES:,} lines, each a document such as {what}"
    return {"requestBody": {"required": True, "content": content, "description": said}}


def body_shown(kind: type[Document]) -> JSON:
    """Describe a document for OpenAPI."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def trail_page(core: Core, after: int, limit: int, about: str | None = None) -> JSON:
    """Return a page of the trail, of all or of one experiment, with the names of keys."""
    rows = core.store.trail(after, limit, about)
    names = {key.id: key.name for key in core.store.all_keys()} if rows else {}
    entries = [{**row._asdict(), "at": moment(row.at), "name": names.get(row.who)} for row in rows]
    return {"entries": entries, "next": rows[-1].number if len(rows) == limit else None}

"""For operators: keys, the trail of who changed what, health and metrics."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON, BandannaError
from bandanna.service.core import STANDS_BY, Core
from bandanna.service.errors import PROBLEMS, problem
from bandanna.service.keys import make_key
from bandanna.service.metrics import Metrics
from bandanna.service.models import Document, Label, Moment
from bandanna.service.routes import CanManageAll, CanReadAll, CoreHere, trail_page
from bandanna.store import KeyRow
from bandanna.store.writer import UnknownError

router = APIRouter(prefix="/v1", responses=PROBLEMS)

Scope = Literal["decide", "reward", "read", "manage", "device"]


class NewKey(Document):
    """A key to be made."""

    name: Label
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=5)]
    experiment: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="Limit the key to this experiment."
    )
    expires_in_seconds: Annotated[float, Field(gt=0, le=10**9)] | None = Field(
        default=None, description="After this it opens nothing."
    )


class KeyAnswer(BaseModel):
    """A key, without what makes it secret."""

    id: str
    name: str
    scopes: list[str]
    experiment: str | None
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None


class NewKeyAnswer(KeyAnswer):
    """A key that was just made."""

    key: str = Field(description="Shown once: only a hash of it is kept.")


def _shown(row: KeyRow) -> JSON:
    return {name: getattr(row, name) for name in KeyAnswer.model_fields}


@router.get("/keys")
async def keys(core: CoreHere, _: CanManageAll) -> list[KeyAnswer]:
    """List all keys, revoked ones included."""
    rows = await run_in_threadpool(core.store.all_keys)
    return [KeyAnswer(**_shown(row)) for row in rows]


@router.get("/keys/me")
async def own_key(request: Request) -> KeyAnswer:
    """Say what the key that is sent may do."""
    return KeyAnswer(**_shown(request.state.key))


@router.post("/keys", status_code=201)
async def new_key(new: NewKey, core: CoreHere, mine: CanManageAll) -> NewKeyAnswer:
    """Make a key; it is shown in this answer alone."""
    expires = None if new.expires_in_seconds is None else time.time() + new.expires_in_seconds
    row, text = await run_in_threadpool(
        lambda: make_key(
            core.store, core.secret, new.name, tuple(new.scopes), new.experiment, expires
        )
    )
    await core.note(mine.id, "key made", row.id, {"name": new.name, "scopes": new.scopes})
    return NewKeyAnswer(**_shown(row), key=text)


@router.post("/keys/{key}/revoke", status_code=204, response_class=Response)
async def revoke_key(
    key: Annotated[str, Path(max_length=40)], core: CoreHere, mine: CanManageAll
) -> None:
    """Let a key open nothing any more, within two seconds; streams that it opened end.

    The last key that opens everything can only be revoked by ``bandanna keys revoke``.
    """
    if not await run_in_threadpool(core.store.revoke_key, key, core.clock(), keep_one=True):
        raise UnknownError(f"there is no key {key!r} to revoke.")
    await core.note(mine.id, "key revoked", key)


@router.get("/trail")
async def trail(
    core: CoreHere,
    _: CanManageAll,
    after: Annotated[int, Query(ge=0, le=2**62, description="Entries after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JSON:
    """Say who made, changed, stopped and exported what; ask again after ``next`` for more."""
    return await run_in_threadpool(trail_page, core, after, limit)


# --- health and metrics ---------------------------------------------------------------

health = APIRouter()

LEAST_BYTES = 20_000_000
"""Free disk space below which nothing more should be sent here."""

STUCK_SECONDS = 30.0
"""A transaction that takes longer means that the writer is stuck."""

DAY_SECONDS = 86_400.0


def free_bytes(core: Core) -> int:
    """Return how much space is left where the database or the rollback guard is."""
    return shutil.disk_usage(core.disk).free


def _database(core: Core) -> str | None:
    core.store.check()
    return None if core.writer.available else "the last transaction was not taken."


def _disk(core: Core) -> str | None:
    free = free_bytes(core)
    return None if free >= LEAST_BYTES else f"only {free} bytes are left in {core.disk}."


def _writer(core: Core) -> str | None:
    since = core.writer.busy_since
    age = 0.0 if since is None else time.monotonic() - since
    if not core.writer.alive:
        return "the writer has stopped."
    return None if age < STUCK_SECONDS else f"a transaction takes {age:.0f} seconds."


CHECKS: dict[str, Callable[[Core], str | None]] = {
    "database": _database,
    "disk": _disk,
    "rollback guard": lambda core: None if core.guard is None else core.guard.trouble,
    "writer": _writer,
    "lead": lambda core: None if core.leads else STANDS_BY,
    "start": lambda core: None if core.warm else "what releases need is being loaded.",
}
"""Each returns what is wrong, if anything is. Tables are brought up to date before the start."""


def look(core: Core) -> dict[str, str]:
    """Return what is wrong, by what it is about."""
    states: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            wrong = check(core)
        except (BandannaError, OSError) as error:
            wrong = str(error)
        if wrong is not None:
            states[name] = wrong
    return states


async def livez() -> JSON:
    """Say that the process answers; restart it if this does not."""
    return {"status": "ok"}


async def readyz(core: CoreHere) -> JSONResponse:
    """Say whether requests can be served: database, disk, rollback guard and writer."""
    wrong = await run_in_threadpool(look, core)
    if not wrong:
        return JSONResponse({"status": "ok", "checks": dict.fromkeys(CHECKS, "ok")})
    checks = {name: wrong.get(name, "ok") for name in CHECKS}
    return problem(503, " ".join(wrong.values()), {"Retry-After": "1"}, checks=checks)


health.get("/livez")(livez)
for _path in ("/readyz", "/healthz"):
    health.get(_path, responses={503: PROBLEMS[503]}, response_model=None)(readyz)
for _path, _answer in (("/livez", livez), ("/readyz", readyz), ("/healthz", readyz)):
    health.head(_path, include_in_schema=False, response_model=None)(_answer)


@health.get("/metrics", responses=PROBLEMS)
async def show_metrics(core: CoreHere, _: CanReadAll) -> Response:
    """Return numbers for Prometheus."""
    text = await run_in_threadpool(measure, core, core.metrics)
    return Response(text, media_type="text/plain; version=0.0.4")


def measure(core: Core, metrics: Metrics) -> bytes:
    """Look at everything that is not counted as it happens, and return all numbers."""
    now = core.clock()
    metrics.set(
        transactions=core.writer.transactions,
        failed_transactions=core.writer.failures,
        queue=core.writer.waiting,
        disk_free_bytes=free_bytes(core),
        rollback_guard=core.guard is not None and core.guard.trouble is None,
        stale_batches=core.store.begun_before(now - DAY_SECONDS),
    )
    metrics.experiments(core.store.measured(), now)
    return metrics.text()

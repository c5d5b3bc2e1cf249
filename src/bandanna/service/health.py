"""Is it alive, is it ready, and numbers for operators."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON, BandannaError
from bandanna.service.access import CanRead, CoreHere
from bandanna.service.core import Core
from bandanna.service.errors import PROBLEMS
from bandanna.service.metrics import Metrics

router = APIRouter()

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


def _guard(core: Core) -> str | None:
    return None if core.guard is None else core.guard.trouble


def _writer(core: Core) -> str | None:
    since = core.writer.busy_since
    age = 0.0 if since is None else time.monotonic() - since
    if not core.writer.alive:
        return "the writer has stopped."
    return None if age < STUCK_SECONDS else f"a transaction takes {age:.0f} seconds."


CHECKS: dict[str, Callable[[Core], str | None]] = {
    "database": _database,
    "disk": _disk,
    "rollback guard": _guard,
    "writer": _writer,
}
"""Each returns what is wrong, if anything is. Tables are brought up to date before the start."""


def look(core: Core) -> dict[str, str]:
    """Return what is wrong, by what it is about."""
    found: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            wrong = check(core)
        except (BandannaError, OSError) as error:
            wrong = str(error)
        if wrong is not None:
            found[name] = wrong
    return found


async def livez() -> JSON:
    """Say that the process answers; restart it if this does not."""
    return {"status": "ok"}


async def readyz(core: CoreHere) -> JSONResponse:
    """Say whether requests can be served: database, disk, rollback guard and writer."""
    wrong = await run_in_threadpool(look, core)
    if not wrong:
        return JSONResponse({"status": "ok", "checks": dict.fromkeys(CHECKS, "ok")})
    checks = {name: wrong.get(name, "ok") for name in CHECKS}
    content = {"type": "about:blank", "title": "Service Unavailable", "status": 503}
    content |= {"detail": " ".join(wrong.values()), "checks": checks}
    return JSONResponse(
        content,
        status_code=503,
        headers={"Retry-After": "1"},
        media_type="application/problem+json",
    )


router.get("/livez")(livez)
for _path in ("/readyz", "/healthz"):
    router.get(_path, responses={503: PROBLEMS[503]}, response_model=None)(readyz)
for _path, _answer in (("/livez", livez), ("/readyz", readyz), ("/healthz", readyz)):
    router.head(_path, include_in_schema=False, response_model=None)(_answer)


@router.get("/metrics", responses=PROBLEMS)
async def show_metrics(core: CoreHere, _: CanRead) -> Response:
    """Return numbers for Prometheus."""
    text = await run_in_threadpool(measure, core, core.metrics)
    return Response(text, media_type="text/plain; version=0.0.4")


def measure(core: Core, metrics: Metrics) -> bytes:
    """Look at everything that is not counted as it happens, and return all numbers."""
    metrics.transactions.set(core.writer.transactions)
    metrics.failures.set(core.writer.failures)
    metrics.waiting.set(core.writer.waiting)
    metrics.disk.set(free_bytes(core))
    metrics.guard.set(core.guard is not None and core.guard.trouble is None)
    now = core.clock()
    metrics.stale.set(core.store.begun_before(now - DAY_SECONDS))
    metrics.experiments(core.store.measured(), now)
    return metrics.text()

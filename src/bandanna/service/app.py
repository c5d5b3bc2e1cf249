"""The application: routes, the gate in front of them, and what runs beside them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON
from bandanna.service.core import Core
from bandanna.service.errors import add_problems
from bandanna.service.keys import REFRESH_SECONDS, KeyRing
from bandanna.service.middleware import OPEN_PATHS, Gate, Origins, Quick, SignedIn
from bandanna.service.routes import (
    decisions,
    edge,
    experiments,
    openfeature,
    operations,
    pages,
    results,
)
from bandanna.service.traces import add_traces
from bandanna.store import StoreUnavailableError
from bandanna.version import __version__

logger = logging.getLogger("bandanna.service")

SWEEP_SECONDS = 1.0
STAND_BY_SECONDS = 0.2
FORGET_SECONDS = 600.0
"""How often events are looked for that need not be kept longer."""


def make_app(core: Core) -> FastAPI:
    """Return the service as an ASGI application."""
    ring = KeyRing(core.store, core.secret, core.guard)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        with suppress(StoreUnavailableError):  # it is tried again
            await core.take_lead()
        beside = [asyncio.create_task(one) for one in (_look_after(core, ring), _stand_by(core))]
        yield
        core.closing.set()
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await run_in_threadpool(core.close)

    app = FastAPI(
        title="Bandanna",
        version=__version__,
        summary="Private decisions that learn.",
        lifespan=running,
        docs_url=None,
        redoc_url=None,
    )
    app.state.core = core
    describe = app.openapi

    def with_key() -> JSON:
        """Return the description, with the key that every call needs."""
        schema: JSON = describe()
        if "security" not in schema:
            key = {"type": "http", "scheme": "bearer", "description": "A key: bdn_..."}
            schema.setdefault("components", {})["securitySchemes"] = {"key": key}
            schema["security"] = [{"key": []}]
            for path in set(OPEN_PATHS) & set(schema["paths"]):
                for call in schema["paths"][path].values():
                    call["security"] = []
        return schema

    app.openapi = with_key  # type: ignore[method-assign]
    for group in (experiments, decisions, edge, results, openfeature, operations, pages):
        app.include_router(group.router)
    app.include_router(operations.health)

    add_problems(app)
    app.add_middleware(Quick)
    people = SignedIn.of(core.settings)
    app.add_middleware(Gate, core.settings, ring, core.metrics, people)
    app.add_middleware(Origins, allowed=core.settings.origins)
    add_traces(app)
    return app


async def _stand_by(core: Core) -> None:
    """Try to lead, often, while another process does."""
    while True:
        await asyncio.sleep(STAND_BY_SECONDS)
        if not core.leads:
            with suppress(StoreUnavailableError):
                await core.take_lead()


async def _look_after(core: Core, ring: KeyRing) -> None:
    """Expire what is due and erase traces, every second; trouble passes or is alerted on."""
    metrics, next_forget = core.metrics, 0.0
    while True:
        try:
            await core.sweep()
            await core.tidy()
            if time.monotonic() >= next_forget:
                await core.forget()
                next_forget = time.monotonic() + FORGET_SECONDS
            if ring.age > REFRESH_SECONDS:  # open streams end when their key is revoked
                await run_in_threadpool(ring.refresh)
            metrics.set(database_available=core.writer.available)
        except StoreUnavailableError as error:
            metrics.set(database_available=0)
            logger.warning("database unavailable", extra={"facts": {"why": str(error)}})
        except Exception as error:  # the next round tries again
            logger.error("sweep failed", extra={"facts": {"kind": type(error).__name__}})
        await asyncio.sleep(SWEEP_SECONDS)

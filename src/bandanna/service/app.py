"""The application: routes, the gate in front of them, and what runs beside them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Response
from starlette.concurrency import run_in_threadpool

from bandanna.service import device, events, openfeature, page, reading, routes
from bandanna.service.access import CanRead
from bandanna.service.core import Core
from bandanna.service.gate import Gate
from bandanna.service.keys import REFRESH_SECONDS, KeyRing
from bandanna.service.metrics import Metrics
from bandanna.service.origins import Origins
from bandanna.service.problems import add_problems, problem
from bandanna.store import StoreUnavailableError
from bandanna.version import __version__

logger = logging.getLogger("bandanna.service")

SWEEP_SECONDS = 1.0
DAY_SECONDS = 86_400.0


def make_app(core: Core) -> FastAPI:
    """Return the service as an ASGI application."""
    metrics = Metrics()
    ring = KeyRing(core.store, core.secret, core.guard)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(_look_after(core, metrics, ring))
        yield
        core.closing.set()
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper
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
    shown = (routes.router, events.router, reading.router, openfeature.router)
    for part in (*shown, page.router, device.files):
        app.include_router(part)
    _add_signs_of_life(app, core, metrics)
    add_problems(app)
    names = ("most_bytes", "rate", "device_rate")
    limits = {name: getattr(core.settings, name) for name in names}
    app.add_middleware(Gate, ring=ring, metrics=metrics, **limits)
    app.add_middleware(Origins, allowed=core.settings.origins)
    return app


def _add_signs_of_life(app: FastAPI, core: Core, metrics: Metrics) -> None:
    @app.get("/healthz")
    async def healthz() -> Response:
        """Say whether the database answers."""
        try:
            await run_in_threadpool(core.store.check)
        except StoreUnavailableError as error:
            return problem(503, str(error), {"Retry-After": "1"})
        return Response('{"status": "ok"}', media_type="application/json")

    @app.get("/metrics", responses=routes.PROBLEMS)
    async def show_metrics(_: CanRead) -> Response:
        """Return numbers for Prometheus."""
        await run_in_threadpool(_measure, core, metrics)
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _measure(core: Core, metrics: Metrics) -> None:
    metrics.transactions.set(core.writer.transactions)
    metrics.failures.set(core.writer.failures)
    metrics.waiting.set(core.writer.waiting)
    metrics.measure_disk(str(core.disk))
    metrics.guard.set(core.guard is not None and core.guard.trouble is None)
    for one in core.store.listed():
        if one.resumed:
            metrics.resumed.labels(one.id).set(one.resumed)
    metrics.stale.set(core.store.begun_before(core.clock() - DAY_SECONDS))


async def _look_after(core: Core, metrics: Metrics, ring: KeyRing) -> None:
    """Expire what is due and erase traces, every second; trouble passes or is alerted on."""
    while True:
        try:
            await core.sweep()
            await core.tidy()
            if ring.age > REFRESH_SECONDS:  # open streams end when their key is revoked
                await run_in_threadpool(ring.refresh)
            metrics.available.set(core.writer.available)
        except StoreUnavailableError as error:
            metrics.available.set(0)
            logger.warning("database unavailable", extra={"facts": {"why": str(error)}})
        except Exception as error:  # the next round tries again
            logger.error("sweep failed", extra={"facts": {"kind": type(error).__name__}})
        await asyncio.sleep(SWEEP_SECONDS)

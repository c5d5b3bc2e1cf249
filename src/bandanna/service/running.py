"""Run the service until it is told to stop; check one without running it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import StateFileError
from bandanna.policy.facade import PrivateBandit
from bandanna.service.app import make_app
from bandanna.service.core import Core
from bandanna.service.demo import play
from bandanna.service.health import look
from bandanna.service.keys import make_first_key
from bandanna.service.limits import bounded
from bandanna.service.logs import JsonLines, start_logs
from bandanna.service.parts import grouped
from bandanna.service.settings import Settings

GRACE_SECONDS = 10
BACKLOG = 1024
YOUNG = 20_000
"""Objects made between two looks for garbage: those of several transactions, not of one request."""
SWITCH_SECONDS = 0.001
"""How long one thread may keep others from running, with PostgreSQL: the writer, back from the
server, waits for whichever thread reads requests. SQLite gives way many times in a transaction,
and would pay for it each time."""


class Server(uvicorn.Server):
    """Tells streams to end before it waits for them."""

    core: Core

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self.core.closing.set()
        super().handle_exit(sig, frame)


def first_key(core: Core, key_file: Path | None) -> str | None:
    """Make a key that opens everything, if there is no key yet; also write it to a file."""
    text = make_first_key(core.store, core.secret)
    if text is not None and key_file is not None:
        try:
            handle = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise StateFileError(f"cannot write {key_file}: {error.strerror}.") from None
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text + "\n")
    return text


def warm_up() -> None:
    """Decide once: compiled code is loaded, and few visitors have to wait for it."""
    policy = PrivateBandit(2, 1.0, 100)
    policy.observe(policy.decide(), loss=0.0)


def serve(
    core: Core,
    host: str,
    port: int,
    *,
    log_level: str = "info",
    demo: bool = False,
    most_connections: int = 2_000,
) -> None:
    """Answer requests until told to stop; then finish what was begun."""
    start_logs(log_level)
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(name).handlers = []
    quiet = logging.StreamHandler()
    quiet.setFormatter(JsonLines())
    logging.getLogger().handlers = [quiet]
    config = uvicorn.Config(
        make_app(core),
        host=host,
        port=port,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        proxy_headers=False,  # the gate reads them, of trusted proxies
        http=bounded(most_connections),
        ws="none",
        backlog=BACKLOG,
    )
    server = Server(config)
    server.core = core

    # What was loaded stays: to look through it for garbage would only keep requests waiting.
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 100)
    gc.enable()
    if not core.store.sqlite:
        sys.setswitchinterval(SWITCH_SECONDS)

    async def warm() -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        await run_in_threadpool(warm_up)

    async def run() -> None:
        beside = [asyncio.create_task(warm())]
        if demo:
            beside.append(asyncio.create_task(play(core)))
        await server.serve()
        for task in beside:
            task.cancel()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())


def check(settings: Settings) -> list[str]:
    """Open everything a service needs, and say what was found; errors say what is wrong."""
    core = Core(settings)
    core.store.check_integrity()
    wrong = look(core)
    if wrong:
        core.close()
        raise StateFileError(" ".join(f"{name}: {why}" for name, why in wrong.items()))
    experiments = grouped(core.store.overview())
    running = sum(not one[0].stopped for one in experiments)
    keys = [key for key in core.store.all_keys() if key.revoked_at is None]
    core.close()
    guard = "none" if core.guard is None else f"agrees ({core.guard.address})"
    return [
        f"database: {'SQLite' if core.store.sqlite else 'PostgreSQL'}, tables up to date, whole",
        f"experiments: {len(experiments)}, {running} running",
        f"keys: {len(keys)}",
        "secret: good",
        f"rollback guard: {guard}",
    ]

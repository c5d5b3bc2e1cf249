"""The server process: connections, logs, start and stop; ``check`` opens everything without it."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from bandanna._core.types import StateFileError
from bandanna.policy.facade import PrivateBandit
from bandanna.service.app import make_app
from bandanna.service.core import Core
from bandanna.service.keys import make_first_key
from bandanna.service.policies import grouped
from bandanna.service.routes.operations import look
from bandanna.service.settings import Settings
from bandanna.store import ConflictError, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.unit_of_work import NewFeedback

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
            beside.append(asyncio.create_task(play_demo(core)))
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


# --- connections ----------------------------------------------------------------------

HEADER_SECONDS = 20.0
"""A connection is closed if the headers of a request, the first or a later one, take longer."""

REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


class _BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Refuses connections beyond a number, and closes those whose headers do not come."""

    most_connections = 2_000
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take a connection, or refuse it."""
        if len(self.connections) >= self.most_connections:
            transport.write(REFUSED)
            transport.close()
            self.refused = True
            return
        super().connection_made(JoinedTransport(transport, self.loop.call_soon))
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        if getattr(self, "refused", False):
            return
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what was sent."""
        if getattr(self, "refused", False):
            return
        super().data_received(data)
        if self._between_requests:
            self._wait_for_headers()
        else:
            self._stop_waiting()

    def eof_received(self) -> None:
        """Nothing more comes."""
        if not getattr(self, "refused", False):
            super().eof_received()

    @property
    def _between_requests(self) -> bool:
        """Whether no request is being answered: what came is at most the beginning of one."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _wait_for_headers(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEADER_SECONDS, self._close_if_waiting)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close_if_waiting(self) -> None:
        if self._between_requests and not self.transport.is_closing():
            self.transport.close()


def bounded(most_connections: int) -> type[asyncio.Protocol]:
    """Return how connections are handled: at most so many."""
    return type("BoundedProtocol", (_BoundedProtocol,), {"most_connections": most_connections})


HEAD = b"HTTP/1.1 "
END = b"\r\n\r\n"


class JoinedTransport:
    """A connection on which the head of an answer is written together with what follows.

    A server writes the head of an answer, and then its body: two calls of the operating system and
    two packets, which together take as long as everything else that is done to answer a small
    request. Here the head waits for the body, or until the event loop has nothing else to do.

    Parameters
    ----------
    transport
        The connection. What is not about writing goes to it.
    later
        Calls a function once the event loop has done what it is about to do.
    """

    def __init__(
        self, transport: asyncio.Transport, later: Callable[[Callable[[], None]], object]
    ) -> None:
        self._transport, self._later = transport, later
        self._head = b""
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write; the head of an answer waits."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.startswith(HEAD) and data.endswith(END):
            self._head = data
            self._later(self.flush)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Write what waits."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        """Write what waits, and close."""
        self.flush()
        self._transport.close()


# --- logs -----------------------------------------------------------------------------


class JsonLines(logging.Formatter):
    """Writes the message and the facts given with it, and nothing else.

    Tracebacks are left out: their values could be someone's feedback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record as one line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        return json.dumps(line | getattr(record, "facts", {}))


def start_logs(level: str = "info") -> None:
    """Send the service's logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("bandanna.service")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level.upper())


# --- demonstration --------------------------------------------------------------------

DEMO_ARMS = {"green": 0.45, "blue": 0.55, "red": 0.75}
"""How often each disappoints."""

DEMO_PAUSE_SECONDS = 0.02


async def play_demo(core: Core) -> None:
    """Make an experiment and let a simulated population take part until the service stops."""
    settings = {"arms": list(DEMO_ARMS), "epsilon": 1.0, "rounds": 100_000, "deadline_seconds": 5.0}
    made, _ = await core.create("demonstration", settings)
    people = random.Random(1)  # noqa: S311
    while not core.closing.is_set():
        try:
            event = await core.decide(made[0].id)
            if people.random() < 0.9:  # some never answer
                unhappy = people.random() < list(DEMO_ARMS.values())[event.arm]
                await core.reward(event.id, NewFeedback(float(unhappy)))
        except ConflictError:
            return  # it was stopped
        except (GoneError, StoreUnavailableError):
            pass  # a slow moment: the next one comes
        await asyncio.sleep(DEMO_PAUSE_SECONDS)

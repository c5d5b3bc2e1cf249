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
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import ClassVar

import uvicorn
from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from bandanna._core.types import JSON, BandannaError, StateFileError
from bandanna.policy.facade import PrivateBandit, PrivateExperts
from bandanna.service.app import make_app
from bandanna.service.core import Core
from bandanna.service.keys import make_first_key
from bandanna.service.middleware import (
    MOST_HEADER_BYTES,
    Network,
    check_networks,
    is_trusted,
    visitor,
)
from bandanna.service.policies import grouped, make_policy
from bandanna.service.routes.operations import look
from bandanna.service.settings import Settings
from bandanna.store import ConflictError, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.unit_of_work import NewFeedback

GRACE_SECONDS = 10
LOOPBACK = ("127.0.0.1", "::1", "localhost")
OPEN_TO_ALL = (
    "warning: it listens on {host} and speaks plain HTTP: keys and feedback can be read on the "
    "way, unless only a proxy with TLS reaches it; see deploy/nginx.conf"
)
PUT_BACK_TOGETHER = (
    "warning: the rollback guard is in the PostgreSQL server of the database: a restore of that "
    "server to a point in time puts both back, and nothing would notice; keep it in another one"
)
BACKLOG = 1024
MOST_WARMED, MOST_ROUNDS = 200, 2_000
"""Experiments whose algorithms are warmed up, and rounds that each is played for."""

DEFAULT = {"arms": ["a", "b"], "epsilon": 1.0, "rounds": 1_000_000}
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


def write_first_key(core: Core, path: Path) -> bool:
    """Write a key that opens everything to a file, if there is no key yet."""
    if core.store.all_keys():
        return False
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.fchmod(handle, 0o600)
    except OSError as error:
        raise StateFileError(f"cannot write the first key to {path}: {error.strerror}.") from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        text = make_first_key(core.store, core.secret)
        if text is not None:
            file.truncate()
            file.write(text + "\n")
    return text is not None


def warm_up(core: Core) -> None:
    """Decide and release as the running experiments do: compiled code is loaded, nobody waits."""
    known = {"": DEFAULT} | {
        one.settings["algorithm"]: one.settings
        for one in core.store.overview(running=True, newest=True, limit=MOST_WARMED)
        if one.settings.get("features") is None
    }
    for settings in known.values():
        with suppress(BandannaError):  # made by an earlier version: it is refused when it is used
            _play(make_policy(settings))


def _play(policy: PrivateBandit | PrivateExperts) -> None:
    """Play until something is released."""
    experts = None if policy.experts is None else [0] * len(policy.expert_names)
    persons = policy.people is not None
    for k in range(MOST_ROUNDS):
        decision = policy.decide(experts, person=k if persons else None)
        if policy.spec.release == "device":
            policy.observe_bit(decision, 0)
        else:
            metrics = {name: low for name, (low, _) in (policy.spec.metrics or {}).items()}
            policy.observe(decision, loss=policy.default_loss, metrics=metrics or None)
        if persons:
            with suppress(BandannaError):  # it is over
                policy.finish(k)
        if policy.released:
            return


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
        http=bounded(most_connections, core.settings.proxies),
        ws="none",
        backlog=BACKLOG,
    )
    server = Server(config)
    server.core, core.warm = core, False

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
        await run_in_threadpool(warm_up, core)
        core.warm = True

    async def run() -> None:
        beside = [asyncio.create_task(warm())]
        if demo:
            beside.append(asyncio.create_task(play_demo(core)))
        await server.serve()
        for task in beside:
            task.cancel()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())


def check(settings: Settings, host: str = "127.0.0.1") -> list[str]:
    """Open everything a service needs, and say what was found; errors say what is wrong."""
    core = Core(settings)
    core.store.check_integrity()
    wrong = look(core)
    wrong.pop("lead", None)  # another process may be running
    if wrong:
        core.close()
        raise StateFileError(" ".join(f"{name}: {why}" for name, why in wrong.items()))
    experiments = grouped(core.store.overview())
    running = sum(not one[0].stopped for one in experiments)
    keys = [key for key in core.store.all_keys() if key.revoked_at is None]
    together = core.guard is not None and core.guard.is_restored_together()
    core.close()
    guard = "none" if core.guard is None else f"agrees ({core.guard.address})"
    return [
        f"database: {'SQLite' if core.store.sqlite else 'PostgreSQL'}, tables up to date, whole",
        f"experiments: {len(experiments)}, {running} running",
        f"keys: {len(keys)}",
        "secret: good",
        f"rollback guard: {guard}",
        *([PUT_BACK_TOGETHER] if together else []),
        *([] if host in LOOPBACK else [OPEN_TO_ALL.format(host=host)]),
    ]


# --- connections ----------------------------------------------------------------------

OF_ADDRESS = 4
"""One address may have one part in so many of all connections, unless it is a trusted proxy's."""

HEADER_SECONDS = 20.0
"""A connection is closed if the headers of a request, the first or a later one, take longer."""

REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)

TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


class _BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Bounds connections, in all and of an address, and how long headers are and take."""

    most_connections = 2_000
    most_of_address = 500
    addresses: ClassVar[Counter[str]] = Counter()
    """Connections of each address that is no trusted proxy's."""
    proxies: tuple[Network, ...] = ()
    _waiting: asyncio.TimerHandle | None = None
    _address: str | None = None
    _headers = 0
    """Bytes of a request whose headers have not all come."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take a connection, or refuse it."""
        host = (transport.get_extra_info("peername") or ("",))[0]
        known = None if is_trusted(host, self.proxies) else visitor(host, "", ())
        here = 0 if known is None else self.addresses[known]
        if len(self.connections) >= self.most_connections or here >= self.most_of_address:
            transport.write(REFUSED)
            transport.close()
            self.refused = True
            return
        if known is not None:
            self._address = known
            self.addresses[known] += 1
        super().connection_made(JoinedTransport(transport, self.loop.call_soon))
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        if getattr(self, "refused", False):
            return
        self._stop_waiting()
        if self._address is not None:
            self.addresses[self._address] -= 1
            if not self.addresses[self._address]:
                del self.addresses[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what was sent."""
        if getattr(self, "refused", False):
            return
        super().data_received(data)
        if not self._between_requests:
            self._headers = 0
            self._stop_waiting()
            return
        self._headers += len(data)
        if self._headers > MOST_HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(TOO_LONG)
            self.transport.close()
        self._wait_for_headers()

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


def bounded(most_connections: int, proxies: Sequence[str] = ()) -> type[asyncio.Protocol]:
    """Return how connections are handled: at most so many, and a part of them of one address."""
    limits = {
        "most_connections": most_connections,
        "most_of_address": max(1, most_connections // OF_ADDRESS),
        "proxies": check_networks(proxies),
        "addresses": Counter(),
    }
    return type("BoundedProtocol", (_BoundedProtocol,), limits)


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
        if not self._head and data.startswith(HEAD) and data.endswith(END):
            self._head = data
            self._later(self.flush)
        else:
            self.flush(data)

    def flush(self, data: bytes = b"") -> None:
        """Write what waits, and more."""
        head, self._head = self._head, b""
        if head or data:
            self._transport.write(head + data)

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
    """Send all logs to standard error; the level is that of the service's own."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.getLogger().handlers = [handler]
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(name).handlers = []
    logging.getLogger("bandanna.service").setLevel(level.upper())


# --- demonstration --------------------------------------------------------------------

DEMO_ARMS = {"green": 0.45, "blue": 0.55, "red": 0.75}
"""How often each disappoints."""

DEMO_PAUSE_SECONDS = 0.02


async def play_demo(core: Core) -> None:
    """Make an experiment and let a simulated population take part until the service stops."""
    settings = {"arms": list(DEMO_ARMS), "epsilon": 1.0, "rounds": 100_000, "deadline_seconds": 5.0}
    people, experiment = random.Random(1), ""  # noqa: S311
    while not core.closing.is_set():
        try:
            experiment = experiment or await _demonstration(core, settings)
            event = await core.decide(experiment)
            if people.random() < 0.9:  # some never answer
                unhappy = people.random() < list(DEMO_ARMS.values())[event.arm]
                await core.reward(event.id, NewFeedback(float(unhappy)))
        except ConflictError:
            return  # it was stopped
        except (GoneError, StoreUnavailableError):
            pass  # a slow moment: the next one comes
        await asyncio.sleep(DEMO_PAUSE_SECONDS)


async def _demonstration(core: Core, settings: JSON) -> str:
    """Return the experiment that is played: of an earlier start, or a new one."""
    try:
        made, _ = await core.create("demonstration", settings)
    except ConflictError:
        made = await core.find_named("demonstration")
    return made[0].id

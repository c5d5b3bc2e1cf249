"""What every request passes first: size, key, rate; and what is noted of it afterwards."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bandanna.service import described, peers
from bandanna.service.keys import REFRESH_SECONDS, KeyRing
from bandanna.service.limits import BODY_SECONDS, Buckets, check_networks, visitor
from bandanna.service.metrics import Metrics
from bandanna.service.problems import problem
from bandanna.store import KeyRow, StoreUnavailableError

logger = logging.getLogger("bandanna.service")

OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/", described.PATH, peers.PATH)
OPEN_FOLDERS = ("/page/", "/device/")
"""What needs no key: a sign of life, the page, which holds nothing until it is given one, a
description of the API, and what devices load. Other processes that share the database prove with
every message who they are."""

NEW_KEY_SECONDS = 0.1
"""How often keys that are not known may make us look again."""

SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)


class Gate:
    """Refuses what is too large, unknown or too frequent, before anything is parsed."""

    def __init__(
        self,
        app: ASGIApp,
        ring: KeyRing,
        metrics: Metrics,
        most_bytes: int,
        rate: float,
        device_rate: float,
        proxies: tuple[str, ...] = (),
    ) -> None:
        self._app, self._ring, self._metrics = app, ring, metrics
        self._most_bytes = most_bytes
        self._too_large = f"a request may have {most_bytes} bytes."
        self._looking = asyncio.Lock()
        self._proxies = check_networks(proxies)
        self._buckets, self._device_buckets = Buckets(rate), Buckets(device_rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *SAFE_HEADERS]
            await send(message)

        try:
            await self._pass(scope, receive, sending)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        refusal = await self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        read, whole = 0, False

        async def receiving() -> Message:
            nonlocal read, whole
            if whole:
                return await receive()  # it waits for the end of the connection
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the request did not arrive in time.") from None
            whole = not message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > self._most_bytes:
                raise HTTPException(413, self._too_large)
            return message

        await self._app(scope, receiving, send)

    async def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._most_bytes:
            return problem(413, self._too_large)
        path = scope["path"]
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDERS):
            return None
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        try:
            key = await self._find(text) if kind.lower() == "bearer" else None
        except StoreUnavailableError as error:
            return problem(503, str(error), {"Retry-After": "1"})
        if not self._may_ask(key, scope, headers):
            return problem(429, "too many requests.", {"Retry-After": "1"})
        if key is None:
            return problem(
                401, "send a key: Authorization: Bearer bdn_...", {"WWW-Authenticate": "Bearer"}
            )
        state = scope.setdefault("state", {})
        state["key"], state["still_open"] = key, lambda: self._ring.knows(key)
        return None

    def _may_ask(self, key: KeyRow | None, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Count a request: of a key, or of an address where there is none or anyone may read it."""
        if key is not None and "device" not in key.scopes:
            return self._buckets.take(key.id)
        address = f"address {self._visitor(scope, headers)}"
        few = self._buckets.take(address if key is None else key.id)
        return few and (key is None or self._device_buckets.take(address))

    def _visitor(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """Return the client's address, through trusted proxies."""
        forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1")
        return visitor((scope.get("client") or "?")[0], forwarded, self._proxies)

    async def _find(self, text: str) -> KeyRow | None:
        """Find a key; one that is unknown may have been made a moment ago: it waits for a look.

        Requests that wait share one look at the store.
        """
        asked = time.monotonic()
        key = self._ring.find(text)
        if key is not None and self._ring.age <= REFRESH_SECONDS:
            return key
        async with self._looking:
            if key is None and self._ring.age < NEW_KEY_SECONDS:
                await asyncio.sleep(NEW_KEY_SECONDS - self._ring.age)
            if self._ring.read_at < asked:
                await run_in_threadpool(self._ring.refresh)
        return self._ring.find(text)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Note the route, not the path, and nothing of what was sent."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.count(method, route, status, seconds)
        if logger.isEnabledFor(logging.INFO):
            key = scope.get("state", {}).get("key")
            facts = {
                "method": method,
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 2),
                "key": None if key is None else key.id,
            }
            logger.info("request", extra={"facts": facts})


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")

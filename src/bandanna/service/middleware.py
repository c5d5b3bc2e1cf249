"""Middleware: what every request passes before a route, and what is noted of it afterwards.

``Origins`` (CORS) is outermost, then ``Gate`` (size, key, rate), then ``Quick``, which answers the
most frequent calls without the framework.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import urlsplit

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bandanna._core.types import InputError
from bandanna.service.errors import REFUSALS, problem, refusal_of
from bandanna.service.identity import Roles, from_elsewhere, named_by, read_roles
from bandanna.service.keys import REFRESH_SECONDS, KeyRing
from bandanna.service.metrics import Metrics
from bandanna.service.routes.decisions import decide, reward
from bandanna.service.routes.pages import API_PATH
from bandanna.service.settings import Settings
from bandanna.store import KeyRow, StoreUnavailableError

logger = logging.getLogger("bandanna.service")

OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/", API_PATH)
OPEN_FOLDERS = ("/page/", "/device/")
"""What needs no key: a sign of life, the page, which holds nothing until it is given one, a
description of the API, and what devices load."""

NEW_KEY_SECONDS = 0.1
"""How often keys that are not known may make us look again."""

NO_STORE = b"cache-control", b"no-store"
"""Unless a call says what may be kept."""

SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    NO_STORE,
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)


class SignedIn:
    """Who signed in, as some proxies say: no others are believed."""

    def __init__(self, proxies: tuple[str, ...], roles: Roles) -> None:
        self._proxies, self._roles = check_networks(proxies), roles

    @classmethod
    def of(cls, settings: Settings) -> SignedIn | None:
        """Return what the settings say, if people sign in at all."""
        if not settings.people_from and settings.roles is None:
            return None
        if not settings.people_from or settings.roles is None:
            raise InputError("give --people-from and --roles together: who says it, and what for.")
        return cls(settings.people_from, read_roles(settings.roles))

    def find(self, scope: Scope) -> KeyRow | None:
        """Return what the person of a request may do, if a proxy named one."""
        peer = (scope.get("client") or ("",))[0]
        if not is_trusted(peer, self._proxies):
            return None
        named = named_by(scope["headers"])
        return None if named is None else self._roles.person(*named)


def _safe(given: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers that are added to those of an answer."""
    says = any(name == NO_STORE[0] for name, _ in given)
    return tuple(one for one in SAFE_HEADERS if not (says and one is NO_STORE))


class Gate:
    """Refuses what is too large, unknown or too frequent, before anything is parsed."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        ring: KeyRing,
        metrics: Metrics,
        people: SignedIn | None,
    ) -> None:
        self._app, self._ring, self._metrics, self._people = app, ring, metrics, people
        self._looking = asyncio.Lock()
        self._proxies = check_networks(settings.proxies)
        self._buckets, self._device_buckets = Buckets(settings.rate), Buckets(settings.device_rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, left, read, whole = time.perf_counter(), 500, False, 0, False
        end = asyncio.get_running_loop().time() + BODY_SECONDS

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message["headers"]
                message["headers"] = [*given, *_safe(given)]
            await send(message)

        async def receiving() -> Message:
            nonlocal left, read, whole
            try:
                async with asyncio.timeout_at(None if whole else end):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the request did not arrive in time.", CLOSE) from None
            left = left or (message["type"] == "http.disconnect" and status == 500)
            whole = not message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > MOST_BYTES:
                raise HTTPException(413, TOO_LARGE, CLOSE)
            return message

        try:
            refusal = await self._refusal(scope)
            await (refusal or self._app)(scope, receiving, sending)
        finally:
            self._note(scope, LEFT if left else status, time.perf_counter() - began)

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        large = _refuse_large(scope, headers)
        if large is not None:
            return large
        path = scope["path"]
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDERS):
            return None
        return await self._refuse_key(scope, headers)

    async def _refuse_key(self, scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
        """Find out who asks: a person, or whoever has a key; refuse others, and too many calls."""
        person = None
        if self._people is not None and b"authorization" not in headers:
            person = self._people.find(scope)
        if person is not None and from_elsewhere(scope["method"], headers):
            return problem(403, "a page of another origin asked for this.")
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        try:
            key = await self._find(text) if kind.lower() == "bearer" else person
        except StoreUnavailableError as error:
            return refusal_of(error)
        if not self._may_ask(key, scope, headers):
            return problem(429, "too many requests.", {"Retry-After": "1"})
        if key is None:
            return problem(
                401, "send a key: Authorization: Bearer bdn_...", {"WWW-Authenticate": "Bearer"}
            )
        state = scope.setdefault("state", {})
        state["key"], state["still_open"] = key, lambda: key is person or self._ring.knows(key)
        return None

    def _may_ask(self, key: KeyRow | None, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Count a request: of a key, or of an address where there is none or anyone may read it."""
        if key is not None and "device" not in key.scopes:
            return self._buckets.take(key.id)
        forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1")
        seen = visitor((scope.get("client") or "?")[0], forwarded, self._proxies)
        address = f"address {seen}"
        few = self._buckets.take(address if key is None else key.id)
        return few and (key is None or self._device_buckets.take(address))

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


def _refuse_large(scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
        return problem(431, "the headers of a request are too long.", CLOSE)
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > MOST_BYTES:
        return problem(413, TOO_LARGE, CLOSE)
    return None


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


# --- rates and addresses --------------------------------------------------------------

MOST_KNOWN = 100_000

BODY_SECONDS = 30.0
"""A request whose whole body has not come by then is refused."""

MOST_BYTES = 1_000_000
TOO_LARGE = f"a request may have {MOST_BYTES} bytes."
MOST_HEADER_BYTES = 32_768
CLOSE = {"Connection": "close"}
LEFT = 499
"""Noted of a client that left in the middle of its request."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Buckets:
    """Lets through ``rate`` requests a second on average, ten times as many at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, who: str) -> bool:
        """Take one, if there is one."""
        now, most = self._clock(), 10.0 * self._rate
        level, then = self._levels.get(who, (most, now))
        level = min(most, level + (now - then) * self._rate)
        if level < 1.0:
            return False
        if len(self._levels) > MOST_KNOWN:
            self._levels.clear()  # addresses are cheap; memory must not grow with them
        self._levels[who] = level - 1.0, now
        return True


def check_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Read addresses or networks of proxies."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise InputError(
            f"a trusted proxy is an address such as 10.0.0.7 or a network such as 10.0.0.0/8: "
            f"{error}."
        ) from None


def visitor(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Return the client's address.

    Proxies append the address they saw to ``X-Forwarded-For``: the last one that is not a trusted
    proxy's counts, and only if the connection comes from one. Addresses of version 6 are counted
    by their first 64 bits, which is what a household has.
    """
    seen = _address(peer)
    for text in reversed([*forwarded.split(","), peer] if forwarded else [peer]):
        address = _address(text)
        if address is None:
            break
        seen = address
        if not any(address in network for network in trusted):
            break
    if seen is None:
        return peer
    if isinstance(seen, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((seen, 64), strict=False))
    return str(seen)


def is_trusted(peer: str, trusted: Sequence[Network]) -> bool:
    """Whether a connection comes from a trusted proxy."""
    address = _address(peer)
    return address is not None and any(address in network for network in trusted)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# --- pages of other origins -----------------------------------------------------------

# Those that the operator names may decide and send feedback. Nothing else is opened to any page
# (CORS), and no cookies are ever used.


OPENED = re.compile(
    r"/v1/experiments/[^/]+/decisions"
    r"|/v1/(experiments/[^/]+/)?events/[^/]+/(bit|reward|activate)"
    r"|/ofrep/v1/evaluate/flags(/[^/]+)?"
    r"|/device/[a-z.-]+"
)


def check_origin(text: str) -> str:
    """Require one origin, written out: a scheme, a host and perhaps a port."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}":
        raise InputError(f"an origin is written like https://shop.example; got {text!r}.")
    return text


class Origins(CORSMiddleware):
    """Tells browsers which pages may ask, and what."""

    def __init__(self, app: ASGIApp, allowed: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=frozenset(map(check_origin, allowed)),
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "Content-Type", "If-None-Match"),
            expose_headers=("ETag", "Retry-After"),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser's question, or pass the request on and let the page read the answer."""
        origin = dict(scope.get("headers", ())).get(b"origin", b"").decode("latin-1")
        if origin in self.allow_origins and OPENED.fullmatch(scope["path"]):
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)


# --- the fast path --------------------------------------------------------------------

# A framework looks through all routes, solves what each function depends on and watches over its
# answer, which together takes longer than a decision. The most frequent calls are answered behind
# the gate, before the framework sees them. Whatever does not fit exactly, such as an id with a
# space in it, goes the usual way, where the same function is described for OpenAPI.

NAMES = {"experiment": r"[A-Za-z0-9_.-]{1,100}", "event": r"[A-Za-z0-9_.:-]{1,200}"}


class QuickRoute:
    """A POST whose function takes the last name of its path, and the request."""

    def __init__(self, path: str, call: Callable[[str, Request], Awaitable[Response]]) -> None:
        self.path, self.call = path, call
        for name, allowed in NAMES.items():
            path = path.replace(f"{{{name}}}", f"(?P<{name}>{allowed})")
        self.pattern = re.compile(path)


class Quick:
    """Answers calls of these routes, and passes everything else on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        for route in QUICK if scope["type"] == "http" and scope["method"] == "POST" else ():
            path = route.pattern.fullmatch(scope["path"])
            if path is not None:
                names = path.groupdict()
                scope.update(path_params=names, route=route)
                try:
                    answer = await route.call([*names.values()][-1], Request(scope, receive))
                except REFUSALS as error:
                    answer = refusal_of(error)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


QUICK = (
    QuickRoute("/v1/experiments/{experiment}/decisions", decide),
    QuickRoute("/v1/events/{event}/reward", reward),
    QuickRoute("/v1/experiments/{experiment}/events/{event}/reward", reward),
)

"""Limits on connections, time and rates, so that one client cannot block others."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Sequence

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from bandanna._core.types import InputError
from bandanna.service.joined import JoinedTransport

MOST_KNOWN = 100_000
HEADER_SECONDS = 20.0
"""A connection is closed if the headers of a request, the first or a later one, take longer."""

BODY_SECONDS = 30.0
"""A request whose body has not come by then is refused."""

REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)

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
    found = _address(peer)
    for text in reversed([*forwarded.split(","), peer] if forwarded else [peer]):
        address = _address(text)
        if address is None:
            break
        found = address
        if not any(address in network for network in trusted):
            break
    if found is None:
        return peer
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


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

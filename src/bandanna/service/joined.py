"""Answers that leave in one piece.

A server writes the head of an answer, and then its body: two calls of the operating system and two
packets, which together take as long as everything else that is done to answer a small request. Here
the head waits for the body, or until the event loop has nothing else to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HEAD = b"HTTP/1.1 "
END = b"\r\n\r\n"


class JoinedTransport:
    """A connection on which the head of an answer is written together with what follows.

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

"""Whoever sends slowly is not waited for: headers, later headers, bodies."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import uvicorn

from bandanna.service import middleware, server
from bandanna.service.server import JoinedTransport
from tests.service.running import Here, free_port

SECONDS = 0.4
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """A service on a socket, in a thread; its port and a key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "HEADER_SECONDS", SECONDS)
        patch.setattr(middleware, "BODY_SECONDS", SECONDS)
        here, port = Here(tmp_path_factory.mktemp("slow")), free_port()
        config = uvicorn.Config(
            here.http.app, port=port, http=server.bounded(50), log_config=None, access_log=False
        )
        listening = uvicorn.Server(config)
        thread = threading.Thread(target=listening.run)
        thread.start()
        while not listening.started:
            time.sleep(0.01)
        try:
            yield port, here.key("decide", "manage")
        finally:
            listening.should_exit = True
            thread.join(timeout=30)


def until_closed(port: int, *parts: bytes) -> bytes:
    """Send parts, one after the other was answered; return all until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as here:
        found = b""
        for part in parts[:-1]:
            here.sendall(part)
            found += here.recv(65536)
        here.sendall(parts[-1])
        while part := here.recv(65536):
            found += part
    return found


def test_headers_that_do_not_come(served: tuple[int, str]) -> None:
    began = time.monotonic()
    assert until_closed(served[0], b"GET /livez HTTP/1.1\r\nHo") == b""
    assert until_closed(served[0], GET, b"GET /livez HTTP/1.1\r\nHo").count(b"200 OK") == 1
    assert time.monotonic() - began < 15


def test_a_body_that_does_not_come(served: tuple[int, str]) -> None:
    port, key = served
    head = (
        f"POST /v1/experiments/exp_1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        f"Authorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    )
    answer = until_closed(port, head.encode() + b"{")
    assert b" 408 " in answer.split(b"\r\n")[0]
    assert b"did not arrive in time" in answer


def test_connections_that_go_on_are_kept(served: tuple[int, str]) -> None:
    with socket.create_connection(("127.0.0.1", served[0]), timeout=20) as here:
        for _ in range(3):
            here.sendall(GET)
            assert b"200 OK" in here.recv(65536)
            time.sleep(SECONDS / 2)


class Wire:
    """Remembers what is written to a connection."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> str:
        return name


def test_the_head_of_an_answer_is_written_with_its_body_and_does_not_wait_long() -> None:
    wire = Wire()
    later: list[Callable[[], None]] = []
    joined = JoinedTransport(wire, later.append)  # type: ignore[arg-type]
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    joined.write(head)
    assert wire.written == []
    joined.write(b"body")
    later.pop()()
    assert wire.written == [head + b"body"]
    joined.write(b"more")
    assert wire.written.pop() == b"more"
    joined.write(head)
    later.pop()()
    assert wire.written.pop() == head, "nothing followed"
    joined.write(head)
    joined.close()
    assert (wire.written.pop(), wire.closed, joined.is_closing()) == (head, True, True)

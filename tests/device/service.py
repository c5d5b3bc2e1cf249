"""A tiny service that speaks the device's protocol, and can be told to misbehave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from bandanna.device import make_release, sign_release
from tests.device.vectors import PRIVATE
from tests.pages import ROOT

CLIENT = ROOT / "clients" / "device"
EXPERIMENT = "exp_1"
PAGE = b"<!doctype html><title>device</title><link rel=icon href='data:,'>"


class TinyService:
    """Decisions with signed parameters; what it was sent is in ``bits`` and ``bodies``."""

    def __init__(self) -> None:
        self.release = make_release(1.0)
        self.private_key = PRIVATE
        self.lost_answers = 0
        """So many bits are taken without an answer."""
        self.bits: list[tuple[str, int]] = []
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    def decision(self, event_id: str) -> dict[str, Any]:
        expires = datetime.now(UTC) + timedelta(hours=1)
        return {
            "event_id": event_id,
            "arm": "green",
            "expires_at": expires.isoformat(),
            "release": self.release,
            **sign_release(self.private_key, EXPERIMENT, self.release),
        }

    def take(self, event_id: str, bit: int) -> int | None:
        """Return the status to answer with, or None for no answer."""
        self.bits.append((event_id, bit))
        if self.lost_answers:
            self.lost_answers -= 1
            return None
        first = next(kept for event, kept in self.bits if event == event_id)
        return 204 if bit == first else 409


@contextmanager
def tiny_service() -> Iterator[TinyService]:
    service = TinyService()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = CLIENT / self.path.lstrip("/")
            if self.path == "/":
                self.answer(200, PAGE, "text/html")
            elif path.is_file():
                kind = "text/javascript" if path.suffix == ".js" else "application/json"
                self.answer(200, path.read_bytes(), kind)
            else:
                self.answer(404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.bodies.append(body)
            match self.path.split("/")[1:]:
                case ["v1", "experiments", _, "decisions"]:
                    decision = service.decision(body["event_id"])
                    self.answer(200, json.dumps(decision).encode())
                case ["v1", "events", event_id, "bit"]:
                    status = service.take(event_id, body["bit"])
                    if status is None:
                        self.close_connection = True
                    else:
                        self.answer(status)
                case ["away", *_]:
                    self.send_response(307)
                    self.send_header("Location", "/v1/elsewhere")
                    self.end_headers()
                case _:
                    self.answer(404)

        def answer(self, status: int, data: bytes = b"", kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A service for tests: in this process, or as the command people run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi.testclient import TestClient

from bandanna.service.app import make_app
from bandanna.service.core import Core
from bandanna.service.keys import make_key
from bandanna.service.settings import Settings, settings_beside

JSON = dict[str, Any]


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Here:
    """A service in this process, with a key that opens everything."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock = Clock()
        given: JSON = {"database": str(folder / "here.db"), "guard": folder / "guard"} | settings
        self.settings: Settings = settings_beside(**given)
        self.core = Core(self.settings, self.clock)
        self.http = TestClient(make_app(self.core), raise_server_exceptions=False)
        self.http.headers["Authorization"] = f"Bearer {self.key('manage')}"

    def key(self, *scopes: str, experiment: str | None = None) -> str:
        return make_key(self.core.store, self.core.secret, "test", scopes, experiment)[1]

    def create(self, **fields: Any) -> str:
        body = {"name": "test", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100} | fields
        answer = self.http.post("/v1/experiments", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def decide(self, experiment: str, **fields: Any) -> JSON:
        answer = self.http.post(f"/v1/experiments/{experiment}/decisions", json=fields)
        assert answer.status_code == 200, answer.text
        found: JSON = answer.json()
        return found

    def reward(self, event: str, **fields: Any) -> int:
        return self.http.post(f"/v1/events/{event}/reward", json=fields).status_code


@contextmanager
def service_here(folder: Path, **settings: Any) -> Iterator[Here]:
    """Run a service in this process."""
    here = Here(folder, **settings)
    with here.http:
        yield here


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Process:
    """The service as the command people run; it can be killed and started again."""

    def __init__(self, folder: Path, database: str | None = None, **options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"log-{self.port}"
        paths = {"key-file": folder / "key", "secret-file": folder / "secret"}
        paths |= {"guard-file": folder / "guard", "signing-file": folder / "signing"}
        given = {"database": database or str(folder / "service.db"), "port": self.port}
        flags = given | paths | options
        self._command = [sys.executable, "-m", "bandanna", "serve"]
        self._command += [
            part for name, value in flags.items() for part in (f"--{name}", str(value))
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def key(self) -> str:
        return (self.folder / "key").read_text().strip()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        for _ in range(600):
            if self._process.poll() is not None:
                raise AssertionError(self.log.read_text()[-3000:])
            try:
                if httpx.get(f"{self.url}/healthz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the service does not start")

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(timeout=60)


@contextmanager
def process(folder: Path, database: str | None = None, **options: str) -> Iterator[Process]:
    """Run the service as people do."""
    here = Process(folder, database, **options)
    here.start()
    try:
        yield here
    finally:
        here.stop()

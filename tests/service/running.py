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
from tests.service.loaded import loaded

JSON = dict[str, Any]
LATER = "lead", "start"
"""Checks of a service that answers, and does not lead or is not warm."""

SWEEP = 0.1
"""Seconds between two looks for what is due, of services in this process."""


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Here:
    """A service in this process, with a key that opens everything."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock, self._made = Clock(), 0
        given: JSON = {"database": str(folder / "here.db"), "guard": folder / "guard"} | settings
        self.settings: Settings = settings_beside(**given)
        self.core = Core(self.settings, self.clock)
        self.http = TestClient(make_app(self.core), raise_server_exceptions=False)
        self.http.headers["Authorization"] = f"Bearer {self.key('manage')}"

    def key(self, *scopes: str, experiment: str | None = None) -> str:
        return make_key(self.core.store, self.core.secret, "test", scopes, experiment)[1]

    def create(self, **fields: Any) -> str:
        self._made += 1
        name = f"test {self._made}"
        body = {"name": name, "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100} | fields
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

    source: Path | None = None
    """Where its program is, if it is not the one under test."""

    def __init__(self, folder: Path, database: str | None = None, **options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"log-{self.port}"
        paths = {"key-file": folder / "key", "secret-file": folder / "secret"}
        paths |= {"guard-file": folder / "guard", "signing-file": folder / "signing"}
        given = {"database": database or str(folder / "service.db"), "port": self.port}
        flags = given | paths | options
        self._arguments = ["serve"]
        self._arguments += [
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

    def launch(self, *flags: str) -> None:
        """Start it, with more flags, and wait for nothing."""
        other = {} if self.source is None else {"PYTHONPATH": str(self.source)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bandanna", *self._arguments, *flags],
                env=os.environ | other,
                stdout=log,
                stderr=log,
            )

    def poll(self) -> int | None:
        """Return how it ended; nothing while it runs."""
        assert self._process is not None
        return self._process.poll()

    def start(self, *flags: str) -> None:
        """Start it, with more flags, and wait until it answers."""
        self.launch(*flags)
        for _ in range(1200):
            if self.poll() is not None:
                raise AssertionError(self.log.read_text()[-3000:])
            try:
                checks = httpx.get(f"{self.url}/healthz", timeout=5).json()["checks"]
                if all(
                    said == "ok" for name, said in checks.items() if name not in ("lead", "start")
                ):
                    return  # it serves, or stands by
            except httpx.TransportError:
                pass
            time.sleep(0.025)
        raise AssertionError("the service does not start")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def stop(self) -> int:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        end = time.monotonic() + 60
        while (ended := self.poll()) is None:
            assert time.monotonic() < end, "the service does not end"
            time.sleep(0.01)
        return ended


class Copied(Process):
    """The service, as a copy of a process that has loaded everything: it starts sooner."""

    _number = 0
    _ended: int | None = None
    clock: Path | None = None
    """What sets its clock, if it is not to go by this machine's."""

    @property
    def pid(self) -> int:
        return self._number

    def launch(self, *flags: str) -> None:
        self._number = loaded().start([*self._arguments, *flags], self.log, self.clock)
        self._ended = None

    def poll(self) -> int | None:
        if self._ended is None:
            self._ended = loaded().poll(self._number)
        return self._ended


@contextmanager
def process(folder: Path, database: str | None = None, **options: str) -> Iterator[Process]:
    """Run the service as people do."""
    with _running(Process(folder, database, **options)) as here:
        yield here


@contextmanager
def copied(folder: Path, database: str | None = None, **options: str) -> Iterator[Process]:
    """Run the service as a copy of a process that has loaded it."""
    with _running(Copied(folder, database, **options)) as here:
        yield here


@contextmanager
def _running(here: Process) -> Iterator[Process]:
    here.start()
    try:
        yield here
    finally:
        here.stop()

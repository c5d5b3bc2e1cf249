"""A process that has loaded the service; those that tests start are copies of it.

To load everything takes seconds, a copy a few milliseconds. A copy runs the same command line in a
process of its own, which can be killed like any other. Tests that start many services use this;
the others start the command as people do.
"""

from __future__ import annotations

import atexit
import gc
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bandanna.service.settings import Settings

ROOT = Path(__file__).parents[2]
LATE = ("bandanna.cli.serve", "bandanna.store.migrations", "httptools", "psycopg", "uvloop")
"""What a service loads when it is first needed."""


class Loaded:
    """A loaded process, which is asked for copies of itself; it ends them when it ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.service.loaded"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._asking = threading.Lock()
        atexit.register(self.close)

    def close(self) -> None:
        """End it, and what is left of its copies."""
        self._process.communicate()

    def _ask(self, *question: object) -> int | None:
        given, told = self._process.stdin, self._process.stdout
        assert given is not None
        assert told is not None
        with self._asking:
            given.write(json.dumps(question).encode() + b"\n")
            given.flush()
            answer: int | None = json.loads(told.readline())
        return answer

    def start(self, arguments: list[str], log: Path, clock: Path | None = None) -> int:
        """Run ``bandanna`` with arguments in a new process, and return its number.

        What is written to ``clock`` by ``set_clock`` sets the clock of a service while it runs.
        """
        process = self._ask("start", arguments, str(log), clock and str(clock))
        assert process is not None
        return process

    def poll(self, process: int) -> int | None:
        """Return how a process ended, as ``subprocess`` does; nothing while it runs."""
        return self._ask("poll", process)


@cache
def loaded() -> Loaded:
    """Return the one of this test run; it ends with it."""
    return Loaded()


def _load() -> None:
    """Load what a service loads until its first release; copies draw noise of their own."""
    import bandanna as bd
    from bandanna.service.app import make_app
    from bandanna.service.core import Core
    from bandanna.service.settings import settings_beside

    for name in LATE:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        core = Core(settings_beside(database=f"{folder}/service.db", guard=Path(folder, "guard")))
        make_app(core)
        core.close()
    for algorithm in ("exp3", "one-bit"):
        policy = bd.PrivateBandit(2, 1.0, 100, algorithm)
        while not policy.released:
            policy.observe(policy.decide(), loss=0.5)
    gc.collect()
    gc.freeze()  # copies would look through all of it, and so copy it


def set_clock(path: Path, ahead: float) -> None:
    """Set the clock of the services that were started with this file ahead, by seconds."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(struct.pack("d", ahead))


def _use_clock(path: str) -> None:
    """Let services in this process go by a clock that a file sets."""
    from bandanna.service.core import Core

    with open(path, "rb") as file:
        kept = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    make = Core.__init__

    def make_with_clock(core: Core, settings: Settings) -> None:
        make(core, settings, lambda: time.time() + struct.unpack("d", kept[:8])[0])

    Core.__init__ = make_with_clock  # type: ignore[assignment,method-assign]


def _become_service(arguments: list[str], log: str, clock: str | None) -> None:
    """Run the command line, writing to a file."""
    if clock is not None:
        _use_clock(clock)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    sys.argv = ["bandanna", *arguments]
    from bandanna.cli import main

    main()


def _poll(process: int) -> int | None:
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _serve() -> None:
    _load()
    running: set[int] = set()
    asked = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115
    while line := asked.readline():  # nothing is read ahead, which copies would share
        what, *values = json.loads(line)
        if what == "start":
            answer: int | None = os.fork()
            if not answer:
                return _become_service(*values)
            running.add(answer)
        else:
            answer = _poll(*values)
            if answer is not None:
                running.discard(*values)
        print(json.dumps(answer), flush=True)
    for process in running:
        os.kill(process, 9)
    return None


if __name__ == "__main__":
    _serve()

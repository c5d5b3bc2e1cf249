"""A full disk and a database that is gone: 503, nothing lost, and it goes on by itself."""

from __future__ import annotations

import itertools
import resource
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from tests.postgres import Postgres, needs_postgres
from tests.service.running import Process, copied

ROOM = 100_000
"""Bytes that a file may have on a full disk: less than the database has, more than its log."""


class Caller:
    """A program that decides and rewards, and remembers what was acknowledged."""

    def __init__(self, service: Process) -> None:
        headers = {"Authorization": f"Bearer {service.key}"}
        self.http = httpx.Client(base_url=service.url, headers=headers, timeout=60)
        body = {"name": "test", "arms": ["a", "b"], "epsilon": 100.0, "rounds": 100_000}
        answer = self.http.post("/v1/experiments", json=body | {"algorithm": "exp3"})
        self.path = f"/v1/experiments/{answer.json()['id']}"
        self.decided: dict[str, Any] = {}
        self.rewarded: list[str] = []
        self._names = map(str, itertools.count())
        self.name = next(self._names)

    def step(self) -> httpx.Response:
        """Decide and reward once, beginning with what was not acknowledged before."""
        answer = self.http.post(f"{self.path}/decisions", json={"event_id": self.name})
        if answer.status_code == 200:
            self.decided[self.name] = answer.json()
            answer = self.http.post(f"/v1/events/{self.name}/reward", json={"loss": 0.654321})
        if answer.status_code == 204:
            self.rewarded.append(self.name)
            self.name = next(self._names)
        return answer

    def step_until(self, status: int, most: int) -> httpx.Response:
        for _ in range(most):
            if (answer := self.step()).status_code == status:
                return answer
            assert answer.status_code in (204, 503), answer.text
        raise AssertionError(f"{status} does not come")

    def check(self) -> None:
        """Whatever was acknowledged is there, once."""
        for name, told in self.decided.items():
            again = self.http.post(f"{self.path}/decisions", json={"event_id": name})
            assert again.json() == told
        shown = self.http.get(self.path).json()
        counts = (shown["decided"], shown["observed"], shown["released"])
        assert counts == (len(self.decided), len(self.rewarded), len(self.rewarded))

    def close(self) -> None:
        self.http.close()

    def available(self) -> bool:
        return "bandanna_database_available 1.0" in self.http.get("/metrics").text


def check_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "1"
    assert "654321" not in answer.text


def until(what: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not come back"
        time.sleep(0.1)


def test_a_full_disk_is_answered_503_and_loses_nothing(tmp_path: Path) -> None:
    with copied(tmp_path) as service, closing(Caller(service)) as caller:
        for _ in range(20):
            assert caller.step().status_code == 204
        released = caller.http.get(f"{caller.path}/export").json()
        until(lambda: not (tmp_path / "service.db-wal").stat().st_size)
        _, hard = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (ROOM, hard))  # no file grows further
        check_refused(caller.step_until(503, most=5_000))
        until(lambda: not caller.available())
        check_refused(caller.step_until(503, most=5_000))
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (hard, hard))
        until(lambda: caller.step().status_code == 204)
        until(caller.available)
        assert "bandanna_failed_transactions 0.0" not in caller.http.get("/metrics").text
        caller.check()
        rows = caller.http.get(f"{caller.path}/export").json()
        assert rows[: len(released)] == released


@needs_postgres
def test_a_database_that_is_gone_is_answered_503_and_comes_back(
    tmp_path: Path, postgres: Postgres
) -> None:
    database = postgres.new_database()
    with copied(tmp_path, database) as service, closing(Caller(service)) as caller:
        for _ in range(5):
            assert caller.step().status_code == 204
        released = caller.http.get(f"{caller.path}/export").json()
        postgres.stop()
        try:
            for _ in range(2):
                check_refused(caller.step())
            check_refused(httpx.get(f"{service.url}/healthz", timeout=60))
        finally:
            postgres.start()
        until(lambda: caller.step().status_code == 204)
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        caller.check()
        rows = caller.http.get(f"{caller.path}/export").json()
        assert rows[: len(released)] == released

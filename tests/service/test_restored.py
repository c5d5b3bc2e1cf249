"""PostgreSQL put back to a moment from its archive, and what the rollback guard says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

import bandanna as bd
from bandanna.service.server import check
from bandanna.service.settings import settings_beside
from tests.postgres import Postgres, needs_postgres, open_postgres
from tests.service.running import Process, copied

pytestmark = [needs_postgres, pytest.mark.slow]
EPSILON = 0.2


@pytest.fixture
def server() -> Iterator[Postgres]:
    with open_postgres(archive=True) as server:
        yield server


def now(address: str) -> str:
    """Return the time, as the server has it."""
    with psycopg.connect(address) as connection:
        ((found,),) = connection.execute("SELECT clock_timestamp()::text").fetchall()
    return str(found)


def rewarded(client: bd.Client, experiment: str, *names: str) -> None:
    bandit = client.experiment(experiment)
    for name in names:
        bandit.decide(event_id=name)
        bandit.observe(name, loss=0.5)


def fill(client: bd.Client, experiment: str) -> None:
    """Reward until the first batch is released."""
    shown = client.experiment(experiment).results()
    rewarded(client, experiment, *(f"more-{k}" for k in range(shown["batch"] - shown["decided"])))
    assert released(client, experiment) == [0]


def released(client: bd.Client, experiment: str) -> list[int]:
    """Return the batches that an experiment has released."""
    rows: Any = client.send("GET", f"/v1/experiments/{experiment}/export")
    return [row["batch"] for row in rows]


def claimed(client: bd.Client, experiment: str) -> float:
    """Return how many releases of the same feedback the guarantee allows for."""
    return client.experiment(experiment).guarantee.epsilon / EPSILON


def test_a_restore_to_a_moment_is_refused_and_charged_and_one_to_the_end_is_not(
    tmp_path: Path, server: Postgres
) -> None:
    address = server.new_database()
    server.base_backup()
    with copied(tmp_path, address) as service:
        with bd.Client(service.url, service.key) as client:
            made = client.create("button", ["a", "b"], EPSILON, algorithm="exp3", rounds=1000).id
            rewarded(client, made, "ann", "bob")
            moment = now(address)
            fill(client, made)
            assert released(client, made) == [0]
        service.stop()
        server.archive_all()

        server.put_back()  # nothing is lost
        service.start()
        with bd.Client(service.url, service.key) as client:
            assert released(client, made) == [0]
            assert claimed(client, made) == pytest.approx(1)
        service.stop()

        server.put_back(moment)
        for times in (2, 3):
            with pytest.raises(AssertionError, match="older than the rollback guard"):
                service.start()
            service.start("--accept-restored")
            with bd.Client(service.url, service.key) as client:
                assert released(client, made) == []
                assert client.experiment(made).show()["decided"] == 2
                fill(client, made)
                assert released(client, made) == [0], "ann and bob, once more"
                assert claimed(client, made) == pytest.approx(times)
            service.stop()
            if times == 2:
                server.put_back(moment)


def test_a_service_that_runs_meanwhile_decides_nothing_more(
    tmp_path: Path, server: Postgres
) -> None:
    """It is connected again to a database that lacks what it released."""
    address = server.new_database()
    server.base_backup()
    with copied(tmp_path, address) as service, bd.Client(service.url, service.key) as client:
        made = client.create("button", ["a", "b"], EPSILON, algorithm="exp3", rounds=1000).id
        rewarded(client, made, "ann")
        moment = now(address)
        fill(client, made)
        server.archive_all()
        server.put_back(moment)
        answer = refused(service, made)
        assert answer.status_code == 503
        assert "older copy" in answer.json()["detail"]
        assert "older copy" in httpx.get(f"{service.url}/readyz").text


def refused(service: Process, experiment: str) -> httpx.Response:
    """Ask until the service is connected again."""
    headers = {"Authorization": f"Bearer {service.key}"}
    for _ in range(200):
        path = f"{service.url}/v1/experiments/{experiment}/decisions"
        answer = httpx.post(path, json={}, headers=headers, timeout=30)
        if answer.status_code != 503 or "cannot be used now" not in answer.text:
            return answer
    raise AssertionError("the service does not come back")


def test_a_guard_that_would_be_put_back_too_is_warned_about(
    tmp_path: Path, postgres: Postgres
) -> None:
    database = settings_beside(
        postgres.new_database(),
        secret=tmp_path / "secret",
        signing=tmp_path / "signing",
        guard=postgres.new_database(),
    )
    assert any("puts both back" in line for line in check(database))
    apart = replace(database, guard=tmp_path / "guard", accept_restored=True)
    assert not any("puts both back" in line for line in check(apart))

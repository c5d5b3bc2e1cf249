"""Two processes that share a database: one leads, the other stands by and takes over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import bandanna as bd
from tests.postgres import Postgres, needs_postgres
from tests.service.running import Here, Process, copied, service_here
from tests.service.test_trouble import until


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Here, Here]]:
    with service_here(tmp_path) as first, service_here(tmp_path) as second:
        yield first, second


def test_one_process_leads_and_the_other_says_that_it_stands_by(pair: tuple[Here, Here]) -> None:
    first, second = pair
    assert first.http.get("/readyz").status_code == 200
    ready = second.http.get("/readyz")
    assert (ready.status_code, ready.headers["Retry-After"]) == (503, "1")
    assert ready.json()["checks"]["lead"].startswith("this process stands by")
    experiment = first.create()
    told = first.decide(experiment, event_id="one")
    asked = second.http.post(f"/v1/experiments/{experiment}/decisions", json={"event_id": "one"})
    assert (asked.status_code, asked.headers["Retry-After"]) == (503, "1")
    assert second.reward("one", reward=1) == 503
    assert second.http.get(f"/v1/experiments/{experiment}").json()["decided"] == 1, "it shows"
    first.core.store._lead.leave()
    first.core.leads = False
    until(lambda: second.core.leads or first.core.leads)
    leader = second if second.core.leads else first
    assert leader.decide(experiment, event_id="one") == told


def test_a_client_asks_whoever_leads() -> None:
    asked: list[str] = []
    leads = "first"

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        if request.url.host != leads:
            return httpx.Response(503, headers={"Retry-After": "1"}, json={"detail": "stands by"})
        return httpx.Response(200, json={"arm": "a", "event_id": "e"})

    with bd.Client(["http://first", "http://second"], "bdn_x") as client:
        client._http = httpx.Client(transport=httpx.MockTransport(answer))
        bandit = client.experiment("exp_1")
        bandit.decide()
        leads = "second"
        bandit.decide()
        bandit.decide()
    assert asked == ["first", "first", "second", "second"]
    with pytest.raises(bd.InputError, match="address of the service"):
        bd.Client([], "bdn_x")


def take_over(first: Process, second: Process) -> float:
    """Kill the process that leads while programs decide; returns seconds until the next answer."""
    with bd.Client([first.url, second.url], first.key) as client:
        bandit = client.create("button", ["a", "b"], 1.0, rounds=1000)
        told = bandit.decide(event_id="before")
        bandit.observe("before", reward=1.0)
        first.kill()
        began = time.monotonic()
        assert bandit.decide(event_id="before") == told
        seconds = time.monotonic() - began
        bandit.observe("before", reward=1.0)
        bandit.observe(bandit.decide(), reward=1.0)
        assert (bandit.show()["decided"], bandit.show()["observed"]) == (2, 2)
    return seconds


def test_a_stand_by_takes_over_when_the_leader_is_killed(tmp_path: Path) -> None:
    with copied(tmp_path) as first, copied(tmp_path) as second:
        assert take_over(first, second) < 5


@needs_postgres
def test_a_stand_by_takes_over_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    database = postgres.new_database()
    with copied(tmp_path, database) as first, copied(tmp_path, database) as second:
        assert take_over(first, second) < 5


def test_processes_are_replaced_one_after_the_other_without_an_error(tmp_path: Path) -> None:
    with copied(tmp_path) as first, copied(tmp_path) as second:
        urls = [first.url, second.url]
        with bd.Client(urls, first.key) as client:
            made = client.create("button", ["a", "b"], 1.0, rounds=10_000).id
        over = threading.Event()
        counts = [0, 0]

        def work(who: int) -> None:
            with bd.Client(urls, first.key) as client:
                bandit = client.experiment(made)
                while not over.is_set():
                    bandit.observe(bandit.decide(), reward=1.0)
                    counts[who] += 1

        programs = [threading.Thread(target=work, args=(who,)) for who in range(2)]
        for program in programs:
            program.start()
        for service in (first, second):
            time.sleep(0.3)
            service.stop()
            service.start()
        time.sleep(0.5)
        over.set()
        for program in programs:
            program.join()
        with bd.Client(urls, first.key) as client:
            shown = client.experiment(made).show()
        assert min(counts) > 0
        assert shown["decided"] == shown["observed"] == sum(counts)

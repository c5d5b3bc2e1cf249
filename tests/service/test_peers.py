"""Two processes that share a database: one serves an experiment, and does it once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import bandanna as bd
from bandanna.service.peers import ASKED
from bandanna.store import Secret
from tests.postgres import Postgres, needs_postgres
from tests.service.running import Here, copied, service_here
from tests.service.test_trouble import until


class Wire(httpx.AsyncBaseTransport):
    """Takes messages to the other process, and loses some."""

    def __init__(self, to: Here) -> None:
        self._app = httpx.ASGITransport(app=to.http.app)
        self.messages: list[bytes] = []
        self.lose = ""
        """``message`` or ``answer``, of the next message."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.messages.append(await request.aread())
        if self.lose == "message":
            raise httpx.ConnectError("nobody is there")
        answer = await self._app.handle_async_request(request)
        if self.lose == "answer":
            raise httpx.ReadError("it was killed after its commit")
        return answer


def create_elsewhere(here: Here, **fields: Any) -> str:
    """Make an experiment that another process serves."""
    for _ in range(100):
        made = here.create(**fields)
        (part,) = here.core.store.experiments(made)
        if not here.core.peers.serves(part.number):
            return made
    raise AssertionError("everything is served here")  # with probability 2 ** -100


class Pair:
    """Two services on one database; the first can reach the second."""

    def __init__(self, first: Here, second: Here) -> None:
        self.first, self.second, self.wire = first, second, Wire(second)
        self.connect()

    def connect(self) -> None:
        """Let the first hear of the second."""
        peers, other = self.first.core.peers, self.second.core.peers
        peers._set_links({other.id: "http://second"})
        peers._links[other.id]._http = httpx.AsyncClient(
            transport=self.wire, base_url="http://second"
        )

    def create(self, **fields: Any) -> str:
        return create_elsewhere(self.first, **fields)

    def writes(self) -> tuple[int, int]:
        return self.first.core.writer.transactions, self.second.core.writer.transactions


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with service_here(tmp_path) as first, service_here(tmp_path) as second:
        yield Pair(first, second)


def test_an_experiment_is_served_by_one_process(pair: Pair) -> None:
    experiment = pair.create(algorithm="one-bit")
    before = pair.writes()
    told = pair.first.decide(experiment, event_id="one")
    assert pair.first.decide(experiment, event_id="one") == told
    assert pair.second.decide(experiment, event_id="one") == told
    assert pair.first.reward("one", loss=0.654321) == 204
    assert pair.first.decide(experiment)["event_id"] != "one"
    assert pair.writes()[0] == before[0], "the first wrote nothing itself"
    assert pair.first.core.peers.forwarded == 4
    shown = pair.first.http.get(f"/v1/experiments/{experiment}").json()
    assert (shown["decided"], shown["observed"]) == (2, 1)
    assert not any(b"654321" in message for message in pair.wire.messages)


def test_clients_that_ask_are_told_who_serves_an_experiment(pair: Pair) -> None:
    path = f"/v1/experiments/{pair.create()}/decisions"
    direct = {"Bandanna-Direct": "1"}
    answer = pair.first.http.post(path, json={}, headers=direct)
    assert answer.headers["Bandanna-Server"] == "http://second"
    assert "Bandanna-Server" not in pair.first.http.post(path, json={}).headers
    assert "Bandanna-Server" not in pair.second.http.post(path, json={}, headers=direct).headers


def test_a_client_goes_where_an_experiment_is_served_and_comes_back() -> None:
    hosts: list[str] = []
    gone = False

    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        assert request.headers["Authorization"] == "Bearer bdn_x"
        if gone and request.url.host == "second":
            raise httpx.ConnectError("nobody is there")
        told = {"Bandanna-Server": "http://second:1"} if request.url.host == "first" else {}
        return httpx.Response(200, json={"arm": "a", "event_id": "e"}, headers=told)

    with bd.Client("http://first", "bdn_x", direct=True) as client:
        client._http = httpx.Client(
            transport=httpx.MockTransport(answer), base_url="http://first", headers=client._headers
        )
        one, other = client.experiment("exp_1"), client.experiment("exp_2")
        for experiment in (one, one, other, one):
            experiment.observe(experiment.decide(), reward=1.0)
        assert hosts == ["first", *["second"] * 3, "first", *["second"] * 3]
        hosts.clear()
        gone = True
        one.decide()
        assert hosts == ["second", "first"]


def test_refusals_come_back_as_they_are(pair: Pair) -> None:
    experiment = pair.create(deadline_seconds=10)
    pair.first.decide(experiment, event_id="one")
    assert pair.first.reward("none", loss=0.5) == 404
    assert pair.first.reward("one", loss=7.0) == 422
    pair.second.clock.now += 60
    assert pair.first.reward("one", loss=0.5) == 410
    pair.first.http.post(f"/v1/experiments/{experiment}/stop")
    answer = pair.first.http.post(f"/v1/experiments/{experiment}/decisions", json={})
    assert answer.status_code == 409
    assert "stopped" in answer.text


@pytest.mark.parametrize("lost", ["message", "answer"])
def test_what_is_lost_on_the_way_is_done_once(pair: Pair, lost: str) -> None:
    experiment = pair.create()
    pair.wire.lose = lost
    told = pair.first.decide(experiment)
    pair.connect()
    assert pair.first.reward(told["event_id"], loss=0.5) == 204
    pair.wire.lose = ""
    pair.connect()
    assert pair.first.decide(experiment, event_id=told["event_id"]) == told
    shown = pair.second.http.get(f"/v1/experiments/{experiment}").json()
    assert (shown["decided"], shown["observed"]) == (1, 1)


def test_strangers_are_refused(pair: Pair) -> None:
    stranger = Secret.new().seal({"operations": []}, ASKED)
    for message in (b"", b"short", bytes(100), stranger):
        assert pair.first.http.post("/peer", content=message).status_code == 401
    mine = pair.first.core.secret.seal({"operations": []}, "peer answers")
    assert pair.first.http.post("/peer", content=mine).status_code == 401


def test_only_the_share_of_a_process_that_goes_moves(pair: Pair) -> None:
    peers = pair.first.core.peers
    addresses = dict.fromkeys(("a", "b", "c"), "http://x")
    peers._set_links(addresses)
    before = {number: peers._server(number) for number in range(400)}
    assert all(60 < list(before.values()).count(name) < 140 for name in (*addresses, peers.id))
    peers._set_links(dict.fromkeys(("a", "b"), "http://x"))
    after = {number: peers._server(number) for number in range(400)}
    assert all(after[number] == server for number, server in before.items() if server != "c")


@needs_postgres
def test_processes_find_each_other_and_notice_who_is_gone(
    tmp_path: Path, postgres: Postgres
) -> None:
    """A real process beside one here; killed, its experiments are decided here."""
    database = postgres.new_database()
    address = "http://127.0.0.1:9"  # nobody listens: the other process serves its share itself
    with copied(tmp_path, database) as other:
        files = {"secret": tmp_path / "secret", "signing": tmp_path / "signing"}
        with service_here(tmp_path, database=database, address=address, **files) as here:
            until(lambda: len(here.core.peers._links) == 1)
            made = create_elsewhere(here)
            told = here.decide(made)
            assert here.core.peers.forwarded == 1
            other.kill()
            assert here.decide(made, event_id=told["event_id"]) == told
            here.decide(made)
            shown = here.http.get(f"/v1/experiments/{made}").json()
            assert (shown["decided"], here.core.peers.forwarded) == (2, 1)
            until(lambda: not here.core.peers._links)

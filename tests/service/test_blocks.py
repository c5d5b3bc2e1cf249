"""Blocks of decisions: made by the service, used without asking again, counted once used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import bandanna as bd
from tests.service.running import JSON, Here, service_here


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as found:
        yield found


@pytest.fixture
def client(here: Here) -> Iterator[bd.Client]:
    with bd.Client("http://testserver", here.key("decide", "reward", "read")) as found:
        key = found._http.headers["Authorization"]
        found._http = here.http  # type: ignore[assignment]
        here.http.headers["Authorization"] = key
        yield found


def ask(here: Here, experiment: str, **fields: object) -> JSON:
    path = f"/v1/experiments/{experiment}/decisions/block"
    answer = here.http.post(path, json={"block_id": "blk", "count": 0} | fields)
    assert answer.status_code == 200, answer.text
    found: JSON = answer.json()
    return found


def count(here: Here, experiment: str) -> tuple[int, int, int]:
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    return shown["decided"], shown["observed"], shown["released"]


def test_a_block_is_the_same_when_it_is_asked_for_again(here: Here) -> None:
    experiment = here.create(deadline_seconds=10)
    found = ask(here, experiment, count=5)
    assert [one["event_id"] for one in found["decisions"]] == [f"blk.{k}" for k in range(5)]
    assert ask(here, experiment, count=5) == found
    assert ask(here, experiment, count=3)["decisions"] == found["decisions"][:3]
    assert here.decide(experiment, event_id="blk.0") == found["decisions"][0]
    assert count(here, experiment)[0] == 5
    assert found["use_within_seconds"] == 5


def test_what_was_used_counts_and_what_was_not_goes_to_others(here: Here) -> None:
    experiment = here.create(deadline_seconds=10, default_loss=1.0, algorithm="exp3", epsilon=100)
    made = [one["event_id"] for one in ask(here, experiment, count=4)["decisions"]]
    assert here.reward(made[0], reward=1) == 204
    assert ask(here, experiment, used=[made[1]])["too_late"] == []
    here.clock.now += 11
    answer = ask(here, experiment, used=[made[1], made[2], "none"], block_id="late", count=2)
    assert answer["too_late"] == [made[1], made[2], "none"]
    assert here.reward(made[2], reward=1) == 410
    decided, observed, released = count(here, experiment)
    assert (decided, observed) == (4, 1), "the two that were not used were given out again"
    assert released == 2, "feedback of one, the default of the one that was used without"


def test_blocks_need_a_deadline_and_are_not_for_devices(here: Here) -> None:
    for fields, why in (
        ({}, "deadline_seconds"),
        ({"deadline_seconds": 9, "privacy": "local"}, "local"),
        ({"deadline_seconds": 9, "per_person": 2}, "per_person"),
    ):
        path = f"/v1/experiments/{here.create(**fields)}/decisions/block"
        answer = here.http.post(path, json={"block_id": "x", "count": 1})
        assert (answer.status_code, why in answer.json()["detail"]) == (422, True)
    answer = here.http.post(path, json={"block_id": "x", "count": 1001})
    assert answer.status_code == 422


def test_a_client_decides_without_a_round_trip(here: Here, client: bd.Client) -> None:
    here.http.headers["Authorization"] = f"Bearer {here.key('manage')}"
    experiment = here.create(deadline_seconds=100, epsilon=0.2)
    bandit = client.experiment(experiment)
    before = here.core.writer.transactions
    with bandit.block(50) as block:
        made = [block.decide() for _ in range(60)]
        assert len({one.event_id for one in made}) == 60
        assert here.core.writer.transactions - before <= 20, "two requests, grouped"
        bandit.observe(made[0], reward=1.0)
        block._stock.until = 0.0
        assert block.decide().event_id not in {one.event_id for one in made}
    here.clock.now += 101
    assert here.reward(made[1].event_id, reward=1.0) == 410
    decided, observed, _ = count(here, experiment)
    assert (decided, observed) == (150, 1)


def test_tasks_share_a_block_of_an_async_client(here: Here) -> None:
    experiment = here.create(deadline_seconds=100, epsilon=0.2)
    key = here.http.headers["Authorization"].removeprefix("Bearer ")
    asked: list[bytes] = []

    async def note(request: httpx.Request) -> None:
        asked.append(request.content)

    async def program() -> list[str]:
        async with bd.AsyncClient("http://testserver", key) as client:
            await client._http.aclose()
            client._http = httpx.AsyncClient(
                transport=httpx.ASGITransport(here.http.app),
                base_url="http://testserver",
                headers=client._headers,
                event_hooks={"request": [note]},
            )
            bandit = client.experiment(experiment)
            async with bandit.block(50) as block:
                made = await asyncio.gather(*(block.decide() for _ in range(60)))
                await bandit.observe(made[0], reward=1.0)
                block._stock.until = 0.0
                made.append(await block.decide())
            return [one.event_id for one in made]

    assert here.http.portal is not None
    names = here.http.portal.call(program)
    assert len(set(names)) == 61
    used = [len(json.loads(body)["used"]) for body in asked if b"used" in body]
    assert used == [0, 50, 10, 1], "three blocks, and what was used of the last one"
    here.clock.now += 101
    assert here.reward(names[1], reward=1.0) == 410
    assert count(here, experiment)[:2] == (150, 1)

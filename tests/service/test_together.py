"""What happens at the same time, or with a clock that is set: nothing is refused or forgotten."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bandanna.service import views
from bandanna.service.keys import KeyRing, make_key
from bandanna.store import KeyRow, SqlStore, read_secret
from bandanna.store.writer import Task
from tests.service.running import SWEEP, Here, copied, service_here


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def test_a_good_key_is_never_refused_while_another_request_looks_for_keys(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ring is empty after a start; another request fills it just after we looked."""
    look = KeyRing.find

    def meanwhile(ring: KeyRing, text: str) -> KeyRow | None:
        found = look(ring, text)
        if found is None:
            ring.refresh()
        return found

    monkeypatch.setattr(KeyRing, "find", meanwhile)
    assert here.http.get("/v1/experiments").status_code == 200


def test_a_key_opens_at_once_when_it_was_made_a_moment_ago(here: Here) -> None:
    for _ in range(3):
        header = {"Authorization": f"Bearer {here.key('read')}"}
        assert here.http.get("/v1/experiments", headers=header).status_code == 200


def test_deadlines_are_kept_when_the_clock_is_set_forth_and_back(here: Here) -> None:
    experiment = here.create(deadline_seconds=10, epsilon=100.0, algorithm="exp3")
    start = here.clock.now
    here.clock.now = start + 1_000_000
    here.decide(experiment, event_id="ahead")
    time.sleep(3 * SWEEP)  # the sweeper looks, and would look again after a deadline
    here.clock.now = start
    here.decide(experiment, event_id="back")
    time.sleep(3 * SWEEP)
    here.clock.now = start + 11
    for _ in range(600):
        if here.http.get(f"/v1/experiments/{experiment}").json()["released"] == 1:
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the deadline is not kept")
    assert here.reward("back", reward=1) == 410
    assert here.reward("ahead", reward=1) == 204


def test_experiments_where_nothing_is_due_stay_closed(here: Here) -> None:
    names = [here.create(deadline_seconds=10 + k) for k in range(3)]
    here.decide(names[0], event_id="late")
    before = here.core.writer.transactions
    here.clock.now += 100
    time.sleep(5 * SWEEP)  # the sweeper looks
    assert here.core.writer.transactions == before + 1
    assert here.reward("late", reward=1) == 410
    assert len(here.core.writer._units) == 1


@pytest.mark.parametrize("name", ["a\0b", "line\nbreak", "\x1b[31mred"])
def test_names_that_databases_and_pages_cannot_hold_are_refused(here: Here, name: str) -> None:
    body = {"name": name, "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}
    assert here.http.post("/v1/experiments", json=body).status_code == 422
    body |= {"name": "good", "arms": [name, "b"]}
    assert here.http.post("/v1/experiments", json=body).status_code == 422
    body |= {"arms": ["a", "b"], "segments": [name]}
    assert here.http.post("/v1/experiments", json=body).status_code == 422


READS = (
    "",
    "/privacy",
    "/results",
    "/audit",
    "/releases",
    "/live?once=true",
    "/export",
    "/export?format=csv",
)


def test_reads_wait_neither_for_the_writer_nor_for_a_transaction(here: Here) -> None:
    """Both are held up for as long as it takes to read everything."""
    experiment = here.create()
    for k in range(30):
        here.decide(experiment, event_id=f"{k}")
        here.reward(f"{k}", reward=1)
    (part,) = here.core.store.experiments(experiment)
    go_on = threading.Event()
    held = here.core.writer.submit(Task(lambda unit, _: go_on.wait(60), part.number))
    try:
        for read in READS:
            answer = here.http.get(f"/v1/experiments/{experiment}{read}")
            assert answer.status_code == 200, read
        for read in ("/v1/experiments", "/healthz", "/metrics"):
            assert here.http.get(read).status_code == 200, read
        assert not held.done()
    finally:
        go_on.set()
    assert held.result(timeout=60)


def said_of(policy: Any) -> tuple[Any, ...]:
    """Return what is said of a policy; shares of decisions in open batches are not read."""
    rows = [row._replace(share=None) for row in policy.summary().rows]
    return policy.guarantee, rows, policy.state.missed


def test_what_is_read_is_what_the_writer_knows(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "BURST", 1e9)  # readers never wait, however busy the machine is
    monkeypatch.setattr(views, "REST", 0.0)
    experiment = here.create(epsilon=0.2)
    (part,) = here.core.store.experiments(experiment)
    for k in range(40):
        here.decide(experiment, event_id=f"{k}", **({"eligible": ["a"]} if k % 9 == 0 else {}))
        if k % 4 == 0:
            assert here.http.post(f"/v1/events/{k}/give-up").status_code == 204
        else:
            here.reward(f"{k}", reward=0.5)
        if k % 10 == 0:
            task = Task(lambda unit, _: said_of(unit.policy), part.number)
            promise, rows, missed = here.core.writer.submit(task).result(timeout=60)
            view = here.core.views.view(part.number)
            assert said_of(view.policy)[:2] == (promise, rows)
            assert view.missed == missed
            results = here.core.views.results(part.number)
            assert results["batches_released"] == view.policy.released


def test_an_export_holds_everything_however_long(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bandanna.service.routes.results.PAGE", 3)
    experiment = here.create(epsilon=100.0, algorithm="exp3")
    path = f"/v1/experiments/{experiment}"
    assert here.http.get(f"{path}/export").json() == []
    for k in range(12):
        here.decide(experiment, event_id=f"{k}")
        here.reward(f"{k}", reward=1)
        count = k + 1
        assert len(here.http.get(f"{path}/export").json()) == count
    assert len(here.http.get(f"{path}/export?format=csv").text.split()) == 13
    rows = here.http.get(f"{path}/export").json()
    found, after = [], 0
    while after is not None:
        page = here.http.get(f"{path}/releases?after={after}&limit=5").json()
        found += page["releases"]
        after = page["next"]
    assert found == rows


def test_a_stream_ends_when_its_key_is_revoked(tmp_path: Path) -> None:
    with copied(tmp_path) as service:
        header = {"Authorization": f"Bearer {service.key}"}
        with httpx.Client(base_url=service.url, headers=header, timeout=60) as http:
            body = {"name": "test", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}
            experiment = http.post("/v1/experiments", json=body).json()["id"]
            secret = read_secret(tmp_path / "secret")
            store = SqlStore(f"sqlite:///{tmp_path}/service.db", secret)
            row, text = make_key(store, secret, "reader", ("read",))
            reading = {"Authorization": f"Bearer {text}"}
            path = f"/v1/experiments/{experiment}/live"
            with http.stream("GET", path, headers=reading) as answer:
                lines = answer.iter_lines()
                assert json.loads(next(lines).removeprefix("data: "))["experiment"]
                store.revoke_key(row.id, time.time())
                for _ in lines:
                    pass  # it ends
            store.close()


def test_whoever_reads_all_the_time_gets_what_was_read_a_moment_ago(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "BURST", 0.0)
    monkeypatch.setattr(views, "SHARE", 0.0)
    made = here.create()
    path = f"/v1/experiments/{made}/results"
    assert here.http.get(path).json()["decided"] == 0
    here.decide(made)
    assert here.http.get(path).json()["decided"] == 0, "its share is used up"
    monkeypatch.setattr(views, "BURST", 1.0)
    monkeypatch.setattr(views, "SHARE", 1e9)
    assert here.http.get(path).json()["decided"] == 1


def test_a_weaker_promise_is_shown_at_once_however_often_it_is_read(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "BURST", 0.0)
    monkeypatch.setattr(views, "SHARE", 0.0)
    path = f"/v1/experiments/{here.create()}"

    def epsilon() -> float:
        return float(here.http.get(f"{path}/privacy").json()["guarantee"]["epsilon"])

    before = epsilon()
    (listed,) = here.core.store.listed()
    here.core.store.charge(listed.number, 1)
    assert epsilon() == 2.0 * before

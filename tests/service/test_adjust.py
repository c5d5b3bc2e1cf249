"""What was known before, over HTTP: frozen with the decision, durable, unreadable on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bandanna as bd
from bandanna.store import SqlStore
from bandanna.store.sql import open_store
from tests.service.running import Here, process, service_here

ADJUST: dict[str, Any] = {"adjust": "past", "slope": 0.8, "adjusted_range": [-0.1, 0.5]}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def test_a_decision_takes_what_was_known_and_the_first_number_stands(here: Here) -> None:
    experiment = here.create(algorithm="ab-test", before_epsilon=0.25, **ADJUST)
    path = f"/v1/experiments/{experiment}"
    assert here.http.post(f"{path}/decisions", json={}).status_code == 422
    assert here.http.post(f"{path}/decisions", json={"before": "much"}).status_code == 422
    block = {"block_id": "b", "count": 2}
    assert here.http.post(f"{path}/decisions/block", json=block).status_code == 422
    first = here.decide(experiment, event_id="one", before=0.5)
    assert here.decide(experiment, event_id="one", before=0.9) == first
    assert here.reward("one", reward=0.6) == 204
    store: SqlStore = here.core.store
    saved = store.snapshot(1)
    (row,) = saved.feedback
    assert (row.before, row.sent) == (0.5, round(0.4 * 2**20))  # a reward of .6 is a loss of .4
    assert row.loss == pytest.approx((0.5 - (0.6 - 0.8 * 0.5)) / 0.6 * 2**20, abs=2)
    shown = here.http.get(path).json()
    assert shown["settings"]["adjust"] == "past"
    assert "which has 1.25 in all" in shown["guarantee"]
    certificate = here.http.get(f"{path}/privacy").json()["certificate"]
    assert certificate["epsilon_with_before"] == 1.25
    other = here.create()
    assert (
        here.http.post(f"/v1/experiments/{other}/decisions", json={"before": 1}).status_code == 422
    )


def test_answers_and_the_scorecard_say_what_they_are_about(here: Here) -> None:
    experiment = here.create(rounds=300, outcome="spending", **ADJUST)
    for number in range(300):
        here.decide(experiment, event_id=f"e{number}", before=number / 300)
        assert here.reward(f"e{number}", reward=0.1 + 0.8 * number / 300) == 204
    answer = here.http.get(f"/v1/experiments/{experiment}/answer").json()
    assert "adjusted by past" in answer["outcome"]
    assert "0.8 times past is subtracted from spending" in answer["about"]


def test_a_first_phase_finds_a_range_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    about = {"loss_range": "auto", "bounds": [0, 1000], "clip": True, "algorithm": "ab-test"}
    with service_here(tmp_path) as here:
        experiment = here.create(rounds=200, epsilon=5.0, outcome="spending", **about)
        for number in range(20):
            here.decide(experiment, event_id=f"e{number}")
            here.reward(f"e{number}", reward=100 + number)
    with service_here(tmp_path) as here:
        for number in range(20, 200):
            here.decide(experiment, event_id=f"e{number}")
            assert here.reward(f"e{number}", reward=100 + number % 20) == 204
        path = f"/v1/experiments/{experiment}"
        assert (
            "was found from 36 decisions of the first phase"
            in here.http.get(f"{path}/answer").json()["about"]
        )
        assert here.http.get(path).json()["settings"]["loss_range"] == "auto"
        shown = here.http.get(f"{path}/privacy").json()
        assert len(shown["certificate"]["first_parts"]) == 3
        assert "used for nothing else" in str(shown["guarantee"])
    body = {"name": "x", "arms": ["a", "b"], "epsilon": 1.0, "loss_range": "auto"}
    with service_here(tmp_path) as here:
        for more in (
            {},
            {"features": {"age": [0, 1]}},
            {"experts": 2},
            {"bounds": [0, 9], "experts": 2},
        ):
            assert here.http.post("/v1/experiments", json=body | more).status_code == 422


def test_a_flag_takes_it_from_the_evaluation_context(here: Here) -> None:
    experiment = here.create(**ADJUST)
    path = f"/ofrep/v1/evaluate/flags/{experiment}"
    given = {"context": {"targetingKey": "p1", "past": 0.25}}
    assert here.http.post(path, json=given).status_code == 200
    (row,) = here.core.store.snapshot(1).feedback
    assert row.before == 0.25
    given = {"context": {"targetingKey": "p2", "past": "much"}}
    assert here.http.post(path, json=given).status_code == 400


@pytest.mark.parametrize(
    "fields",
    [
        {"features": {"age": [0, 1]}},
        {"privacy": "local", "deadline_seconds": 5},
        {"decides": "edge", "phase_seconds": 60, "deadline_seconds": 60},
        {"experts": 2},
    ],
)
def test_where_nothing_can_be_subtracted_it_is_refused(here: Here, fields: dict[str, Any]) -> None:
    body = {"name": "x", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100} | ADJUST | fields
    answer = here.http.post("/v1/experiments", json=body)
    assert answer.status_code == 422, answer.text


def test_no_number_is_readable_on_disk(tmp_path: Path) -> None:
    with service_here(tmp_path) as running:
        experiment = running.create(**ADJUST)
        running.decide(experiment, event_id="one", before=0.31337)
        running.decide(experiment, event_id="two", before=0.31337)
        running.reward("two", reward=0.5)
    for file in tmp_path.iterdir():
        if file.is_file():
            assert b"0.31337" not in file.read_bytes()


@pytest.mark.soak
def test_what_was_known_survives_when_the_service_is_killed(tmp_path: Path) -> None:
    with process(tmp_path) as running, bd.Client(running.url, running.key) as client:
        made = client.create("x", ["a", "b"], 1.0, rounds=1000, algorithm="ab-test", **ADJUST)
        answers = [made.decide(before=k / 20, event_id=f"e{k}") for k in range(20)]
        for answer in answers[:5]:
            made.observe(answer, reward=0.5)
        running.kill()
        running.start()
        assert [made.decide(before=0.99, event_id=f"e{k}") for k in range(20)] == answers
        for answer in answers:
            made.observe(answer, reward=0.5)
        shown = made.show()
        assert (shown["decided"], shown["observed"]) == (20, 20)
        running.stop()
        store = open_store(f"sqlite:///{tmp_path}/service.db", tmp_path / "secret")
        rows = sorted(store.snapshot(1).feedback, key=lambda row: row.position)
        store.close()
    assert [row.before for row in rows] == [k / 20 for k in range(20)]

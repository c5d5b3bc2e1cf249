"""Feedback in bulk: a verdict for each line, and nothing counted twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bandanna as bd
from tests.service.running import Here, service_here


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def send(here: Here, experiment: str, *lines: Any, key: str | None = None) -> Any:
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return here.http.post(f"/v1/experiments/{experiment}/rewards", content=text, headers=headers)


def verdicts(answer: Any) -> list[tuple[str | None, int]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    found = [json.loads(line) for line in answer.text.splitlines()]
    return [(one["event_id"], one["status"]) for one in found]


def test_each_line_has_its_own_verdict(here: Here) -> None:
    experiment, other = here.create(deadline_seconds=10), here.create()
    for name in ("late", "one", "two", "three"):
        here.clock.now += 3
        here.decide(experiment, event_id=name)
    here.decide(other, event_id="elsewhere")
    here.clock.now += 2
    answer = send(
        here,
        experiment,
        {"event_id": "one", "reward": 1},
        {"event_id": "late", "reward": 1},
        {"event_id": "elsewhere", "reward": 1},
        {"event_id": "two", "loss": 7.654321},
        "",
        "no document",
        {"event_id": "two", "loss": 0.25, "more": 1},
        {"event_id": "one", "reward": 0},
        {"event_id": "three", "reward": True},
        {"reward": 1},
    )
    assert verdicts(answer) == [
        ("one", 204),
        ("late", 410),
        ("elsewhere", 404),
        ("two", 422),
        (None, 400),
        (None, 422),
        ("one", 204),
        ("three", 204),
        (None, 422),
    ]
    assert "7.65" not in answer.text, "feedback is not repeated"
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert shown["observed"] == 2


def test_many_lines_count_once_however_often_they_are_sent(here: Here) -> None:
    experiment = here.create(deadline_seconds=100, rounds=10_000)
    names: list[str] = []
    for k in range(3):
        asked = {"block_id": f"block-{k}", "count": 1000}
        path = f"/v1/experiments/{experiment}/decisions/block"
        made = here.http.post(path, json=asked).json()["decisions"]
        assert here.http.post(path, json=asked).json()["decisions"] == made
        names += [one["event_id"] for one in made]
    lines = [{"event_id": name, "reward": k % 2} for k, name in enumerate(names)]
    before = here.core.writer.transactions
    for _ in range(2):
        assert set(verdicts(send(here, experiment, *lines))) == {(name, 204) for name in names}
    assert here.core.writer.transactions - before <= 20, "not a transaction each"
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert (shown["decided"], shown["observed"]) == (3000, 3000)
    too_many = send(here, experiment, *lines * 4)
    assert (too_many.status_code, "at most 10,000 lines" in too_many.text) == (422, True)


def test_only_keys_for_rewards_of_the_experiment_send_them(here: Here) -> None:
    experiment, other = here.create(), here.create()
    here.decide(experiment, event_id="one")
    line = {"event_id": "one", "reward": 1}
    assert send(here, experiment, line, key=here.key("decide")).status_code == 403
    elsewhere = here.key("reward", experiment=other)
    assert send(here, experiment, line, key=elsewhere).status_code == 404
    assert send(here, "none", line).status_code == 404
    assert verdicts(send(here, experiment, line, key=here.key("reward"))) == [("one", 204)]


def test_a_client_is_told_what_was_refused(here: Here) -> None:
    experiment = here.create()
    for name in ("one", "two"):
        here.decide(experiment, event_id=name)
    client: Any = bd.Client("http://testserver", "x")
    client.close()
    client._http = here.http
    refused = client.experiment(experiment).observe_all({"one": 1.0, "none": 0.0})
    assert list(refused) == ["none"]
    assert client.experiment(experiment).observe_all(losses={"two": 0.5}) == {}
    assert here.http.get(f"/v1/experiments/{experiment}").json()["observed"] == 2

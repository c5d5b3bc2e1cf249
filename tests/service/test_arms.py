"""Arms that come and go over HTTP, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running import Here, service_here


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def play(here: Here, experiment: str, rounds: int) -> set[str]:
    played = set()
    for _ in range(rounds):
        told = here.decide(experiment)
        played.add(told["arm"])
        assert here.reward(told["event_id"], loss=0.9 if told["arm"] == "a" else 0.1) == 204
    return played


def test_arms_come_and_go(tmp_path: Path) -> None:
    with service_here(tmp_path) as here:
        made = here.create(epsilon=100.0, algorithm="exp3", rounds=1000)
        path = f"/v1/experiments/{made}"
        here.decide(made)
        answer = here.http.put(f"{path}/arms/c")
        assert (answer.status_code, answer.json()) == (200, {"arms": ["a", "b", "c"]})
        assert here.http.put(f"{path}/arms/c").json() == answer.json(), "once"
        assert here.http.get(path).json()["arms"] == ["a", "b", "c"]
        assert "c" in play(here, made, 40)  # never with probability (2 / 3) ** 40 at most
        assert here.http.delete(f"{path}/arms/a").json() == {"arms": ["b", "c"]}
        assert here.http.delete(f"{path}/arms/a").json() == {"arms": ["b", "c"]}
        play(here, made, 1)  # a batch may have begun
        assert "a" not in play(here, made, 8)
        assert here.http.put(f"{path}/arms/a").status_code == 409
        assert here.http.delete(f"{path}/arms/b").status_code == 422  # one of the last two
        assert here.http.delete(f"{path}/arms/none").status_code == 404
        shown = here.http.get(path).json()
        released = here.http.get(f"{path}/export").json()
        assert {row["arm"] for row in released} == {"a", "b", "c"}
        trail = here.http.get("/v1/trail").json()["entries"]
        assert {"arm added", "arm retired"} <= {entry["action"] for entry in trail}
    with service_here(tmp_path) as again:
        assert again.http.get(path).json() == shown
        assert play(again, made, 3) <= {"b", "c"}


def test_arms_change_in_all_segments(here: Here) -> None:
    made = here.create(segments=["x", "y"], epsilon=100.0, algorithm="exp3")
    assert here.http.put(f"/v1/experiments/{made}/arms/c").status_code == 200
    for segment in ("x", "y"):
        told = here.decide(made, segment=segment, eligible=["c"])
        assert told["arm"] == "c"


@pytest.mark.parametrize("fields", [{"experts": 2}, {"privacy": "local", "deadline_seconds": 9.0}])
def test_arms_that_cannot_change(here: Here, fields: dict[str, object]) -> None:
    made = here.create(**fields)
    assert here.http.put(f"/v1/experiments/{made}/arms/c").status_code == 422
    reader = {"Authorization": f"Bearer {here.key('read')}"}
    path = f"/v1/experiments/{made}/arms/c"
    assert here.http.put(path, headers=reader).status_code == 403


def test_answers_and_comparisons(here: Here) -> None:
    made = here.create(epsilon=100.0, algorithm="exp3", rounds=1000)
    path = f"/v1/experiments/{made}"
    assert here.http.get(f"{path}/answer").json()["best"] is None
    play(here, made, 150)
    assert here.http.get(f"{path}/answer", params={"confidence": 0.8}).json()["best"] == "b"
    found = here.http.get(f"{path}/compare", params={"first": "a", "second": "b"}).json()
    assert (found["first"], found["second"]) == ("a", "b")
    wrong = {"first": "a", "second": "none"}
    assert here.http.get(f"{path}/compare", params=wrong).status_code == 422
    assert here.http.get(f"{path}/answer", params={"confidence": 1}).status_code == 422

"""What happens at the same time, or with a clock that is set: nothing is refused or forgotten."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bandanna.service.keys import KeyRing
from bandanna.store import KeyRow
from tests.service.running import Here, service_here


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
    time.sleep(1.5)  # the sweeper looks, and would look again after a deadline
    here.clock.now = start
    here.decide(experiment, event_id="back")
    time.sleep(1.5)
    here.clock.now = start + 11
    for _ in range(60):
        if here.http.get(f"/v1/experiments/{experiment}").json()["released"] == 1:
            break
        time.sleep(0.1)
    assert here.reward("back", reward=1) == 410
    assert here.reward("ahead", reward=1) == 204


@pytest.mark.parametrize("name", ["a\0b", "line\nbreak", "\x1b[31mred"])
def test_names_that_databases_and_pages_cannot_hold_are_refused(here: Here, name: str) -> None:
    body = {"name": name, "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}
    assert here.http.post("/v1/experiments", json=body).status_code == 422
    body |= {"name": "good", "arms": [name, "b"]}
    assert here.http.post("/v1/experiments", json=body).status_code == 422
    body |= {"arms": ["a", "b"], "segments": [name]}
    assert here.http.post("/v1/experiments", json=body).status_code == 422

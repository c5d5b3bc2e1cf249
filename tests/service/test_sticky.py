"""Flags stay what they are for whom they were decided, and have the types of their arms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.running import Here, service_here

PATH = "/ofrep/v1/evaluate/flags"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def evaluate(here: Here, flag: str, visitor: str | None = "visitor-1", **more: Any) -> Any:
    """Evaluate a flag for a visitor."""
    context = more if visitor is None else {"targetingKey": visitor} | more
    answer = here.http.post(f"{PATH}/{flag}", json={"context": context})
    assert answer.status_code == 200, answer.text
    return answer.json()


def evaluate_all(here: Here, visitor: str | None = "visitor-1", tag: str = "", **more: Any) -> Any:
    """Evaluate all flags."""
    context = more if visitor is None else {"targetingKey": visitor} | more
    headers = {"If-None-Match": tag} if tag else {}
    return here.http.post(PATH, json={"context": context}, headers=headers)


def counts(here: Here, experiment: str) -> tuple[int, int]:
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    return shown["decided"], shown["observed"]


def test_a_visitor_has_one_arm_in_a_thousand_evaluations_of_an_hour(here: Here) -> None:
    made = here.create(name="button", deadline_seconds=7200, rounds=10_000)
    found = set()
    for k in range(1000):
        here.clock.now += 3.6
        flag = evaluate(here, "button" if k % 2 else made)
        found.add((flag["value"], flag["metadata"]["event_id"]))
    assert len(found) == 1
    ((_, event),) = found
    assert here.reward(event, reward=1) == 204
    assert evaluate(here, "button")["metadata"]["event_id"] == event, "also after its feedback"
    assert counts(here, made) == (1, 1)
    others = {evaluate(here, "button", f"visitor-{k}")["value"] for k in range(2, 40)}
    assert others == {"a", "b"}


def test_a_decision_is_over_at_its_deadline_or_after_sticky_seconds(here: Here) -> None:
    here.create(name="short", deadline_seconds=100)
    here.create(name="shorter", deadline_seconds=100, sticky_seconds=10)
    here.create(name="longer", deadline_seconds=100, sticky_seconds=1000)
    here.create(name="never", deadline_seconds=100, sticky_seconds=0)
    here.create(name="always")
    names = ("short", "shorter", "longer", "never", "always")

    def events() -> list[str]:
        return [evaluate(here, name)["metadata"]["event_id"] for name in names]

    def same(one: list[str], other: list[str]) -> list[str]:
        return [name for name, a, b in zip(names, one, other, strict=True) if a == b]

    first = events()
    assert same(first, events()) == ["short", "shorter", "longer", "always"]
    here.clock.now += 11
    assert same(first, events()) == ["short", "longer", "always"]
    here.clock.now += 90
    assert same(first, events()) == ["longer", "always"]
    here.clock.now += 1000
    assert same(first, events()) == ["always"]


def test_a_restart_changes_nobodys_flag(tmp_path: Path) -> None:
    with service_here(tmp_path) as here:
        here.create(name="button", deadline_seconds=100)
        before = [evaluate(here, "button", f"visitor-{k}") for k in range(20)]
    with service_here(tmp_path) as here:
        after = [evaluate(here, "button", f"visitor-{k}") for k in range(20)]
    assert before == after


def test_an_explicit_event_and_what_is_eligible_come_first(here: Here) -> None:
    here.create(name="button", arms=["a", "b", "c"])
    first = evaluate(here, "button")
    assert evaluate(here, "button", event_id="mine")["metadata"]["event_id"] == "mine"
    other = next(arm for arm in "abc" if arm != first["value"])
    assert evaluate(here, "button", eligible=[other])["value"] == other
    assert evaluate(here, "button")["value"] == other, "the last decision"


def test_polling_decides_once_and_the_tag_follows_the_decisions(here: Here) -> None:
    made = here.create(name="button", deadline_seconds=100)
    first = evaluate_all(here)
    tag = first.headers["etag"]
    for _ in range(50):
        here.clock.now += 1.5
        assert evaluate_all(here, tag=tag).status_code == 304
    assert evaluate_all(here).json() == first.json()
    assert counts(here, made)[0] == 1
    here.clock.now += 60  # nobody was shown it in time
    again = evaluate_all(here, tag=tag)
    assert again.status_code == 200
    other = evaluate_all(here, "visitor-2")
    assert other.json() != again.json()
    new = here.create(name="new")
    assert evaluate_all(here, tag=again.headers["etag"]).status_code == 200
    here.http.post(f"/v1/experiments/{new}/stop")
    assert evaluate_all(here, tag=again.headers["etag"]).status_code == 304


def test_a_page_without_a_targeting_key_is_known_by_its_tag(here: Here) -> None:
    here.create(name="button", deadline_seconds=100)
    first = evaluate_all(here, None)
    assert evaluate_all(here, None, first.headers["etag"]).status_code == 304
    assert evaluate_all(here, None).json() != first.json(), "another page"


def test_a_flag_that_was_shown_singly_is_no_longer_deferred(here: Here) -> None:
    made = here.create(name="button", deadline_seconds=100, algorithm="one-bit", epsilon=100.0)
    evaluate_all(here)
    evaluate(here, "button")
    here.clock.now += 101
    (part,) = here.core.store.experiments(made)
    from bandanna.store.writer import Task

    task = Task(lambda unit, _: unit.expire(), part.number)
    here.core.writer.submit(task).result(timeout=60)
    assert here.http.get(f"/v1/experiments/{made}").json()["released"] == 1, "it counts"


def test_persons_have_flags_in_bulk(here: Here) -> None:
    made = here.create(name="people", per_person=3, delta=1e-6, rounds_per_slot=5, rounds=1000)
    flags = [evaluate_all(here).json()["flags"] for _ in range(5)]
    assert flags[0][0]["key"] == "people"
    assert all(one == flags[0] for one in flags)
    assert counts(here, made)[0] == 1
    assert evaluate_all(here, None).json()["flags"] == [], "whose is it?"


def test_arms_that_are_booleans_or_numbers_are_such_flags(here: Here) -> None:
    kinds = {"switch": ["true", "false"], "price": ["9.5", "12"], "size": 3, "colour": ["1", "red"]}
    for name, arms in kinds.items():
        here.create(name=name, arms=arms)
    values = {name: evaluate(here, name)["value"] for name in kinds}
    assert isinstance(values["switch"], bool)
    assert values["price"] in (9.5, 12)
    assert values["size"] in (0, 1, 2)
    assert isinstance(values["colour"], str)
    assert evaluate(here, "switch")["variant"] in ("true", "false")


def test_a_second_running_experiment_of_a_name_is_refused_where_it_is_made(here: Here) -> None:
    first = here.create(name="button")
    body = {"name": "button", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}
    refused = here.http.post("/v1/experiments", json=body)
    assert (refused.status_code, first in refused.text) == (409, True)
    here.http.post(f"/v1/experiments/{first}/stop")
    again = {"Idempotency-Key": "once"}
    made = here.http.post("/v1/experiments", json=body, headers=again)
    assert made.status_code == 201
    assert here.http.post("/v1/experiments", json=body, headers=again).json() == made.json()
    assert evaluate(here, "button")["metadata"]["experiment"] == made.json()["id"]

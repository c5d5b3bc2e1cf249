"""Experiments that decide by context, over HTTP: validated, durable, and as private as others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bandanna as bd
from bandanna._client import Client, calls
from bandanna._core.documents import to_text
from bandanna.privacy.certificate import verify
from tests.service.running import Here, process, service_here

FEATURES = {"age": [18, 90], "plan": ["bronze", "silver", "gold"], "kind": {"categories": [1, 2]}}
CONTEXT = {"age": 30, "plan": "gold", "kind": 2}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def create(here: Here, **fields: Any) -> str:
    return here.create(**({"features": FEATURES, "rounds": 8} | fields))


def fill(here: Here, experiment: str, names: range) -> None:
    for k in names:
        here.decide(experiment, event_id=f"e{k}", context=CONTEXT)
        assert here.reward(f"e{k}", reward=float(k % 2)) == 204


@pytest.mark.parametrize("protects", ["feedback", "context and feedback"])
def test_it_decides_learns_and_promises(here: Here, protects: str) -> None:
    experiment = create(here, protects=protects, delta=1e-6)
    base = f"/v1/experiments/{experiment}"
    assert here.http.get(f"{base}/answer").json()["best"] is None
    first = here.decide(experiment, event_id="e0", context=CONTEXT)
    assert here.decide(experiment, event_id="e0", context={}) == first
    fill(here, experiment, range(8))
    shown = here.http.get(base).json()
    assert (shown["decided"], shown["observed"]) == (8, 8)
    assert shown["released"] >= 1
    assert shown["settings"]["features"]["plan"] == ["bronze", "silver", "gold"]
    found = here.http.get(f"{base}/answer").json()
    assert found["best"] in ("a", "b")
    assert found["sentence"].startswith("By a linear model")
    assert "no interval is proved" in found["warning"]
    results = here.http.get(f"{base}/results").json()
    assert results["answer"] == found
    assert results["rounds_released"] == 8
    promise = here.http.get(f"{base}/privacy").json()
    assert promise["guarantee"]["epsilon"] == 1.0
    assert promise["guarantee"]["delta"] == 1e-6
    assert ("context and the feedback" in promise["guarantee"]["protects"]) == (
        protects == "context and feedback"
    )
    assert all(one.holds for one in verify(to_text(promise["certificate"])))
    (row, *_) = here.http.get(f"{base}/export").json()
    numbers = 2 * (6 + (21 if protects == "context and feedback" else 0))
    assert len(row["released"]) == numbers
    assert row["arm"] is None
    assert '"decided": 8' in here.http.get(f"{base}/live?once=1").text


def test_what_is_wrong_with_a_context_is_said_without_repeating_it(here: Here) -> None:
    experiment, plain = create(here), here.create(name="plain")
    path = f"/v1/experiments/{experiment}/decisions"
    for body, word in (
        ({}, "give context, with age, plan, kind"),
        ({"context": {"agee": 30}}, "unknown features: agee"),
        ({"context": {"age": "secret"}}, "'age' must be a number"),
        ({"context": CONTEXT, "advice": [0, 1]}, "leave advice out"),
        ({"context": CONTEXT, "eligible": ["none"]}, "unknown arm"),
        ({"context": {"age": [1]}}, "age"),
        ({"context": "x"}, "context"),
    ):
        answer = here.http.post(path, json=body)
        assert answer.status_code == 422, answer.text
        assert word in answer.json()["detail"]
        assert "secret" not in answer.text
    assert here.http.post(path, json={"context": {}}).status_code == 200  # all are missing
    answer = here.http.post(f"/v1/experiments/{plain}/decisions", json={"context": CONTEXT})
    assert answer.status_code == 422
    assert "has no features" in answer.json()["detail"]
    assert here.reward("e0", reward=0.5) == 404
    event = here.decide(experiment, context=CONTEXT)["event_id"]
    assert here.reward(event, reward=1.5) == 422
    assert here.reward(event, reward=0.5, metrics={"x": 1}) == 422
    for query in ("compare?first=a&second=b", "audit"):
        assert here.http.get(f"/v1/experiments/{experiment}/{query}").status_code == 422
    assert here.http.put(f"/v1/experiments/{experiment}/arms/c").status_code == 422


def test_what_does_not_go_with_features_is_refused(here: Here) -> None:
    for fields, word in (
        ({"features": {"age": [90, 18]}}, "low below high"),
        ({"features": {"plan": ["a", "a"]}}, "must differ"),
        ({"features": {}}, "features"),
        ({"experts": 3}, "experts does not go with features"),
        ({"algorithm": "exp3"}, "leave algorithm out"),
        ({"privacy": "local", "deadline_seconds": 9}, "central"),
        ({"features": None, "protects": "feedback"}, "protects goes with features"),
    ):
        body = {"name": "x", "arms": 2, "epsilon": 1.0, "features": FEATURES} | fields
        answer = here.http.post("/v1/experiments", json=body)
        assert answer.status_code == 422, answer.text
        assert word in answer.json()["detail"]


def test_it_goes_on_after_a_restart_as_if_there_had_been_none(tmp_path: Path) -> None:
    """The sums are added up again from rounds: they must be the same to the last unit."""
    with service_here(tmp_path) as first:
        experiment = create(first, rounds=40, protects="context and feedback")
        fill(first, experiment, range(15))
        first.decide(experiment, event_id="late", context=CONTEXT)
        before = look(first, experiment)
    with service_here(tmp_path) as second:
        assert look(second, experiment) == before
        assert second.reward("late", reward=1.0) == 204
        assert second.reward("late", reward=0.0) == 204  # a repeat changes nothing
        fill(second, experiment, range(15, 40))
        shown = second.http.get(f"/v1/experiments/{experiment}").json()
        assert shown["observed"] == 41
        promise = second.http.get(f"/v1/experiments/{experiment}/privacy").json()
        assert promise["ledger"]["resumed_from_older_copies"] == 0


def look(here: Here, experiment: str) -> dict[str, Any]:
    """Return everything that a policy knows, private or not."""
    from bandanna.store.unit_of_work import UnitOfWork
    from bandanna.store.writer import Task

    number = here.core.store.experiments(experiment)[0].number

    def found(unit: UnitOfWork, _: object) -> dict[str, Any]:
        data: dict[str, Any] = unit.policy.to_dict()
        return data

    return here.core.writer.submit(Task(found, number)).result(timeout=60)


def slots_used(found: dict[str, Any]) -> int:
    slots = found["people"]["slots"]
    return sum(int(had) * len(persons) for had, persons in slots.items())


def test_deadlines_and_deferred_decisions_count_for_nothing(here: Here) -> None:
    experiment = create(here, deadline_seconds=10.0, rounds=4)
    here.decide(experiment, event_id="shown", context=CONTEXT)
    here.decide(experiment, event_id="deferred", context=CONTEXT, defer=True)
    here.clock.now += 11.0
    assert here.reward("shown", reward=1.0) == 410
    assert here.reward("deferred", reward=1.0) == 410
    fill(here, experiment, range(2))
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert (shown["decided"], shown["observed"]) == (4, 2)
    results = here.http.get(f"/v1/experiments/{experiment}/results").json()
    assert results["rounds_released"] == 2


def test_people_have_their_slots_and_not_more(tmp_path: Path) -> None:
    with service_here(tmp_path) as first:
        experiment = create(first, per_person=1, rounds=20)
        for k in range(3):
            first.decide(experiment, event_id=f"p{k}", person="ann", context=CONTEXT)
        before = look(first, experiment)
        assert slots_used(before) == 1
    with service_here(tmp_path) as second:
        assert look(second, experiment) == before
        for k in range(3):
            assert second.reward(f"p{k}", reward=1.0) == 204
        second.decide(experiment, event_id="p3", person="ann", context=CONTEXT)
        shown = second.http.get(f"/v1/experiments/{experiment}").json()
        assert (shown["decided"], shown["observed"]) == (4, 1)
        second.decide(experiment, event_id="p4", person="bob", context=CONTEXT)
        assert slots_used(look(second, experiment)) == 2
        answer = second.http.post(
            f"/v1/experiments/{experiment}/decisions", json={"context": CONTEXT}
        )
        assert answer.status_code == 422


def test_an_evaluation_context_is_the_context(here: Here) -> None:
    experiment = create(here, name="flag", rounds=1000)
    context = CONTEXT | {"targetingKey": "ann", "event_id": "one", "browser": {"name": "x"}}
    answer = here.http.post("/ofrep/v1/evaluate/flags/flag", json={"context": context})
    assert answer.status_code == 200, answer.text
    assert answer.json()["value"] in ("a", "b")
    waiting = look(here, experiment)["open_batches"][0]["waiting"]
    declared = {"age": (18, 90), "plan": FEATURES["plan"], "kind": [1, 2]}
    assert waiting[0][1]["advice"] == bd.contextual.Declared(declared).encode(CONTEXT).tolist()
    wrong = here.http.post("/ofrep/v1/evaluate/flags/flag", json={"context": {"age": "a secret"}})
    assert wrong.status_code == 400
    assert wrong.json()["errorCode"] == "INVALID_CONTEXT"
    assert "secret" not in wrong.text
    bulk = here.http.post("/ofrep/v1/evaluate/flags", json={"context": CONTEXT})
    assert [flag["key"] for flag in bulk.json()["flags"]] == ["flag"]
    other = here.http.post(
        "/ofrep/v1/evaluate/flags",
        json={"context": CONTEXT | {"age": 31}},
        headers={"If-None-Match": bulk.headers["ETag"]},
    )
    assert other.status_code == 304, "the tag stands for a visitor, whose decision it is"
    fresh = here.http.post("/ofrep/v1/evaluate/flags", json={"context": CONTEXT | {"age": 31}})
    assert fresh.status_code == 200
    assert fresh.headers["ETag"] != bulk.headers["ETag"]


def test_clients_send_contexts_and_metrics_and_ask_for_answers() -> None:
    asked: list[calls.Call] = []

    class Recording(Client):
        async def _send(self, call: calls.Call) -> dict[str, Any]:
            asked.append(call)
            return {"arm": "a", "event_id": "one"}

    made = Recording("http://localhost:1", "key").experiment("exp_1")
    made.observe(made.decide(context={"age": 3}), reward=1.0, metrics={"refund": 0.0})
    made.answer(0.9, segment="d/e")
    assert asked[0].body is not None
    assert asked[0].body["context"] == {"age": 3}
    assert asked[1].body == {"reward": 1.0, "metrics": {"refund": 0.0}}
    assert asked[2].path == "/v1/experiments/exp_1/answer?confidence=0.9&segment=d%2Fe"


@pytest.mark.soak
def test_nothing_is_lost_when_the_service_is_killed(tmp_path: Path) -> None:
    with process(tmp_path) as running, bd.Client(running.url, running.key) as client:
        made = client.create("x", ["a", "b"], 1.0, features=FEATURES, rounds=1000)
        answers = [made.decide(context=CONTEXT, event_id=f"e{k}") for k in range(20)]
        for answer in answers[:15]:
            made.observe(answer, reward=1.0)
        running.kill()
        running.start()
        assert [made.decide(context={}, event_id=f"e{k}") for k in range(20)] == answers
        for answer in answers:
            made.observe(answer, reward=1.0)
        shown = made.show()
        assert (shown["decided"], shown["observed"]) == (20, 20)
        assert made.guarantee.epsilon == 1.0


def test_no_context_is_readable_on_disk(tmp_path: Path) -> None:
    with service_here(tmp_path) as running:
        experiment = create(running, protects="context and feedback")
        running.decide(experiment, event_id="one", context={"age": 31.337})
        phi = bd.contextual.Declared({"age": (18, 90), "p": ["a", "b", "c"], "k": [1, 2]})
        written = repr(float(phi.encode({"age": 31.337})[1]))[:9].encode()
    for file in tmp_path.iterdir():
        if file.is_file():
            data = file.read_bytes()
            assert written not in data
            assert b"31.337" not in data

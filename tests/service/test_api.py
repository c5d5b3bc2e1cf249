"""The API: what it answers, to whom, and what it never tells."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import bandanna as bd
from bandanna.service.keys import REFRESH_SECONDS
from bandanna.service.middleware import QUICK
from bandanna.service.models import PlanRequest
from bandanna.store import StoreUnavailableError
from tests.service.running import Here, service_here


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def test_the_same_event_gets_the_same_answer(here: Here) -> None:
    experiment = here.create()
    first = here.decide(experiment, event_id="one")
    assert first["arm"] in ("a", "b")
    assert 0 < first["chance"] <= 1
    assert first["expires_at"] is None
    assert here.decide(experiment, event_id="one") == first
    assert here.decide(experiment)["event_id"] != here.decide(experiment)["event_id"]


def test_ids_of_events_belong_to_an_experiment(here: Here) -> None:
    """Two flags of one request use the same id; a key limited to one cannot see the other's."""
    first, second = here.create(), here.create()
    mine = {"Authorization": f"Bearer {here.key('decide', 'reward', experiment=second)}"}
    here.decide(first, event_id="one")
    answer = here.http.post("/v1/events/one/reward", json={"loss": 1}, headers=mine)
    assert answer.status_code == 404, "it cannot find out that the other has it"
    for _ in range(2):
        here.decide(second, event_id="one")
    answer = here.http.post("/v1/events/one/reward", json={"loss": 1}, headers=mine)
    assert answer.status_code == 204, "it is the only one that the key opens"
    assert [counts(here, one) for one in (first, second)] == [(1, 0), (1, 1)]
    answer = here.http.post("/v1/events/one/reward", json={"loss": 1})
    assert answer.status_code == 409
    assert "several experiments" in answer.json()["detail"]
    path = f"/v1/experiments/{first}/events/one/reward"
    assert here.http.post(path, json={"loss": 1}).status_code == 204
    assert here.http.post(path, json={"loss": 1}, headers=mine).status_code == 404
    assert [counts(here, one) for one in (first, second)] == [(1, 1), (1, 1)]


def counts(here: Here, experiment: str) -> tuple[int, int]:
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    return shown["decided"], shown["observed"]


def test_an_experiment_is_made_once_for_an_idempotency_key(here: Here) -> None:
    body = {"name": "test", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}
    body |= {"loss_range": [0, 2], "segments": ["de", "fr"]}

    def make(key: str | None, **fields: object) -> tuple[int, str]:
        headers = {} if key is None else {"Idempotency-Key": key}
        answer = here.http.post("/v1/experiments", json=body | fields, headers=headers)
        return answer.status_code, answer.json().get("id", answer.json().get("detail"))

    first = make("one")
    here.http.put(f"/v1/experiments/{first[1]}/arms/c")
    assert make("one") == first
    assert make("two")[0] == 409, "one of this name runs"
    here.http.post(f"/v1/experiments/{first[1]}/stop")
    second = make("two")
    assert (second[0], second[1] != first[1]) == (201, True)
    assert make("one") == first, "also when it is over"
    assert make(None, name="third")[1] not in (first[1], second[1])
    for changed in ({"epsilon": 2.0}, {"name": "other"}, {"segments": ["de"]}):
        status, why = make("one", **changed)
        assert (status, "used before" in why) == (422, True)
    here.http.headers["Authorization"] = f"Bearer {here.key('manage')}"
    assert make("one", name="fourth")[1] != first[1], "another key's are its own"
    trail = here.http.get("/v1/trail").json()["entries"]
    made = [line for line in trail if line["action"] == "experiment made"]
    assert sum(line["about"] == first[1] for line in made) == 1


def test_what_quick_routes_do_not_take_goes_the_usual_way(here: Here) -> None:
    experiment = here.create()
    path = f"/v1/experiments/{experiment}/decisions"
    assert here.http.get(path).status_code == 405
    assert here.http.post("/v1/experiments/a%20b/decisions", json={}).status_code == 422
    assert here.http.post("/v1/events/a%20b/reward", json={"reward": 1}).status_code == 422
    assert here.http.post("/v1/experiments/none/decisions", json={}).status_code == 404
    assert here.http.post(path, content="{").status_code == 400
    event = here.decide(experiment)["event_id"]
    given = f"/v1/experiments/{experiment}/events/{event}/reward"
    assert here.http.post(given, json={"reward": 1}).status_code == 204
    text = here.http.get("/metrics").text
    assert 'route="/v1/experiments/{experiment}/decisions",status="200"} 1.0' in text
    assert "post" in here.http.get("/openapi.json").json()["paths"][QUICK[0].path]


def test_a_name_means_the_running_experiment(here: Here) -> None:
    path = "/ofrep/v1/evaluate/flags/button"
    first = here.create(name="button")
    assert here.http.post(path, json={}).json()["metadata"]["experiment"] == first
    here.http.post(f"/v1/experiments/{first}/stop")
    assert here.http.post(path, json={}).status_code == 409
    second = here.create(name="button")
    for _ in range(2):
        assert here.http.post(path, json={}).json()["metadata"]["experiment"] == second
    assert here.http.post("/ofrep/v1/evaluate/flags/other", json={}).status_code == 404


def test_looking_up_a_name_uses_an_index(here: Here) -> None:
    query = "EXPLAIN QUERY PLAN SELECT id FROM experiments WHERE name = 'button'"
    with here.core.store._reading.connect() as connection:
        plan = str(connection.exec_driver_sql(query).all())
    assert "experiments_by_name" in plan


def test_feedback_counts_once(here: Here) -> None:
    experiment = here.create(epsilon=0.2)
    here.decide(experiment, event_id="one")
    assert here.reward("one", reward=0.75) == 204
    assert here.reward("one", reward=0.75) == 204
    assert here.reward("one", loss=0.25) == 204
    assert here.reward("one", reward=0.5) == 204
    assert here.reward("none", reward=0.5) == 404
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert (shown["decided"], shown["observed"], shown["released"]) == (1, 1, 0)
    assert "epsilon = 0.2" in shown["guarantee"]


def test_nobody_can_test_a_guess_of_what_was_sent(here: Here) -> None:
    """The same answer to every repeat: before its batch is released, after, and after a restart."""
    experiment = here.create(epsilon=0.2)
    for k in range(40):  # some batches are released, one stays open
        here.decide(experiment, event_id=f"{k}")
        assert here.reward(f"{k}", reward=0.25) == 204
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert shown["released"] > 0
    answers = {
        (answer.status_code, answer.content)
        for k in range(40)
        for guess in (0.25, 0.5, 0.0)
        for answer in [here.http.post(f"/v1/events/{k}/reward", json={"reward": guess})]
    }
    assert answers == {(204, b"")}
    again = here.http.get(f"/v1/experiments/{experiment}").json()
    assert again["observed"] == 40
    assert again["released"] == shown["released"]


def test_the_deadline_counts_the_default_and_what_is_late_is_gone(here: Here) -> None:
    batch = {"epsilon": 100.0, "algorithm": "exp3"}  # of one
    experiment = here.create(deadline_seconds=10, default_loss=1.0, **batch)
    answer = here.decide(experiment, event_id="one")
    assert answer["expires_at"] == "1970-01-12T13:46:50.000Z"
    here.decide(experiment, event_id="two")
    assert here.reward("one", reward=1) == 204
    here.clock.now += 10
    for _ in range(600):  # until the sweeper comes by
        if here.http.get(f"/v1/experiments/{experiment}").json()["released"] == 2:
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the default is not counted")
    assert here.reward("two", reward=1) == 410
    assert here.reward("one", reward=1) == 204


def test_a_deferred_decision_that_is_never_shown_counts_for_nothing(here: Here) -> None:
    experiment = here.create(deadline_seconds=10, epsilon=0.2)
    here.decide(experiment, event_id="one", defer=True)
    here.decide(experiment, event_id="two", defer=True)
    assert here.http.post("/v1/events/two/activate").status_code == 204
    here.clock.now += 5
    here.decide(experiment, event_id="three")
    here.clock.now += 6
    assert here.http.post("/v1/events/one/activate").status_code == 410
    here.decide(experiment, event_id="four")
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert shown["decided"] == 3, "the place of the first went to the fourth"


def test_experts_advise(here: Here) -> None:
    experiment = here.create(experts=3, rounds=10_000, algorithm="one-bit-exp4")
    assert here.decide(experiment, event_id="one", advice=["a", "a", "b"])["arm"] in ("a", "b")
    assert here.reward("one", loss=0.5) == 204
    spread = [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    assert here.decide(experiment, advice=spread)["chance"] <= 1
    for bad in (None, ["a"], ["a", "b", "c"], [[0.5, 0.6]] * 3):
        answer = here.http.post(f"/v1/experiments/{experiment}/decisions", json={"advice": bad})
        assert answer.status_code == 422, bad


def test_a_decision_is_among_eligible_arms(here: Here) -> None:
    experiment = here.create(arms=["a", "b", "c"], epsilon=0.2)
    base = f"/v1/experiments/{experiment}"
    asked = {"eligible": ["a", "c"]}
    answers = [here.decide(experiment, event_id=f"{k}", **asked) for k in range(20)]
    assert {answer["arm"] for answer in answers} <= {"a", "c"}
    assert here.decide(experiment, event_id="0", eligible=["b"]) == answers[0], "the same answer"
    assert here.decide(experiment, event_id="one", eligible=[1])["arm"] == "b"
    assert here.reward("one", loss=0.5) == 204
    assert "eligible" in here.http.get(f"{base}/privacy").json()["guarantee"]["assumptions"][-1]
    flag = {"context": {"eligible": ["c"]}}
    answer = here.http.post(f"/ofrep/v1/evaluate/flags/{experiment}", json=flag)
    assert answer.json()["value"] == "c"
    for bad in ([], ["d"], [7], "a", [None]):
        answer = here.http.post(f"{base}/decisions", json={"eligible": bad})
        assert answer.status_code == 422, bad
    advised = here.create(experts=2, rounds=10_000)
    both = {"eligible": ["a"], "advice": ["a", "b"]}
    assert here.http.post(f"/v1/experiments/{advised}/decisions", json=both).status_code == 422
    assert here.http.get(base).json()["decided"] == 22


def test_people_are_protected_and_known_by_a_hash_alone(here: Here, tmp_path: Path) -> None:
    experiment = here.create(per_person=1, rounds_per_slot=1, epsilon=0.2)
    arms = {here.decide(experiment, person="ann@example.org")["arm"] for _ in range(3)}
    assert len(arms) == 1
    assert here.http.post(f"/v1/experiments/{experiment}/decisions", json={}).status_code == 422
    promise = here.http.get(f"/v1/experiments/{experiment}/privacy").json()["guarantee"]
    assert (promise["epsilon"], "person" in promise["protects"]) == (0.2, True)
    flag = {"context": {"targetingKey": "bob@example.org"}}
    assert here.http.post(f"/ofrep/v1/evaluate/flags/{experiment}", json=flag).status_code == 200
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"@example.org" not in content
    body = {"name": "x", "arms": 2, "epsilon": 1, "per_person": 1}
    answer = here.http.post("/v1/experiments", json=body)
    assert (answer.status_code, "deadline_seconds" in answer.text) == (422, True)


def test_few_people_have_small_batches(here: Here) -> None:
    """No batch has more slots than half of the people."""
    many = {"per_person": 4, "rounds_per_slot": 1, "epsilon": 0.05, "rounds": 10_000}
    batches = []
    for people in ({}, {"people": 8}):
        made = here.create(algorithm="one-bit", **many, **people)
        batches.append(here.http.get(f"/v1/experiments/{made}").json()["settings"]["batch"])
        assert len({here.decide(made, person=f"{k % 2}")["event_id"] for k in range(8)}) == 8
    assert batches[1] <= 4 < batches[0]
    alone = {"name": "x", "arms": 2, "epsilon": 1.0, "people": 8}
    answer = here.http.post("/v1/experiments", json=alone)
    assert (answer.status_code, "per_person" in answer.text) == (422, True)


def test_only_released_data_leaves(here: Here) -> None:
    experiment = here.create(epsilon=0.2, algorithm="one-bit")
    batch = here.http.get(f"/v1/experiments/{experiment}").json()["settings"]["batch"]
    for k in range(batch + 1):
        here.decide(experiment, event_id=f"{k}")
        here.reward(f"{k}", loss=0.654321)
    base = f"/v1/experiments/{experiment}"
    rows = here.http.get(f"{base}/export").json()
    assert len(rows) == 1
    assert set(rows[0]) == {"batch", "arm", "rounds", "released", "released_at"}
    assert rows[0]["released"] in (0.0, 1.0)
    table = here.http.get(f"{base}/export?format=csv").text
    assert table.splitlines()[0] == "batch,arm,rounds,released,released_at"
    assert here.http.get(f"{base}/export?format=parquet").content[:4] == b"PAR1"
    results = here.http.get(f"{base}/results").json()
    assert sum(choice["batches"] for choice in results["choices"]) == 1
    assert results["regret_bound"] is None  # choosing at random loses no more so far
    promise = here.http.get(f"{base}/privacy").json()
    assert promise["guarantee"]["epsilon"] == 0.2
    assert promise["ledger"]["batches_released"] == 1
    assert promise["certificate"]["epsilon"] == 0.2
    audit = here.http.get(f"{base}/audit").json()
    assert 0 < audit["audited"] <= audit["claimed"] == 0.2
    everything = [here.http.get(path).text for path in (base, f"{base}/results", f"{base}/privacy")]
    everything += [json.dumps(rows), table, here.http.get("/metrics").text]
    everything.append(here.http.get(f"{base}/live?once=true").text)
    for trace in ("654321", "686105"):
        assert not any(trace in text for text in everything)


def test_batches_that_wait_for_long_raise_an_alert(here: Here) -> None:
    here.decide(here.create(epsilon=0.2))
    for seconds, stale in ((0, "0.0"), (90_000, "1.0")):
        here.clock.now += seconds
        assert f"bandanna_stale_batches {stale}" in here.http.get("/metrics").text


@pytest.mark.parametrize("losses", ["any", "changing", "steady"])
def test_the_world_can_be_named_instead_of_an_algorithm(here: Here, losses: str) -> None:
    experiment = here.create(losses=losses, rounds=10_000)
    for k in range(20):
        here.decide(experiment, event_id=f"{k}")
        assert here.reward(f"{k}", loss=0.5) == 204
    results = here.http.get(f"/v1/experiments/{experiment}/results").json()
    assert (results["steadiness"]["guard"] is not None) == (losses == "steady")
    both = {"name": "x", "arms": 2, "epsilon": 1, "losses": losses, "algorithm": "exp3"}
    assert here.http.post("/v1/experiments", json=both | {"rounds": 9999}).status_code == 422


def test_stopping(here: Here) -> None:
    experiment = here.create(epsilon=0.2)
    here.decide(experiment, event_id="one")
    assert here.http.post(f"/v1/experiments/{experiment}/stop").status_code == 204
    answer = here.http.post(f"/v1/experiments/{experiment}/decisions", json={})
    assert (answer.status_code, "stopped" in answer.text) == (409, True)
    assert here.reward("one", reward=1) == 204
    assert here.http.get("/v1/experiments").json()[0]["stopped"]


def test_plans(here: Here) -> None:
    body = {"arms": 4, "rounds": 100_000, "epsilon": 0.5}
    found = here.http.post("/v1/plan", json=body).json()
    assert found["best"] in [row["algorithm"] for row in found["rows"]]
    assert here.http.post("/v1/plan", json=body | {"epsilon": -1}).status_code == 422


def test_plans_take_what_plan_takes(here: Here) -> None:
    taken = set(signature(bd.plan).parameters) - {"delay"}
    assert set(PlanRequest.model_fields) == taken | {"deadline_seconds", "decisions_per_second"}
    body = {"arms": 2, "rounds": 60_000, "epsilon": 1.0, "delta": 1e-6}
    persons = {"per_person": 1000, "people": 60, "losses": "steady"}
    found = here.http.post("/v1/plan", json=body | persons).json()
    own = bd.plan(2, 60_000, 1.0, delta=1e-6, per_person=1000, people=60, losses="steady")
    assert found == json.loads(json.dumps(own.to_dict()))
    assert max(row["batch"] or 1 for row in found["rows"]) <= 30  # half as many as there are people
    alone = here.http.post("/v1/plan", json=body | {"people": 60})
    assert (alone.status_code, "per_person" in alone.text) == (422, True)


def test_plans_say_what_late_feedback_costs(here: Here) -> None:
    body = {"arms": 4, "rounds": 1_000_000, "epsilon": 1.0}
    late = body | {"deadline_seconds": 60, "decisions_per_second": 2.5}
    in_order, delayed = (here.http.post("/v1/plan", json=one).json() for one in (body, late))
    assert (in_order["delay"], delayed["delay"]) == (0, 150)
    assert "150 rounds late" in delayed["condition"]
    bounds = [found["rows"][0]["bound"] for found in (in_order, delayed)]
    assert bounds[0] < bounds[1] < 1_000_000
    assert bounds[1] == bd.plan(4, 1_000_000, 1.0, delay=150).best.regret
    alone = body | {"decisions_per_second": 1}
    assert here.http.post("/v1/plan", json=alone).status_code == 422
    made = {"deadline_seconds": 60, "decisions_per_second": 2.5, "algorithm": "one-bit-exp3"}
    experiment = here.create(rounds=1_000_000, **made)
    here.decide(experiment)
    results = here.http.get(f"/v1/experiments/{experiment}/results").json()
    assert "150 rounds late" in results["regret_condition"]


BAD: list[tuple[str, Any, int]] = [
    ("/v1/experiments", b"{", 400),
    ("/v1/experiments", b"", 422),
    ("/v1/experiments", b"[" * 50_000, 400),
    ("/v1/experiments", {"name": "x", "arms": 2}, 422),
    ("/v1/experiments", {"name": "x", "arms": ["a", "a"], "epsilon": 1}, 422),
    ("/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1, "colour": "red"}, 422),
    ("/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1, "algorithm": "none"}, 422),
    ("/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1, "loss_range": [1, 0]}, 422),
    ("/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1, "default_loss": 7}, 422),
    ("/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1, "rounds_per_slot": 2}, 422),
    ("/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1, "delta": 1e-300}, 422),
    ("/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1, "experts": 2, "losses": "odd"}, 422),
    ("/v1/experiments", b'{"name": "x", "arms": 2, "epsilon": NaN}', 422),
    ("/v1/experiments/none/decisions", {}, 404),
    ("/v1/experiments/a%20b/decisions", {}, 422),
    ("/v1/events/one/reward", {}, 422),
    ("/v1/events/one/reward", {"reward": 1, "loss": 0}, 422),
    ("/v1/events/one/reward", {"loss": 654321.5}, 422),
    ("/v1/events/one/reward", {"loss": "654321.5"}, 422),
    ("/v1/events/one/reward", {"loss": [654321.5]}, 422),
    ("/v1/events/one/reward", b'{"loss": 1e999}', 422),
    ("/v1/events/one/reward", b'{"loss": ' + b"9" * 5000 + b"}", 400),
    ("/v1/events/one/reward", b'{"loss": "\xff654321"}', 400),
    ("/v1/events/one/reward", b"0" * 1_000_001, 413),
    ("/v1/none", {}, 404),
]


@pytest.mark.parametrize(("path", "body", "status"), BAD)
def test_bad_input_is_named_and_never_repeated(
    here: Here, path: str, body: Any, status: int
) -> None:
    here.decide(here.create(epsilon=0.2), event_id="one")
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    answer = here.http.post(path, content=sent, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert "654321" not in answer.text
    assert here.reward("one", reward=1) == 204


def test_a_request_without_a_length_is_cut_off_too(here: Here) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            yield b" " * 100_000

    headers = {"Content-Type": "application/json"}
    answer = here.http.post("/v1/plan", content=pieces(), headers=headers)
    assert answer.status_code == 413


def test_keys_open_what_they_say_and_nothing_else(here: Here) -> None:
    one, two = here.create(epsilon=0.2), here.create(epsilon=0.2)
    event = here.decide(one)["event_id"]
    calls: dict[str, tuple[str, str, Any]] = {
        "decide": ("POST", f"/v1/experiments/{one}/decisions", {}),
        "reward": ("POST", f"/v1/events/{event}/reward", {"reward": 1}),
        "read": ("GET", f"/v1/experiments/{one}/privacy", None),
        "manage": ("POST", "/v1/experiments", {"name": "x", "arms": 2, "epsilon": 1}),
    }
    here.http.headers.pop("Authorization")
    for method, path, body in calls.values():
        assert here.http.request(method, path, json=body).status_code == 401
        wrong = {"Authorization": "Bearer bdn_0_0"}
        assert here.http.request(method, path, json=body, headers=wrong).status_code == 401
    assert here.http.get("/openapi.json").status_code == 401
    for scope in calls:
        headers = {"Authorization": f"Bearer {here.key(scope)}"}
        for needed, (method, path, body) in calls.items():
            status = here.http.request(method, path, json=body, headers=headers).status_code
            good = scope in (needed, "manage")
            assert (status < 300) if good else (status == 403), (scope, needed, status)
    narrow = {"Authorization": f"Bearer {here.key('manage', experiment=two)}"}
    for needed, (method, path, body) in calls.items():
        status = here.http.request(method, path, json=body, headers=narrow).status_code
        assert status == (403 if needed == "manage" else 404), needed
    assert [e["id"] for e in here.http.get("/v1/experiments", headers=narrow).json()] == [two]


def test_a_revoked_key_opens_nothing(here: Here) -> None:
    key = here.key("read")
    headers = {"Authorization": f"Bearer {key}"}
    assert here.http.get("/v1/experiments", headers=headers).status_code == 200
    assert here.core.store.revoke_key(key.split("_")[1], 1.0)
    time.sleep(REFRESH_SECONDS + 0.1)
    assert here.http.get("/v1/experiments", headers=headers).status_code == 401


def test_requests_are_limited(tmp_path: Path) -> None:
    with service_here(tmp_path, rate=2.0) as here:
        answers = [here.http.get("/v1/experiments").status_code for _ in range(40)]
        assert answers[:10] == [200] * 10
        assert 429 in answers
        here.http.headers.pop("Authorization")
        assert 429 in [here.http.get("/v1/experiments").status_code for _ in range(40)]


def test_answers_cannot_be_framed_sniffed_kept_or_read_by_other_origins(here: Here) -> None:
    for path in ("/", "/v1/experiments", "/healthz"):
        headers = here.http.get(path, headers={"Origin": "https://elsewhere.example"}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


def test_a_database_that_is_gone_is_503_and_comes_back(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = here.create(epsilon=0.2)
    here.decide(experiment, event_id="one")

    def gone(*_: object, **__: object) -> Any:
        raise StoreUnavailableError("the database is gone")

    with monkeypatch.context() as patch:
        for name in ("transaction", "check", "experiments", "overview"):
            patch.setattr(here.core.store, name, gone)
        assert here.reward("one", reward=1) == 503
        assert here.http.get("/healthz").status_code == 503
        answer = here.http.get("/v1/experiments")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert here.reward("one", reward=1) == 204
    assert here.http.get("/healthz").status_code == 200


def test_metrics_come_with_the_reward_and_are_kept_until_they_are_released(here: Here) -> None:
    """They are refused if one is missing, and are in no answer before their batch is released."""
    metrics = {"refund": [0, 1], "revenue": [0, 100]}
    about = {"control": "a", "least_share": 0.1}
    experiment = here.create(epsilon=50.0, algorithm="one-bit", metrics=metrics, **about)
    settings = here.http.get(f"/v1/experiments/{experiment}").json()["settings"]
    assert settings["metrics"] == metrics
    sent = {"reward": 1.0, "metrics": {"refund": 0.0, "revenue": 12.5}}
    for number in range(40):
        made = here.decide(experiment, event_id=f"event-{number}")
        path = f"/v1/experiments/{experiment}/events/{made['event_id']}/reward"
        assert here.http.post(path, json={"reward": 1.0}).status_code == 422
        assert here.http.post(path, json=sent).status_code == 204
    assert counts(here, experiment) == (40, 40)
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert "refund, revenue" in shown["guarantee"]

"""What a team says of an experiment, the arm it ships, and who did what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import bandanna as bd
from tests.service.running import Here, service_here

SAID = {
    "owner": "checkout team",
    "outcome": "conversion",
    "hypothesis": "Blue is seen sooner.",
    "starts_on": "2030-01-01",
    "ends_on": "2030-01-31",
    "tags": ["checkout", "50%_off"],
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with service_here(tmp_path_factory.mktemp("descriptions")) as running:
        yield running


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def listed(here: Here, query: str) -> list[str]:
    answer = here.http.get(f"/v1/experiments?{query}")
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()]


def test_what_is_said_is_kept_changed_and_checked(here: Here) -> None:
    made = here.create(name="said", **SAID)
    path = f"/v1/experiments/{made}"
    shown = here.http.get(path).json()
    assert {name: shown[name] for name in SAID} == SAID
    assert not set(SAID) & set(shown["settings"])
    changed = here.http.patch(path, json={"owner": "growth", "hypothesis": "", "tags": []})
    assert changed.status_code == 200
    assert (changed.json()["owner"], changed.json()["tags"]) == ("growth", [])
    assert (changed.json()["hypothesis"], changed.json()["ends_on"]) == ("", "2030-01-31")
    for wrong, why in (
        ({"starts_on": "2030-02-01"}, "before starts_on"),
        ({"ends_on": "2030-02-31"}, "must be a day"),
        ({"ends_on": "soon"}, "ends_on"),
        ({"tags": ["a", "A"]}, "must be different"),
        ({"owner": "a\nb"}, "control characters"),
        ({"name": "other"}, "name"),
    ):
        refused = here.http.patch(path, json=wrong)
        assert refused.status_code == 422, wrong
        assert why in refused.json()["detail"]
    assert here.http.get(path).json()["starts_on"] == "2030-01-01"
    assert here.http.patch(path, json={"owner": "growth", "tags": ["new"]}).status_code == 200
    trail = here.http.get(f"{path}/trail").json()["entries"]
    assert [line["details"].get("fields") for line in trail[1:]] == [
        ["hypothesis", "owner", "tags"],
        ["tags"],
    ]
    reader = bearer(here.key("read"))
    assert here.http.patch(path, json={"owner": "x"}, headers=reader).status_code == 403


def test_experiments_are_found_by_name_owner_tag_and_state(here: Here) -> None:
    one = here.create(name="Find me 100%", owner="Search", tags=["top", "x_y"])
    here.create(name="find also", owner="search", tags=["topmost"])
    for k in range(3):
        here.create(name=f"found {k}", tags=["many"])
    assert listed(here, "search=FIND") == ["Find me 100%", "find also"]
    assert listed(here, "search=100%25") == ["Find me 100%"]
    assert listed(here, "search=x_y") == ["Find me 100%"]
    assert listed(here, "search=xay") == []
    assert here.http.get("/v1/experiments?search=%00").status_code == 422
    assert listed(here, "owner=search") == ["Find me 100%", "find also"]
    assert listed(here, "owner=searc") == []
    assert listed(here, "tag=top") == ["Find me 100%"]
    assert here.http.post(f"/v1/experiments/{one}/stop").status_code == 204
    assert listed(here, "owner=search&ended=true") == ["Find me 100%"]
    assert listed(here, "owner=search&running=true") == ["find also"]
    first = here.http.get("/v1/experiments?tag=many&limit=2&newest=true")
    following = first.headers["Link"].split(">")[0].removeprefix("<")
    assert [one["name"] for one in first.json()] == ["found 2", "found 1"]
    assert [one["name"] for one in here.http.get(following).json()] == ["found 0"]
    mine = bearer(here.key("read", experiment=one))
    assert [o["id"] for o in here.http.get("/v1/experiments", headers=mine).json()] == [one]
    assert here.http.get("/v1/experiments?search=also", headers=mine).json() == []


def test_a_team_reads_its_own_word_for_the_feedback(here: Here) -> None:
    one = here.create(epsilon=20, rounds=100)
    for k in range(40):
        here.reward(here.decide(one)["event_id"], reward=float(k % 2))
    path = f"/v1/experiments/{one}"
    assert here.http.get(f"{path}/results").json()["answer"]["outcome"] == "reward"
    here.http.patch(path, json={"outcome": "conversion"})
    assert here.http.get(f"{path}/results").json()["answer"]["outcome"] == "conversion"
    assert here.http.get(f"{path}/answer").json()["outcome"] == "conversion"


def test_a_shipped_arm_is_what_everyone_gets(here: Here) -> None:
    one = here.create(name="ship it", arms=["green", "blue"], segments=["de", "fr"])
    path = f"/v1/experiments/{one}"
    before = here.decide(one, segment="de", event_id="before")
    waiting = here.decide(one, segment="fr")["event_id"]
    assert here.http.post(f"{path}/ship", json={"arm": "red"}).status_code == 422
    assert here.http.get(path).json()["shipped"] is None
    shipped = here.http.post(f"{path}/ship", json={"arm": "blue"}).json()
    assert shipped["arm"] == "blue"
    assert here.http.post(f"{path}/ship", json={"arm": "blue"}).json() == shipped
    shown = here.http.get(path).json()
    assert (shown["stopped"], shown["shipped"], shown["decided"]) == (True, shipped, 2)
    assert here.decide(one, segment="de", event_id="before") == before
    later = here.decide(one, segment="de", event_id="later")
    assert (later["arm"], later["chance"], later["expires_at"]) == ("blue", 1.0, None)
    assert here.http.post(f"{path}/decisions", json={"segment": "it"}).status_code == 422
    refused = here.http.post(f"{path}/decisions", json={"segment": "de", "eligible": ["green"]})
    assert refused.status_code == 422
    assert "was shipped" in refused.json()["detail"]
    for name in ("later", "never-decided"):  # taken, and counted for nothing
        sent = here.http.post(f"{path}/events/{name}/reward", json={"reward": 1})
        assert sent.status_code == 204
    assert here.http.get(path).json()["observed"] == 0
    assert here.reward(waiting, reward=1.0) == 204
    assert here.http.get(path).json()["observed"] == 1
    trail = here.http.get(f"{path}/trail", headers=bearer(here.key("read"))).json()["entries"]
    assert [line["action"] for line in trail] == ["experiment made", "arm shipped"]
    assert trail[1]["who"] == shipped["by"]
    assert trail[1]["name"] == "test"
    assert trail[1]["details"] == {"arm": "blue"}
    here.http.post(f"{path}/ship", json={"arm": "green"})
    assert here.decide(one, segment="fr")["arm"] == "green"
    deleted = here.http.delete(path)
    assert deleted.status_code == 204
    assert here.core.store.descriptions([one]) == {}


def test_a_flag_goes_on_with_the_shipped_arm(here: Here) -> None:
    one = here.create(name="flag", arms=["green", "blue"])
    every = "/ofrep/v1/evaluate/flags"
    first = here.http.post(every, json={"context": {}})
    here.http.post(f"/v1/experiments/{one}/ship", json={"arm": "blue"})
    flag = here.http.post(f"{every}/flag", json={"context": {}}).json()
    assert (flag["value"], flag["reason"]) == ("blue", "STATIC")
    known = {"If-None-Match": first.headers["ETag"]}
    again = here.http.post(every, json={"context": {}}, headers=known)
    assert again.status_code == 200
    assert [f["value"] for f in again.json()["flags"] if f["key"] == "flag"] == ["blue"]
    here.create(name="flag", arms=["old", "new"])
    found = here.http.post(every, json={"context": {}}).json()["flags"]
    assert [f["value"] in ("old", "new") for f in found if f["key"] == "flag"] == [True]


def test_a_description_is_made_once_with_its_experiment(here: Here) -> None:
    again = {"Idempotency-Key": "once"}
    body = {"name": "once", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100, "owner": "first"}
    made = here.http.post("/v1/experiments", json=body, headers=again).json()
    here.http.patch(f"/v1/experiments/{made['id']}", json={"owner": "second"})
    repeat = here.http.post("/v1/experiments", json=body, headers=again).json()
    assert (repeat["id"], repeat["owner"]) == (made["id"], "second")
    wrong = body | {"starts_on": "2030-01-02", "ends_on": "2030-01-01"}
    assert here.http.post("/v1/experiments", json=wrong).status_code == 422


def test_a_client_goes_on_after_an_arm_was_shipped(tmp_path: Path) -> None:
    from tests.service.running import copied

    with copied(tmp_path) as running, bd.Client(running.url, running.key) as client:
        bandit = client.create("shipped", ["a", "b"], 1.0, rounds=100, owner="me")
        client.send("POST", f"/v1/experiments/{bandit.id}/ship", {"arm": "b"})
        decision = bandit.decide()
        assert decision.arm == "b"
        bandit.observe(decision, reward=1.0)
        assert bandit.show()["owner"] == "me"

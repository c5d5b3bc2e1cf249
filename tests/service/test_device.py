"""Experiments with local privacy: bits and nothing else, signed parameters, keys for pages."""

from __future__ import annotations

import base64
import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients.device.client import Answer, Budget, Device, MemoryStorage

from bandanna import signatures
from bandanna._core.types import InputError
from bandanna.device import (
    MODULE,
    RefusalError,
    check_release,
    fingerprint,
    make_release,
    verify_release,
)
from bandanna.privacy.certificate import verify
from bandanna.service.middleware import check_origin
from bandanna.service.settings import settings_beside
from tests.service.running import JSON, Here, service_here

ORIGIN = "https://shop.example"
LOCAL = {"privacy": "local", "deadline_seconds": 100.0}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path, origins=(ORIGIN,)) as made:
        yield made


def send(here: Here, event: str, bit: Any, key: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return here.http.post(f"/v1/events/{event}/bit", json={"bit": bit}, headers=headers).status_code


def pinned(here: Here) -> bytes:
    return base64.b64decode(here.http.get("/device/key").json()["public_key"])


class InProcess:
    """A device's way to the service in this process, which may be tampered with."""

    def __init__(self, here: Here, key: str) -> None:
        self.here, self.key = here, key
        self.changes: JSON = {}
        self.lost_answers = 0
        self.sent: list[JSON] = []

    def post(self, path: str, body: JSON) -> Answer:
        self.sent.append(body)
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = self.here.http.post(f"/v1/{path}", json=body, headers=headers)
        if path.endswith("/bit") and self.lost_answers:
            self.lost_answers -= 1
            raise ConnectionError("the answer was lost")
        return Answer(
            answer.status_code, {**answer.json(), **self.changes} if answer.content else None
        )


def device(here: Here, experiment: str, **options: Any) -> tuple[Device, InProcess]:
    way = InProcess(here, here.key("device", experiment=experiment))
    chosen: dict[str, Any] = {
        "epsilon": 1.0,
        "budget": Budget(100.0, 30.0),
        "public_keys": [pinned(here)],
        "storage": MemoryStorage(),
        "clock": here.clock,
        "delay": 50.0,
    }
    return Device(way, experiment, **(chosen | options)), way


def test_bits_are_taken_once_and_losses_never(here: Here) -> None:
    experiment = here.create(**LOCAL)
    event = here.decide(experiment)["event_id"]
    assert send(here, event, 1) == 204
    assert send(here, event, 1) == 204
    assert send(here, event, 0) == 204, "a repeat, whatever it says: the first stands"
    late = here.decide(experiment)["event_id"]
    assert here.reward(late, loss=0.75) == 422
    answer = here.http.post(f"/v1/events/{late}/reward", json={"reward": 0.75})
    assert "takes bits" in answer.json()["detail"]
    assert "0.75" not in answer.text
    here.clock.now += 101
    assert send(here, late, 1) == 410
    assert send(here, event, 1) == 204  # a repeat, however late
    assert send(here, "nothing", 1) == 404
    for wrong in (2, -1, 0.5, True, "1", None):
        assert send(here, here.decide(experiment)["event_id"], wrong) == 422


def test_what_was_released_is_the_bits_as_they_came(here: Here) -> None:
    experiment = here.create(**LOCAL)
    bits = [0, 1, 1, 0, 1]
    for bit in bits:
        assert send(here, here.decide(experiment)["event_id"], bit) == 204
    rows = here.http.get(f"/v1/experiments/{experiment}/export").json()
    assert [row["released"] for row in rows] == bits
    assert {row["rounds"] for row in rows} == {1}


def test_central_experiments_take_no_bits(here: Here) -> None:
    experiment = here.create()
    decision = here.decide(experiment)
    assert "release" not in decision
    assert send(here, decision["event_id"], 1) == 422
    assert here.http.get(f"/v1/experiments/{experiment}/privacy").json()["device"] is None


def test_missing_bits_are_drawn_from_the_default_loss_and_tell_nothing(here: Here) -> None:
    experiment = here.create(**LOCAL, epsilon=4.0, default_loss=0.0, rounds=1000)
    for _ in range(40):
        here.decide(experiment)
    here.clock.now += 101
    last = here.decide(experiment)["event_id"]
    assert send(here, last, 1) == 204
    for _ in range(600):  # until the sweeper comes by
        if here.http.get(f"/v1/experiments/{experiment}").json()["released"] == 41:
            break
        time.sleep(0.05)
    else:
        pytest.fail("missing bits are not drawn")
    (row,) = here.http.get(f"/v1/experiments/{experiment}/export").json()
    assert (row["batch"], row["rounds"]) == (40, 1)  # what a default loss was drawn for is left out


def test_decisions_carry_signed_parameters_and_changes_are_noted(tmp_path: Path) -> None:
    with service_here(tmp_path) as here:
        experiment = here.create(**LOCAL, epsilon=0.5, loss_range=[-1.0, 3.0], default_loss=2.0)
        decision = here.decide(experiment)
        first = here.http.get("/device/key").json()["key_id"]
        parameters = check_release(decision["release"], allowed=0.5)
        assert (parameters.low, parameters.high, parameters.default_loss) == (-1.0, 3.0, 2.0)
        signed = experiment, decision["release"], decision["signature"]
        assert verify_release([pinned(here)], *signed)
        assert not verify_release([signatures.make_key().public], *signed)
        shown = here.http.get(f"/v1/experiments/{experiment}/privacy").json()
        assert shown["guarantee"]["model"] == "local"
        assert "operator among them" in shown["guarantee"]["protects"]
        assert shown["device"]["fingerprint"] == fingerprint(experiment, decision["release"])
        assert [line["key_id"] for line in shown["device"]["history"]] == [first]
        assert all(finding.holds for finding in verify(json.dumps(shown["certificate"])))
        assert stat.S_IMODE(here.settings.signing.stat().st_mode) == 0o600
    with service_here(tmp_path) as again:  # nothing changed: nothing is noted
        shown = again.http.get(f"/v1/experiments/{experiment}/privacy").json()
        assert len(shown["device"]["history"]) == 1
    again.settings.signing.unlink()
    with service_here(tmp_path) as other:
        shown = other.http.get(f"/v1/experiments/{experiment}/privacy").json()
        second = other.http.get("/device/key").json()["key_id"]
        assert [line["key_id"] for line in shown["device"]["history"]] == [first, second]
        assert shown["certificate"]["parameters"] == shown["device"]["history"]
        assert not verify_release(
            [base64.b64decode(shown["device"]["public_key"])], *signed[:2], signed[2]
        )


def test_a_device_decides_and_its_bit_arrives(here: Here) -> None:
    experiment = here.create(**LOCAL)
    person, way = device(here, experiment)
    decision = person.decide()
    person.feedback(decision.event_id, 1.0)
    here.clock.now += 50
    way.lost_answers = 1
    person.flush()
    here.clock.now += 49.9
    person.flush()
    here.clock.now += 0.2
    person.flush()  # after the deadline: it had arrived, and the repeat is the same bit
    bits = [body["bit"] for body in way.sent if "bit" in body]
    assert len(bits) == 2
    assert len(set(bits)) == 1
    assert person.kept()["events"][decision.event_id]["done"]
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert (shown["observed"], shown["released"]) == (1, 1)


def test_a_patched_service_is_refused_by_the_device(here: Here) -> None:
    """Whoever holds the database alone, or sits in between, cannot make parameters sharper."""
    experiment = here.create(**LOCAL)
    person, way = device(here, experiment)
    for release, code in (
        (make_release(1.5), "epsilon"),
        ({**make_release(3.0), "epsilon": "1"}, "epsilon"),
        (make_release(0.9), "signature"),
    ):
        way.changes = {"release": release}
        with pytest.raises(RefusalError, check=lambda error, code=code: error.code == code):  # type: ignore[misc]
            person.decide()
    way.changes = {}
    core = here.core
    part = core.store.experiments(experiment)[0]
    sharper = make_release(4.0)
    part.settings["device_release"] = sharper
    core._known[experiment] = [part]
    core.signer._signed.clear()  # the operator itself, with the key: still above what is allowed
    with pytest.raises(RefusalError, match="epsilon 4"):
        person.decide()


def test_a_pages_key_opens_decisions_and_bits_of_its_experiment_alone(here: Here) -> None:
    local, other, central = here.create(**LOCAL), here.create(**LOCAL), here.create()
    key = here.key("device", experiment=local)
    headers = {"Authorization": f"Bearer {key}"}
    decided = here.http.post(f"/v1/experiments/{local}/decisions", json={}, headers=headers)
    assert decided.status_code == 200
    assert send(here, decided.json()["event_id"], 1, key) == 204
    assert send(here, here.decide(other)["event_id"], 1, key) == 404
    for method, path in (
        ("GET", f"/v1/experiments/{local}"),
        ("GET", f"/v1/experiments/{local}/results"),
        ("POST", f"/v1/experiments/{local}/stop"),
        ("POST", f"/v1/events/{decided.json()['event_id']}/reward"),
        ("POST", f"/ofrep/v1/evaluate/flags/{local}"),
        ("GET", "/v1/experiments"),
        ("GET", "/metrics"),
    ):
        answer = here.http.request(method, path, headers=headers, json={"loss": 0})
        assert answer.status_code == 403, path
    for scopes, experiment in ((("device",), None), (("device",), central)):
        with pytest.raises(InputError, match="for pages"):
            here.key(*scopes, experiment=experiment)
    with pytest.raises(InputError, match="for pages"):
        here.key("device", "read", experiment=local)


def test_plans_may_be_for_devices(here: Here) -> None:
    problem = {"arms": 3, "rounds": 10_000, "epsilon": 0.5, "local": True}
    rows = here.http.post("/v1/plan", json=problem).json()["rows"]
    assert {row["model"] for row in rows} == {"local", "none"}


def test_flags_are_not_for_devices(here: Here) -> None:
    experiment = here.create(**LOCAL)
    answer = here.http.post(f"/ofrep/v1/evaluate/flags/{experiment}", json={})
    assert answer.status_code == 400
    assert "device module" in answer.json()["errorDetails"]
    assert here.http.post("/ofrep/v1/evaluate/flags", json={}).json()["flags"] == []


def test_an_address_with_a_pages_key_is_slowed_down(tmp_path: Path) -> None:
    with service_here(tmp_path, device_rate=0.5) as here:
        experiment = here.create(**LOCAL)
        headers = {"Authorization": f"Bearer {here.key('device', experiment=experiment)}"}
        path = f"/v1/experiments/{experiment}/decisions"
        found = [here.http.post(path, json={}, headers=headers).status_code for _ in range(8)]
        assert found.count(429) >= 2
        assert found[:5] == [200] * 5


def test_only_named_origins_may_ask_and_only_for_decisions_and_feedback(here: Here) -> None:
    experiment = here.create(**LOCAL)
    path = f"/v1/experiments/{experiment}/decisions"
    asking = {"Access-Control-Request-Method": "POST"}

    def preflight(path: str, origin: str) -> Any:
        return here.http.options(path, headers={"Origin": origin, **asking})

    allowed = preflight(path, ORIGIN)
    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "Access-Control-Allow-Credentials" not in allowed.headers
    assert preflight("/v1/events/e/bit", ORIGIN).status_code == 200
    for closed, origin in (
        (path, "https://other.example"),
        (path, "null"),
        ("/v1/events/e/give-up", ORIGIN),
        (f"/v1/experiments/{experiment}/events/e/erase", ORIGIN),
        (f"/v1/experiments/{experiment}", ORIGIN),
        ("/v1/experiments", ORIGIN),
    ):
        answer = preflight(closed, origin)
        assert answer.status_code in (401, 405)
        assert "Access-Control-Allow-Origin" not in answer.headers
    asked = here.http.post(path, json={}, headers={"Origin": ORIGIN})
    assert asked.headers["Access-Control-Allow-Origin"] == ORIGIN
    for wrong in ("*", "shop.example", "https://shop.example/", "https://shop.example/x"):
        with pytest.raises(InputError, match=r"https://shop\.example"):
            check_origin(wrong)


def test_the_module_is_served_to_everybody(here: Here) -> None:
    del here.http.headers["Authorization"]
    answer = here.http.get("/device/bandanna-device.js")
    assert answer.content == MODULE.read_bytes()
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert here.http.get("/device/else").status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"deadline_seconds": None},
        {"per_person": 3},
        {"experts": 3},
        {"segments": ["a", "b"]},
        {"algorithm": "dp-klucb"},
        {"loss_range": [0.0, 1e300], "default_loss": 1e299, "epsilon": 101},
    ],
)
def test_what_devices_cannot_do_is_refused(here: Here, wrong: JSON) -> None:
    body = {"name": "test", "arms": ["a", "b"], "epsilon": 1.0, **LOCAL, **wrong}
    assert here.http.post("/v1/experiments", json=body).status_code == 422


def test_the_key_lies_beside_the_secret_and_not_in_the_database(here: Here) -> None:
    settings = settings_beside("some/folder.db")
    assert settings.signing == Path("some/folder.db.signing")
    here.create(**LOCAL)
    private = signatures.private_from_pem(here.settings.signing.read_bytes())
    database = Path(here.settings.database.removeprefix("sqlite:///")).read_bytes()
    assert private not in database
    assert base64.b64encode(private) not in database

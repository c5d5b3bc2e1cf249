"""What operators rely on: health, keys, the trail, limits, configuration."""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from bandanna.service.middleware import check_networks, visitor
from bandanna.service.routes import operations
from bandanna.store import StoreUnavailableError
from tests.command import bandanna
from tests.service.running import SWEEP, Here, copied, service_here


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_alive_and_ready(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    del here.http.headers["Authorization"]
    for path in ("/livez", "/readyz", "/healthz"):
        assert here.http.get(path).json()["status"] == "ok"
        assert here.http.head(path).status_code == 200

    def gone() -> None:
        raise StoreUnavailableError("the database is gone.")

    core = here.core
    changes: list[tuple[str, object, str, object]] = [
        ("database", core.store, "check", gone),
        ("disk", operations, "LEAST_BYTES", 1 << 60),
        ("rollback guard", core.guard, "trouble", "older."),
        ("writer", core.writer, "busy_since", time.monotonic() - 100),
    ]
    for what, where, name, value in changes:
        monkeypatch.setattr(where, name, value)
        answer = here.http.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["checks"][what] != "ok", what
        assert answer.headers["retry-after"] == "1"
    assert here.http.get("/livez").status_code == 200
    monkeypatch.undo()


def test_keys_are_made_shown_once_expire_and_are_revoked_over_http(here: Here) -> None:
    body = {"name": "shop", "scopes": ["decide", "reward"], "expires_in_seconds": 3600}
    made = here.http.post("/v1/keys", json=body)
    assert made.status_code == 201
    key, identity = made.json()["key"], made.json()["id"]
    listed = {row["id"]: row for row in here.http.get("/v1/keys").json()}
    assert "key" not in listed[identity]
    me = here.http.get("/v1/keys/me", headers=bearer(key)).json()
    assert (me["id"], me["scopes"]) == (identity, ["decide", "reward"])
    assert here.http.get("/v1/keys", headers=bearer(key)).status_code == 403
    assert here.http.post("/v1/keys", json=body | {"name": "x\n"}).status_code == 422
    assert here.http.post(f"/v1/keys/{identity}/revoke").status_code == 204
    assert here.http.post(f"/v1/keys/{identity}/revoke").status_code == 404
    time.sleep(2.5)
    assert here.http.get("/v1/keys/me", headers=bearer(key)).status_code == 401
    with sqlite3.connect(here.settings.database.removeprefix("sqlite:///")) as connection:
        short = here.http.post("/v1/keys", json=body).json()
        connection.execute("UPDATE keys SET expires_at = 1 WHERE id = ?", (short["id"],))
    connection.close()
    assert here.http.get("/v1/keys/me", headers=bearer(short["key"])).status_code == 401


def test_the_trail_says_who_did_what(here: Here) -> None:
    experiment = here.create(name="button")
    here.http.get(f"/v1/experiments/{experiment}/export?format=csv")
    here.http.post(f"/v1/experiments/{experiment}/stop")
    entries, after = [], 0
    while after is not None:
        page = here.http.get(f"/v1/trail?after={after}&limit=2").json()
        entries += page["entries"]
        after = page["next"]
    me = here.http.get("/v1/keys/me").json()["id"]
    assert [(one["who"], one["action"], one["about"]) for one in entries] == [
        (me, "experiment made", experiment),
        (me, "exported", experiment),
        (me, "experiment stopped", experiment),
    ]
    assert here.http.get("/v1/trail", headers=bearer(here.key("read"))).status_code == 403


def test_experiments_are_listed_page_by_page(here: Here) -> None:
    made = [here.create(name=f"{k}", segments=["a", "b"] if k == 2 else None) for k in range(5)]
    path, found = "/v1/experiments?limit=2", []
    while path:
        answer = here.http.get(path)
        found += [one["id"] for one in answer.json()]
        path = answer.links.get("next", {}).get("url", "")
    assert found == made
    here.http.post(f"/v1/experiments/{made[0]}/stop")
    running = here.http.get("/v1/experiments?running=true").json()
    assert [one["id"] for one in running] == made[1:]
    here.decide(made[1])
    assert here.http.get("/v1/experiments").json()[1]["decided"] == 1


def test_metrics_of_each_running_experiment(here: Here) -> None:
    experiment = here.create(name="button", epsilon=0.2)
    here.decide(experiment, event_id="one")
    here.decide(experiment, event_id="two")
    here.reward("one", reward=1)
    here.clock.now += 50
    text = here.http.get("/metrics").text
    labels = f'{{experiment="{experiment}",name="button"}}'
    assert f"bandanna_experiment_decisions{labels} 2.0" in text
    assert f"bandanna_experiment_feedback{labels} 1.0" in text
    assert f"bandanna_experiment_oldest_batch_seconds{labels} 50.0" in text
    here.http.post(f"/v1/experiments/{experiment}/stop")
    assert "bandanna_experiment_decisions{" not in here.http.get("/metrics").text


def test_the_dashboard_asks_for_metrics_that_exist(here: Here) -> None:
    here.create()
    known = here.http.get("/metrics").text
    dashboard = json.loads(Path("deploy/grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) >= 8
    for expression in expressions:
        names = [word for word in expression.replace("(", " ").split() if "bandanna_" in word]
        for name in names:
            base = name.split("{")[0].split("[")[0].rstrip(")")
            assert base.removesuffix("_bucket") in known, expression


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("9.9.9.9", "1.2.3.4", "9.9.9.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", "1.2.3.4"),
        ("10.0.0.1", "1.2.3.4, nonsense", "10.0.0.1"),
        ("10.0.0.1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:10.0.0.1", "1.2.3.4", "1.2.3.4"),
        ("testclient", "1.2.3.4", "testclient"),
    ],
)
def test_a_visitor_is_counted_and_not_the_proxy(peer: str, forwarded: str, found: str) -> None:
    assert visitor(peer, forwarded, check_networks(["10.0.0.0/8"])) == found


def test_too_much_at_once_is_answered_503(tmp_path: Path) -> None:
    with service_here(tmp_path, most_waiting=0) as here:
        experiment = here.create()
        answer = here.http.post(f"/v1/experiments/{experiment}/decisions", json={})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_connections_are_bounded_and_silent_ones_are_refused(tmp_path: Path) -> None:
    options = {"most-connections": "5"}
    with copied(tmp_path, **options) as service:
        address = ("127.0.0.1", service.port)
        silent = [socket.create_connection(address) for _ in range(5)]
        time.sleep(0.5)
        answer = httpx.get(f"{service.url}/livez")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        for one in silent:
            one.close()
        time.sleep(0.5)
        assert httpx.get(f"{service.url}/livez").status_code == 200
        log = service.log.read_text()
        assert service.key not in log, "the key is in its file, and nowhere else"


def test_the_api_says_that_it_needs_a_key(here: Here) -> None:
    described = here.http.get("/openapi.json").json()
    assert described["security"] == [{"key": []}]
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert described["paths"]["/livez"]["get"]["security"] == []


def test_the_api_is_described_by_a_page_that_needs_no_key(here: Here) -> None:
    document = here.http.get("/openapi.json").json()
    del here.http.headers["Authorization"]
    answer = here.http.get("/api")
    assert (answer.status_code, answer.headers["content-type"][:9]) == (200, "text/html")
    text = answer.text
    calls = [(m.upper(), path) for path, item in document["paths"].items() for m in item]
    assert all(f"<code>{method} {path}</code>" in text for method, path in calls)
    assert text.count("<details>") == len(calls)
    new = document["components"]["schemas"]["NewExperiment"]["properties"]
    assert all(f"<code>{name}</code>" in text for name in new)
    assert "<script" not in text
    assert "$ref" not in text


def show_config(*arguments: str, **environment: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "bandanna", "serve", "--show-config", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin", "HOME": "/tmp", **environment},
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" = ", 1) for line in done.stdout.splitlines())


def test_settings_come_from_the_command_line_the_environment_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "bandanna.toml"
    file.write_text(
        'port = 1111\nrate = 7.5\nhost = "0.0.0.0"\nallow-origin = ["https://a.example"]\n'
    )
    found = show_config(
        "--config",
        str(file),
        "--host",
        "127.0.0.2",
        BANDANNA_PORT="2222",
        BANDANNA_DATABASE="postgresql://bandanna:hidden@db/x",
    )
    assert (found["host"], found["port"], found["rate"]) == ('"127.0.0.2"', "2222", "7.5")
    assert found["allow_origin"] == '["https://a.example"]'
    assert found["database"] == '"postgresql://bandanna:***@db/x"'


def test_what_show_config_prints_is_a_file_that_config_takes(tmp_path: Path) -> None:
    given = ["--no-guard", "--trusted-proxy", "10.0.0.7", "--signing-file", "/keys/signing"]
    found = show_config("--database", f"{tmp_path}/here.db", "--rate", "7.5", *given)
    assert found["trusted_proxy"] == '["10.0.0.7"]'
    assert found["secret_file"] == f'"{tmp_path}/here.db.secret"'
    file = tmp_path / "bandanna.toml"
    file.write_text("".join(f"{name} = {value}\n" for name, value in found.items()))
    assert show_config("--config", str(file)) == found


def test_an_unknown_option_in_a_file_is_refused_with_those_there_are(tmp_path: Path) -> None:
    file = tmp_path / "bandanna.toml"
    file.write_text('proxies = ["10.0.0.1"]\n')
    done = bandanna("serve", "--config", str(file), "--show-config")
    assert done.returncode == 2
    assert "unknown option 'proxies'; there are accept_restored, allow_origin, " in done.stderr
    assert "trusted_proxy" in done.stderr


def test_events_are_forgotten_after_a_time_and_batches_stay_whole(here: Here) -> None:
    experiment = here.create(epsilon=0.2, keep_seconds=100)
    path = f"/v1/experiments/{experiment}"
    k = 0
    while here.http.get(path).json()["released"] < 1:
        here.decide(experiment, event_id=f"{k}")
        here.reward(f"{k}", reward=1)
        k += 1
    here.decide(experiment, event_id="open")
    here.clock.now += 101
    (part,) = here.core.store.experiments(experiment)
    assert here.core.store.forget_events(part.number, here.clock.now - 100) == k
    assert here.reward("0", reward=1) == 404
    assert here.reward("open", reward=1) == 204
    here.core._learn_deadlines()
    assert here.core._keeps == {part.number: 100}


def test_an_event_is_erased_and_its_batch_goes_on(here: Here) -> None:
    experiment = here.create(epsilon=0.2)
    path = f"/v1/experiments/{experiment}"
    for name in ("one", "two"):
        here.decide(experiment, event_id=name)
    here.reward("one", reward=1)
    for name in ("one", "two"):
        assert here.http.post(f"{path}/events/{name}/erase").status_code == 204
        assert here.http.post(f"{path}/events/{name}/erase").status_code == 404
        assert here.reward(name, reward=1) == 404
    while not here.core.store.tidy():  # a reader was in the way
        time.sleep(0.01)
    content = Path(here.settings.database.removeprefix("sqlite:///")).read_bytes()
    assert b"erased_" in content
    for k in range(60):
        here.decide(experiment, event_id=f"{k}")
        assert here.reward(f"{k}", reward=1) == 204
    assert here.http.get(path).json()["released"] > 0


def test_traces_of_an_erased_event_go_once_no_reader_is_in_the_way(here: Here) -> None:
    experiment = here.create()
    here.decide(experiment, event_id="somebody-in-particular")
    database = Path(here.settings.database.removeprefix("sqlite:///"))

    def found() -> bool:
        files = database, database.with_name(f"{database.name}-wal")
        return any(b"somebody-in-particular" in file.read_bytes() for file in files)

    with closing(sqlite3.connect(database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchall()
        path = f"/v1/experiments/{experiment}/events/somebody-in-particular/erase"
        assert here.http.post(path).status_code == 204
        time.sleep(3 * SWEEP)
        assert found()
    for _ in range(1000):
        if not found():
            return
        time.sleep(0.01)
    raise AssertionError("the service did not try again")


def test_an_experiment_is_erased_and_the_service_starts_again(tmp_path: Path) -> None:
    with service_here(tmp_path) as here:
        experiment, other = here.create(epsilon=100.0, algorithm="exp3"), here.create()
        path = f"/v1/experiments/{experiment}"
        here.decide(experiment, event_id="one")
        here.reward("one", reward=1)
        key = here.key("read", experiment=experiment)
        assert here.http.delete(path).status_code == 409, "it still decides"
        here.http.post(f"{path}/stop")
        assert here.http.delete(path).status_code == 204
        assert here.http.get(path).status_code == 404
        assert here.http.get(path, headers=bearer(key)).status_code in (401, 404)
    with service_here(tmp_path) as here:
        assert [one["id"] for one in here.http.get("/v1/experiments").json()] == [other]


def test_pages_of_named_origins_decide_and_send_feedback_and_nothing_else(tmp_path: Path) -> None:
    with service_here(tmp_path, origins=("https://shop.example",)) as here:
        here.create(name="button")
        asking = {"Access-Control-Request-Method": "POST"}
        page = {"Origin": "https://shop.example"} | asking
        elsewhere = {"Origin": "https://elsewhere.example"} | asking
        for path in (
            "/v1/experiments/exp_1/decisions",
            "/v1/events/e/bit",
            "/v1/experiments/exp_1/events/e/reward",
            "/v1/events/e/activate",
            "/ofrep/v1/evaluate/flags",
            "/ofrep/v1/evaluate/flags/button",
        ):
            asked = here.http.options(path, headers=page)
            assert asked.status_code == 200
            assert "If-None-Match" in asked.headers["Access-Control-Allow-Headers"]
            assert (
                "Access-Control-Allow-Origin"
                not in here.http.options(path, headers=elsewhere).headers
            )
        answer = here.http.post("/ofrep/v1/evaluate/flags", json={}, headers=page)
        assert answer.headers["Access-Control-Allow-Origin"] == page["Origin"]
        assert "ETag" in answer.headers["Access-Control-Expose-Headers"]
        for path in ("/v1/experiments", "/v1/keys", "/v1/experiments/exp_1/stop", "/metrics"):
            asked = here.http.options(path, headers=page)
            assert "Access-Control-Allow-Origin" not in asked.headers

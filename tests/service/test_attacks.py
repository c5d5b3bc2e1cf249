"""Attempts to shut others out, or to see too much."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from bandanna.service import middleware, server
from bandanna.service.routes.results import as_csv
from bandanna.service.settings import settings_beside
from tests.service.running import Here, Process, copied, service_here


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service that takes few connections, and trusts no address."""
    folder = tmp_path_factory.mktemp("attacks")
    options = {"most-connections": "40", "trusted-proxy": "192.0.2.1"}
    with copied(folder, **options) as running:
        yield running


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_processes_offer_nothing_to_strangers_beside_the_api(here: Here) -> None:
    assert here.http.post("/peer", content=b"x", headers={"Authorization": ""}).status_code == 401
    assert here.http.post("/peer", content=b"x").status_code == 404


def drip(port: int, key: str, seconds: float) -> bytes:
    """Send a body byte by byte, faster than any pause is noticed."""
    head = (
        f"POST /v1/experiments/exp_1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
        f"Authorization: Bearer {key}\r\n\r\n"
    )
    found, end = b"", time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=0.05) as here:
        here.sendall(head.encode())
        while time.monotonic() < end:
            try:
                here.sendall(b" ")
                part = here.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                break
            if not part:
                break
            found += part
    return found


def test_a_body_that_drips_is_refused_in_time(served: Process) -> None:
    assert drip(served.port, "bdn_0_0", 2.0).startswith(b"HTTP/1.1 401")


def test_a_body_that_drips_with_a_good_key_is_refused_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.3)
    with service_here(tmp_path) as here:
        sent: list[dict[str, object]] = []

        async def receive() -> dict[str, object]:
            await asyncio.sleep(0.05)
            return {"type": "http.request", "body": b" ", "more_body": True}

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/experiments/exp_1/decisions",
            "headers": [(b"authorization", here.http.headers["Authorization"].encode())],
            "query_string": b"",
            "client": ("127.0.0.1", 1),
        }
        began = time.monotonic()
        asyncio.run(here.http.app(scope, receive, send))  # type: ignore[arg-type]
        assert sent[0]["status"] == 408
        assert time.monotonic() - began < 5


def test_one_address_takes_a_part_of_the_connections(served: Process) -> None:
    held = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(60)]
    try:
        time.sleep(0.2)
        refused = 0
        for one in held:
            one.settimeout(0.02)
            with suppress(TimeoutError):
                refused += one.recv(1000).startswith(b"HTTP/1.1 503")
        assert refused == 60 - 40 // server.OF_ADDRESS
        with socket.socket() as other:  # another address finds room
            other.bind(("127.0.0.2", 0))
            other.connect(("127.0.0.1", served.port))
            other.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert other.recv(1000).startswith(b"HTTP/1.1 200")
    finally:
        for one in held:
            one.close()


def test_headers_that_are_too_long_are_refused(served: Process) -> None:
    for parts in (1, 20):
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as here:
            here.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nA: ")
            try:
                for _ in range(parts):
                    here.sendall(b"a" * (200_000 // parts))
                here.sendall(b"\r\n\r\n")
                answer = here.recv(1000)
            except ConnectionError:
                continue  # it has hung up
            assert answer.startswith(b"HTTP/1.1 431"), answer[:100]
    headers = {"A": "a" * 40_000}
    assert httpx.get(f"{served.url}/livez", headers=headers).status_code == 431


def test_a_client_that_leaves_in_the_middle_is_noted_as_such(served: Process) -> None:
    made = {"name": "left", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}
    with httpx.Client(base_url=served.url, headers=bearer(served.key)) as http:
        experiment = http.post("/v1/experiments", json=made).json()["id"]
        for path in (f"/v1/experiments/{experiment}/decisions", "/v1/experiments"):
            with socket.create_connection(("127.0.0.1", served.port)) as here:
                here.sendall(
                    f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
                    f"Authorization: Bearer {served.key}\r\n\r\n{{".encode()
                )
                time.sleep(0.1)
        for _ in range(100):
            counted = [one for one in http.get("/metrics").text.splitlines() if "_total{" in one]
            if sum('status="499"' in one for one in counted) == 2:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(counted)
        assert not any('status="500"' in one for one in counted)


def test_a_key_for_one_experiment_sees_no_metrics_of_others(here: Here) -> None:
    mine = here.create(name="mine")
    here.create(name="secret-plans")
    answer = here.http.get("/metrics", headers=bearer(here.key("read", experiment=mine)))
    assert answer.status_code == 403
    assert "secret-plans" not in answer.text
    text = here.http.get("/metrics", headers=bearer(here.key("read"))).text
    assert "secret-plans" in text


def test_metrics_do_not_grow_with_segments(here: Here) -> None:
    made = here.create(name="many", segments=[f"s{k}" for k in range(50)])
    for k in range(3):
        here.decide(made, segment=f"s{k}")
    text = here.http.get("/metrics").text
    lines = [one for one in text.splitlines() if one.startswith("bandanna_experiment_decisions{")]
    assert lines == [f'bandanna_experiment_decisions{{experiment="{made}",name="many"}} 3.0']


def test_the_last_key_that_opens_everything_stays(here: Here) -> None:
    (last,) = (key["id"] for key in here.http.get("/v1/keys").json())
    here.key("manage", experiment=here.create())
    here.core.store.add_key(here.core.store.all_keys()[0]._replace(id="old", expires_at=5.0))
    refused = here.http.post(f"/v1/keys/{last}/revoke")
    assert (refused.status_code, "last key" in refused.text) == (409, True)
    other = here.key("manage")
    assert here.http.post(f"/v1/keys/{last}/revoke", headers=bearer(other)).status_code == 204


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bandanna", *arguments]
    home = {"HOME": str(folder), "PATH": os.environ["PATH"], "COLUMNS": "200"}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=home, check=False, timeout=60
    )


@pytest.mark.slow
def test_a_wrong_secret_is_named_and_no_new_one_is_left(tmp_path: Path) -> None:
    with service_here(tmp_path):
        pass
    files = sorted(path.name for path in tmp_path.iterdir())
    given = "--database", "here.db", "--secret-file", "elsewhere"
    for command in (("serve", "--check"), ("db", "backup", "copy.db"), ("keys", "list")):
        done = run(tmp_path, *command, *given)
        assert done.returncode != 0
        assert "the secret elsewhere is not there" in " ".join(done.stderr.split())
    done = run(tmp_path, "db", "backup", "copy.db", "--database", "none.db")
    assert "there is no database none.db" in " ".join(done.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == files


@pytest.mark.slow
def test_the_first_key_is_in_a_file_and_not_in_the_logs(tmp_path: Path) -> None:
    with Process(tmp_path).log.open("w") as log:
        arguments = ["serve", "--port", "0", "--no-guard"]
        process = subprocess.Popen(
            [sys.executable, "-m", "bandanna", *arguments], cwd=tmp_path, stdout=log, stderr=log
        )
    file = tmp_path / "bandanna.db.first-key"
    try:
        for _ in range(600):
            if file.exists() and file.read_text().endswith("\n"):
                break
            time.sleep(0.05)
        time.sleep(0.3)
    finally:
        process.terminate()
        process.wait(30)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().startswith("bdn_")
    assert file.read_text().strip() not in Path(log.name).read_text()


@pytest.mark.slow
def test_a_password_on_the_command_line_is_warned_about(tmp_path: Path) -> None:
    address = "postgresql://bandanna:hidden@db.example/x"
    done = run(tmp_path, "serve", "--show-config", "--database", address)
    assert "everyone on this machine can read a password" in " ".join(done.stderr.split())
    assert "hidden" not in done.stdout + done.stderr


def test_whoever_listens_everywhere_without_tls_is_warned(tmp_path: Path) -> None:
    settings = settings_beside(str(tmp_path / "here.db"), guard=tmp_path / "guard")
    assert not any("warning" in line for line in server.check(settings))
    assert "warning: it listens on 0.0.0.0" in server.check(settings, "0.0.0.0")[-1]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", " =", "\t=", "\r=", "\uff1d"])
def test_cells_that_a_spreadsheet_would_run_are_texts(begin: str) -> None:
    line = as_csv([{"arm": f"{begin}1+1"}], header=False)
    assert line.lstrip('"').startswith("'")

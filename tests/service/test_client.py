"""The Python client, the commands and OpenFeature's SDK, against the service as people run it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import bandanna as bd
from bandanna.client import ServiceError
from tests.command import bandanna
from tests.service.running import Process, copied, process


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with process(tmp_path_factory.mktemp("service")) as here:
        yield here


@pytest.fixture
def client(running: Process) -> Iterator[bd.Client]:
    with bd.Client(running.url, running.key, patience=20) as here:
        yield here


def play(bandit: Any) -> None:
    """The same program for a policy of one's own and for one in the service."""
    first, second = bandit.decide(), bandit.decide()
    assert first.arm in bandit.arms
    bandit.observe(first, reward=1.0)
    bandit.observe(first, reward=1.0)
    with pytest.raises(bd.InputError):
        bandit.observe(second, reward=7.0)
    bandit.give_up(second)
    bandit.give_up(first)
    with pytest.raises(bd.DecisionError):
        bandit.observe(second, reward=0.25)
    assert bandit.decided == 2
    assert bandit.guarantee.epsilon == 0.2
    assert bandit.certificate()["epsilon"] == 0.2


def test_a_program_moves_to_the_service_by_changing_a_line(client: bd.Client) -> None:
    play(bd.PrivateBandit(["a", "b"], 0.2, 1000))
    play(client.create("moved", ["a", "b"], 0.2, rounds=1000))


def test_what_fails_for_a_while_is_tried_again_with_the_same_ids(
    running: Process, client: bd.Client
) -> None:
    bandit = client.create("test", ["a", "b"], 0.2, rounds=1000)
    before = bandit.decide(event_id="before")
    running.kill()
    with bd.Client(running.url, running.key, patience=0.2) as impatient:
        gone = impatient.experiment(bandit.id)
        with pytest.raises(ServiceError, match="did not answer"):
            gone.decide()
    running.start()
    assert bandit.decide(event_id="before") == before
    bandit.observe(before, loss=0.5)


def test_segments_and_experts_through_the_client(client: bd.Client) -> None:
    shops = client.create("shops", ["a", "b"], 0.2, rounds=1000, segments=["de", "f & r"])
    shops.observe(shops.decide(segment="f & r"), reward=1.0)
    assert shops.certificate(segment="f & r")["epsilon"] == 0.2
    with pytest.raises(bd.InputError, match="give a segment"):
        shops.certificate()
    with pytest.raises(bd.InputError, match="unknown segment"):
        shops.decide(segment="es")
    assert shops.decide(segment="de", eligible=["b"]).arm == "b"
    advised = client.create("advised", ["a", "b"], 1.0, rounds=1000, experts=2)
    advised.observe(advised.decide(["a", "b"]), loss=0.25)
    assert (shops.decided, advised.decided) == (2, 1)


def test_refusals_have_names(running: Process, client: bd.Client) -> None:
    with pytest.raises(ServiceError) as caught:
        client.experiment("none").decide()
    assert caught.value.status == 404
    with bd.Client(running.url, "bdn_0_0") as stranger, pytest.raises(ServiceError) as caught:
        stranger.experiment("none").decide()
    assert caught.value.status == 401


def command(running: Process, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = ["--database", str(running.folder / "service.db")]
    where += ["--secret-file", str(running.folder / "secret")]
    return bandanna(*arguments, *where)


def test_keys_are_made_listed_and_revoked_by_command(running: Process, client: bd.Client) -> None:
    made = command(running, "keys", "new", "web", "--scope", "read")
    key = made.stdout.strip()
    with bd.Client(running.url, key) as reader:
        assert isinstance(reader.send("GET", "/v1/experiments"), list)
        with pytest.raises(ServiceError, match="does not open"):
            reader.create("x", 2, 1.0)
    listed = command(running, "keys", "list").stdout
    assert key.split("_")[1] in listed
    assert key not in listed
    assert command(running, "keys", "revoke", key.split("_")[1]).returncode == 0
    assert command(running, "keys", "revoke", "none").returncode == 2
    assert "scopes are" in command(running, "keys", "new", "x", "--scope", "all").stderr


def test_backups_and_checks(running: Process, client: bd.Client, tmp_path: Path) -> None:
    assert command(running, "db", "backup", str(tmp_path / "copy.db")).returncode == 0
    guard = ["--guard-file", str(tmp_path / "guard")]
    known = ["--guard-file", str(running.folder / "guard")]
    assert "tables up to date" in command(running, "serve", "--check", *known).stdout
    secret = ["--secret-file", str(running.folder / "secret")]
    here = ["--database", str(tmp_path / "copy.db"), *secret, *guard]
    done = bandanna("serve", "--check", *here)
    assert done.returncode == 2
    assert "is a backup" in done.stderr
    charged = bandanna("serve", "--check", *here, "--accept-restored")
    assert charged.returncode == 0, charged.stderr


def test_openfeature_sees_a_feature_flag(running: Process, client: bd.Client) -> None:
    from openfeature import api
    from openfeature.contrib.provider.ofrep import OFREPProvider
    from openfeature.evaluation_context import EvaluationContext

    bandit = client.create("button colour", ["green", "blue"], 0.2, rounds=1000)
    headers = {"Authorization": f"Bearer {running.key}"}
    api.set_provider(OFREPProvider(running.url, headers_factory=lambda: headers))
    flags = api.get_client()
    for key in (bandit.id, "button colour"):
        found = flags.get_string_details(key, "default", EvaluationContext("user-17"))
        assert found.value in ("green", "blue")
        assert found.variant == found.value
        bandit.observe(str(found.flag_metadata["event_id"]), reward=1.0)
    again = EvaluationContext("user-17", {"event_id": "mine"})
    assert len({flags.get_string_value(bandit.id, "default", again) for _ in range(5)}) == 1
    missing = flags.get_string_details("none", "default", EvaluationContext("user-17"))
    assert (missing.value, missing.error_code) == ("default", "FLAG_NOT_FOUND")
    assert bandit.decided == 2
    body = {"context": {"targetingKey": "user-17"}}
    every = httpx.post(f"{running.url}/ofrep/v1/evaluate/flags", json=body, headers=headers)
    assert "button colour" in [flag["key"] for flag in every.json()["flags"]]
    api.shutdown()


def test_what_openfeature_tracks_is_a_reward(
    running: Process, client: bd.Client, caplog: pytest.LogCaptureFixture
) -> None:
    from openfeature import api
    from openfeature.evaluation_context import EvaluationContext
    from openfeature.track import TrackingEventDetails

    from bandanna.openfeature import BandannaProvider

    bandit = client.create("shop", ["a", "b"], 0.2, rounds=1000, segments=["de"])
    api.set_provider(BandannaProvider(running.url, running.key, rewards=("reward", "bought")))
    flags = api.get_client()
    request = EvaluationContext("user-17", {"event_id": "request-1", "segment": "de"})
    assert flags.get_string_value(bandit.id, "default", request) in ("a", "b")
    flags.track("bought", request, TrackingEventDetails(0.654321))
    another = EvaluationContext("user-17", {"segment": "de"})
    found = flags.get_string_details(bandit.id, "default", another)
    event = {"event_id": str(found.flag_metadata["event_id"])}
    flags.track("loss", another, TrackingEventDetails(0.25, dict(event)))
    flags.track("looked", another, TrackingEventDetails(1.0, dict(event)))
    shown = client.send("GET", f"/v1/experiments/{bandit.id}")
    assert (shown["decided"], shown["observed"]) == (2, 2)
    assert caplog.records == []
    flags.track("bought", request, TrackingEventDetails(0.123456))  # a repeat: the first stands
    assert caplog.records == []
    flags.track("reward", another, TrackingEventDetails(1.0))  # of which event?
    flags.track("reward", request)
    assert ["not counted" in record.getMessage() for record in caplog.records] == [True] * 2
    assert not any(trace in caplog.text for trace in ("654321", "123456"))
    api.shutdown()


def test_the_demonstration_is_played_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    service, before = Process(tmp_path), 0
    for _ in range(2):
        service.start("--demo")
        try:
            end, seen = time.monotonic() + 60, 0
            headers = {"Authorization": f"Bearer {service.key}"}
            while seen < before + 5:
                assert time.monotonic() < end, "nobody plays"
                time.sleep(0.1)
                shown = httpx.get(f"{service.url}/v1/experiments", headers=headers).json()
                seen = shown[0]["observed"] if shown else 0
            assert [one["name"] for one in shown] == ["demonstration"]
            before = seen
        finally:
            service.stop()


def test_it_ends_well_when_told_to(tmp_path: Path) -> None:
    with copied(tmp_path) as here:
        with bd.Client(here.url, here.key) as client:
            bandit = client.create("test", ["a", "b"], 0.2)
            bandit.decide()
        with httpx.Client(headers={"Authorization": f"Bearer {here.key}"}) as http:
            live = f"{here.url}/v1/experiments/{bandit.id}/live"
            with http.stream("GET", live) as stream:
                assert next(stream.iter_lines()).startswith("data:")
                assert here.stop() in (0, -signal.SIGTERM)
        assert not (tmp_path / "service.db-wal").exists() or not (
            (tmp_path / "service.db-wal").stat().st_size
        )


def test_an_async_program_asks_the_service(running: Process) -> None:
    import asyncio

    async def program() -> None:
        async with bd.AsyncClient(running.url, running.key, patience=20) as client:
            bandit = await client.create("async", ["a", "b"], 0.2, rounds=1000)
            first, second = await asyncio.gather(bandit.decide(), bandit.decide())
            assert {first.arm, second.arm} <= {"a", "b"}
            await bandit.observe(first, reward=1.0)
            await bandit.give_up(second)
            with pytest.raises(bd.DecisionError):
                await bandit.observe(second, reward=1.0)
            with pytest.raises(bd.InputError, match="one of them"):
                await bandit.observe(second)
            promise = await bandit.guarantee()
            assert isinstance(promise, bd.Guarantee)
            assert promise.epsilon == (await bandit.certificate())["epsilon"] == 0.2
            shown = await bandit.show()
            assert (shown["decided"], shown["observed"]) == (2, 1)
            assert (await bandit.results())["what"] == "arm"
            await bandit.stop()
            with pytest.raises(bd.DecisionError, match="stopped"):
                await bandit.decide()
        async with bd.AsyncClient("http://127.0.0.1:9", "none", patience=0.1) as nowhere:
            with pytest.raises(ServiceError, match="did not answer"):
                await nowhere.experiment("none").decide()

    asyncio.run(program())


def test_a_local_experiment_decides_through_the_client(client: bd.Client) -> None:
    bandit = client.create(
        *("local", ["a", "b"], 1.0), rounds=1000, privacy="local", deadline_seconds=60
    )
    decision = bandit.decide()
    assert decision.arm in ("a", "b")
    assert decision.release is not None
    assert decision.signature
    with pytest.raises(bd.InputError):
        bandit.observe(decision, loss=0.5)
    bandit.give_up(decision)
    assert bandit.released == 1


def test_giving_up_is_no_feedback(client: bd.Client) -> None:
    bandit = client.create("given up", ["a", "b"], 1.0, rounds=1000, default_loss=0.25)
    decision, other = bandit.decide(), bandit.decide()
    bandit.give_up(decision)
    bandit.give_up(decision)
    bandit.observe(other, loss=0.5)
    bandit.give_up(other.event_id)
    assert bandit.show()["observed"] == 1


def test_the_client_is_a_package_of_its_own(running: Process, tmp_path: Path) -> None:
    """Under its other name it works with the standard library and httpx alone."""
    import shutil

    import bandanna._client

    here = Path(bandanna._client.__file__).parent
    shutil.copytree(
        here, tmp_path / "bandanna_client", ignore=shutil.ignore_patterns("__pycache__")
    )
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
sys.modules.update(dict.fromkeys(("bandanna", "numpy", "numba", "scipy", "opendp")))
from bandanna_client import Client, DecisionError, InputError
with Client({running.url!r}, {running.key!r}) as client:
    bandit = client.create("own", ["a", "b"], 0.2, rounds=1000)
    decision = bandit.decide()
    bandit.observe(decision, loss=0.5)
    assert bandit.guarantee.epsilon == 0.2 and bandit.decided == 1
    try:
        bandit.observe(decision, loss=7.0)
    except InputError as error:
        assert isinstance(error, ValueError)
    else:
        raise AssertionError
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_package_has_the_librarys_version() -> None:
    import tomllib

    root = Path(__file__).parents[2]
    own = tomllib.loads((root / "clients/python/pyproject.toml").read_text("utf-8"))["project"]
    library = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert own["version"] == bd.__version__
    assert own["requires-python"] == library["requires-python"]
    assert own["dependencies"] == library["optional-dependencies"]["client"]

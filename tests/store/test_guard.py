"""Restored and copied databases: the claimed epsilon is at least what was spent."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from bandanna._core.types import InputError
from bandanna.store import KeyRow, SqlStore, StoreUnavailableError, read_secret
from bandanna.store.guard import Guard, RestoredError, default_guard
from tests.postgres import Postgres, needs_postgres
from tests.service.running import Here, service_here


class Branches:
    """One experiment whose copies go on apart; counts how often a person's feedback left it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spent, self.steps = folder, 0, 0
        with self.running() as here:
            self.experiment = here.create(name="button", epsilon=0.2, algorithm="adaptive")
            here.decide(self.experiment, event_id="person")
            assert here.reward("person", loss=1.0) == 204
            self.batch = here.http.get(f"/v1/experiments/{self.experiment}/results").json()["batch"]
            assert self.batch > 1
        self.keep("copy")

    @contextmanager
    def running(self, **settings: Any) -> Iterator[Here]:
        with service_here(self.folder, **settings) as here:
            yield here

    def keep(self, name: str) -> None:
        """Copy the database as an operator would: with the service stopped."""
        shutil.copy(self.folder / "here.db", self.folder / name)

    def restore(self, name: str, *, to: Path | None = None) -> None:
        to = to or self.folder
        for path in to.glob("here.db*"):
            if path.suffix not in (".secret", ".signing"):
                path.unlink()
        shutil.copy(self.folder / name, to / "here.db")

    def release(self, here: Here) -> None:
        """Fill the person's batch, so that it is released."""
        path = f"/v1/experiments/{self.experiment}"
        before = here.http.get(path).json()["released"]
        while here.http.get(path).json()["released"] == before:
            self.steps += 1
            here.decide(self.experiment, event_id=f"{self.steps}")
            assert here.reward(f"{self.steps}", loss=0.0) == 204
        rows = here.http.get(f"{path}/export").json()
        assert rows[0]["batch"] == 0, "the person's batch is the first"
        self.spent += len(rows) == 1

    def claimed(self, here: Here) -> float:
        """Return how often the guarantee allows for a release of the same feedback."""
        found = here.http.get(f"/v1/experiments/{self.experiment}/privacy").json()
        return float(found["guarantee"]["epsilon"]) / 0.2


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody vouches for a copy in these tests: do not wait for long."""
    monkeypatch.setattr("bandanna.store.guard.VOUCH_SECONDS", 0.3)
    monkeypatch.setattr("bandanna.service.views.BURST", 1e9)  # reads are never put off


@pytest.fixture
def branches(tmp_path: Path) -> Branches:
    return Branches(tmp_path)


@pytest.mark.slow
def test_the_same_copy_restored_four_times_is_charged_four_times(branches: Branches) -> None:
    with branches.running() as here:
        branches.release(here)
        assert branches.claimed(here) == pytest.approx(1)
    for times in range(1, 5):
        branches.restore("copy")
        with pytest.raises(RestoredError, match="older"), branches.running():
            pass
        with branches.running(accept_restored=True) as here:
            branches.release(here)
            assert branches.spent == times + 1
            assert branches.claimed(here) == pytest.approx(times + 1)
        with branches.running() as here:
            assert branches.claimed(here) == pytest.approx(times + 1), "also later"


def test_a_copy_with_a_guard_of_its_own_is_refused_and_charged(branches: Branches) -> None:
    with branches.running() as here:
        branches.release(here)
    branches.restore("copy")
    other = {"guard": branches.folder / "another guard", "accept_restored": False}
    with pytest.raises(RestoredError, match="never seen it"), branches.running(**other):
        pass
    with branches.running(**other | {"accept_restored": True}) as here:
        branches.release(here)
        assert branches.claimed(here) == pytest.approx(2) == pytest.approx(branches.spent)
    with pytest.raises(RestoredError, match="older than the rollback guard"), branches.running():
        pass  # the first guard sees that the database went on without it
    with branches.running(accept_restored=True) as here:
        assert branches.claimed(here) >= branches.spent


def test_a_copied_folder_is_noticed(branches: Branches, tmp_path_factory: Any) -> None:
    """The guard was copied with the database: its inode differs."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for path in branches.folder.iterdir():
        shutil.copy(path, elsewhere / path.name)
    with branches.running() as here:
        branches.release(here)
        assert branches.claimed(here) == pytest.approx(1)
    branches.folder = elsewhere
    with pytest.raises(RestoredError, match="was copied"), branches.running():
        pass
    with branches.running(accept_restored=True) as here:
        branches.release(here)
        assert branches.claimed(here) == pytest.approx(2) == pytest.approx(branches.spent)


def test_copied_folders_that_share_a_guard_cannot_both_go_on(
    branches: Branches, tmp_path_factory: Any
) -> None:
    """By default the guard is kept apart from the database: a copied folder finds the same one."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    guard = branches.folder / "guard"
    for name in ("here.db", "here.db.secret", "here.db.signing"):
        shutil.copy(branches.folder / name, elsewhere / name)
    with branches.running() as first:
        branches.release(first)
        other = Branches.__new__(Branches)
        other.__dict__ |= branches.__dict__ | {"folder": elsewhere, "spent": 0}
        with pytest.raises(RestoredError), other.running(guard=guard):
            pass
        with other.running(guard=guard, accept_restored=True) as second:
            other.release(second)
            assert other.claimed(second) == pytest.approx(2)
            body = {"event_id": "more"}
            path = f"/v1/experiments/{branches.experiment}/decisions"
            for _ in range(100):
                answer = first.http.post(path, json=body)
                if answer.status_code == 503:
                    break
                time.sleep(0.1)
            assert answer.status_code == 503, "the first does not go on"
            assert "another copy" in answer.json()["detail"]


def test_a_new_machine_is_charged_and_told_what_cannot_be_known(
    branches: Branches, tmp_path_factory: Any
) -> None:
    """Only the copy and the secret survive."""
    with branches.running() as here:
        branches.release(here)
    machine = tmp_path_factory.mktemp("machine")
    branches.restore("copy", to=machine)
    shutil.copy(branches.folder / "here.db.secret", machine / "here.db.secret")
    branches.folder = machine
    with pytest.raises(RestoredError, match="it may be a copy"), branches.running():
        pass
    with branches.running(accept_restored=True) as here:
        branches.release(here)
        assert branches.claimed(here) == pytest.approx(2) == pytest.approx(branches.spent)
        shown = here.http.get(f"/v1/experiments/{branches.experiment}/privacy").json()
        assert shown["copies"]["resumed"] == 1
        assert "another guard" in shown["copies"]["not_known"]
        assert shown["certificate"]["epsilon"] == shown["guarantee"]["epsilon"]
        metrics = here.http.get("/metrics").text
        assert f'bandanna_resumed{{experiment="{branches.experiment}"}} 1.0' in metrics


def test_a_guard_that_is_older_than_the_database_is_noticed(branches: Branches) -> None:
    guard = branches.folder / "guard"
    content = guard.read_bytes()
    with branches.running() as here:
        branches.release(here)
    for path in branches.folder.glob("guard-*"):
        path.unlink()
    guard.write_bytes(content)  # the same inode
    with pytest.raises(RestoredError, match="is older than the database"), branches.running():
        pass


def test_accepting_always_charges_and_restarts_do_not(branches: Branches) -> None:
    for _ in range(3):
        with branches.running() as here:
            assert branches.claimed(here) == pytest.approx(1)
    with branches.running(accept_restored=True) as here:
        assert here.core.charged == [branches.experiment]
        assert branches.claimed(here) == pytest.approx(2)
        new = here.create(name="new", epsilon=0.2)
        assert here.core.store.experiments(new)[0].resumed == 0, "it was never in a copy"
        assert here.http.post(f"/v1/experiments/{new}/stop").status_code == 204
    with branches.running(accept_restored=True) as here:
        assert here.core.charged == [branches.experiment], "the other can release nothing"
        assert branches.claimed(here) == pytest.approx(3)


def test_a_charge_is_forced_while_the_service_runs_and_survives_a_restore(
    branches: Branches,
) -> None:
    with branches.running() as here:
        assert branches.claimed(here) == pytest.approx(1)
        store = SqlStore(here.settings.database, here.core.secret)
        guard = Guard(branches.folder / "guard", store)
        guard.charge([one.number for one in store.listed()])
        guard.close()
        store.close()
        assert branches.claimed(here) == pytest.approx(2)
        branches.release(here)
        assert branches.claimed(here) == pytest.approx(2)
    branches.restore("copy")
    with branches.running(accept_restored=True) as here:
        assert branches.claimed(here) == pytest.approx(3)


def test_revoked_keys_stay_revoked_in_an_older_copy(branches: Branches) -> None:
    with branches.running() as here:
        key = here.key("read")
    branches.keep("with key")
    with branches.running() as here:
        assert here.core.store.revoke_key(key.split("_")[1], 1.0)
        time.sleep(2.2)  # until the ring looks again
        assert here.http.get("/v1/experiments", headers=bearer(key)).status_code == 401
    branches.restore("with key")
    with branches.running(accept_restored=True) as here:
        assert here.http.get("/v1/experiments", headers=bearer(key)).status_code == 401


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_a_guard_without_room_is_answered_503_and_nothing_is_doubled(branches: Branches) -> None:
    with branches.running() as here:
        guard = here.core.guard
        assert guard is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "commit", _full)
            branches.release(here)  # the database has committed: answered as such
            assert branches.spent == 1
            assert guard._missed
            patch.setattr(guard._engine, "connect", _full)
            statuses = set()
            for k in range(50):
                here.decide(branches.experiment, event_id=f"full-{k}")
                statuses.add(here.reward(f"full-{k}", loss=0.5))
            assert statuses == {204, 503}
        branches.release(here)
        assert not guard._missed
        shown = here.http.get(f"/v1/experiments/{branches.experiment}").json()
    with branches.running() as here:
        assert here.http.get(f"/v1/experiments/{branches.experiment}").json() == shown


def _full(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_without_a_guard_the_guarantee_says_so(tmp_path: Path) -> None:
    with service_here(tmp_path, guarded=False) as here:
        experiment = here.create()
        shown = here.http.get(f"/v1/experiments/{experiment}/privacy").json()
        assert any("rollback guard" in one for one in shown["guarantee"]["assumptions"])
        assert shown["copies"]["guard"] is None
    wrong = {"guarded": False, "accept_restored": True}
    with pytest.raises(InputError, match="no-guard"), service_here(tmp_path, **wrong):
        pass


def test_the_default_guard_is_apart_from_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "data").mkdir()
    for _ in range(2):
        with service_here(tmp_path / "data", guard=None) as here:
            assert here.core.guard is not None
            path = default_guard(here.core.store.identity)
            assert path.is_relative_to(tmp_path / "state")
            assert path.stat().st_mode & 0o077 == 0
            assert here.core.guard.address == str(path)


@needs_postgres
def test_a_second_process_is_vouched_for_and_a_copy_is_not(
    tmp_path: Path, postgres: Postgres
) -> None:
    """Each machine has a guard of its own; the second joins while the first one runs."""
    address = postgres.new_database()
    with service_here(tmp_path, database=address, guard=tmp_path / "one") as here:
        experiment = here.create(epsilon=0.2)
        here.decide(experiment, event_id="one")
        secret = read_secret(here.settings.secret)
        store = SqlStore(address, secret)
        second = Guard(tmp_path / "two", store)
        assert second.begin(patience=10.0) == set()
        second.close()
    third = Guard(tmp_path / "three", store)
    with pytest.raises(RestoredError, match="never seen it"):
        third.begin(patience=0.3)
    assert third.begin(accept=True)
    assert store.experiments(experiment)[0].resumed == 1
    third.close()
    store.close()


@needs_postgres
def test_the_guard_may_be_another_database(tmp_path: Path, postgres: Postgres) -> None:
    guard = postgres.new_database()
    branches = Branches.__new__(Branches)
    branches.running = lambda **more: service_here(  # type: ignore[method-assign]
        tmp_path, **{"guard": guard} | more
    )
    branches.__init__(tmp_path)  # type: ignore[misc]
    with branches.running() as here:
        branches.release(here)
    branches.restore("copy")
    with pytest.raises(RestoredError), branches.running():
        pass
    for times in (2, 3):
        branches.restore("copy")
        with branches.running(accept_restored=True) as here:
            branches.release(here)
            assert branches.claimed(here) == pytest.approx(times) == pytest.approx(branches.spent)


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    secret = read_secret(tmp_path / "secret")
    stores = [SqlStore(f"sqlite:///{tmp_path}/store.db", secret) for _ in range(4)]
    errors: list[Exception] = []

    def start(store: SqlStore) -> None:
        try:
            guard = Guard(tmp_path / "guard", store)
            guard.begin()
            guard.watch()
            guard.close()
        except (RestoredError, StoreUnavailableError) as error:
            errors.append(error)

    for _ in range(3):
        threads = [threading.Thread(target=start, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    for store in stores:
        store.close()


@pytest.mark.parametrize("known", [False, True])
def test_a_start_in_the_middle_of_another_is_no_sign_of_a_copy(
    tmp_path: Path, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has looked at the guard, and another starts before it looks at the database."""
    secret = read_secret(tmp_path / "secret")
    one, two = (SqlStore(f"sqlite:///{tmp_path}/store.db", secret) for _ in range(2))
    first, second = (Guard(tmp_path / "guard", store) for store in (one, two))
    if known:
        first.begin()
    look = SqlStore.last_start

    def meanwhile(store: SqlStore, guard: str | None = None) -> Any:
        monkeypatch.setattr(SqlStore, "last_start", look)
        second.begin()
        return store.last_start(guard)

    monkeypatch.setattr(SqlStore, "last_start", meanwhile)
    assert first.begin() == set()
    for opened in (first, second, one, two):
        opened.close()


def test_a_first_start_that_was_killed_is_no_use_of_a_database(tmp_path: Path) -> None:
    """Nothing is decided before a start is confirmed."""
    store = SqlStore(f"sqlite:///{tmp_path}/store.db", read_secret(tmp_path / "secret"))
    store.add_start("step", "guard", 1.0)
    guard = Guard(tmp_path / "guard", store)
    assert guard.begin(patience=0.0) == set()
    guard.close()
    store.close()


def test_a_start_waits_for_the_guard_and_the_database_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes holds the database and waits for the guard: the other way round is a knot."""
    store = SqlStore(f"sqlite:///{tmp_path}/store.db", read_secret(tmp_path / "secret"))
    guard = Guard(tmp_path / "guard", store)
    guard.begin()
    guard.remember_revoked(["key"])
    store.add_key(KeyRow("key", "a key", b"0" * 32, ("read",), None, 1.0))
    revoke = SqlStore.revoke_key

    def with_a_free_guard(store: SqlStore, identity: str, at: float) -> bool:
        with sqlite3.connect(tmp_path / "guard", timeout=0.0) as connection:
            connection.execute("BEGIN IMMEDIATE")
        connection.close()
        return revoke(store, identity, at)

    monkeypatch.setattr(SqlStore, "revoke_key", with_a_free_guard)
    guard.begin()
    assert store.all_keys()[0].revoked_at is not None
    guard.close()
    store.close()

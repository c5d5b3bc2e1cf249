"""What is particular to databases: files, traces, copies, trouble."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

import bandanna as bd
from bandanna._core.types import StateFileError
from bandanna.service.keys import make_first_key
from bandanna.store import Secret, SqlStore, StoreUnavailableError, migrations, read_secret
from bandanna.store.database import metadata
from bandanna.store.migrations import NEWEST
from bandanna.store.postgres_transaction import PostgresTransaction
from bandanna.store.secret import private_text
from bandanna.store.writer import Task
from tests.postgres import Postgres, needs_postgres
from tests.store.stores import experiment, put
from tests.store.test_writer import Office

SECRET = Secret.new()


def open_file(folder: Path, name: str = "store.db") -> SqlStore:
    return SqlStore(f"sqlite:///{folder / name}", SECRET)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = open_file(tmp_path)
    yield opened
    opened.close()


def work(store: SqlStore, rounds: int, batch: int = 50) -> Office:
    here = Office(store, put(store, experiment(bd.PrivateBandit(2, 1.0, batch=batch))))
    for k in range(rounds):
        here.decide(f"{here.number}-{k}")
    for k in range(rounds):
        here.reward(f"{here.number}-{k}", 0.625)
    return here


def test_files_are_private_and_settings_are_as_promised(store: SqlStore, tmp_path: Path) -> None:
    work(store, 3)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    with store._writing.connect() as connection:
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("secure_delete", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
    (tmp_path / "store.db").chmod(0o640)
    with pytest.raises(bd.InputError, match="chmod 600"):
        open_file(tmp_path)


def test_migrations_make_the_tables_that_are_used(store: SqlStore) -> None:
    with store._reading.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def sealed(path: Path) -> list[bytes]:
    """Return all feedback in a database, encrypted as it is."""
    with sqlite3.connect(path) as connection:
        return [row[0] for row in connection.execute("SELECT private FROM feedback")]


def test_nothing_of_a_loss_is_left_when_its_batch_has_closed(tmp_path: Path) -> None:
    """Even its ciphertext is gone from free pages and log: with the secret it could be read."""
    store = open_file(tmp_path)
    number = put(store, experiment(bd.PrivateBandit(2, 1.0, batch=200)))
    here = Office(store, number)
    for k in range(200):
        here.decide(f"{k}")
    for k in range(199):
        here.reward(f"{k}", 0.625)
    traces = sealed(tmp_path / "store.db")
    assert len(traces) == 199
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert sum(trace in content for trace in traces) == 199, "the search finds what is there"
    assert b"655360" not in content, "encrypted: 0.625 in grid units is 655360"
    here.reward("199", 0.625)
    store.tidy()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(trace in content for trace in traces)


def test_a_reader_in_the_way_is_told_and_the_log_is_emptied_afterwards(tmp_path: Path) -> None:
    store = open_file(tmp_path)
    log = tmp_path / "store.db-wal"
    with sqlite3.connect(tmp_path / "store.db") as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM experiments").fetchall()
        put(store, experiment())
        assert not store.tidy()
        assert log.stat().st_size > 0
    assert store.tidy()
    assert log.stat().st_size == 0


def test_feedback_cannot_be_moved_or_read_with_another_secret(
    store: SqlStore, tmp_path: Path
) -> None:
    here = work(store, 2)
    here.writer.close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE feedback SET position = 1 - position + 10")
        connection.execute("UPDATE feedback SET position = position - 10")
    here.writer = type(here.writer)(store)
    with pytest.raises(StateFileError, match="changed"):
        here.decide("more")
    with pytest.raises(StateFileError, match="another secret"):
        SqlStore(f"sqlite:///{tmp_path}/store.db", Secret.new())


def test_a_backup_is_whole_and_knows_that_it_is_one(store: SqlStore, tmp_path: Path) -> None:
    here = work(store, 60)
    store.backup(tmp_path / "copy.db")
    copy = open_file(tmp_path, "copy.db")
    assert (copy.copied, store.copied) == (True, False)
    assert copy.releases(here.number) == store.releases(here.number)
    copy.adopt()
    copy.close()
    assert not open_file(tmp_path, "copy.db").copied
    with pytest.raises(bd.InputError, match="overwrites nothing"):
        store.backup(tmp_path / "copy.db")


def test_a_full_disk_is_named_and_nothing_is_lost(store: SqlStore, tmp_path: Path) -> None:
    here = work(store, 30)
    with store._writing.connect() as connection:  # the pool hands out this connection again
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    before = here.look(bd.Policy.to_dict)
    with pytest.raises(StoreUnavailableError):
        [here.decide(f"more-{k}") for k in range(1000)]
    assert here.look(lambda policy: policy.released) == before["counters"]["released"]
    with store._writing.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 100000")
    here.decide("again")
    for k in range(30):
        here.reward(f"{here.number}-{k}", 0.625)


@needs_postgres
def test_a_server_that_is_gone_is_named_and_comes_back(postgres: Postgres) -> None:
    store = SqlStore(postgres.new_database(), SECRET)
    here = work(store, 30, batch=20)
    released = store.releases(here.number)
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                here.reward(f"{here.number}-25", 0.625)
        with pytest.raises(StoreUnavailableError):
            store.check()
    finally:
        postgres.start()
    here.reward(f"{here.number}-25", 0.625)
    assert store.releases(here.number) == released
    store.close()


@needs_postgres
def test_a_server_is_waited_for_twice_to_decide_and_five_times_to_release(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqlStore(postgres.new_database(), SECRET)
    here = Office(store, put(store, experiment(bd.PrivateBandit(2, 1.0, batch=2))))
    decided = [here.decide(f"{k}") for k in range(2)]
    waits, alone = [0], []
    together, execute = PostgresTransaction._together, Connection.execute

    def counting(transaction: PostgresTransaction) -> AbstractContextManager[None]:
        waits[0] += 1
        return together(transaction)

    def noting(connection: Connection, *values: Any) -> Any:
        alone.append(values)
        return execute(connection, *values)

    monkeypatch.setattr(PostgresTransaction, "_together", counting)
    monkeypatch.setattr(Connection, "execute", noting)

    def decide(name: str) -> Task[Any]:
        return Task(lambda unit, _: unit.decide(name), here.number)

    tasks = [decide(f"new-{k}") for k in range(9)]
    with here.store.transaction() as transaction:  # the writer waits until all have come
        transaction.lock([here.number])
        before = waits[0]
        asked = [here.writer.submit(task) for task in tasks]
        time.sleep(0.1)
    for one in asked:
        one.result(timeout=60)
    groups = here.writer.transactions - 2
    assert waits[0] - before - 1 <= 2 * groups, "once to lock, once to write and commit"
    assert groups <= 2
    here.reward(decided[0].id, 0.5)
    before = waits[0]
    here.reward(decided[1].id, 0.5)
    assert waits[0] - before <= 5, "where is the event, lock, look again, last release, commit"
    assert alone == [], "nothing else was asked in these transactions"
    assert len(store.releases(here.number)) == 1
    store.close()


@needs_postgres
def test_a_server_never_sees_a_loss(postgres: Postgres) -> None:
    store = SqlStore(postgres.new_database(), SECRET)
    here = Office(store, put(store, experiment(bd.PrivateBandit(2, 1.0, batch=5))))
    for k in range(12):
        here.decide(f"{here.number}-{k}")
        here.reward(f"{here.number}-{k}", 0.654321)
    store.close()
    content = b"".join(path.read_bytes() for path in postgres.files())
    assert f"{here.number}-11".encode() in content, "the search finds what is there"
    for trace in (b"654321", b"686105"):
        assert trace not in content


def test_the_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    first = read_secret(path)
    assert read_secret(path).fingerprint == first.fingerprint
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lengths = {len(first.seal(value, "x")) for value in (0, 7, 1048576)}
    assert len(lengths) == 1, "the length of what is sealed tells nothing"
    path.chmod(0o644)
    with pytest.raises(StateFileError, match="chmod"):
        read_secret(path)
    path.chmod(0o600)
    path.write_text("abc")
    with pytest.raises(StateFileError):
        read_secret(path)


def test_a_secret_that_several_processes_make_at_once_is_whole_and_one(tmp_path: Path) -> None:
    def slow() -> str:
        time.sleep(0.05)
        return secrets.token_hex(2000)

    with ThreadPoolExecutor(8) as pool:
        path = tmp_path / "secret"
        found = list(pool.map(lambda _: private_text(path, "secret", slow), range(8)))
    assert len(set(found)) == 1
    assert len(found[0]) == 4000
    assert [one.name for one in tmp_path.iterdir()] == ["secret"]


def first_keys(address: str) -> None:
    """Several processes start at once: one of them makes the first key."""
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: SqlStore(address, SECRET), range(4)))
        made = list(pool.map(lambda store: make_first_key(store, SECRET), stores))
    assert sum(text is not None for text in made) == 1
    assert len(stores[0].all_keys()) == 1
    for store in stores:
        store.close()


def test_one_of_several_processes_makes_the_first_key(tmp_path: Path) -> None:
    first_keys(f"sqlite:///{tmp_path / 'store.db'}")


@needs_postgres
def test_one_of_several_processes_makes_the_first_key_in_postgresql(postgres: Postgres) -> None:
    first_keys(postgres.new_database())


LATER = str(int(NEWEST) + 1)
NEXT = f"""
import sqlalchemy as sa
from alembic import op

revision = "{LATER}"
down_revision = "{NEWEST}"


def upgrade() -> None:
    op.add_column("events", sa.Column("shade", sa.String(10)))
"""


def make_newer(folder: Path, monkeypatch: pytest.MonkeyPatch, breaks: str = "1") -> None:
    """Make this a later version, with a change of the tables that only adds."""
    later = folder / "migrations"
    shutil.copytree(migrations.FOLDER, later)
    (later / "versions" / "next.py").write_text(NEXT)
    monkeypatch.setattr(migrations, "FOLDER", later)
    monkeypatch.setattr(migrations, "NEWEST", LATER)
    monkeypatch.setattr(migrations, "BREAKS", ("1", breaks))


def test_the_newest_tables_are_those_of_the_last_change() -> None:
    folder = ScriptDirectory(str(migrations.FOLDER))
    assert folder.get_current_head() == NEWEST
    assert int(migrations.BREAKS[-1]) <= int(NEWEST)


def check_upgrade(address: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version adds a column; what was there before stays, and the earlier one goes on."""
    before = SqlStore(address, SECRET)
    work(before, 3)
    names = [f"1-{k}" for k in range(3)]
    with monkeypatch.context() as later:
        make_newer(folder, later)
        after = SqlStore(address, SECRET)
        with after._reading.connect() as connection:
            assert "shade" in {one["name"] for one in inspect(connection).get_columns("events")}
        for store in (before, after):
            with store.transaction() as transaction:
                assert set(transaction.events(names)) == set(names)
        after.close()
    before.close()
    again = SqlStore(address, SECRET)  # the earlier version starts with the later tables
    with again.transaction() as transaction:
        assert set(transaction.events(names)) == set(names)
    again.close()


def test_a_later_version_adds_to_the_tables_beside_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_upgrade(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, monkeypatch)


@needs_postgres
def test_a_later_version_adds_to_the_tables_in_postgresql(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_upgrade(postgres.new_database(), tmp_path, monkeypatch)


def test_a_database_that_this_version_cannot_use_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        make_newer(tmp_path, later, breaks=LATER)
        open_file(tmp_path).close()
    with pytest.raises(StateFileError, match=rf"newer version .* have version {LATER}"):
        open_file(tmp_path)


def note_together(address: str) -> None:
    """Several processes start at once and tell devices the same, then something else."""
    stores = [SqlStore(address, SECRET) for _ in range(4)]
    for key in ("first", "second", "first"):
        with ThreadPoolExecutor() as pool:
            list(
                pool.map(
                    lambda one, key=key: one.record_device_parameters(
                        "exp_1", {"key_id": key}, "now"
                    ),
                    stores,
                )
            )
    assert [line["key_id"] for line in stores[0].device_parameter_history("exp_1")] == [
        "first",
        "second",
        "first",
    ]
    assert stores[0].device_parameter_history("exp_2") == []
    for one in stores:
        one.close()


def test_what_devices_are_told_is_noted_once_for_each_change(tmp_path: Path) -> None:
    note_together(f"sqlite:///{tmp_path / 'store.db'}")


@needs_postgres
def test_processes_that_start_together_note_what_devices_are_told_once(postgres: Postgres) -> None:
    note_together(postgres.new_database())


def test_whoever_opens_a_new_database_waits_for_another_that_makes_it(tmp_path: Path) -> None:
    """SQLite itself refuses at once where two processes change to the write-ahead log together."""
    path = tmp_path / "store.db"
    maker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    path.chmod(0o600)
    maker.execute("CREATE TABLE other (x)")
    maker.execute("BEGIN IMMEDIATE")
    ready = threading.Timer(0.3, maker.execute, ("COMMIT",))
    ready.start()
    SqlStore(f"sqlite:///{path}", SECRET).close()
    ready.join()
    maker.close()


def test_a_database_that_is_opened_twice_keeps_its_log(tmp_path: Path) -> None:
    """Whoever closes a file gives up the locks of the whole process, by the rules of POSIX."""
    path = tmp_path / "store.db"
    first = SqlStore(f"sqlite:///{path}", SECRET)
    first.add_start("one", "guard", 1.0)
    second = SqlStore(f"sqlite:///{path}", SECRET)
    log = (tmp_path / "store.db-wal").stat().st_ino
    other = f"import sqlite3; c = sqlite3.connect({str(path)!r}); c.execute('SELECT * FROM facts')"
    subprocess.run([sys.executable, "-c", f"{other}.close(); c.close()"], check=True)
    assert (tmp_path / "store.db-wal").stat().st_ino == log
    first.close()
    second.close()

"""Two versions side by side: processes are upgraded one after the other, without an error."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import bandanna as bd
from bandanna.store import SqlStore, read_secret
from bandanna.store.migrations import NEWEST
from tests.postgres import Postgres, needs_postgres
from tests.service.running import Process

LATER = str(int(NEWEST) + 1)
STEP = f'''
import sqlalchemy as sa
from alembic import op

revision = "{LATER}"
down_revision = "{NEWEST}"


def upgrade() -> None:
    op.add_column("events", sa.Column("shade", sa.String(10)))
'''
CHANGES = (
    (
        "store/database.py",
        '    Column("visitor", String(32)),\n',
        '    Column("shade", String(10)),\n',
    ),
    ("store/rows.py", "    visitor: str | None = None\n", '    shade: str | None = "blue"\n'),
)
"""What the later version does with the column: it writes to it, with every decision."""


def make_later(folder: Path) -> Path:
    """Write a later version of the program, with one more column; returns where it is."""
    package = folder / "later" / "bandanna"
    shutil.copytree(Path(bd.__file__).parent, package)
    migrations = package / "store" / "migrations"
    (migrations / "versions" / "later.py").write_text(STEP)
    first = migrations / "__init__.py"
    text = first.read_text().replace(f'NEWEST = "{NEWEST}"', f'NEWEST = "{LATER}"')
    first.write_text(text)
    for name, after, more in CHANGES:
        text = (package / name).read_text()
        assert text.count(after) == 1
        (package / name).write_text(text.replace(after, after + more))
    return package.parent


@contextmanager
def programs(urls: list[str], key: str, experiment: str) -> Iterator[Callable[[], int]]:
    """Let programs decide and reward; what they are answered is good, or "ask the other one".

    Gives what tells how many have been rewarded.
    """
    over, answers, errors = threading.Event(), Counter[int](), list[BaseException]()
    counts = [0, 0]

    def note(answer: httpx.Response) -> None:
        answers[answer.status_code] += 1
        if answer.status_code >= 500:
            assert answer.status_code == 503
            assert answer.headers["Retry-After"] == "1"

    def work(who: int) -> None:
        try:
            with bd.Client(urls, key) as client:
                client._http.event_hooks = {"response": [note]}
                bandit = client.experiment(experiment)
                while not over.is_set():
                    bandit.observe(bandit.decide(), reward=1.0)
                    counts[who] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: sum(counts)
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=60)
    assert not errors, errors
    assert answers.keys() <= {200, 204, 503}, answers


def go_on(rewarded: Callable[[], int], rounds: int = 50) -> None:
    """Wait until programs have got further."""
    enough, end = rewarded() + rounds, time.monotonic() + 60
    while rewarded() < enough:
        assert time.monotonic() < end, "nothing is decided"
        time.sleep(0.01)


def leads(service: Process) -> bool:
    checks = httpx.get(f"{service.url}/readyz", timeout=30).json()["checks"]
    return bool(checks["lead"] == "ok")


def upgrade(folder: Path, database: str | None = None) -> None:
    """Upgrade one process, then the other; then go back to the earlier version, for good."""
    later = make_later(folder)
    services = [Process(folder, database) for _ in range(2)]
    try:
        for service in services:
            service.start()
        first, second = services
        urls = [one.url for one in services]
        with bd.Client(urls, first.key) as client:
            made = client.create("button", ["a", "b"], 1.0, rounds=100_000).id
        with programs(urls, first.key, made) as rewarded:
            go_on(rewarded)
            for service, other, source in (
                (second, first, later),  # the earlier one leads
                (first, second, later),
                (second, first, None),  # the later one leads, on tables that it has changed
                (first, second, None),
            ):
                service.stop()
                service.source = source
                service.start()
                go_on(rewarded)
                assert leads(other)
        with bd.Client(urls, first.key) as client:
            shown = client.experiment(made).show()
        assert shown["decided"] == shown["observed"] == rewarded()
    finally:
        for service in services:
            service.stop()
    address = database or f"sqlite:///{folder / 'service.db'}"
    store = SqlStore(address, read_secret(folder / "secret"))
    with store._reading.connect() as connection:
        rows = connection.exec_driver_sql("SELECT shade, count(*) FROM events GROUP BY shade")
        shades = dict(map(tuple, rows))
    store.close()
    assert shades.keys() == {None, "blue"}
    assert sum(shades.values()) == rewarded()


@pytest.mark.soak
def test_two_versions_side_by_side_answer_without_an_error(tmp_path: Path) -> None:
    upgrade(tmp_path)


@needs_postgres
@pytest.mark.slow
def test_two_versions_side_by_side_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    upgrade(tmp_path, postgres.new_database())

"""Killed under load, again and again: nothing acknowledged is lost, nothing is released twice.

``BANDANNA_KILLS`` is the number of kills on SQLite; on PostgreSQL it is half of that.
"""

from __future__ import annotations

import os
import random
import re
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import func, select

from bandanna.store import SqlStore, read_secret
from bandanna.store.database import EVENTS, RELEASES
from tests.postgres import Postgres, needs_postgres
from tests.service.load import TRACES, Load, loss_of
from tests.service.running import Process, copied

KILLS = int(os.environ.get("BANDANNA_KILLS", "3"))


def kill_again_and_again(load: Load, victims: list[Process], kills: int) -> None:
    """Kill and start services at random moments; what was released before stays as it was."""
    dice = random.Random(7)
    for _ in range(kills):
        load.wait_for(dice.randint(5, 40))
        before = [load.exported(bandit) for bandit in (load.quiet, load.open)]
        time.sleep(dice.uniform(0.0, 0.1))
        victim = dice.choice(victims)
        victim.kill()
        victim.start()
        after = [load.exported(bandit) for bandit in (load.quiet, load.open)]
        for earlier, later in zip(before, after, strict=True):
            assert earlier.items() <= later.items(), "the same values before and after"
    load.finish()


def check(load: Load, store: SqlStore) -> None:
    """Compare what programs were told with what the store holds."""
    decided = sorted(load.decided.items())
    for event, (identity, told) in random.Random(1).sample(decided, min(50, len(decided))):
        assert load.client.experiment(identity).decide(event_id=event) == told
    for bandit in (load.quiet, load.open):
        (found,) = store.experiments(bandit.id)
        sent = load.rewarded[bandit.id]
        assert found.observed == len(sent), "every reward exactly once"
        counters = found.head["counters"]
        here = EVENTS.c.experiment == found.number
        locations = select(EVENTS.c.batch, EVENTS.c.position).where(here)
        rows = [tuple(row) for row in store._rows(locations)]
        assert len(set(rows)) == len(rows) == counters["rounds"], "no identity twice"
        assert len(rows) >= len(sent)
        count = select(func.count()).where(RELEASES.c.experiment == found.number)
        assert store._rows(count)[0][0] == counters["released"] == len(load.exported(bandit))
    (shown,) = store.experiments(load.open.id)
    where = select(EVENTS.c.batch, EVENTS.c.id).where(EVENTS.c.experiment == shown.number)
    by_batch = {row.batch: row.id for row in store._rows(where)}
    released = load.exported(load.open)
    assert set(released) == {k for k, event in by_batch.items() if event in sent}
    for batch, value in released.items():  # beyond 0.35 with probability exp(-35)
        assert abs(value - loss_of(by_batch[batch])) < 0.35, "its own loss, and no other"


def traces(files: list[Path]) -> list[tuple[Path, bytes]]:
    """Look for planted losses, by themselves: six digits inside a longer number or word, such as
    a time or an identity in a database's log, are there by chance.
    """
    contents = ((path, path.read_bytes()) for path in files if path.is_file())
    return [
        (path, trace)
        for path, content in contents
        for trace in TRACES
        if trace in content and re.search(rb"(?<![0-9A-Za-z])%b(?![0-9A-Za-z])" % trace, content)
    ]


@pytest.mark.slow
def test_killed_on_sqlite(tmp_path: Path) -> None:
    with copied(tmp_path) as service, closing(Load([service], threads=4)) as load:
        kill_again_and_again(load, [service], KILLS)
        store = SqlStore(f"sqlite:///{tmp_path}/service.db", read_secret(tmp_path / "secret"))
        check(load, store)
        store.close()
        assert traces(list(tmp_path.iterdir())) == []
        paths = [f"{service.url}{path}" for path in ("/metrics", "/v1/experiments")]
        pages = [load.client._http.get(path).content for path in paths]
        assert not any(trace in page for trace in TRACES for page in pages)


@pytest.mark.slow
@needs_postgres
@pytest.mark.parametrize("processes", [1, 2])
def test_killed_on_postgresql(tmp_path: Path, postgres: Postgres, processes: int) -> None:
    """Of two processes one leads; whichever is killed at some time, nothing is lost."""
    database = postgres.new_database()
    with ExitStack() as stack:
        services = [stack.enter_context(copied(tmp_path, database)) for _ in range(processes)]
        load = stack.enter_context(closing(Load(services, threads=4)))
        kill_again_and_again(load, services, KILLS // 2)
        store = SqlStore(database, read_secret(tmp_path / "secret"))
        check(load, store)
        store.close()
        assert traces([*tmp_path.iterdir(), *postgres.files()]) == []

"""The stores there are, and experiments to put into them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bandanna as bd
from bandanna.store import Secret, SqlStore
from bandanna.store.rows import Changes, Event, EventState, Experiment
from tests.postgres import Postgres
from tests.store.memory import MemoryStore

KINDS = ("memory", "sqlite", "postgresql")


@contextmanager
def open_store(kind: str, folder: Path, server: Postgres | None) -> Iterator[SqlStore]:
    """Open an empty store of a kind."""
    store: SqlStore
    if kind == "memory":
        store = MemoryStore()
    elif kind == "sqlite":
        store = SqlStore(f"sqlite:///{folder}/store.db", Secret.new())
    else:
        assert server is not None
        store = SqlStore(server.new_database(), Secret.new())
    try:
        yield store
    finally:
        store.close()


def experiment(
    policy: bd.Policy | None = None, head: dict[str, Any] | None = None, **settings: Any
) -> Experiment:
    """Make an experiment around a policy, or around what is kept of one."""
    policy = policy or bd.PrivateBandit(["a", "b"], 0.5, batch=3)
    head = head or policy.to_dict(private=False)
    return Experiment(f"exp_{secrets.token_hex(4)}", "a test", settings, head, 1.5)


def put(store: SqlStore, made: Experiment) -> int:
    """Put an experiment without segments into a store; returns its number."""
    (number,) = store.create([made])
    return number


def event(name: str, number: int, batch: int = 0, position: int = 0, **other: Any) -> Event:
    """Make an event."""
    values: dict[str, Any] = {"arm": 1, "round": position, "chance": 0.5, "made_at": 2.5}
    values |= {"expires_at": None, "state": EventState.SHOWN} | other
    values = {"owner": number} | values
    return Event(id=name, experiment=number, batch=batch, position=position, **values)


def changes(**parts: Any) -> Changes:
    """Make changes."""
    values: dict[str, Any] = {"counters": {"resumed": 0}, "observed": 0} | parts
    return Changes(**values)

"""Experiments that are read whole: beside the writer, so that others need not wait.

Where persons have slots, and where contexts decide, all open batches are kept in memory: any of
them may be the one that someone comes back to. To read a million rounds takes many seconds.
Meanwhile what is asked of such an experiment waits, and what is asked of others does not.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from bandanna.store.rows import Experiment, Snapshot
from bandanna.store.sql import SqlStore
from bandanna.store.unit_of_work import UnitOfWork

T = TypeVar("T")


def needs_all(experiment: Experiment) -> bool:
    """Whether all open batches are kept in memory: where persons have slots, and with contexts."""
    head = experiment.head
    by_context = head.get("spec", {}).get("kind") == "PrivateContextual"
    return by_context or head.get("people") is not None


def unit_for(saved: Snapshot) -> UnitOfWork:
    """Return the unit that the policy of an experiment needs."""
    if "course" in saved.experiment.head:
        from bandanna.store.edge_unit import EdgeUnit  # loaded when first used

        return EdgeUnit(saved)
    return UnitOfWork(saved)


class Loading(Generic[T]):
    """What is being read, and the tasks that wait for it.

    Parameters
    ----------
    store
        Where it is read.
    done
        Called with an experiment's number in another thread, once it was read or could not be.
    """

    def __init__(self, store: SqlStore, done: Callable[[int], object]) -> None:
        self._store, self._done = store, done
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="bandanna loading")
        self._tasks: dict[int, list[T]] = {}
        self._read: dict[int, Future[UnitOfWork]] = {}
        self.waiting = 0
        """How many tasks wait."""

    def __contains__(self, number: int) -> bool:
        return number in self._tasks

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def add(self, number: int, tasks: list[T]) -> None:
        """Let tasks wait for an experiment, and read it unless that was begun."""
        begun = number in self._tasks
        self._tasks.setdefault(number, []).extend(tasks)
        self.waiting += len(tasks)
        if not begun:
            reading = self._readers.submit(lambda: unit_for(self._store.snapshot(number)))
            self._read[number] = reading
            reading.add_done_callback(lambda _: self._done(number))

    def take(self, number: int) -> tuple[list[T], UnitOfWork | Exception]:
        """Return the tasks that waited for an experiment, and what was read or why it was not."""
        tasks, reading = self._tasks.pop(number), self._read.pop(number)
        self.waiting -= len(tasks)
        try:
            return tasks, reading.result()
        except Exception as error:
            return tasks, error

    def close(self) -> None:
        """Let go of the thread."""
        self._readers.shutdown()

"""The writer: whatever arrives together is decided, counted and committed together.

One thread does all the work on policies. It takes everything that waits, applies it to the
policies in memory and writes it in one transaction; answers leave after that. If the transaction
fails, the policies are thrown away and read again from the store when next needed: noise that was
drawn and not committed is never used.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from bandanna._core.types import BandannaError
from bandanna.store.contract import (
    ConflictError,
    Mark,
    Stamp,
    StoreUnavailableError,
)
from bandanna.store.guard import Guard, name_of
from bandanna.store.loading import Loading, needs_all, unit_for
from bandanna.store.rows import Event
from bandanna.store.sql import SqlStore
from bandanna.store.sql_transaction import SqlTransaction
from bandanna.store.unit_of_work import UnitOfWork

MOST_TOGETHER = 1_000
MOST_OPEN = 2_000
"""Experiments whose policies are kept in memory: those that were used last."""


class UnknownError(BandannaError):
    """Something that does not exist. Nothing was changed."""


class OverloadedError(BandannaError):
    """More waits than can be done soon. Nothing was changed."""


LATER = object()
"""In place of an answer: the experiment is being read."""


class Together:
    """The answers of tasks that were handed in together, as one: what each returned or refused."""

    def __init__(self, count: int) -> None:
        self._found: list[object] = [None] * count
        self._left = count
        self.answer: Future[list[object]] = Future()

    def part(self, place: int) -> Future[object]:
        """Return where the answer of one of them is put."""
        return cast(Future[object], _Part(self, place))

    def put(self, place: int, found: object) -> None:
        """Put an answer in its place."""
        self._found[place] = found
        self._left -= 1
        if not self._left:
            self.answer.set_result(self._found)


class _Part:
    """One place of ``Together``: as much of a future as the writer uses, and cheaper."""

    def __init__(self, whole: Together, place: int) -> None:
        self._whole, self._place = whole, place

    def set_running_or_notify_cancel(self) -> bool:
        return True

    def set_result(self, found: object) -> None:
        self._whole.put(self._place, found)

    set_exception = set_result


T_co = TypeVar("T_co", covariant=True)


@dataclass
class Task(Generic[T_co]):
    """Something to be done with an experiment, or with the experiment of an event."""

    work: Callable[[UnitOfWork, Event | None], T_co]
    """Takes the unit, and the event if it exists."""
    experiment: int | None = None
    event: str | None = None
    owner: int | None = None
    """The experiment that the event belongs to, by the number of its first segment, if known."""
    answer: Future[T_co] = field(default_factory=Future)


def about_event(
    name: str, work: Callable[[UnitOfWork, Event], T_co], owner: int | None = None
) -> Task[T_co]:
    """Return something to be done with an event that must exist, in one experiment or in any."""

    def checked(unit: UnitOfWork, event: Event | None) -> T_co:
        if event is None:
            raise UnknownError(f"there is no such event {name!r}.")
        return work(unit, event)

    return Task(checked, event=name, owner=owner)


class Writer:
    """Does tasks in the order they arrive."""

    def __init__(
        self,
        store: SqlStore,
        guard: Guard | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._guard, self._clock = store, guard, clock
        self._tasks: queue.SimpleQueue[Task[object] | int | None] = queue.SimpleQueue()
        """With numbers of experiments that were read, and None at the end."""
        self._loading: Loading[Task[object]] = Loading(store, self._tasks.put)
        self._units: dict[int, UnitOfWork] = {}
        """The one that was used last comes last."""
        self._loaded: dict[int, UnitOfWork | None] = {}
        """Units that were read beside the writer for the tasks at hand; None once used."""
        self._thread = threading.Thread(target=self._run, name="bandanna writer", daemon=True)
        self.transactions = 0
        self.failures = 0
        self.releases = 0
        self.available = True
        """Whether the store took the last transaction."""
        self.busy_since: float | None = None
        """When the present transaction began, by the monotonic clock."""
        self._thread.start()

    def submit(self, task: Task[T_co]) -> Future[T_co]:
        """Hand in a task; its answer comes when it is durable."""
        self._tasks.put(task)
        return task.answer

    def submit_together(self, tasks: Sequence[Task[object]]) -> Future[list[object]]:
        """Hand in tasks; one answer comes when all of them are durable: what each returned."""
        together = Together(len(tasks))
        for place, task in enumerate(tasks):
            task.answer = together.part(place)
            self._tasks.put(task)
        return together.answer

    def close(self) -> None:
        """Finish what was handed in, and stop."""
        self._tasks.put(None)
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive()

    def reads(self, experiment: int) -> bool:
        """Whether an experiment is being read, and what is asked of it waits."""
        return experiment in self._loading

    @property
    def waiting(self) -> int:
        """Tasks that have not been begun."""
        return self._tasks.qsize() + self._loading.waiting

    def _run(self) -> None:
        going, together = True, 0
        while going or self._loading:
            group = [self._tasks.get()]
            if together > 1 and self._store.gather_seconds:
                time.sleep(self._store.gather_seconds)
            while len(group) < MOST_TOGETHER and not self._tasks.empty():
                group.append(self._tasks.get())
            together = len(group)
            going = going and None not in group
            wanted = [task for task in group if isinstance(task, Task)]
            self.busy_since = time.monotonic()
            for number in group:
                if isinstance(number, int):
                    self._go_on(number)
            self._do([task for task in wanted if task.answer.set_running_or_notify_cancel()])
            self.busy_since = None
        self._loading.close()

    def _go_on(self, number: int) -> None:
        """Do what waited for an experiment that has been read."""
        tasks, loaded = self._loading.take(number)
        if isinstance(loaded, Exception):
            self.available = self.available and not isinstance(loaded, StoreUnavailableError)
            self._fail(tasks, loaded)
        else:
            self._loaded[number] = loaded
            self._do(tasks)
            del self._loaded[number]

    def _do(self, group: list[Task[object]]) -> None:
        if not group:
            return
        try:
            answers = self._attempt(group)
        except StoreUnavailableError as error:
            self.available = False
            self._fail(group, error)
        except Exception as error:  # one task's trouble must not become another's
            if len(group) == 1:
                self._fail(group, error)
                return
            for task in group:
                self._do([task])
        else:
            later: dict[int, list[Task[object]]] = {}
            for task, answer in zip(group, answers, strict=True):
                if answer is LATER:
                    assert task.experiment is not None, "only known experiments are read"
                    later.setdefault(task.experiment, []).append(task)
                elif isinstance(answer, BandannaError):
                    task.answer.set_exception(answer)
                else:
                    task.answer.set_result(answer)
            for number, tasks in later.items():
                self._loading.add(number, tasks)

    def _fail(self, group: list[Task[object]], error: Exception) -> None:
        self.failures += 1
        for task in group:
            task.answer.set_exception(error.with_traceback(None))

    def _attempt(self, group: list[Task[object]]) -> list[object]:
        """Do tasks in one transaction; whatever goes wrong, no unit survives that took part."""
        used: dict[int, UnitOfWork] = {}
        stamps: dict[int, Stamp] = {}
        released = 0
        if self._guard is not None and self._guard.trouble is not None:
            raise self._guard.refuse(self._guard.trouble)
        try:
            with self._noting() as note, self._store.transaction() as transaction:
                _find_experiments(transaction, group)
                wanted = {task.experiment for task in group if task.experiment is not None}
                later = {number for number in wanted if number in self._loading}
                later |= self._prepare(transaction, wanted - later, used)
                # Again, now that nobody else can change them.
                events = transaction.events({task.event for task in group if task.event})
                answers = [
                    LATER if task.experiment in later else _answer(task, used, events)
                    for task in group
                ]
                marks: dict[str, Mark] = {}
                for number, unit in used.items():
                    changes = unit.collect()
                    if changes is not None:
                        stamps[number], mark = transaction.write(number, changes)
                        released += len(changes.releases)
                        if mark is not None:
                            marks[name_of(unit.experiment.id, unit.experiment.segment)] = mark
                note(marks)
        except BaseException:
            for number in used:
                self._units.pop(number, None)
            raise
        for number, stamp in stamps.items():
            here = used[number].experiment
            here.version, here.step = stamp
        while len(self._units) > MOST_OPEN:
            del self._units[next(iter(self._units))]
        self.transactions += 1
        self.releases += released
        self.available = True
        return answers

    def _noting(self) -> AbstractContextManager[Callable[[Mapping[str, Mark]], None]]:
        """Return what notes releases in the rollback guard, if there is one."""
        if self._guard is None:
            return nullcontext(lambda _: None)
        return self._guard.noting()

    def _prepare(
        self, transaction: SqlTransaction, numbers: set[int], used: dict[int, UnitOfWork]
    ) -> set[int]:
        """Lock experiments, and read again what others have changed in them.

        Returns those that are to be read beside the writer first.
        """
        later, now = set(), self._clock()
        for number, stamp in transaction.lock(numbers).items():
            unit = self._units.pop(number, None)  # whatever fails below, it is not used again
            if unit is None or _stamp_of(unit) != stamp:
                unit = self._read(transaction, number, stamp)
            if unit is None:
                later.add(number)
                continue
            self._units[number] = unit
            unit.begin(transaction, now)
            used[number] = unit
        return later

    def _read(self, transaction: SqlTransaction, number: int, stamp: Stamp) -> UnitOfWork | None:
        """Read an experiment; None if that is to be done beside the writer, because it is long.

        What was read there is read again here if another process has changed it meanwhile. Refuses
        an experiment that lacks a release which the rollback guard knows of.
        """
        unit = None
        if number in self._loaded:
            unit, self._loaded[number] = self._loaded[number], None
        if unit is None or _stamp_of(unit) != stamp:
            saved = transaction.read(number, whole=False)
            if needs_all(saved.experiment):
                if number not in self._loaded:
                    return None
                saved = transaction.read(number)
            unit = unit_for(saved)
        here = unit.experiment
        mark = self._guard and self._guard.marks.get(name_of(here.id, here.segment))
        if self._guard is not None and mark and transaction.missing({here.number: mark}):
            raise self._guard.refuse("the database was put back from an older copy.")
        return unit


def _stamp_of(unit: UnitOfWork) -> Stamp:
    return Stamp(unit.experiment.version, unit.experiment.step)


def _find_experiments(transaction: SqlTransaction, group: list[Task[object]]) -> None:
    """Find the experiments of events, where they are not known."""
    unknown = [task for task in group if task.event is not None and task.experiment is None]
    events = transaction.events({task.event for task in unknown if task.event is not None})
    for task in unknown:
        matching = [e for e in events.get(str(task.event), ()) if task.owner in (None, e.owner)]
        if len(matching) == 1:
            task.experiment, task.owner = matching[0].experiment, matching[0].owner


def _answer(
    task: Task[object], units: dict[int, UnitOfWork], events: dict[str, list[Event]]
) -> object:
    unit = None if task.experiment is None else units.get(task.experiment)
    same = events.get(task.event or "", ())
    try:
        if len(same) > 1 and task.owner is None and task.experiment is None:
            raise ConflictError(
                f"several experiments have an event {task.event!r}: name the experiment, as in "
                f"/v1/experiments/{{experiment}}/events/{{event}}/reward."
            )
        if unit is None:
            what = "experiment" if task.event is None else f"event {task.event!r}"
            raise UnknownError(f"there is no such {what}.")
        event = next((one for one in same if one.owner == unit.experiment.owner), None)
        return task.work(unit, event)
    except BandannaError as error:
        return error.with_traceback(None)

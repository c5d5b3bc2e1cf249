"""The writer: durable before answered, the same after a restart, never noised twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import bandanna as bd
from bandanna.store import ConflictError, SqlStore, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.rows import Changes, Event
from bandanna.store.sql_transaction import SqlTransaction
from bandanna.store.unit_of_work import DecisionRequest, NewFeedback
from bandanna.store.writer import Task, UnknownError, Writer, about_event
from tests.store.memory import MemoryStore, MemoryTransaction
from tests.store.stores import experiment, put


class Office:
    """A writer at work on one experiment, in words a test can use."""

    def __init__(self, store: SqlStore, number: int) -> None:
        self.store, self.number, self.now = store, number, 0.0
        self.writer = Writer(store, clock=lambda: self.now)

    def ask(self, task: Task[Any]) -> Any:
        return self.writer.submit(task).result(timeout=60)

    def decide(
        self,
        name: str,
        advice: object = None,
        person: str | None = None,
        eligible: list[int] | None = None,
        context: dict[str, object] | None = None,
        before: float | None = None,
        *,
        defer: bool = False,
    ) -> Event:
        asked = DecisionRequest(advice, person, eligible, context, before)

        def work(unit: Any, known: Event | None) -> Event:
            return known or unit.decide(name, asked, defer=defer)

        found = self.ask(Task(work, self.number, name))
        assert isinstance(found, Event)
        return found

    def reward(self, name: str, loss: Any, metrics: dict[str, float] | None = None) -> None:
        given = NewFeedback(loss, metrics=metrics)
        self.ask(about_event(name, lambda unit, e: unit.observe(e, given)))

    def activate(self, name: str) -> None:
        self.ask(about_event(name, lambda unit, e: unit.activate(e)))

    def expire(self) -> None:
        self.ask(Task(lambda unit, _: unit.expire(), self.number))

    def look(self, what: Callable[[Any], Any]) -> Any:
        return self.ask(Task(lambda unit, _: what(unit.policy), self.number))

    def restart(self) -> None:
        self.writer.close()
        self.writer = Writer(self.store, clock=lambda: self.now)


def office(policy: bd.Policy | None = None, **settings: Any) -> Office:
    store = MemoryStore()
    return Office(store, put(store, experiment(policy, **settings)))


def test_the_same_id_gets_the_same_answer_also_after_a_restart() -> None:
    here = office()
    first = here.decide("one")
    assert here.decide("one") == first
    here.restart()
    assert here.decide("one") == first
    assert here.look(lambda policy: policy.decided) == 1


def test_feedback_counts_once_and_the_first_value_stands() -> None:
    here = office()
    for name in ("one", "two", "three"):
        here.decide(name)
    here.reward("one", 0.5)
    here.reward("one", 0.5)
    here.reward("one", 0.8125)  # a repeat: nobody learns whether it was the same
    assert here.look(lambda policy: policy.state.open[0].losses[0]) == 1 << 19
    here.restart()
    here.reward("one", 0.5)
    assert here.look(lambda policy: policy.waiting) == 2
    here.reward("two", 0.5)
    here.reward("three", 0.5)
    (released,) = here.store.releases(here.number)
    here.restart()
    here.reward("one", 0.5)
    assert here.store.releases(here.number) == [released]
    with pytest.raises(UnknownError):
        here.reward("four", 0.5)
    with pytest.raises(bd.InputError):
        here.reward("two", 1.5)


def test_few_policies_are_kept_in_memory_and_the_others_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bandanna.store.writer.MOST_OPEN", 2)
    here = office()
    numbers = [here.number, *(put(here.store, experiment()) for _ in range(3))]
    for k in range(3):
        for here.number in numbers:
            assert here.decide(f"{k}").round == k
            assert len(here.writer._units) <= 2
    here.writer.close()


def test_a_passed_deadline_counts_the_default_once_and_refuses_what_comes_late() -> None:
    here = office(deadline_seconds=10.0)
    for name in ("one", "two", "three"):
        assert here.decide(name).expires_at == 10.0
    here.reward("one", 0.25)
    here.now = 9.9
    here.expire()
    assert here.look(lambda policy: policy.waiting) == 2
    here.now = 10.0
    here.expire()
    assert len(here.store.releases(here.number)) == 1
    here.reward("one", 0.25)
    with pytest.raises(GoneError):
        here.reward("two", 0.25)
    here.restart()
    with pytest.raises(GoneError):
        here.reward("two", 0.25)
    with pytest.raises(GoneError):
        here.activate("three")
    assert len(here.store.releases(here.number)) == 1


def test_the_clock_decides_even_before_anyone_has_swept() -> None:
    here = office(deadline_seconds=10.0)
    here.decide("one")
    here.now = 11.0
    with pytest.raises(GoneError):
        here.reward("one", 0.25)
    assert here.look(lambda policy: policy.waiting) == 0


class Failing(MemoryStore):
    """A store whose next commits fail, after everything was done in memory."""

    failures = 0

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        with super().transaction() as transaction:
            yield transaction
            if self.failures:
                self.failures -= 1
                raise StoreUnavailableError("the disk is full")


def test_noise_of_a_commit_that_failed_is_never_used() -> None:
    store = Failing()
    here = Office(store, put(store, experiment(bd.PrivateBandit(2, 1.0, batch=1))))
    for k in range(40):
        here.decide(f"{k}")
        before = here.look(bd.Policy.to_dict)
        store.failures = 1
        with pytest.raises(StoreUnavailableError):
            here.reward(f"{k}", 0.5)
        assert here.look(bd.Policy.to_dict) == before
        here.reward(f"{k}", 0.5)
    released = store.releases(here.number)
    assert [release.batch for release in released] == list(range(40))
    assert here.look(lambda policy: policy.released) == 40


def test_a_release_that_fails_leaves_its_batch_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    here = office(bd.PrivateBandit(2, 1.0, batch=1))
    here.decide("one")
    with monkeypatch.context() as patch:
        broken = "bandanna.privacy.one_bit.secrets.randbelow"

        def fail(_: int) -> int:
            raise bd.InputError("no randomness")

        patch.setattr(broken, fail)
        with pytest.raises(RuntimeError):
            here.reward("one", 0.5)
    assert here.look(lambda policy: policy.waiting) == 1
    here.reward("one", 0.5)
    assert len(here.store.releases(here.number)) == 1


def test_many_threads_and_two_writers_lose_nothing() -> None:
    """Two processes on one database, as far as one process can show it."""
    store = MemoryStore()
    number = put(store, experiment(bd.PrivateBandit(2, 1.0, batch=4)))
    offices = [Office(store, number) for _ in range(2)]

    def work(which: int) -> None:
        for k in range(40):
            here, there = offices[(which + k) % 2], offices[which % 2]
            here.decide(f"{which}-{k}")
            there.reward(f"{which}-{k}", 0.5)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(release.batch for release in store.releases(number)) == list(range(50))
    (found,) = store.experiments()
    assert found.observed == 200
    assert sum(one.writer.transactions for one in offices) > 0


def test_a_stopped_experiment_takes_feedback_and_decides_nothing() -> None:
    here = office()
    here.decide("one")
    here.store.stop(here.store.experiments()[0].id)
    with pytest.raises(ConflictError, match="stopped"):
        here.decide("two")
    here.decide("one")
    here.reward("one", 0.5)


def test_people_keep_their_slots_and_their_cap_across_restarts() -> None:
    policy = bd.PrivateBandit(2, 1.0, per_person=1, rounds_per_slot=2, release="laplace", batch=2)
    here = office(policy)
    first = here.decide("a1", person="ann")
    here.restart()
    assert here.decide("a2", person="ann").batch == first.batch, "the same slot while it is open"
    here.decide("b1", person="bob")
    here.decide("b2", person="bob")
    for name in ("a1", "a2", "b1"):
        here.restart()
        here.reward(name, 0.25)
    assert here.store.releases(here.number) == []
    here.reward("b2", 0.25)
    assert len(here.store.releases(here.number)) == 1
    here.restart()
    again = here.decide("a3", person="ann")
    batch = here.look(lambda policy: policy.state.open[again.batch])
    assert [slot.counts for slot in batch.slots.values()] == [False], "it had its slot before"
    with pytest.raises(bd.InputError):
        here.decide("nobody")


def test_a_slot_closes_at_the_deadline_of_its_first_round() -> None:
    policy = bd.PrivateBandit(2, 1.0, per_person=1, release="laplace", batch=2)
    here = office(policy, deadline_seconds=10.0)
    here.decide("a1", person="ann")
    here.reward("a1", 0.25)
    here.now = 6.0
    here.decide("a2", person="ann")
    here.decide("b1", person="bob")
    here.restart()
    here.now = 10.0
    here.expire()
    with pytest.raises(GoneError):
        here.reward("a2", 0.25)
    here.restart()
    here.now = 16.0
    here.expire()
    assert len(here.store.releases(here.number)) == 1


def test_a_decision_in_an_open_batch_writes_little_however_many_arms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was learned is written when it changes: with 10 000 arms it is hundreds of kilobytes."""
    sizes: list[int] = []
    write = MemoryTransaction.write

    def counted(transaction: MemoryTransaction, experiment: int, changes: Changes) -> Any:
        sizes.append(len(json.dumps([changes.counters, changes.head])))
        return write(transaction, experiment, changes)

    monkeypatch.setattr(MemoryTransaction, "write", counted)
    here = office(bd.PrivateBandit(10_000, 0.5, batch=3))
    for k in range(3):
        here.decide(f"{k}")
    for k in range(3):
        here.reward(f"{k}", 0.5)
    assert max(sizes[1:5]) < 2_000, "two decisions and two rewards in an open batch"
    assert sizes[5] > 100_000, "the release"
    before = here.look(lambda policy: policy.to_dict(private=False))
    here.restart()
    assert here.look(lambda policy: policy.to_dict(private=False)) == before
    here.writer.close()

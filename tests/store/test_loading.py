"""Experiments that are read whole are read beside the writer: others go on meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import bandanna as bd
from bandanna.service.policies import make_contextual
from bandanna.store import SqlStore, StoreUnavailableError
from bandanna.store.rows import Event, Snapshot
from bandanna.store.unit_of_work import DecisionRequest, UnitOfWork
from bandanna.store.writer import Task, Writer
from tests.service.running import service_here
from tests.store.memory import MemoryStore
from tests.store.stores import experiment, put

WHO = {"person": "ann"}
WHERE = {"context": {"age": 0.5}}
FEATURES = {"arms": ["a", "b"], "epsilon": 1.0, "rounds": 100, "features": {"age": [0.0, 1.0]}}


class SlowStore(MemoryStore):
    """Reads a whole experiment when a test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.free = threading.Event(), threading.Event()
        self.trouble: Exception | None = None

    def snapshot(self, experiment: int) -> Snapshot:
        self.begun.set()
        assert self.free.wait(60)
        if self.trouble is not None:
            raise self.trouble
        return super().snapshot(experiment)


def with_persons(store: SqlStore) -> int:
    policy = bd.PrivateBandit(["a", "b"], 5.0, batch=3, per_person=1, rounds_per_slot=1)
    return put(store, experiment(policy))


def with_features(store: SqlStore) -> int:
    return put(store, experiment(head=make_contextual(FEATURES).to_dict(private=False)))


def deciding(number: int, name: str, **asked: Any) -> Task[Event]:
    what = DecisionRequest(**asked)
    return Task(lambda unit, known: known or unit.decide(name, what), number, name)


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.mark.parametrize("make", [with_persons, with_features])
def test_others_decide_while_an_experiment_is_read(store: SlowStore, make: Any) -> None:
    slow, quick = make(store), put(store, experiment())
    asked = WHO if make is with_persons else WHERE
    writer = Writer(store, clock=lambda: 0.0)
    waiting = [writer.submit(deciding(slow, f"slow-{k}", **asked)) for k in range(3)]
    assert store.begun.wait(60)
    assert writer.submit(deciding(quick, "quick")).result(timeout=60).id == "quick"
    both = [deciding(slow, "both-slow", **asked), deciding(quick, "both-quick")]
    waiting.append(writer.submit(both[0]))
    assert writer.submit(both[1]).result(timeout=60).id == "both-quick"
    assert writer.waiting == 4
    assert not any(one.done() for one in waiting)
    store.free.set()
    found = [one.result(timeout=60) for one in waiting]
    assert [one.round for one in found] == [0, 1, 2, 3], "in the order in which they were asked"
    assert writer.waiting == 0
    writer.close()


def test_what_was_handed_in_is_finished_when_the_writer_is_closed(store: SlowStore) -> None:
    writer = Writer(store, clock=lambda: 0.0)
    waiting = writer.submit(deciding(with_persons(store), "one", **WHO))
    assert store.begun.wait(60)
    closing = threading.Thread(target=writer.close)
    closing.start()
    store.free.set()
    assert waiting.result(timeout=60).id == "one"
    closing.join(60)
    assert not writer.alive


def test_one_that_cannot_be_read_refuses_what_waited_and_is_tried_again(store: SlowStore) -> None:
    slow, writer = with_persons(store), Writer(store, clock=lambda: 0.0)
    store.trouble = StoreUnavailableError("the disk is gone")
    store.free.set()
    with pytest.raises(StoreUnavailableError, match="the disk is gone"):
        writer.submit(deciding(slow, "one", **WHO)).result(timeout=60)
    store.trouble = None
    assert writer.submit(deciding(slow, "one", **WHO)).result(timeout=60).round == 0
    writer.close()


def test_one_that_changed_meanwhile_is_read_again(
    store: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, writer = with_persons(store), Writer(store, clock=lambda: 0.0)
    store.free.set()
    writer.submit(deciding(slow, "one", **WHO)).result(timeout=60)
    writer.close()
    store.begun.clear()
    taken, go = threading.Event(), threading.Event()
    read = store.snapshot

    def late(number: int) -> Snapshot:
        found = read(number)
        taken.set()
        assert go.wait(60)
        return found

    monkeypatch.setattr(store, "snapshot", late)
    writer = Writer(store, clock=lambda: 0.0)
    waiting = writer.submit(deciding(slow, "two", person="ben"))
    assert taken.wait(60)
    store.charge(slow, 1)
    go.set()
    assert waiting.result(timeout=60).round == 1
    policy = writer.submit(Task(lambda unit, _: unit.policy, slow)).result(timeout=60)
    assert policy.resumed == 1
    writer.close()


def test_a_task_that_fails_does_not_take_those_with_it_that_waited_too(store: SlowStore) -> None:
    slow, writer = with_persons(store), Writer(store, clock=lambda: 0.0)

    def fail(_: UnitOfWork, __: Event | None) -> Event:
        raise RuntimeError("a bug")

    waiting = [
        writer.submit(one)
        for one in (
            deciding(slow, "one", person="ann"),
            Task(fail, slow),
            deciding(slow, "two", person="ben"),
        )
    ]
    assert store.begun.wait(60)
    store.free.set()
    assert waiting[0].result(timeout=60).round == 0
    with pytest.raises(RuntimeError, match="a bug"):
        waiting[1].result(timeout=60)
    assert waiting[2].result(timeout=60).round == 1
    writer.close()


def test_deadlines_of_others_pass_while_an_experiment_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_here(tmp_path) as here:
        slow = here.create(deadline_seconds=10.0, per_person=1, rounds_per_slot=1)
        quick = here.create(deadline_seconds=10.0)
        here.decide(slow, person="ann")
        late = here.decide(quick)["event_id"]
    free, begun = threading.Event(), threading.Event()
    with service_here(tmp_path) as here:
        read = here.core.store.snapshot

        def wait(number: int) -> Snapshot:
            begun.set()
            assert free.wait(60)
            return read(number)

        monkeypatch.setattr(here.core.store, "snapshot", wait)
        here.clock.now += 20.0
        for _ in range(2):  # it ends although one of the two waits
            here.http.portal.call(here.core.sweep)  # type: ignore[union-attr]
        assert begun.wait(60)
        assert here.reward(late, loss=1.0) == 410
        store = here.core.store
        numbers = {one: store.experiments(one)[0].number for one in (slow, quick)}
        assert list(store.next_deadlines(list(numbers.values()))) == [numbers[slow]]
        free.set()
        here.decide(slow, person="ben")

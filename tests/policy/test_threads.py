"""Several threads at one policy."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bandanna as bd


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_decision_is_handed_out_twice_and_every_batch_is_released(epsilon: float) -> None:
    policy = bd.PrivateBandit(3, epsilon, 100_000, "adaptive")
    made: list[bd.Decision] = []

    def work() -> None:
        for _ in range(1500):
            decision = policy.decide()
            made.append(decision)
            policy.observe(decision, loss=0.5)

    in_threads(8, work)
    assert len({decision.round for decision in made}) == len(made) == policy.decided == 12_000
    assert len({(decision.batch, decision.position) for decision in made}) == 12_000
    assert policy.waiting == 0
    assert policy.released == 12_000 // policy.batch


def test_nobody_gets_more_slots_from_several_threads() -> None:
    policy = bd.PrivateBandit(3, 1.0, batch=4, per_person=2, rounds_per_slot=1)
    made: list[bd.Decision] = []

    def work() -> None:
        for visit in range(600):
            decision = policy.decide(person=visit % 50)
            made.append(decision)
            policy.observe(decision, loss=0.5)

    in_threads(8, work)
    people = policy.state.people
    assert people is not None
    assert set(people.slots.values()) == {2}
    assert len({decision.round for decision in made}) == len(made) == policy.decided == 4800
    assert policy.waiting == 0


def test_files_saved_while_others_decide_can_be_loaded(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(3, 0.5, rounds=100_000)
    done = threading.Event()
    saved: list[Path] = []

    def work() -> None:
        if len(saved) == 0 and not done.is_set():
            done.set()
            for number in range(20):
                path = tmp_path / f"{number}.json"
                policy.save(path)
                saved.append(path)
        else:
            for _ in range(2000):
                policy.observe(policy.decide(), loss=0.5)

    in_threads(4, work)
    for path in saved:
        bd.load(path)


def test_a_thread_that_saves_gets_consistent_counts(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(2, 1.0, batch=3)

    def work() -> None:
        for _ in range(500):
            policy.observe(policy.decide(), loss=1.0)

    in_threads(4, work)
    policy.save(tmp_path / "p.json")
    assert bd.load(tmp_path / "p.json").decided == 2000


def test_whoever_only_looks_sees_no_batch_come_and_go() -> None:
    """``waiting``, ``repr`` and ``to_dict`` of a policy that another thread uses."""
    policy = bd.PrivateBandit(2, 1.0, 10**6, batch=1, seed=1)
    done = threading.Event()

    def use() -> None:
        decisions = [policy.decide() for _ in range(20)]
        for _ in range(5000):
            decisions.append(policy.decide())
            policy.observe(decisions.pop(0), loss=0.5)
        done.set()

    user = threading.Thread(target=use)
    user.start()
    while not done.is_set():
        assert policy.waiting <= 21
        assert "waiting" in repr(policy)
        assert len(policy.to_dict()["open_batches"]) <= 21
    user.join()

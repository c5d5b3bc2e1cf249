"""Every store keeps what ``bandanna.store.contract`` promises."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bandanna as bd
from bandanna.store import ConflictError, KeyRow, SqlStore
from bandanna.store.contract import GoneError
from bandanna.store.rows import COUNTED, EventState, Feedback, OpenBatch, ReleaseRow, SealedBlock
from bandanna.store.sql_transaction import SqlTransaction
from tests.contracts.policies import make
from tests.postgres import Postgres, needs_postgres
from tests.store.memory import MemoryStore
from tests.store.stores import KINDS, changes, event, experiment, open_store, put
from tests.store.test_writer import Office

BATCH = OpenBatch(0, 3, 1, 2.0, {})
MARKS = [pytest.param(k, marks=needs_postgres) if k == "postgresql" else k for k in KINDS]


@pytest.fixture(params=MARKS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    server: Postgres | None = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
    with open_store(request.param, tmp_path, server) as opened:
        yield opened


def versions(transaction: SqlTransaction, numbers: list[int]) -> dict[int, int]:
    return {number: stamp.version for number, stamp in transaction.lock(numbers).items()}


def write(store: SqlStore, number: int, **parts: Any) -> None:
    """Write in a transaction of its own."""
    with store.transaction() as transaction:
        transaction.lock([number])
        transaction.write(number, changes(**parts))


def test_a_snapshot_is_what_was_committed_last_and_keeps_nobody_out(store: SqlStore) -> None:
    number = put(store, experiment())
    written = {"batches": [BATCH], "events": [event("one", number)], "people": {"00ff": 1}}
    write(store, number, **written)
    with store.transaction() as transaction:
        transaction.lock([number])
        whole = transaction.read(number)
        transaction.write(number, changes(events=[event("two", number, position=1)]))
        if not isinstance(store, MemoryStore):  # which has one lock for everything
            with ThreadPoolExecutor(1) as other:
                assert other.submit(store.snapshot, number).result(timeout=30) == whole
    assert len(store.snapshot(number).events) == 2


def test_what_was_written_is_read_back(store: SqlStore) -> None:
    made = experiment(deadline_seconds=5)
    number = put(store, made)
    tallied = OpenBatch(1, 3, 0, 1.25, {"sums": [1, 2], "scale": 0.5})
    events = [
        event("one", number, 0, 0),
        event("two", number, 0, 1, expires_at=7.5, chance=None, state=EventState.DEFERRED),
    ]
    rows = [Feedback(0, 0, 77, False, None), Feedback(0, 1, None, False, {"advice": [0, 1]})]
    with store.transaction() as transaction:
        assert versions(transaction, [number]) == {number: 1}
        people = {"00ff": 1, "00fe": 2}
        parts = {"batches": [BATCH, tallied], "feedback": rows, "people": people}
        transaction.write(number, changes(events=events, **parts))
    with store.transaction() as transaction:
        assert versions(transaction, [number]) == {number: 2}
        saved = transaction.read(number)
        assert transaction.events(["one", "none"]) == {"one": [events[0]]}
    assert saved.batches == [BATCH, tallied]
    assert sorted(saved.events) == sorted(events)
    assert sorted(saved.feedback, key=lambda row: row.position) == rows
    assert (saved.experiment.id, saved.experiment.settings) == (made.id, made.settings)
    assert saved.experiment.head == made.head | {"counters": {"resumed": 0}}
    write(store, number, head={"learned": [1]}, counters={"rounds": 2})
    with store.transaction() as transaction:
        transaction.lock([number])
        head = transaction.read(number).experiment.head
    assert head == {"learned": [1], "counters": {"rounds": 2}}
    assert saved.people == people
    write(store, number, people={"00ff": 2})
    with store.transaction() as transaction:
        transaction.lock([number])
        assert transaction.read(number).people == {"00ff": 2, "00fe": 2}


def test_a_turn_that_fails_changes_nothing(store: SqlStore) -> None:
    number = put(store, experiment())

    def fail() -> None:
        with store.transaction() as transaction:
            transaction.lock([number])
            transaction.write(number, changes(events=[event("one", number)], batches=[BATCH]))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with store.transaction() as transaction:
        assert versions(transaction, [number]) == {number: 1}
        assert transaction.events(["one"]) == {}
        assert transaction.read(number).batches == []


def test_a_batch_is_released_once_and_its_feedback_goes(store: SqlStore) -> None:
    number = put(store, experiment())
    release = ReleaseRow(0, 1, 3, 1.0, 4.0)
    with store.transaction() as transaction:
        transaction.lock([number])
        rows = [Feedback(0, 0, 77, False, None)]
        transaction.write(
            number, changes(events=[event("one", number)], batches=[BATCH], feedback=rows)
        )
    write(store, number, releases=[release])
    with store.transaction() as transaction:
        transaction.lock([number])
        saved = transaction.read(number)
        assert (saved.batches, saved.events, saved.feedback) == ([], [], [])
        assert "one" in transaction.events(["one"])
    with pytest.raises(ConflictError):
        write(store, number, releases=[release._replace(value=0.0)])
    assert store.releases(number) == [release]


def test_releases_come_in_the_order_of_their_making(store: SqlStore) -> None:
    number = put(store, experiment())
    made = [ReleaseRow(batch, 0, 3, [0.5, float(batch)], 4.0) for batch in (4, 0, 2)]
    for some in (made[:2], made[2:]):
        write(store, number, releases=some)
    assert store.releases(number) == made
    assert store.releases(number, after=1, limit=1) == made[1:2]


def test_an_identity_is_given_once_in_an_experiment_and_all_its_segments(store: SqlStore) -> None:
    first, other = experiment(), put(store, experiment())
    numbers = store.create([replace(first, segment=name) for name in ("de", "fr")])
    write(store, numbers[0], events=[event("one", numbers[0])])
    for number in numbers:
        with pytest.raises(ConflictError):
            write(store, number, events=[event("one", number, owner=numbers[0], position=1)])
    write(store, other, events=[event("one", other)])
    with store.transaction() as transaction:
        owners = [one.owner for one in transaction.events(["one"])["one"]]
    assert sorted(owners) == sorted([numbers[0], other])


def test_a_position_never_shown_goes_to_another_event(store: SqlStore) -> None:
    number = put(store, experiment())
    with store.transaction() as transaction:
        transaction.lock([number])
        old = event("old", number, state=EventState.DEFERRED)
        transaction.write(number, changes(events=[old], batches=[BATCH]))
    with store.transaction() as transaction:
        transaction.lock([number])
        new = event("new", number)
        transaction.write(number, changes(events=[new], states={(0, 0): EventState.VOID}))
    with store.transaction() as transaction:
        transaction.lock([number])
        transaction.write(number, changes(states={(0, 0): EventState.EXPIRED}))
    with store.transaction() as transaction:
        found = transaction.events(["old", "new"])
    assert {name: one.state for name, (one,) in found.items()} == {
        "old": EventState.VOID,
        "new": EventState.EXPIRED,
    }


def test_one_at_a_time(store: SqlStore) -> None:
    number = put(store, experiment())
    seen = []

    def count() -> None:
        for _ in range(20):
            with store.transaction() as transaction:
                transaction.lock([number])
                observed = transaction.read(number).experiment.observed
                transaction.write(number, changes(observed=observed + 1))
                seen.append(observed)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(80))
    (found,) = store.experiments()
    assert (found.observed, found.version) == (80, 81)


def test_releases_keep_the_random_step_of_their_turn(store: SqlStore) -> None:
    number, other = put(store, experiment()), put(store, experiment())
    assert store.last_marks() == {}
    marks = []
    for batch in range(3):
        with store.transaction() as transaction:
            transaction.lock([number])
            transaction.write(number, changes(batches=[BATCH._replace(number=batch)]))
        releases = [ReleaseRow(batch, 1, 3, 0.5, 3.5)]
        with store.transaction() as transaction:
            before = transaction.lock([number])[number]
            stamp, mark = transaction.write(number, changes(releases=releases))
        assert mark is not None
        assert (mark.sequence, mark.step) == (batch, stamp.step)
        assert stamp.version == before.version + 1
        marks.append(mark)
    assert len({mark.step for mark in marks}) == 3
    assert store.last_marks() == {number: marks[-1]}
    with store.transaction() as transaction:
        assert transaction.lock([number])[number] == stamp
        assert transaction.missing({number: marks[0]}) == set()
        assert transaction.missing({number: marks[2], other: marks[2], 99: marks[0]}) == {other, 99}
        assert transaction.missing({number: marks[0]._replace(sequence=1)}) == {number}
        assert transaction.missing({number: marks[0]._replace(sequence=7)}) == {number}


def test_experiments_are_found_stopped_and_charged(store: SqlStore) -> None:
    made = [experiment(), experiment()]
    numbers = [put(store, one) for one in made]
    assert [one.id for one in store.experiments()] == [one.id for one in made]
    store.stop(made[1].id)
    store.charge(numbers[1], 9)
    (found,) = store.experiments(made[1].id)
    assert (found.stopped, found.version, found.resumed) == (True, 3, 9)
    assert store.experiments("none") == []
    assert sorted(store.numbers()) == numbers
    assert store.numbers(numbers[0]) == numbers[1:]
    assert [one.number for one in store.experiments()] == numbers
    with pytest.raises(ConflictError, match="already"):
        put(store, made[0])


def test_segments_are_rows_of_one_experiment_made_and_stopped_together(store: SqlStore) -> None:
    first = experiment()
    parts = [replace(first, segment=name) for name in ("de", "fr")]
    other = put(store, experiment())
    numbers = store.create(parts)
    assert len({*numbers, other}) == 3
    found = store.experiments(first.id)
    assert [(one.number, one.segment) for one in found] == [(numbers[0], "de"), (numbers[1], "fr")]
    write(store, numbers[1], batches=[BATCH], events=[event("one", numbers[1])])
    with store.transaction() as transaction:
        assert versions(transaction, numbers) == {numbers[0]: 1, numbers[1]: 2}
        assert transaction.read(numbers[0]).batches == []
        assert transaction.read(numbers[1]).batches == [BATCH]
        assert transaction.events(["one"])["one"][0].experiment == numbers[1]
    with pytest.raises(ConflictError, match="already"):
        store.create([replace(first, segment="nl"), parts[0]])
    store.stop(first.id)
    assert [one.stopped for one in store.experiments()] == [False, True, True]
    assert len(store.experiments(first.id)) == 2, "all of them or none"


KINDS_OF_POLICIES = (
    "one-bit",
    "htinf",
    "one-bit, over experts",
    "one-bit-exp4",
    "batched-exp4, our constants",
    "batched-exp4",
)


@pytest.mark.parametrize("kind", KINDS_OF_POLICIES)
def test_every_policy_goes_on_after_a_restart_as_if_nothing_had_happened(
    store: SqlStore, kind: str
) -> None:
    """Whatever the policy, with experts or without: restarting after every step changes nothing."""
    offices = [
        Office(here, put(here, experiment(make(kind, seed=3)))) for here in (MemoryStore(), store)
    ]
    steady, restarted = offices
    experts = make(kind).experts
    advice = None if experts is None else [k % 2 for k in range(experts)]
    for step in range(7):
        answers = [one.decide(f"{step}", advice)[2:] for one in offices]
        assert answers[0] == answers[1]
        restarted.restart()
        if step % 3 != 2:
            for one in offices:
                one.reward(f"{step}", 0.25)
        restarted.restart()
        states = [one.look(bd.Policy.to_dict) for one in offices]
        if steady.look(lambda policy: policy.released):
            break  # from here on noise differs, as it must
        for state in states:
            state["counters"]["issuers"] = None
        assert states[0] == states[1]
    for one in offices:
        one.writer.close()


@pytest.mark.parametrize("algorithm", ["phased", "ab-test"])
def test_a_phase_releases_a_value_of_each_arm_once(store: SqlStore, algorithm: str) -> None:
    here = Office(store, put(store, experiment(bd.PrivateBandit(3, 5.0, 60, algorithm))))
    for k in range(60):
        here.decide(f"{k}")
        if k % 20 == 7:
            here.restart()
        here.reward(f"{k}", 0.25)
    released = here.look(lambda policy: policy.released)
    rows = store.releases(here.number)
    batches = {row.batch for row in rows}
    assert released == len(batches) > 0
    assert len(rows) > len(batches)
    assert len({(row.batch, row.choice) for row in rows}) == len(rows)
    assert sum(row.size for row in rows) <= 60
    again = ReleaseRow(rows[0].batch, 2 - rows[0].choice, 1, 0.5, 9.0)
    with pytest.raises(ConflictError):
        write(store, here.number, releases=[again])
    assert store.releases(here.number) == rows
    here.writer.close()


def test_the_first_deadline_of_open_batches_is_known_without_opening_them(store: SqlStore) -> None:
    made = [experiment(bd.PrivateBandit(2, 0.5, batch=2), deadline_seconds=10.0) for _ in range(3)]
    offices = [Office(store, put(store, one)) for one in made]
    numbers = [one.number for one in offices]
    assert store.next_deadlines(numbers) == {}
    for k, here in enumerate(offices[:2]):
        for here.now in (5.0 - k, 9.0):
            here.decide(f"{here.now}")
    assert store.next_deadlines(numbers) == {numbers[0]: 15.0, numbers[1]: 14.0}
    assert store.next_deadlines(numbers[:1]) == {numbers[0]: 15.0}
    offices[0].now = 16.0
    offices[0].expire()
    assert store.next_deadlines(numbers[:1]) == {numbers[0]: 19.0}
    offices[0].now = 20.0
    offices[0].expire()
    assert len(store.releases(numbers[0])) == 1
    assert store.next_deadlines(numbers) == {numbers[1]: 14.0}
    for here in offices:
        here.writer.close()


@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_never_shown_expires_without_counting(store: SqlStore, restarts: bool) -> None:
    here = Office(store, put(store, experiment(deadline_seconds=10.0)))
    first = here.decide("one", defer=True)
    here.decide("two", defer=True)
    here.activate("two")
    here.now = 5.0
    here.decide("three")
    here.now = 12.0
    here.expire()
    if restarts:
        here.restart()
    again = here.decide("four")
    assert (again.location, again.arm, again.expires_at) == (first.location, first.arm, 22.0)
    with pytest.raises(GoneError):
        here.reward("one", 0.25)
    here.reward("three", 0.25)
    here.now = 16.0
    here.expire()
    assert store.releases(here.number) == []
    here.reward("four", 0.25)
    assert len(store.releases(here.number)) == 1
    here.writer.close()


def test_batches_deadlines_and_free_positions_are_read_when_needed(
    store: SqlStore,
) -> None:
    number = put(store, experiment())
    head = store.experiments()[0].head
    counters = head["counters"] | {"filling": [1]}
    later = {"expires_at": 9.0, "round": 4}
    events = [
        event("one", number, 0, 0, expires_at=7.0),
        event("two", number, 0, 1, expires_at=5.0, state=EventState.DEFERRED),
        event("three", number, 0, 2, expires_at=6.0, state=EventState.HEARD),
        event("four", number, 1, 0, **later),
        event("five", number, 1, 1, expires_at=9.0, round=5),
    ]
    batches = [BATCH, BATCH._replace(number=1)]
    heard = [Feedback(0, 2, 7, False, None)]
    write(store, number, counters=counters, batches=batches, events=events, feedback=heard)
    with store.transaction() as transaction:
        transaction.lock([number])
        saved = transaction.read(number, whole=False)
        assert ([batch.number for batch in saved.batches], saved.opened) == ([1], 2)
        assert [one.id for one in saved.events] == ["four", "five"]
        assert len(transaction.read(number).events) == 5
        found = transaction.opened(number, [0])
        assert (found[0], len(found[1]), found[2]) == ([BATCH], 3, heard)
        assert transaction.opened(number, [2]) == ([], [], [])
        due = transaction.due(number, (-1.0, 0), 3)
        assert [one.at for one in due] == [5.0, 7.0, 9.0]
        assert [one.deferred for one in due] == [True, False, False]
        assert [one.round for one in transaction.due(number, (9.0, 4), 3)] == [5]
        assert transaction.free(number, 5) == []
    assert store.next_deadlines([number]) == {number: 5.0}
    write(
        store, number, counters=counters, states={(0, 1): EventState.VOID, (0, 0): EventState.HEARD}
    )
    assert store.next_deadlines([number]) == {number: 9.0}
    with store.transaction() as transaction:
        transaction.lock([number])
        assert transaction.free(number, 5) == [((0, 1), 0.5)]
    again = event("six", number, 0, 1, state=EventState.HEARD)
    write(store, number, counters=counters, events=[again])
    with store.transaction() as transaction:
        transaction.lock([number])
        assert transaction.free(number, 5) == []
    write(store, number, counters=counters, releases=[ReleaseRow(1, 1, 3, 0.5, 3.5)])
    assert store.next_deadlines([number]) == {}, "nothing waits in a batch that was released"


def everything(policy: bd.Policy) -> Any:
    """Return what a policy knows once all its open batches were read."""
    for number in range(policy.state.batches):
        policy.state.open.get(number)
    found = policy.to_dict()
    found["open_batches"].sort(key=lambda batch: batch["number"])
    return found


@pytest.mark.parametrize(
    "with_what",
    ["nothing", "persons", "persons often", "persons in phases", "few persons", "eligible arms"],
)
def test_two_processes_that_take_turns_know_what_a_fresh_one_reads(
    store: SqlStore, with_what: str
) -> None:
    """Late feedback in any order, few batches change: nothing is missed or counted twice."""
    rule: dict[str, Any] = {"per_person": 2, "rounds_per_slot": 1, "release": "laplace"}
    persons, some = "persons" in with_what, with_what == "eligible arms"
    few = with_what == "few persons"  # who do not fill a batch: it closes with fewer slots
    rule |= {"per_person": 50} if few else {}
    slow = "often" in with_what or "phases" in with_what  # slots are open until their deadline
    rule |= {"rounds_per_slot": None, "per_person": 9} if slow else {}
    rule |= {"batch": 3} if "phases" not in with_what else {"algorithm": "phased", "release": None}
    rule |= {"batch": 9} if "often" in with_what else {}
    policy = bd.PrivateBandit(3, 1.0, **(rule if persons else {"batch": 3}))
    deadline = 8.0 if slow else 40.0
    number = put(store, experiment(policy, deadline_seconds=deadline))
    offices = [Office(store, number) for _ in range(2)]
    fresh, dice, waiting = Office(store, number), random.Random(5), list[str]()
    for step in range(60):
        here = offices[dice.randrange(2)]
        here.now = float(step)
        if waiting and dice.random() < 0.5:
            with suppress(*([GoneError] if slow else [])):  # a slot closes with its first round
                here.reward(waiting.pop(dice.randrange(len(waiting))), 0.25)
        else:
            person = f"{dice.randrange(2 if few else 12)}" if persons else None
            eligible = [0, dice.randrange(1, 3)] if some and dice.random() < 0.8 else None
            here.decide(f"{step}", person=person, eligible=eligible)
            waiting.append(f"{step}")
        here.expire()
        waiting = [name for name in waiting if step < int(name) + deadline]
        if step % (2 if slow else 5) == 0:
            fresh.restart()
            states = [one.look(everything) for one in (*offices, fresh)]
            for counts in (state["people"] for state in states):
                if counts is not None:  # their order means nothing
                    counts["slots"] = {k: sorted(some) for k, some in counts["slots"].items()}
            assert states[0] == states[1] == states[2]
    assert slow or offices[0].look(lambda policy: policy.released) > 3
    assert few or slow or offices[0].look(lambda policy: len(policy.state.open)) > 1
    assert not few or offices[0].look(lambda policy: policy.state.missed) > 3
    for one in (*offices, fresh):
        one.writer.close()


def test_metrics_are_kept_and_answered_for_after_a_restart(store: SqlStore) -> None:
    policy = bd.PrivateBandit(
        ["a", "b"], 50.0, batch=2, algorithm="one-bit", metrics={"refund": (0, 1)}
    )
    here = Office(store, put(store, experiment(policy)))
    for step in range(8):
        here.decide(f"{step}")
        here.restart()
        here.reward(f"{step}", 0.5, {"refund": float(step % 2)})
        here.restart()
    found = here.look(lambda policy: policy.answer(metric="refund").to_dict())
    assert sum(arm["rounds"] for arm in found["arms"]) == 8
    means = [arm["mean"] for arm in found["arms"] if arm["mean"] is not None]
    assert means
    assert all(0.0 <= mean <= 1.0 for mean in means)
    assert here.look(lambda policy: policy.released) == 4
    here.writer.close()


def _known_before(batch: int, position: int, policy: bd.Policy) -> float:
    return policy.state.open[batch].before[position]


def _whole(policy: bd.Policy) -> dict[str, Any]:
    """Return all that is known, with batches that others opened."""
    for number in range(policy.state.batches):
        policy.state.open.get(number)
    known = policy.to_dict()
    return known | {"open_batches": sorted(known["open_batches"], key=lambda one: one["number"])}


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("persons", [False, True])
def test_what_was_known_before_is_kept_as_it_was_when_it_was_decided(
    store: SqlStore, persons: bool, found: bool
) -> None:
    """Two processes take turns; a fresh one reads the same numbers, sums and outcomes as sent.

    Also where the first phase finds slope and range, and later ones began before it did.
    """
    given: dict[str, Any] = {"rounds": 80, "algorithm": "phased"}
    if not found:
        given = {"algorithm": "ab-test", "slope": 0.8, "adjusted_range": (-0.1, 0.5), "rounds": 300}
    several = 3 if persons else None
    policy = bd.PrivateBandit(["a", "b"], 4.0, adjust="past", per_person=several, **given)
    made = experiment(head=policy.to_dict(private=False), deadline_seconds=20.0)
    number = put(store, made)
    offices = [Office(store, number) for _ in range(2)]
    fresh, dice, waiting = Office(store, number), random.Random(5), list[str]()
    known: dict[str, float] = {}
    for step in range(80):
        here = offices[step % 2]
        here.now = float(step)
        if waiting and dice.random() < 0.4:
            with suppress(GoneError):  # a slot closes when its first round is due
                here.reward(waiting.pop(dice.randrange(len(waiting))), dice.random())
        else:
            person = f"{dice.randrange(12)}" if persons else None
            defer = not persons and not found and step % 3 == 0
            known[f"{step}"] = dice.random()
            asked = {"person": person, "before": known[f"{step}"], "defer": defer}
            event = here.decide(f"{step}", **asked)  # type: ignore[arg-type]
            again = here.decide(f"{step}", **asked | {"before": 0.123})  # type: ignore[arg-type]
            assert again == event
            batch, position = event.location
            kept = here.look(partial(_known_before, batch, position))
            assert kept in known.values() if persons else kept == known[f"{step}"]
            waiting += [] if defer else [f"{step}"]
        here.expire()
        waiting = [name for name in waiting if step < int(name) + 20]
        if step % 10 == 0:
            fresh.restart()
            states = [one.look(_whole) for one in (*offices, fresh)]
            assert states[0] == states[1] == states[2]
            assert states[0]["open_batches"][0]["before"]
    assert found == (states[0]["learned"]["found"] is not None)
    with pytest.raises(bd.InputError, match="'past'"):
        here.decide("nothing known", person="1" if persons else None)
    for one in (*offices, fresh):
        one.writer.close()


@pytest.mark.parametrize("persons", [False, True])
def test_contexts_are_kept_until_their_epoch_is_released(store: SqlStore, persons: bool) -> None:
    """Two processes take turns; a fresh one adds up the rounds of open epochs to the same sums."""
    policy = bd.PrivateContextual(
        2, {"age": (0, 10)}, 1.0, rounds=30, per_person=2 if persons else None
    )
    made = experiment(head=policy.to_dict(private=False), deadline_seconds=20.0)
    number = put(store, made)
    offices = [Office(store, number) for _ in range(2)]
    fresh, dice, waiting = Office(store, number), random.Random(5), list[str]()
    for step in range(50):
        here = offices[step % 2]
        here.now = float(step)
        if waiting and dice.random() < 0.5:
            here.reward(waiting.pop(dice.randrange(len(waiting))), 0.25)
        else:
            person = f"{dice.randrange(12)}" if persons else None
            here.decide(f"{step}", person=person, context={"age": dice.random()})
            waiting.append(f"{step}")
        here.expire()
        waiting = [name for name in waiting if step < int(name) + 20]
        if step % 10 == 0:
            fresh.restart()
            states = [one.look(lambda policy: policy.to_dict()) for one in (*offices, fresh)]
            assert states[0] == states[1] == states[2]
    released = store.releases(number)
    assert len(released) == here.look(lambda policy: policy.released) > 1
    with store.transaction() as transaction:
        transaction.lock([number])
        kept = {row.batch for row in transaction.read(number).feedback}
    assert kept.isdisjoint(row.batch for row in released)
    for one in (*offices, fresh):
        one.writer.close()


def test_keys_are_kept_and_revoked(store: SqlStore) -> None:
    key = KeyRow("k1", "web", b"hash", ("decide", "reward"), "exp_1", 1.0)
    store.add_key(key)
    assert store.all_keys() == [key]
    assert store.revoke_key("k1", 2.0)
    assert not store.revoke_key("k1", 3.0)
    assert not store.revoke_key("none", 3.0)
    assert store.all_keys() == [key._replace(revoked_at=2.0)]


def test_tidying_changes_nothing(store: SqlStore) -> None:
    number = put(store, experiment())
    store.tidy()
    assert [one.number for one in store.experiments()] == [number]


def test_blocks_are_read_back_in_order_and_go_with_their_batch(store: SqlStore) -> None:
    number, other = put(store, experiment()), put(store, experiment())
    write(
        store,
        number,
        batches=[BATCH],
        blocks=[SealedBlock(0, b"one"), SealedBlock(COUNTED, b"them")],
    )
    write(
        store,
        number,
        blocks=[SealedBlock(0, b"two"), SealedBlock(1, b"next"), SealedBlock(0, b"three")],
    )
    write(store, other, blocks=[SealedBlock(0, b"theirs")])

    def blocks(batch: int, of: int = number) -> bytes:
        with store.transaction() as transaction:
            transaction.lock([of])
            return b"".join(transaction.blocks(of, batch))

    assert (blocks(0), blocks(1), blocks(COUNTED)) == (b"onetwothree", b"next", b"them")
    write(store, number, releases=[ReleaseRow(0, 1, 3, 1.0, 4.0)], blocks=[SealedBlock(0, b"late")])
    assert (blocks(0), blocks(1), blocks(COUNTED)) == (b"", b"next", b"them")
    assert blocks(0, other) == b"theirs"

"""Saving and loading."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna._core.documents import seal, to_text
from bandanna.policy.codec import VERSION
from bandanna.policy.facade import policy_from_dict
from bandanna.policy.files import claim, marker
from bandanna.privacy.certificate import verify
from tests.contracts.policies import ARMS, EXPERTS, make


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3, seed=1)
    for _ in range(10):
        policy.observe(policy.decide(), loss=0.75)
    policy.save(tmp_path / "policy.json")
    return tmp_path / "policy.json"


def test_the_file_is_readable_private_and_holds_no_release_randomness(saved: Path) -> None:
    text = saved.read_text()
    data = json.loads(text)
    assert data["version"] == VERSION
    assert data["spec"]["arms"] == ["a", "b"]
    assert data["open_batches"][0]["losses"] == [round(0.75 * 2**20)]
    assert "raw feedback" in data["privacy"]
    assert len(text.splitlines()) == len(data) + 2
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert set(data["release"]) == {"name", "epsilon", "batch"}


def test_repeats_in_an_open_batch_are_still_recognised(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(2, 0.5, batch=3)
    decision = policy.decide()
    policy.observe(decision, loss=0.5)
    policy.save(tmp_path / "p.json")
    loaded = bd.load(tmp_path / "p.json")
    loaded.observe(decision, loss=0.5)
    with pytest.raises(bd.DecisionError, match="another value"):
        loaded.observe(decision, loss=0.6)


@settings(deadline=None, max_examples=150)
@given(position=st.integers(0, 10_000), digit=st.integers(0, 9))
def test_a_digit_changed_anywhere_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, position: int, digit: int
) -> None:
    path = tmp_path_factory.mktemp("state") / "policy.json"
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3, seed=1)
    policy.observe(policy.decide(), loss=0.75)
    policy.save(path)
    text = path.read_text()
    digits = [match.start() for match in re.finditer(r"[0-9]", text)]
    at = digits[position % len(digits)]
    changed = text[:at] + str(digit) + text[at + 1 :]
    path.write_text(changed)
    if changed == text:
        bd.load(path)
    else:
        with pytest.raises(bd.StateFileError):
            bd.load(path)


def test_half_a_file_is_refused(saved: Path) -> None:
    saved.write_text(saved.read_text()[:300])
    with pytest.raises(bd.StateFileError, match="damaged: not valid JSON"):
        bd.load(saved)


def test_another_version_is_refused_with_both_named(saved: Path) -> None:
    saved.write_text(saved.read_text().replace(f'"version": {VERSION}', '"version": 99'))
    with pytest.raises(bd.StateFileError, match=rf"has version 99 .* up to {VERSION}"):
        bd.load(saved)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": "something else"}'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "other.json").write_text(content)
    with pytest.raises(bd.StateFileError, match="not a saved policy"):
        bd.load(tmp_path / "other.json")


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(bd.StateFileError, match=r"cannot read .*none\.json"):
        bd.load(tmp_path / "none.json")
    with pytest.raises(bd.StateFileError, match="cannot write"):
        bd.Bandit(2).save(tmp_path / "no" / "folder.json")


def test_a_failed_save_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_text()
    monkeypatch.setattr("os.replace", _full)
    with pytest.raises(bd.StateFileError, match="No space"):
        bd.Bandit(2).save(saved)
    assert saved.read_text() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def _full(*paths: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_save_that_is_killed_leaves_nothing_behind(saved: Path) -> None:
    """SIGKILL while the data is written: no file with raw feedback under any name."""
    program = (
        "import os, signal, bandanna as bd, bandanna._core.documents as documents\n"
        "policy = bd.PrivateBandit(2, 0.5, batch=3)\n"
        "policy.observe(policy.decide(), loss=0.75)\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"policy.save({str(saved)!r})\n"
    )
    before = saved.read_text()
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert saved.read_text() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_file_is_resumed_once(saved: Path) -> None:
    first = bd.load(saved)
    with pytest.raises(bd.StateFileError, match="has been resumed before"):
        bd.load(saved)
    again = bd.load(saved, again=True)
    assert again.guarantee.epsilon == 2 * first.guarantee.epsilon
    assert "resumed 2 times" in again.guarantee.because
    certificate = again.certificate()
    assert (certificate["epsilon"], certificate["resumed"]) == (again.guarantee.epsilon, 1)
    assert all(finding.holds for finding in verify(to_text(certificate)))
    again.save(saved)
    assert bd.load(saved).guarantee.epsilon == 2 * first.guarantee.epsilon
    first.save(saved)  # another content: it may be resumed
    assert bd.load(saved).guarantee == first.guarantee


def test_a_link_to_a_file_that_was_resumed_is_refused(saved: Path) -> None:
    """It is the same file by another name."""
    link = saved.with_name("link.json")
    link.symlink_to(saved)
    bd.load(link)
    for path in (saved, link):
        with pytest.raises(bd.StateFileError, match="resumed before"):
            bd.load(path)


def test_of_many_that_load_at_once_one_is_first(saved: Path) -> None:
    """Threads stand for processes: the lock is the system's, on the file."""
    outcomes: list[bool] = []
    together = threading.Barrier(8)

    def load() -> None:
        together.wait()
        try:
            claim(saved, "a checksum", again=False)
        except bd.StateFileError:
            outcomes.append(False)
        else:
            outcomes.append(True)

    for _ in range(20):
        marker(saved).unlink(missing_ok=True)
        outcomes.clear()
        threads = [threading.Thread(target=load) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == [False] * 7 + [True]


def test_a_pinned_epsilon_counts_how_often_a_file_was_resumed(saved: Path) -> None:
    """Twice resumed is twice the epsilon, and more than was asked for; nothing is marked."""
    bd.load(saved, epsilon=0.5)
    before = marker(saved).read_bytes()
    with pytest.raises(bd.StateFileError, match="promises less"):
        bd.load(saved, epsilon=0.5, again=True)
    assert marker(saved).read_bytes() == before
    assert bd.load(saved, epsilon=1.0, again=True).guarantee.epsilon == 1.0


def test_a_save_or_load_that_fails_takes_no_feedback_along(saved: Path) -> None:
    """Neither in the message nor in the variables of the frames, which error reporters show."""
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3, seed=1)
    policy.observe(policy.decide(), loss=0.6180339)
    units = str(round(0.6180339 * 2**20))
    policy.save(saved)
    data = json.loads(saved.read_text())
    assert units in str(data)
    del data["checksum"]
    data["open_batches"][0]["losses"][0] = f"x{units}"
    damaged, forged = saved.with_name("damaged.json"), saved.with_name("forged.json")
    damaged.write_text(to_text(data | {"checksum": "none"}))
    forged.write_text(to_text(data | {"checksum": seal(data)}))
    actions: list[Callable[[], object]] = [
        partial(policy.save, saved.parent / "no such folder" / "policy.json"),
        partial(bd.load, damaged),
        partial(bd.load, forged),
    ]
    for action in actions:
        with pytest.raises(bd.StateFileError) as failure:
            action()
        error: BaseException | None = failure.value
        assert units not in str(error)
        while error is not None:
            trace = error.__traceback__
            while trace is not None:
                if trace.tb_frame.f_code is not sys._getframe().f_code:
                    assert units not in repr(trace.tb_frame.f_locals)
                trace = trace.tb_next
            error = error.__context__


def test_a_torn_mark_counts_as_one(saved: Path) -> None:
    """A mark that cannot be read was written for something."""
    marker(saved).write_text('{"checksum": "ab')
    with pytest.raises(bd.StateFileError, match="resumed before"):
        bd.load(saved)


def test_what_was_decided_after_the_save_cannot_be_credited_to_someone_else(
    tmp_path: Path,
) -> None:
    policy = bd.PrivateBandit(2, 0.5, batch=4, seed=1)
    known = policy.decide()
    policy.save(tmp_path / "p.json")
    lost = policy.decide()  # then the process dies
    loaded = bd.load(tmp_path / "p.json")
    fresh = loaded.decide()
    assert (fresh.batch, fresh.position) == (lost.batch, lost.position)
    assert fresh.policy != lost.policy
    with pytest.raises(bd.DecisionError, match="made after the file was saved"):
        loaded.observe(lost, loss=1.0)
    loaded.observe(known, loss=0.5)
    loaded.observe(fresh, loss=0.25)
    loaded.save(tmp_path / "q.json")
    last = bd.load(tmp_path / "q.json")
    last.observe(known, loss=0.5)
    last.observe(fresh, loss=0.25)
    with pytest.raises(bd.DecisionError, match="made after the file was saved"):
        last.observe(lost, loss=0.25)


def test_the_epsilon_of_a_file_can_be_pinned(saved: Path) -> None:
    with pytest.raises(bd.StateFileError, match=r"epsilon 0\.5, which promises less"):
        bd.load(saved, epsilon=0.1)
    assert bd.load(saved, epsilon=0.5).guarantee.epsilon == 0.5


@pytest.mark.parametrize(
    "policy",
    [
        bd.Bandit(2, bd.learners.Exp3(2, np.float32(0.1))),  # type: ignore[arg-type]
        bd.Bandit(2, bd.learners.Exp3(2, Fraction(1, 10))),  # type: ignore[arg-type]
        bd.Bandit(2, loss_range=(0, np.float32(2)), default_loss=np.float32(0.5)),  # type: ignore[arg-type]
        bd.PrivateBandit(np.int64(2), Fraction(1, 2), np.int64(1000)),  # type: ignore[arg-type]
    ],
    ids=["float32 rate", "fraction rate", "float32 range", "numpy sizes"],
)
def test_numbers_of_any_library_can_be_saved(policy: Any, tmp_path: Path) -> None:
    policy.save(tmp_path / "p.json")
    bd.load(tmp_path / "p.json").decide()


def test_a_deep_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(bd.StateFileError, match="damaged"):
        bd.load(tmp_path / "deep.json")


BATCHED = "batched-exp4, our constants"


def _first(data: Any) -> Any:
    return data["open_batches"][0]


def _ticket(data: Any) -> Any:
    return next(ticket for _, ticket in _first(data)["waiting"])


FORGERIES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "arm out of range": (BATCHED, lambda d: _ticket(d).update(arm=10**6)),
    "advice that is none": (
        BATCHED,
        lambda d: _ticket(d).update(advice=[[-5.0] * EXPERTS]),
    ),
    "importance below one": (BATCHED, lambda d: _ticket(d).update(importance=0.1)),
    "sums without noise": (BATCHED, lambda d: _first(d)["tally"].update(scale=0.0)),
    "sums that cannot be": (
        BATCHED,
        lambda d: _first(d)["tally"].update(sums=[-1] * EXPERTS),
    ),
    "no sums": (BATCHED, lambda d: _first(d)["tally"].update(sums=[])),
    "a loss to be counted again": (
        BATCHED,
        lambda d: _first(d)["waiting"].append([0, None]),
    ),
    "too few batches": (BATCHED, lambda d: d["counters"].update(batches=0)),
    "one batch twice": (
        BATCHED,
        lambda d: d["open_batches"].append(_first(d)),
    ),
    "another algorithm": (
        BATCHED,
        lambda d: d["spec"].update(algorithm="one-bit"),
    ),
    "another number of experts": (BATCHED, lambda d: d["release"].update(experts=4)),
    "another mixing": (BATCHED, lambda d: d["release"].update(mixing=0.9)),
    "a release without noise": (
        "one-bit",
        lambda d: d.update(release={"name": "plain", "batch": 2}),
    ),
    "a stream of zeros": ("one-bit", lambda d: d["counters"].update(stream=[0, 0, 0, 0])),
    "negative chances": (
        "one-bit",
        lambda d: d["learned"]["learner"].update(chances=[-1.0, 1.0, 1.0]),
    ),
    "a loss beyond the grid": ("one-bit", lambda d: _first(d)["losses"].__setitem__(0, 2**21)),
    "a batch that is too small": ("one-bit", lambda d: _first(d).update(size=1)),
    "an arm that is none": ("one-bit", lambda d: _first(d).update(choice=ARMS)),
    "a batch without importance": ("one-bit", lambda d: _first(d).update(importance=0.0)),
    "more batches than can be": ("one-bit", lambda d: d["counters"].update(batches=2**70)),
    "rounds that do not add up": ("one-bit", lambda d: d["counters"].update(rounds=1)),
    "more rounds than can be": ("one-bit", lambda d: d["counters"].update(rounds=2**70)),
    "more plays than rounds": ("one-bit", lambda d: d["learned"].update(played=[[0, 99]])),
    "plays of an arm that is none": ("one-bit", lambda d: d["learned"].update(played=[[ARMS, 1]])),
    "two batches with the same room": ("one-bit", lambda d: d["counters"].update(filling=[0, 0])),
    "a room that is none": ("one-bit", lambda d: d["counters"].update(filling=[1])),
    "arms that are none": ("one-bit", lambda d: _among(d, [0, 1, ARMS])),
    "an arm that was not eligible": ("one-bit", lambda d: _among(d, [])),
    "a chance above one": ("one-bit", lambda d: _among(d, [0, 1, 2], chance=1.5)),
    "credit to an arm that is none": ("one-bit", lambda d: _among(d, [0, 1, 2], credited=-1)),
}


def _among(data: Any, arms: list[int], credited: int = 0, chance: float = 0.5) -> None:
    _first(data).update(among=arms, credited=credited, chance=chance)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_files_are_refused(forgery: str, tmp_path: Path) -> None:
    name, forge = FORGERIES[forgery]
    policy = make(name) if name == BATCHED else make(name, batch=3)
    advice = [0, 1, 2, 0, 1] if name == BATCHED else None
    policy.observe(policy.decide(advice), loss=0.5)
    policy.decide(np.full((EXPERTS, ARMS), 1 / 3) if advice else None)
    path = tmp_path / "policy.json"
    policy.save(path)
    data = json.loads(path.read_text())
    del data["checksum"]
    forge(data)
    data["checksum"] = seal(data)
    path.write_text(to_text(data), encoding="utf-8")
    with pytest.raises(bd.StateFileError, match="damaged"):
        bd.load(path)


def test_a_policy_whose_latest_state_was_recorded_keeps_its_identity() -> None:
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3, seed=1)
    decision = policy.decide()
    again = policy_from_dict(json.loads(json.dumps(policy.to_dict())), latest=True)
    assert again.decide() == policy.decide()
    again.observe(decision, loss=0.5)
    assert len(again.to_dict()["counters"]["issuers"]) == 1


def test_whoever_asks_is_told_of_each_release() -> None:
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=2, seed=1)
    told: list[tuple[int, int, int, Any]] = []
    policy.on_release = lambda batch, value: told.append(
        (batch.number, batch.choice, len(batch.losses), value)
    )
    arms = []
    for _ in range(5):
        decision = policy.decide()
        arms.append(decision.index)
        policy.observe(decision, loss=0.5)
    assert [what[:3] for what in told] == [(0, arms[0], 0), (1, arms[2], 0)]
    assert policy.to_dict(private=False)["open_batches"] == []
    assert all(value in (0.0, 1.0) for *_, value in told)


def test_a_refusal_says_why_in_a_word() -> None:
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3, seed=1)
    first, second = policy.decide(), policy.decide()
    policy.observe(first, loss=0.5)
    policy.give_up(second)
    for decision, reason in ((first, "different"), (second, "given up")):
        with pytest.raises(bd.DecisionError) as caught:
            policy.observe(decision, loss=0.25)
        assert caught.value.reason == reason


def test_whoever_stores_people_is_told_who_took_a_slot() -> None:
    policy = bd.PrivateBandit(2, 1.0, per_person=2, rounds_per_slot=1, release="laplace", batch=2)
    people = policy.state.people
    assert people is not None
    people.admitted = set()
    for person in ("ann", "bob", "ann"):
        policy.observe(policy.decide(person=person), loss=0.5)
    everyone = policy.to_dict()["people"]["slots"]
    told = people.take_admitted()
    assert sorted(told.values()) == [1, 2]
    assert {str(count): [person] for person, count in told.items()} == everyone
    assert people.take_admitted() == {}
    assert policy.to_dict(private=False)["people"] == {}


def test_a_slot_is_finished_by_any_decision_in_it() -> None:
    policy = bd.PrivateBandit(2, 1.0, per_person=1, release="laplace", batch=1)
    policy.decide(person="ann")
    second = policy.decide(person="ann")
    policy.finish_slot(second)
    assert policy.released == 1
    with pytest.raises(bd.DecisionError):
        policy.finish_slot(second)
    plain = bd.PrivateBandit(2, 1.0)
    with pytest.raises(bd.DecisionError):
        plain.finish_slot(plain.decide())

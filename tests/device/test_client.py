"""The Python device against a service that misbehaves: what it refuses, repeats and remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients.device.client import Budget, Device, FileStorage, HttpTransport, MemoryStorage

from bandanna import signatures
from bandanna._core.types import InputError
from bandanna.device import (
    RefusalError,
    fingerprint,
    make_release,
    system_words,
)
from tests.device.service import EXPERIMENT, TinyService, tiny_service
from tests.device.vectors import PRIVATE, with_a

KEYS = [signatures.public_key(PRIVATE)]


@pytest.fixture
def service() -> Any:
    with tiny_service() as made:
        yield made


class World:
    """A clock, a storage that outlives programs, and a count of draws."""

    def __init__(self, service: TinyService, path: Path) -> None:
        self.service = service
        self.storage = FileStorage(path / "device.json")
        self.now = 1.9e9
        self.draws = 0

    def program(self, **changes: Any) -> Device:
        """Start the program anew."""
        options: dict[str, Any] = {
            "epsilon": 1.0,
            "budget": Budget(5.0, 30.0),
            "public_keys": KEYS,
            "storage": self.storage,
            "clock": lambda: self.now,
            "words": self.words,
        }
        transport = HttpTransport(self.service.url)
        return Device(transport, EXPERIMENT, **(options | changes))

    def words(self, count: int) -> list[int]:
        self.draws += 1
        return system_words(count)


@pytest.fixture
def world(service: TinyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(service, tmp_path)
    decide = service.decision
    # The service's clock is the real one, the device's is not.
    monkeypatch.setattr(service, "decision", lambda event: {**decide(event), "expires_at": None})
    return made


def refused(code: str) -> Any:
    return pytest.raises(RefusalError, check=lambda error: error.code == code)


def test_feedback_leaves_as_one_bit_at_the_fixed_time(world: World) -> None:
    device = world.program()
    decision = device.decide()
    assert decision.arm == "green"
    assert device.feedback(decision.event_id, 0.2)
    assert not device.feedback(decision.event_id, 0.9)
    assert device.flush() == world.now + 60
    assert world.service.bits == []
    world.now += 60
    assert device.flush() is None
    ((event, bit),) = world.service.bits
    assert event == decision.event_id
    assert world.service.bodies == [{"event_id": event}, {"bit": bit}]
    assert "0.2" not in (world.storage.read() or "")


def test_without_feedback_a_bit_of_the_default_is_sent(world: World) -> None:
    device = world.program()
    event, *_ = [device.decide().event_id for _ in range(5)]
    world.now += 60
    assert not device.feedback(event, 0.0)  # too late
    assert world.draws == 0
    device.flush()
    assert world.draws >= 5
    assert len(world.service.bits) == 5
    with refused("event"):
        device.feedback("unknown", 0.0)


def test_a_patched_server_with_sharper_parameters_is_refused(world: World) -> None:
    fair = world.service.release
    a = int(fair["a"])
    for sharper, code in (
        (with_a(fair, a - 1), "epsilon"),
        (make_release(1.0001), "epsilon"),
        ({**make_release(3.0), "epsilon": "1"}, "epsilon"),
        ({**fair, "batch": "7"}, "parameters"),
    ):
        world.service.release = sharper
        with refused(code):
            world.program().decide()
    world.service.release = fair
    world.service.private_key = signatures.make_key().private
    with refused("signature"):
        world.program().decide()
    world.now += 60
    world.program().flush()
    assert world.service.bits == []


def test_a_retry_after_a_lost_answer_sends_the_same_bit(world: World) -> None:
    """Twenty events, three sendings each: fresh draws would all agree with chance 4**-20."""
    device = world.program(epsilon=1.0, budget=Budget(100.0, 30.0))
    for _ in range(20):
        device.decide()
    world.now += 60
    world.service.lost_answers = 40
    for _ in range(4):
        device.flush()
        device.flush()  # too soon: sends nothing
        world.now += 60
    sent: dict[str, list[int]] = {}
    for event, bit in world.service.bits:
        sent.setdefault(event, []).append(bit)
    assert len(sent) == 20
    assert all(len(bits) == 3 and len(set(bits)) == 1 for bits in sent.values())


def test_a_program_that_is_closed_and_reopened_does_not_draw_twice(world: World) -> None:
    event = world.program().decide().event_id
    assert world.program().feedback(event, 0.0)
    drawn = world.draws
    assert not world.program().feedback(event, 1.0)
    world.now += 60
    world.service.lost_answers = 1
    for _ in range(3):
        world.program().flush()
        world.now += 60
    assert world.draws == drawn
    assert len(world.service.bits) == 2
    assert len(set(world.service.bits)) == 1
    assert world.program().kept()["events"][event].keys() == {"send_at", "forget_at", "done"}


def test_the_budget_is_for_a_period_and_charged_once_an_event(world: World) -> None:
    few = Budget(2.0, 30.0)
    event = world.program(budget=few).decide().event_id
    world.program(budget=few).decide(event)
    world.program(budget=few).decide()
    with refused("budget"):
        world.program(budget=few).decide()
    assert world.program(budget=few).kept()["spent"] == 2 * 10**9
    world.now -= 60 * 86_400
    with refused("budget"):
        world.program(budget=few).decide()
    world.now += 120 * 86_400
    world.program(budget=few).decide()


def test_a_change_of_parameters_is_seen(world: World) -> None:
    first = fingerprint(EXPERIMENT, world.service.release)
    assert world.program(fingerprint=first).decide().fingerprint == first
    world.service.release = make_release(0.5)
    with refused("fingerprint"):
        world.program(fingerprint=first).decide()
    second = world.program().decide().fingerprint
    seen = [entry["fingerprint"] for entry in world.program().kept()["history"]]
    assert seen == [first, second]


@pytest.mark.parametrize(
    "changes",
    [
        {"event_id": "another"},
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"expires_at": "2999-01-01T00:00:00"},
        {"expires_at": 7},
    ],
)
def test_answers_that_do_not_fit_are_refused(
    world: World, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fair = world.service.decision
    monkeypatch.setattr(world.service, "decision", lambda event: {**fair(event), **changes})
    with refused("service"):
        world.program().decide()


def test_without_a_storage_that_keeps_it_nothing_is_drawn(world: World) -> None:
    class Forgetful(MemoryStorage):
        def write(self, text: str) -> None:
            pass

    with refused("storage"):
        world.program(storage=Forgetful()).decide()


def test_redirections_are_not_followed_and_no_answer_is_an_oserror(service: TinyService) -> None:
    assert HttpTransport(f"{service.url}/away").post("events/e/bit", {"bit": 1}).status == 307
    assert service.bodies == [{"bit": 1}]
    service.lost_answers = 1
    with pytest.raises(OSError, match=r"[Rr]emote end closed"):
        HttpTransport(service.url).post("events/e/bit", {"bit": 1})
    with pytest.raises(InputError, match="https://"):
        HttpTransport("file:///etc")


def test_options_that_would_weaken_the_promise_by_accident_are_refused(world: World) -> None:
    wrongs: list[dict[str, Any]] = [{"epsilon": 0.0}, {"public_keys": []}, {"delay": 0.0}]
    for wrong in [*wrongs, {"delay": 1e6}]:
        with pytest.raises(InputError, match=next(iter(wrong))):
            world.program(**wrong)
    with pytest.raises(InputError, match=r"budget\.days"):
        world.program(budget=Budget(1.0, 0.0))

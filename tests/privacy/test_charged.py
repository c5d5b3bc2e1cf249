"""Certificates of policies that were resumed and charged: they say so, and resist forgery."""

from __future__ import annotations

import json
from typing import Any

import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna.privacy.card import make_card
from bandanna.privacy.certificate import sealed, sign_certificate, verify, with_history
from bandanna.privacy.charges import (
    MOST,
    charged,
    check_charged,
    check_start,
    start_entries,
)
from bandanna.privacy.mechanism import Finding
from bandanna.signatures import make_key

PLAIN = bd.PrivateBandit(2, 0.1, 1000).certificate()


def good(certificate: object, key: bytes | None = None) -> bool:
    return all(finding.holds for finding in verify(json.dumps(certificate), key=key))


@pytest.mark.parametrize("times", [1, 2, 9, 999])
def test_epsilon_is_charged_once_for_each_resumption(times: int) -> None:
    found = charged(PLAIN, times)
    assert found["epsilon"] >= (times + 1) * PLAIN["epsilon"]
    assert found["epsilon"] == pytest.approx((times + 1) * PLAIN["epsilon"])
    assert good(found)
    assert charged(PLAIN, 0) is PLAIN


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.1},
        {"epsilon": 0.29999},
        {"epsilon": "0.3"},
        {"epsilon": None},
        {"resumed": 1},
        {"resumed": 0},
        {"resumed": -3},
        {"resumed": True},
        {"resumed": 2.0},
        {"because": "nothing was released twice"},
        {"certificate": None},
        {"certificate": {"epsilon": 0.1, "delta": 0.0}},
        {"certificate": {**PLAIN, "epsilon": 0.01}},
        {"certificate": charged(PLAIN, 1)},
        {"more": 1},
        {"version": 2},
    ],
)
def test_forged_entries_are_refused(change: dict[str, Any]) -> None:
    assert not good(charged(PLAIN, 2) | change)


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"more": 1}, "file"),
        ({"resumed": 0}, "resumed"),
        ({"resumed": MOST + 1}, "resumed"),
        ({"resumed": 2.0}, "resumed"),
        ({"certificate": None}, "certificate"),
        ({"certificate": {"epsilon": 0.1}}, "certificate"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_else_is_checked(
    change: dict[str, Any], entry: str
) -> None:
    (only,) = check_charged(charged(PLAIN, 2) | change)
    assert (only.entry, only.holds) == (entry, False)
    assert "must" in only.why


def test_what_was_charged_is_named() -> None:
    findings = list(check_charged(charged(PLAIN, MOST)))
    assert [(one.entry, one.holds) for one in findings] == [
        ("resumed", True),
        ("epsilon", True),
        ("delta", True),
    ]
    assert f"{MOST + 1} times" in findings[0].why
    assert f"{MOST + 1} times 0.1" in findings[1].why
    wrong = list(check_charged(charged(PLAIN, 2) | {"because": "of nothing"}))[-1]
    assert (wrong.entry, wrong.holds) == ("because", False)
    assert "the proof says: it was resumed" in wrong.why


def test_delta_is_charged_as_epsilon_is_and_is_at_most_one() -> None:
    person = bd.PrivateBandit(3, 1.0, batch=4, per_person=20, delta=1e-6).certificate()
    found = charged(person, 2)
    assert found["delta"] == pytest.approx(3e-6)
    assert found["delta"] >= 3 * person["delta"]
    assert good(found)
    assert not good(found | {"delta": 2e-6})
    assert charged(person | {"delta": 0.4}, 2)["delta"] == 1.0


def test_a_log_and_a_run_add_up() -> None:
    log: dict[str, Any] = {"epsilon": 0.5}
    assert start_entries(log, 0.25) == {"start_certificate": log, "epsilon_with_start": 0.75}
    assert start_entries(log, 0.25, times=3)["epsilon_with_start"] == 1.25

    def findings(both: object, **times: int) -> list[Finding]:
        data = {"start_certificate": log, "epsilon": 0.25, "epsilon_with_start": both}
        return list(check_start(data, lambda _: [Finding("units", True, "one")], **times))

    inside, together = findings(0.75)
    assert (inside.entry, inside.holds) == ("start_certificate: units", True)
    assert (together.entry, together.holds) == ("epsilon_with_start", True)
    assert "0.75 together" in together.why
    assert findings(1.25, times=3)[1].holds
    for wrong in (1.0, 0.5, "0.75", True):
        assert not findings(wrong)[1].holds


def test_what_cannot_be_computed_is_a_finding() -> None:
    impossible = charged(PLAIN, 2) | {"certificate": PLAIN | {"epsilon": "0.1"}}
    wrong = [one for one in verify(json.dumps(impossible)) if one.entry == "file"]
    assert [one.holds for one in wrong] == [False]
    assert "impossible" in wrong[0].why


def test_a_log_at_the_start_has_a_certificate_of_its_own_kind() -> None:
    rows = {"plan": ["A", "B"] * 40, "lost": [0.0, 1.0] * 40}
    log = bd.answer(rows, arm="plan", outcome="lost", epsilon=0.5)
    assert log.certificate is not None
    started = bd.PrivateBandit(["A", "B"], 1.0, 1000, "phased", start_from=log).certificate()
    assert good(started)
    for wrong in (
        log.certificate | {"format": "another"},
        log.certificate | {"range_epsilon": 0.1},
        log.certificate | {"start_certificate": log.certificate},
        charged(bd.PrivateBandit(2, 0.25, 1000).certificate(), 1),
    ):
        forged = {key: entry for key, entry in started.items() if key != "seals"}
        findings = verify(json.dumps(sealed(forged | {"start_certificate": wrong})))
        named = [one for one in findings if one.entry == "start_certificate: format"]
        assert [one.holds for one in named] == [False]
        assert "from a log" in named[0].why


def test_it_is_signed_as_a_whole_and_written_on_a_card() -> None:
    key, found = make_key(), charged(PLAIN, 1)
    signed = sign_certificate(found, key.private)
    assert good(signed, key.public)
    assert not good(found, key.public)
    assert not good(signed | {"resumed": 2, "epsilon": 1.0}, key.public)
    card = make_card(signed)
    assert "0.2" in {entry.value for entries in card.entries.values() for entry in entries}
    assert "2 times (Lemma" in to_text(card.to_dict())


def test_what_devices_were_told_is_inside() -> None:
    line = {"fingerprint": "a" * 64, "key_id": "b" * 16, "since": "2026-01-01T00:00:00.000Z"}
    local = bd.PrivateBandit(2, 0.1, 1000, release="device").certificate()
    found = with_history(charged(local, 1), [line])
    assert found["certificate"]["parameters"] == [line]
    assert good(found)

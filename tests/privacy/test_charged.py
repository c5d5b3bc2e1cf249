"""Certificates of policies that were resumed and charged: they say so, and resist forgery."""

from __future__ import annotations

import json
from typing import Any

import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna.privacy.card import make_card
from bandanna.privacy.certificate import sign_certificate, verify, with_history
from bandanna.privacy.charges import charged
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

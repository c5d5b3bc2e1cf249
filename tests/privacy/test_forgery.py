"""Every entry of every kind of certificate, changed in many ways and sealed anew."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.types import InputError
from bandanna.privacy import statements
from bandanna.privacy.certificate import short_seal, sign_certificate, verify
from bandanna.privacy.epochs import PROTECTS
from bandanna.privacy.registry import MECHANISMS
from bandanna.signatures import make_key, private_from_pem, public_from_pem, to_pem
from tests import command
from tests.soak import mostly_slow


def answered(**asked: Any) -> bd.logs.LogAnswer:
    """Answer a log whose outcomes are no secret."""
    log = {"plan": ["A", "B"] * 40, "rev": [0.0, 1.0] * 40, "before": [0.0, 1.0, 2.0, 3.0] * 20}
    return bd.answer(log, arm="plan", outcome="rev", epsilon=0.7, **asked)


def answered_ratio() -> Any:
    """Answer a ratio of two columns that are no secret."""
    log = {"plan": ["A", "B"] * 40, "rev": [0.0, 1.0] * 40, "visits": [1.0, 2.0] * 40}
    outcomes: Any = {"rev/visits": {"loss_range": (0, 1), "over_range": (0, 4)}}
    card = bd.compare(log, arm="plan", control="A", epsilon=0.7, outcomes=outcomes)
    return card.certificates[0]


CERTIFICATES: dict[str, Any] = {
    "one-bit": bd.PrivateBandit(3, 0.5, batch=4).certificate(),
    "one-bit, local": bd.PrivateBandit(3, 2.0, batch=1).certificate(),
    "device": bd.PrivateBandit(3, 2.0, release="device").certificate(),
    "metrics": bd.PrivateBandit(
        *(3, 0.7), batch=4, metrics={"refund": (0, 1), "revenue": (-5, 100)}
    ).certificate(),
    "laplace": bd.PrivateBandit(3, 0.5, algorithm="htinf", loss_range=(-1, 4)).certificate(),
    "conversion": bd.PrivateExperts(4, 3, 0.5, algorithm="one-bit").certificate(),
    "one-bit-exp4": bd.PrivateExperts(4, 3, 0.5, 0.0, 10**4, "one-bit-exp4").certificate(),
    "vector-laplace": bd.PrivateExperts(
        4, 3, 0.5, 0.0, 10**5, "batched-exp4", constants="ours"
    ).certificate(),
    "gaussian": bd.PrivateExperts(
        40, 3, 0.5, 1e-6, 10**6, "batched-exp4", constants="ours"
    ).certificate(),
    "composed": bd.PrivateExperts(
        8, 3, 1.0, 0.01, 10**6, "batched-exp4", constants="ours"
    ).certificate(),
    "persons": bd.PrivateBandit(3, 1.0, batch=4, per_person=20, delta=1e-6).certificate(),
    "persons, pure": bd.PrivateBandit(3, 1.0, batch=4, per_person=3).certificate(),
    "persons, experts": bd.PrivateExperts(
        *(40, 3, 0.5, 1e-6, 10**6, "batched-exp4"), constants="ours", per_person=5
    ).certificate(),
    "paper": bd.PrivateExperts(5, 3, 0.5, 1e-6, 10**8, "batched-exp4").certificate(),
    "log": answered().certificate,
    "log, more bought": answered(loss_range="auto", bounds=(0, 9), adjust="before").certificate,
    "log, ratio": answered_ratio(),
    "log, presence": answered(protects="presence", arms=("A", "B")).certificate,
} | {
    f"context, {protects}, delta {delta:g}, {slots} slots": bd.PrivateContextual(
        3, {"age": (0, 99)}, 0.5, delta, 10_000, protects, per_person=slots
    ).certificate()
    for protects in PROTECTS
    for delta in (0.0, 1e-6)
    for slots in (None, 3)
}
NAMES_ALONE = {"software", "sampler_version", "policy", "algorithm", "arms"}
"""Entries that say whose certificate it is and promise nothing: other names are other names."""

SCALES_OF_NO_CONSEQUENCE = {"batch", "experts", "features"}
"""The promise holds for any batch that leaves the model as it is, pure noise for any number of
experts, and Gaussian noise for any number of features; where arithmetic depends on them they are
pinned by it."""

QUICK = (
    *("one-bit", "laplace", "vector-laplace", "one-bit-exp4", "device", "persons", "metrics"),
    *("gaussian", "context, feedback, delta 0, 3 slots", "log", "log, more bought"),
    *("log, ratio", "log, presence"),
)
every_kind = pytest.mark.parametrize("kind", mostly_slow(CERTIFICATES, QUICK))
assert set(QUICK) <= set(CERTIFICATES)


def sealed(data: dict[str, object]) -> str:
    entries = {key: value for key, value in data.items() if key != "seals"}
    return to_text({**entries, "seals": {key: short_seal(key, entries[key]) for key in entries}})


def accepted(data: dict[str, object]) -> bool:
    return all(finding.holds for finding in verify(sealed(data)))


def mutations(value: object) -> Iterator[object]:
    yield from (None, True, False, "", "nothing", [], [None], {}, 0, -1, 1, math.nan, 1e-300)
    yield from (10**400, -0.5, [value], {"value": value})
    if isinstance(value, str):
        yield from (value + " ", value.upper(), value[1:], value.replace(" ", "", 1), value * 2)
        yield from (value[:-1] + "x", "one-bit", "laplace", "vector-laplace", "local", "central")
        yield from (statements.PROTECTED, statements.PROTECTED_WITH_EXPERTS)
        yield from (value + "\n", "everything, forever")
    if isinstance(value, int | float):
        yield from (value + 1, value - 1, 2 * value, value / 2, -value, str(value), value * 1e-6)
        yield from (float(value) * (1 + 1e-6), float(value) * (1 - 1e-6), float(value), 2048, 2**20)
        yield math.inf
    if isinstance(value, list):
        yield from (value[1:], value[:-1], value * 2, value[::-1], [*value, "nothing"])
        yield from ([*value[1:], ""], [None] * len(value), [""] * len(value), ["nothing"] * 9)
        texts = [str(text) for text in value]
        yield from ([text + "?" for text in texts], "; ".join(texts), dict.fromkeys(texts))


@every_kind
def test_no_entry_can_be_changed_so_that_the_promise_changes(kind: str) -> None:
    honest = CERTIFICATES[kind]
    assert accepted(honest)
    for entry in set(honest) - {"seals"}:
        tried = 0
        for value in mutations(honest[entry]):
            if value == honest[entry] and type(value) is type(honest[entry]):
                continue
            tried += 1
            if accepted({**honest, entry: value}):
                assert harmless(entry, honest[entry], value), (entry, value)
        assert tried >= 10
        assert not accepted({key: honest[key] for key in honest if key != entry})
    assert not accepted({**honest, "epsilon_total": 1e-9})


def harmless(entry: str, before: object, after: object) -> bool:
    """Whether a change is one of names, of how a number is written, of order, or promises less."""
    less = "protects", statements.PROTECTED_WITH_EXPERTS, statements.PROTECTED
    if (entry, before, after) == less:
        return True
    if entry in NAMES_ALONE | SCALES_OF_NO_CONSEQUENCE:
        return type(after) is type(before)
    if isinstance(before, list) and isinstance(after, list):
        return sorted(before) == sorted(after)
    if type(after) in (int, float) and isinstance(before, int | float):
        return math.isclose(float(before), float(str(after)), rel_tol=1e-5)
    return False


@every_kind
def test_two_entries_changed_together_do_not_change_the_promise_either(kind: str) -> None:
    honest = CERTIFICATES[kind]
    numbers = [key for key in honest if type(honest[key]) in (int, float) and key != "version"]
    for one in numbers:
        for other in numbers:
            if one < other and {one, other} - NAMES_ALONE - SCALES_OF_NO_CONSEQUENCE:
                for factor in (2, 0.5):
                    forged = {
                        key: type(value)(value * factor) if key in (one, other) else value
                        for key, value in honest.items()
                    }
                    changed = {key for key in honest if forged[key] != honest[key]}
                    risky = changed - NAMES_ALONE - SCALES_OF_NO_CONSEQUENCE
                    assert not risky or not accepted(forged), (one, other, factor)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("one-bit", {"units": 1, "epsilon": 6e-7, "denominator": 0}),
        ("laplace", {"units": 2048, "epsilon": 0.5 * 2048 / 2**20}),
        ("one-bit", {"assumptions": []}),
        ("one-bit", {"assumptions": "nothing"}),
        ("one-bit", {"assumptions": [None] * 6}),
        ("one-bit", {"epsilon": 1e-300}),
        ("one-bit", {"epsilon": 0.6}),
        ("one-bit", {"protects": statements.PROTECTED_WITH_EXPERTS}),
        ("one-bit-exp4", {"protects": statements.PROTECTED_WITH_EXPERTS}),
        ("one-bit-exp4", {"experts": None}),
        ("conversion", {"algorithm": "one-bit-exp4"}),
        ("conversion", {"experts": 1}),
        ("vector-laplace", {"mechanism": "vector-laplace-composed"}),
        ("gaussian", {"mechanism": "vector-laplace-composed"}),
        ("laplace", {"sampler_version": "opendp 0.13.0"}),
        ("laplace", {"loss_low": -1.0, "loss_high": 400.0}),
    ],
)
def test_known_forgeries_are_refused(kind: str, change: dict[str, object]) -> None:
    forged = {**CERTIFICATES[kind], **change}
    if change.get("denominator") == 0:
        a, b, batch = (int(str(forged[key])) for key in ("a", "b", "batch"))
        forged["denominator"] = 2 * a + b * batch
    assert not accepted(forged)


def test_a_number_beyond_floats_is_no_number() -> None:
    text = sealed(CERTIFICATES["one-bit"])
    endless = json.loads(text.replace('"loss_high": 1.0', '"loss_high": 1e999'))
    assert not accepted(endless)


@pytest.mark.parametrize("depth", [100, 300, 900, 990])
def test_deep_entries_are_refused(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    text = to_text(CERTIFICATES["one-bit"]).replace('"units": 1048576', f'"units": {deep}')
    assert not all(finding.holds for finding in verify(text))
    assert not all(finding.holds for finding in verify(text, key=make_key().public))


def test_every_mechanism_is_under_attack() -> None:
    assert {data["mechanism"] for data in CERTIFICATES.values()} == set(MECHANISMS)


def test_a_certificate_names_the_policy_whose_decisions_it_is_about() -> None:
    policy = bd.PrivateExperts(3, 2, 0.5, rounds=1000)
    certificate = policy.certificate()
    assert certificate["policy"] == policy.decide([0, 0, 1]).policy
    assert (certificate["algorithm"], certificate["arms"]) == (policy.algorithm, 2)
    assert certificate["experts"] == 3
    assert bd.PrivateBandit(2, 0.5).certificate()["experts"] is None


@every_kind
def test_a_signature_notices_any_change_at_all(kind: str) -> None:
    keys, others = make_key(), make_key()
    signed = sign_certificate(CERTIFICATES[kind], keys.private)
    text = to_text(signed)
    assert all(finding.holds for finding in verify(text, key=keys.public))
    assert all(finding.holds for finding in verify(text))
    wrong = [finding.entry for finding in verify(text, key=others.public) if not finding.holds]
    assert wrong == ["signature"]
    unsigned = verify(to_text(CERTIFICATES[kind]), key=keys.public)
    assert [finding.entry for finding in unsigned if not finding.holds] == ["signature"]
    for entry in set(signed) - {"signature", "seals", "version"}:
        for value in (None, "x", 17):
            if value == signed[entry]:
                continue
            forged = sealed(
                {key: signed[key] for key in signed if key != "signature"} | {entry: value}
            )
            data = json.loads(forged) | {"signature": signed["signature"]}
            assert not all(finding.holds for finding in verify(to_text(data), key=keys.public))
    for mark in ("", "AAAA", None, 7, signed["signature"][:-4], "é" * 88):
        data = {**signed, "signature": mark}
        assert not all(finding.holds for finding in verify(to_text(data), key=keys.public))


def test_what_is_no_key_is_refused() -> None:
    key = make_key()
    pem = to_pem(key)
    assert (private_from_pem(pem.private), public_from_pem(pem.public)) == key
    for wrong in (b"", b"nonsense", key.private, pem.public):
        with pytest.raises(InputError, match="no private Ed25519 key"):
            private_from_pem(wrong)
    with pytest.raises(InputError, match="no public Ed25519 key"):
        public_from_pem(pem.private)
    with pytest.raises(InputError, match="a public key is 32 bytes"):
        verify(to_text(sign_certificate(CERTIFICATES["one-bit"], key.private)), key=b"short")


def test_the_command_line_makes_keys_signs_and_checks(tmp_path: Path) -> None:
    bandanna = partial(command.bandanna, cwd=tmp_path)
    path = tmp_path / "certificate.json"
    path.write_text(to_text(CERTIFICATES["one-bit"]))
    assert bandanna("certificate", "keygen", "mine.pem", "mine.pub").returncode == 0
    assert (tmp_path / "mine.pem").stat().st_mode & 0o077 == 0
    again = bandanna("certificate", "keygen", "mine.pem", "other.pub")
    assert again.returncode == 2
    assert "never overwritten" in again.stderr
    assert bandanna("verify", "certificate.json", "--key", "mine.pub").returncode == 1
    assert bandanna("certificate", "sign", "certificate.json", "--key", "mine.pem").returncode == 0
    good = bandanna("verify", "certificate.json", "--key", "mine.pub")
    assert good.returncode == 0
    assert "signature: by the owner of key" in good.stdout
    path.write_text(sealed({**CERTIFICATES["one-bit"], "units": 1}))
    refused = bandanna("certificate", "sign", "certificate.json", "--key", "mine.pem")
    assert refused.returncode == 2
    assert "does not verify: units" in refused.stderr

"""Bits that devices released: handed on as they came, certified, and drawn here only if missing."""

from __future__ import annotations

import json

import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.privacy import DeviceRelease, OneBitRelease
from bandanna.privacy.certificate import short_seal, verify, with_history
from bandanna.privacy.statements import DRAWN_ON_DEVICE


def test_a_bit_is_handed_on_as_it_came() -> None:
    for bit in (0, 1):
        for _ in range(30):  # a release that drew again would agree with chance below 1e-9
            tally = DeviceRelease(0.1).start()
            tally.add(bit)
            assert tally.publish() == bit


def test_losses_and_other_batches_are_refused_without_repeating_them() -> None:
    with pytest.raises(InputError, match="a loss is not taken here") as refused:
        DeviceRelease(1.0).start().add(314159)
    assert "314159" not in str(refused.value)
    for wrong in (lambda: DeviceRelease(1.0, 2), lambda: DeviceRelease(1.0).start(2)):
        with pytest.raises(InputError, match="batch"):
            wrong()


def test_it_has_the_law_of_the_one_bit_release_in_batches_of_one() -> None:
    release = DeviceRelease(0.7)
    assert release.in_process() == OneBitRelease(0.7, 1)
    assert (release.a, release.b) == (release.in_process().a, release.in_process().b)
    assert release.fast() == release.in_process().fast()


def test_a_bit_that_never_came_has_the_mean_of_the_default_loss() -> None:
    """20,000 draws; a false alarm beyond five standard deviations is rarer than 1e-6."""
    release, draws = DeviceRelease(1.0), 20_000
    for units in (0, UNITS // 2, UNITS):
        share = sum(release.default_feedback(units) for _ in range(draws)) / draws
        chance = release.bins(units).chances[1]
        assert abs(share - chance) < 5.0 * (chance * (1 - chance) / draws) ** 0.5


def test_its_certificate_names_the_device_and_is_checked() -> None:
    policy = bd.PrivateBandit(3, 0.5, release="device")
    certificate = policy.certificate()
    assert (certificate["mechanism"], certificate["model"]) == ("device-bit", "local")
    assert "operator among them" in certificate["protects"]
    assert DRAWN_ON_DEVICE in certificate["assumptions"]
    text = to_text(certificate)
    assert all(finding.holds for finding in verify(text))
    for entry, value in (("mechanism", "one-bit"), ("sampler", "secrets.randbelow"), ("batch", 2)):
        changed = json.loads(text) | {entry: value}
        assert not all(finding.holds for finding in verify(json.dumps(changed)))


def test_a_certificate_without_what_is_assumed_of_devices_is_refused() -> None:
    data = bd.PrivateBandit(3, 0.5, release="device").certificate()
    data["assumptions"].remove(DRAWN_ON_DEVICE)
    data["seals"]["assumptions"] = short_seal("assumptions", data["assumptions"])
    wrong = [finding for finding in verify(to_text(data)) if not finding.holds]
    assert [finding.entry for finding in wrong] == ["assumptions"]


def test_a_certificate_may_list_what_devices_were_told() -> None:
    told = {"fingerprint": "0a" * 32, "key_id": "0123456789abcdef", "since": "2030-01-31T12:00:00Z"}
    certificate = bd.PrivateBandit(3, 0.5, release="device").certificate()
    good = with_history(certificate, [told])
    assert all(finding.holds for finding in verify(to_text(good)))
    for wrong in ([told | {"note": "safe"}], [told | {"key_id": "none"}], ["trust us"]):
        found = verify(to_text(with_history(certificate, wrong)))  # type: ignore[arg-type]
        assert {finding.entry for finding in found if not finding.holds} == {"parameters"}
    central = bd.PrivateBandit(3, 0.5, batch=1).certificate()
    found = verify(to_text(with_history(central, [told])))
    assert [finding.entry for finding in found if not finding.holds] == ["parameters"]

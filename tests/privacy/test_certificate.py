from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna.algorithms import names
from bandanna.privacy.certificate import line_of, short_seal, verify
from tests.command import bandanna


@pytest.mark.parametrize("algorithm", names(with_experts=False, private=True))
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_every_private_policy_has_a_certificate_that_verifies(
    algorithm: str, epsilon: float
) -> None:
    policy = bd.PrivateBandit(3, epsilon, 100_000, algorithm, loss_range=(-1, 5))
    certificate = policy.certificate()
    findings = verify(to_text(certificate))
    assert all(finding.holds for finding in findings), findings
    assert any("dp-accounting" in finding.why for finding in findings)
    assert certificate["epsilon"] == epsilon
    assert certificate["loss_high"] == 5
    assert all("arrives" not in key for key in certificate)


@pytest.mark.parametrize("algorithm", names(with_experts=True, private=True))
def test_every_private_policy_with_experts_has_one_too(algorithm: str) -> None:
    policy = bd.PrivateExperts(5, 3, 0.5, 1e-6, 10**8, algorithm, clip=True)
    findings = verify(to_text(policy.certificate()))
    assert all(finding.holds for finding in findings), findings


TEXT = to_text(bd.PrivateBandit(3, 0.5, batch=4).certificate())
DIGITS = [match.start() for match in re.finditer(r"[0-9]", TEXT)]


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(DIGITS), st.integers(0, 9))
def test_one_digit_changed_is_noticed_with_its_line(position: int, digit: int) -> None:
    changed = TEXT[:position] + str(digit) + TEXT[position + 1 :]
    findings = verify(changed)
    if changed == TEXT:
        assert all(finding.holds for finding in findings)
        return
    broken = [finding for finding in findings if not finding.holds]
    assert broken
    number = TEXT[:position].count("\n") + 1
    lines = {line_of(changed, finding.entry) for finding in broken}
    last = len(TEXT.splitlines()) - 1  # a changed seal is reported at the entry it belongs to
    assert number in lines or number == last or "JSON" in broken[0].why


LAPLACE = to_text(bd.PrivateBandit(3, 0.5, algorithm="htinf").certificate())


def reseal(text: str, change: dict[str, object], drop: tuple[str, ...] = ()) -> str:
    data = {key: value for key, value in json.loads(text).items() if key not in drop} | change
    data["seals"] = {key: short_seal(key, data[key]) for key in data if key != "seals"}
    return to_text(data)


def wrong(text: str) -> set[str]:
    return {finding.entry for finding in verify(text) if not finding.holds}


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"epsilon": 0.4}, "epsilon"),
        ({"epsilon": "1_0"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": 1e308}, "epsilon"),
        ({"a": 3_000_000_000_000}, "denominator"),
        ({"a": -1}, "a"),
        ({"a": 3, "b": 1.999, "units": 1, "denominator": 14}, "b"),
        ({"batch": 5}, "denominator"),
        ({"batch": "4"}, "batch"),
        ({"batch": 0}, "batch"),
        ({"units": 0}, "units"),
        ({"units": "many"}, "units"),
        ({"delta": 1e-3}, "delta"),
        ({"delta": False}, "delta"),
        ({"model": "local"}, "model"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"loss_low": 7.0}, "loss_low"),
        ({"loss_low": "a"}, "loss_low"),
        ({"protects": "everything, forever"}, "protects"),
        ({"sampler": "random.random, seed 0"}, "sampler"),
        ({"assumptions": []}, "assumptions"),
        ({"epsilon_total": 1e-9}, "epsilon_total"),
        ({"scale": 5.0}, "scale"),
        ({"version": True}, "version"),
    ],
)
def test_a_forger_who_renews_the_seals_is_caught_by_arithmetic(
    change: dict[str, object], entry: str
) -> None:
    assert wrong(reseal(TEXT, {})) == set()
    assert entry in wrong(reseal(TEXT, change))


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"units": 1.999, "scale": 2.0}, "units"),
        ({"units": -4, "scale": -8.0}, "units"),
        ({"scale": "2097152"}, "scale"),
        ({"scale": 1000.0}, "epsilon"),
        ({"batch": 1.5}, "batch"),
    ],
)
def test_forged_laplace_certificates(change: dict[str, object], entry: str) -> None:
    assert wrong(reseal(LAPLACE, {})) == set()
    assert entry in wrong(reseal(LAPLACE, change))


@pytest.mark.parametrize("entry", ["protects", "assumptions", "because", "sampler"])
def test_entries_left_out_are_missed(entry: str) -> None:
    assert entry in wrong(reseal(TEXT, {}, drop=(entry,)))


def test_repeated_entries_and_endless_numbers_are_refused() -> None:
    twice = TEXT.replace('"epsilon": 0.5', '"epsilon": 0.001, "epsilon": 0.5')
    assert "repeated entries: epsilon" in verify(twice)[0].why
    endless = TEXT.replace('"loss_high": 1.0', '"loss_high": Infinity')
    assert "Infinity" in verify(endless)[0].why
    assert not verify("[" * 200_000)[0].holds


@pytest.mark.parametrize("epsilon", [36.0, 50.0, 100.0])
@pytest.mark.parametrize("batch", [1, 4])
def test_honest_certificates_with_little_privacy_verify_too(epsilon: float, batch: int) -> None:
    assert wrong(to_text(bd.PrivateBandit(2, epsilon, batch=batch).certificate())) == set()


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"format": "bandanna certificate"}'])
def test_what_is_no_certificate_is_refused(text: str) -> None:
    assert not all(finding.holds for finding in verify(text))


def test_without_privacy_there_is_nothing_to_certify() -> None:
    with pytest.raises(bd.InputError, match="nothing to certify"):
        bd.Bandit(2).certificate()


def test_the_command_says_yes_or_no(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(TEXT)
    good = bandanna("verify", str(path))
    assert good.returncode == 0
    assert good.stdout.splitlines()[-1].startswith("yes")
    path.write_text(TEXT.replace('"epsilon": 0.5', '"epsilon": 0.4'))
    bad = bandanna("verify", str(path))
    assert bad.returncode == 1
    assert "WRONG  line 9, epsilon" in bad.stdout
    assert bad.stdout.splitlines()[-1].startswith("no")
    path.unlink()
    gone = bandanna("verify", str(path))
    assert gone.returncode == 2
    assert gone.stderr.startswith("error: cannot read")

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.documents import to_text
from bandanna.policies import ALGORITHMS
from bandanna.privacy.certificate import _short_seal, line_of, verify


@pytest.mark.parametrize("algorithm", ALGORITHMS)
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


TEXT = to_text(bd.PrivateBandit(3, 0.5, batch=4).certificate())
DIGITS = [match.start() for match in re.finditer(r"[0-9]", TEXT)]


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(DIGITS), st.integers(0, 9))
def test_one_digit_changed_is_noticed_with_its_line(place: int, digit: int) -> None:
    changed = TEXT[:place] + str(digit) + TEXT[place + 1 :]
    findings = verify(changed)
    if changed == TEXT:
        assert all(finding.holds for finding in findings)
        return
    wrong = [finding for finding in findings if not finding.holds]
    assert wrong
    number = TEXT[:place].count("\n") + 1
    lines = {line_of(changed, finding.entry) for finding in wrong}
    last = len(TEXT.splitlines()) - 1  # a changed seal is reported at the entry it belongs to
    assert number in lines or number == last or "JSON" in wrong[0].why


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"epsilon": 0.4}, "epsilon"),
        ({"a": 3_000_000_000_000}, "denominator"),
        ({"batch": 5}, "denominator"),
        ({"delta": 1e-3}, "delta"),
        ({"model": "local"}, "model"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"loss_low": 7.0}, "loss_low"),
        ({"a": -1}, "denominator"),
        ({"units": "many"}, "file"),
    ],
)
def test_a_forger_who_renews_the_seals_is_caught_by_arithmetic(
    change: dict[str, object], entry: str
) -> None:
    data = json.loads(TEXT)
    data.update(change)
    data["seals"] = {key: _short_seal(key, data[key]) for key in data if key != "seals"}
    wrong = [finding.entry for finding in verify(to_text(data)) if not finding.holds]
    assert entry in wrong


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"format": "bandanna certificate"}'])
def test_what_is_no_certificate_is_refused(text: str) -> None:
    assert not all(finding.holds for finding in verify(text))


def test_without_privacy_there_is_nothing_to_certify() -> None:
    with pytest.raises(bd.InputError, match="nothing to certify"):
        bd.Bandit(2).certificate()


def test_the_command_says_yes_or_no(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(TEXT)
    command = [sys.executable, "-m", "bandanna", "verify", str(path)]
    good = subprocess.run(command, capture_output=True, text=True, check=False)
    assert good.returncode == 0
    assert good.stdout.splitlines()[-1].startswith("yes")
    path.write_text(TEXT.replace('"epsilon": 0.5', '"epsilon": 0.4'))
    bad = subprocess.run(command, capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "WRONG  line 5, epsilon" in bad.stdout
    assert bad.stdout.splitlines()[-1].startswith("no")
    path.unlink()
    gone = subprocess.run(command, capture_output=True, text=True, check=False)
    assert gone.returncode == 2
    assert gone.stderr.startswith("error: cannot read")

"""The Python device draws what the vectors say, and what the library's release would."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.audits.attack import audit
from bandanna.device import RefusalError, check_release, draw_bit, make_release, to_units
from bandanna.privacy import OneBitRelease
from tests.device.vectors import PATH, TINY, GivenWords, refusal, text

VECTORS = json.loads(PATH.read_text("utf-8"))
epsilons = st.one_of(st.floats(1e-6, 5.0), st.floats(1e-9, 100.0))


def test_the_vectors_are_up_to_date() -> None:
    assert PATH.read_text("utf-8") == text(), "python -m tests.device.vectors writes them again"


def test_vectors_hold() -> None:
    """Also when the file was written by another version of this code."""
    for case in VECTORS["draws"]:
        words = GivenWords(case["words"])
        bit = draw_bit(check_release(case["release"], 100.0), int(case["units"]), words)
        assert (bit, words.used) == (case["bit"], case["used"])
    for case in VECTORS["checks"]:
        assert refusal(case["release"], case["allowed"]) == case["refused"]
    for case in VECTORS["losses"]:
        parameters = check_release(case["release"], 1.0)
        assert [str(to_units(parameters, loss)) for loss in case["losses"]] == case["units"]


@settings(deadline=None)
@given(epsilons)
def test_it_is_the_librarys_release_at_batch_1(epsilon: float) -> None:
    parameters = check_release(make_release(epsilon), epsilon)
    release = OneBitRelease(epsilon, batch=1)
    assert (parameters.a, parameters.b) == (release.a, release.b)
    assert (parameters.denominator, parameters.units) == (release.denominator, UNITS)


@settings(deadline=None)
@given(epsilons, st.integers(0, UNITS))
def test_the_bit_says_whether_the_number_is_below_the_edge(epsilon: float, units: int) -> None:
    parameters = check_release(make_release(epsilon), epsilon)
    edge = parameters.a + parameters.b * units
    length = -(-(parameters.denominator - 1).bit_length() // 32)
    for number, bit in ((edge - 1, 1), (edge, 0)):
        words = [number >> 32 * index & 0xFFFFFFFF for index in reversed(range(length))]
        assert draw_bit(parameters, units, GivenWords(words)) == bit


@pytest.mark.parametrize("units", [0, 1])
def test_every_number_below_d_is_as_likely_as_any_other(units: int) -> None:
    """D is 3: of 0 to 3 the last is thrown away, and 1 + S of the others give a 1."""
    parameters = check_release(TINY, 1.0)
    bits = [draw_bit(parameters, units, GivenWords([3, word])) for word in range(3)]
    assert Fraction(sum(bits), 3) == Fraction(1 + units, 3)


@pytest.mark.slow
def test_the_audit_finds_nothing_and_almost_everything() -> None:
    """False alarm: 1e-6 by the audit's significance, and seven standard deviations below."""
    parameters = check_release(make_release(2.0), 2.0)
    result = audit(
        lambda: draw_bit(parameters, parameters.units),
        lambda: draw_bit(parameters, 0),
        2.0,
        draws=100_000,
        significance=1e-6,
    )
    assert 0.94 * 2.0 < result.epsilon < 2.0


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), "0.2", None, True, 1.5, -0.5])
def test_losses_that_are_none_are_refused(loss: float) -> None:
    with pytest.raises(RefusalError, match=r"^a loss must be a number from 0 to 1$"):
        to_units(check_release(make_release(1.0), 1.0), loss)


def test_releases_that_nobody_would_accept_are_not_made() -> None:
    for wrong in ({"loss_low": 2.0}, {"default_loss": 2.0}, {"loss_high": float("inf")}):
        with pytest.raises(InputError, match="refused by every device"):
            make_release(1.0, **wrong)
    with pytest.raises(InputError, match="epsilon must be"):
        make_release(1000.0)


def test_numpy_is_not_needed() -> None:
    script = (
        "import sys, bandanna.device as device;"
        "device.draw_bit(device.check_release(device.make_release(1.0), 1.0), 0);"
        "assert not {'numpy', 'numba', 'cryptography'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

"""The one-bit release keeps its promise in exact arithmetic."""

from __future__ import annotations

import secrets
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandanna._core.grid import UNITS
from bandanna.privacy import OneBitRelease
from bandanna.privacy.exact_arithmetic import exp_floor, integers_satisfy

epsilons = st.one_of(st.floats(1e-6, 5.0), st.floats(1e-9, 100.0))
batches = st.integers(1, 10_000)


def exponential(epsilon: float) -> Fraction:
    """exp(epsilon) to 120 digits, by another library than the one under test."""
    with localcontext() as context:
        context.prec = 120
        return Fraction(Decimal(epsilon).exp())


def chance_of_one(release: OneBitRelease, total: int) -> Fraction:
    return Fraction(release.a + release.b * total, release.denominator)


@settings(deadline=None)
@given(epsilons, batches, st.data())
def test_no_neighbouring_batches_can_be_told_apart_by_more_than_epsilon(
    epsilon: float, batch: int, data: st.DataObject
) -> None:
    """Change one loss arbitrarily: both bits' probabilities change by at most exp(epsilon)."""
    release = OneBitRelease(epsilon, batch)
    rest = data.draw(st.integers(0, (batch - 1) * UNITS))
    one, other = data.draw(st.integers(0, UNITS)), data.draw(st.integers(0, UNITS))
    p, q = chance_of_one(release, rest + one), chance_of_one(release, rest + other)
    limit = exponential(epsilon)
    assert p <= limit * q
    assert 1 - p <= limit * (1 - q)
    assert 0 < p < 1


@settings(deadline=None)
@given(epsilons, batches)
def test_the_worst_case_uses_up_epsilon_and_no_more(epsilon: float, batch: int) -> None:
    release = OneBitRelease(epsilon, batch)
    worst = chance_of_one(release, UNITS) / chance_of_one(release, 0)
    assert worst == Fraction(release.a + release.b * UNITS, release.a)
    limit = exponential(epsilon)
    assert worst <= limit
    assert worst - 1 >= (limit - 1) * (1 - Fraction(1, 10**9))
    assert integers_satisfy(release.a, release.b, epsilon, UNITS)
    assert not integers_satisfy(release.a * 999 // 1000, release.b, epsilon, UNITS)


@settings(deadline=None)
@given(st.floats(0, 100))
def test_exp_floor_is_a_tight_lower_bound(x: float) -> None:
    exact = exponential(x)
    bound = exp_floor(Fraction(x))
    assert bound <= exact * (1 + Fraction(1, 10**118))
    assert exact - bound <= exact / 2**200


def test_slope_is_the_formula() -> None:
    release = OneBitRelease(0.5, 7)
    c = 7 * (float(exponential(0.5)) - 1)
    assert release.slope == pytest.approx(c / (2 + c), rel=1e-9)


def test_sums_outside_the_batch_are_clamped(monkeypatch: pytest.MonkeyPatch) -> None:
    release = OneBitRelease(0.5, 2)
    top = release.a + release.b * 2 * UNITS
    monkeypatch.setattr(secrets, "randbelow", lambda limit: top - 1)
    assert release.release(2 * UNITS) == release.release(10**12) == 1.0
    monkeypatch.setattr(secrets, "randbelow", lambda limit: release.a)
    assert release.release(0) == release.release(-(10**12)) == 0.0


def test_randomness_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []

    def randbelow(limit: int) -> int:
        limits.append(limit)
        return 0

    monkeypatch.setattr(secrets, "randbelow", randbelow)
    release = OneBitRelease(0.5, 2)
    release.release(0)
    assert limits == [release.denominator]


@given(epsilons, batches, st.floats(0.0, 0.9))
def test_epsilon_at_a_delta_is_never_below_the_exact_one(
    epsilon: float, batch: int, delta: float
) -> None:
    release = OneBitRelease(epsilon, batch)
    found = release.guarantee().at_delta(delta).epsilon
    low, high = chance_of_one(release, 0), chance_of_one(release, UNITS)
    assert high - exponential(found) * low <= Fraction(delta)
    if delta == 0.0 or found < epsilon:
        assert found == 0.0 or high - exponential(found * (1 - 1e-12)) * low > Fraction(delta)


@pytest.mark.parametrize("total", [0, UNITS, 3 * UNITS])
def test_the_law_of_a_bit_has_two_bins(total: int) -> None:
    release = OneBitRelease(1.0, 3)
    edges, chances = release.bins(total)
    assert edges.tolist() == [0.5]
    assert chances.sum() == pytest.approx(1.0)
    assert chances[1] == pytest.approx(float(chance_of_one(release, total)))

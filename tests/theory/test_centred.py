"""The lemmas of docs/theory/centred.md in eighty digits, and its bounds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from bandanna.learners.centring import entropy_baseline, root_baseline
from bandanna.theory import centred
from bandanna.theory.tsallis import tsallis_inf_regret
from bandanna.theory.tuning import one_bit_price

GRID = [mpmath.mpf(k) / 40 for k in range(-400, 321)]
"""Logarithms of z, from e^-10 to e^8."""


@pytest.fixture(autouse=True)
def _eighty_digits() -> Any:
    with mpmath.workdps(80):
        yield


def b(z: mpf) -> mpf:
    return -z * mpmath.log(z * -mpmath.expm1(-1 / z))


def f(z: mpf) -> mpf:
    return z * (z * (mpmath.exp(b(z) / z) - 1) - b(z))


def r(z: mpf) -> mpf:
    d = mpf(1) / 2 - b(z)
    return z * (d * z * (mpmath.exp(b(z) / z) - 1) + d * d / 2)


def test_the_baseline_rises_from_zero_to_one_half() -> None:
    values = [b(mpmath.exp(y)) for y in GRID]
    assert all(x < y for x, y in itertools.pairwise(values))
    assert 0 < values[0] < mpf("0.0005")
    assert 0 < mpf(1) / 2 - values[-1] < mpf("0.00002")
    large = mpf(1000)
    assert abs(b(large) - (mpf(1) / 2 - 1 / (24 * large))) < mpf("1e-12")


def test_f_increases_to_one_eighth_and_r_stays_below_its_bound() -> None:
    values = [f(mpmath.exp(y)) for y in GRID]
    assert all(x < y for x, y in itertools.pairwise(values))
    assert values[0] > 0
    assert values[-1] < mpf(1) / 8
    assert abs(f(mpf("1e-6")) / mpf("1e-6") - 1) < mpf("1e-4")
    rests = [r(mpmath.exp(y)) for y in GRID]
    assert max(rests) < centred.REST
    assert abs(mpmath.exp(GRID[rests.index(max(rests))]) - mpf("0.202")) < mpf("0.01")


def test_a_step_costs_what_the_proof_says() -> None:
    """The whole excess of an arm's term, for losses of any mean, at several rates."""
    for rate in (mpf("0.001"), mpf("0.05"), mpf(1) / 2):
        for y in GRID[::8]:
            z = mpmath.exp(y)
            p = rate * z
            if p > 1:
                continue
            grown = mpmath.exp(rate * (mpf(1) / 2 - b(z)))
            for x in (mpf(0), mpf(1) / 3, mpf(1)):
                inner = x * mpmath.exp(-(1 - b(z)) / z) + (1 - x) * mpmath.exp(b(z) / z)
                term = p * (grown * (1 + p * (inner - 1)) - 1)
                excess = term + rate * p * (x - mpf(1) / 2)
                allowed = rate**2 * f(z) + rate**3 * mpmath.exp(rate / 2) * r(z)
                assert excess <= allowed + mpf("1e-30")


@pytest.mark.parametrize("logarithm", np.linspace(-60, 40, 101))
def test_the_compiled_baseline_and_cost_are_the_formulas(logarithm: float) -> None:
    z = math.exp(logarithm)
    exact = b(mpf(z))
    baseline, cost = entropy_baseline(z)
    assert baseline == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
    assert cost == pytest.approx(float(f(mpf(z))), rel=2e-11)


@pytest.mark.parametrize("z", [0.0, 5e-324, 1e-300, 1e300])
def test_the_baseline_survives_the_ends_of_the_range(z: float) -> None:
    baseline, cost = entropy_baseline(z)
    assert 0.0 <= baseline <= 0.5
    assert 0.0 <= cost <= 0.125


def tsallis_cost(x: Any, rate: Any, baseline: Any) -> Any:
    """Expected cost of an arm over ``rate sqrt(x) / 2``, the worse of losses 0 and 1."""
    v = rate / (2 * np.sqrt(x))
    d = 0.5 - baseline
    costs = []
    for loss in (0.0, 1.0):
        a = loss - baseline - x * d
        assert np.all(1 + v * a > 0)
        costs.append(a**2 / (1 + v * a))
    return np.maximum(*costs) + x * (1 - x) * d**2 / (1 - v * x * d)


def test_tsallis_baseline_makes_an_arm_cost_what_the_lemma_says() -> None:
    xs = np.concatenate([np.geomspace(1e-10, 0.5, 600), 1 - np.geomspace(0.5, 1e-9, 600)])
    for rate in np.concatenate([np.geomspace(1e-3, 2.0, 60), np.linspace(2.0, 2 * 2**0.5, 60)]):
        baseline = np.array([root_baseline(x, 2 / rate) for x in xs])
        excess = rate * np.sqrt(xs) / 2 * (tsallis_cost(xs, rate, baseline) - 0.25)
        assert np.all(excess <= xs * rate**2 / (32 - 8 * rate) * (1 + 1e-6) + 1e-12)
    for arms in range(2, 200):
        x = 1.0 / arms
        first = 2.0 * math.sqrt(x) * tsallis_cost(x, 4.0, root_baseline(x, 0.5))
        assert arms * first <= math.sqrt(arms) / 2 + 0.52


def test_tsallis_baseline_makes_losses_zero_and_one_cost_the_same() -> None:
    for v in (mpf("1e-8"), mpf(1) / 3, mpf(4), mpf(10) ** 8):
        w = (v + 2 - mpmath.sqrt(v * v + 4)) / (2 * v)
        assert abs(w**2 / (1 - v * w) - w * (1 - w)) < mpf("1e-20")
        assert abs((1 - w) ** 2 / (1 + v * (1 - w)) - w * (1 - w)) < mpf("1e-20")
        assert root_baseline(1e-12, float(1e6 / v)) == pytest.approx(float(w), rel=1e-6)


def test_the_sum_over_rounds_of_the_anytime_rate() -> None:
    t = np.arange(2.0, 10**6)
    rest = np.cumsum(0.5 / (t - np.sqrt(t))) + 0.52
    assert np.all(rest <= 0.5 * np.log(t) + 2.0)


def test_guarantees_at_the_size_that_is_promised() -> None:
    assert centred.one_bit_centred_exp3(10, 10**6, 0.1).regret <= 30_500
    before = math.sqrt((1 + math.tanh(0.5)) * 5e6 * math.log(10)) / math.tanh(0.5)
    assert centred.one_bit_centred_exp4(5, 10, 10**6, 1.0).regret <= 0.7 * before


@pytest.mark.parametrize("arms", [2, 10, 100])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 1.0, 4.0])
def test_centred_bounds_are_below_those_before(arms: int, epsilon: float) -> None:
    new = centred.one_bit_centred_exp3(arms, 10**6, epsilon)
    slope = new.batch / one_bit_price(new.batch, epsilon)
    plain = math.sqrt((1 + slope) * (10**6 // new.batch) * arms * math.log(arms))
    assert new.regret < new.batch / slope * plain + new.batch
    for near in (new.batch - 1, new.batch + 1):
        if near >= 1:
            at = centred.one_bit_centred_exp3(arms, 10**6, epsilon, batch=near)
            assert at.regret >= new.regret * (1 - 1e-4)
    for losses in (1, 20, 1000, 10**6):
        anytime = centred.centred_tsallis_regret(losses, arms, known=False)
        assert anytime < tsallis_inf_regret(losses, arms)
        assert centred.centred_tsallis_regret(losses, arms) <= anytime


def test_the_price_of_tracking() -> None:
    assert centred.tracking_choices(0, 1000, 10) == math.log(10)
    assert centred.tracking_choices(5, 1, 10) == math.log(10)
    for changes in (1, 3, 50, 998):
        exact = centred.tracking_choices(changes, 1000, 10)
        simple = (changes + 1) * math.log(10) + changes * math.log(1000 / changes) + changes
        assert exact <= simple
        counted = math.log(math.comb(999, changes) * 10.0 * 9.0) + (changes - 1) * math.log(9)
        assert exact >= counted  # there are that many sequences
    steady = centred.one_bit_centred_exp3(10, 10**6, 0.1)
    tracking = centred.one_bit_centred_exp3(10, 10**6, 0.1, changes=3)
    assert tracking.regret > steady.regret
    assert one_bit_price(tracking.batch, 0.1) > tracking.batch

"""Noise for vectors: against second computations by SciPy and dp-accounting."""

from __future__ import annotations

import math

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bandanna._core.types import InputError
from bandanna.privacy.calibration import (
    calibrate,
    closed_forms,
    gaussian_delta,
    gaussian_multiplier,
    laplace_multiplier,
    paper_noise,
)
from tests.soak import mostly_slow


@pytest.mark.parametrize(("experts", "gain"), [(10, 3.4), (100, 3.5), (1000, 3.5)])
def test_calibrated_noise_is_far_below_the_papers(experts: int, gain: float) -> None:
    ours = calibrate(1.0, 1e-6, experts)
    paper = paper_noise(1.0, 1e-6, experts)
    assert paper.deviation / ours.deviation >= gain
    assert paper.composed == pytest.approx(3 * math.sqrt(experts * math.log(1e6)))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
def test_the_gaussian_curve_agrees_with_scipy_and_dp_accounting(
    epsilon: float, delta: float
) -> None:
    sigma = gaussian_multiplier(epsilon, delta)
    shift = 1 / (2 * sigma)
    scipy = stats.norm.cdf(shift - epsilon * sigma) - math.exp(epsilon) * stats.norm.cdf(
        -shift - epsilon * sigma
    )
    assert gaussian_delta(epsilon, sigma) == pytest.approx(scipy, rel=1e-6)
    assert scipy <= delta
    assert gaussian_delta(epsilon, sigma * 0.999) > delta
    loss = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    assert loss.get_delta_for_epsilon(epsilon) <= delta * 1.001


@pytest.mark.parametrize("experts", [8, 12])
def test_composed_laplace_noise_is_enough_by_dp_accounting(experts: int) -> None:
    epsilon, delta = 1.0, 1e-3
    scale = laplace_multiplier(epsilon, delta, experts)
    single = pld.from_laplace_mechanism(scale, value_discretization_interval=2e-4)
    assert single.self_compose(experts).get_delta_for_epsilon(epsilon) <= delta * 1.01
    assert scale < experts / epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "experts"),
    [(1.0, 1e-2, 2), (1.0, 1e-2, 4), (0.1, 1e-3, 8), (3.0, 1e-6, 12), (1.0, 1e-6, 8)],
)
def test_nothing_smaller_was_passed_over(epsilon: float, delta: float, experts: int) -> None:
    """What ``calibrate`` does not try could be smaller by one part in a thousand at most."""
    chosen = calibrate(epsilon, delta, experts).deviation
    laws = [noise.deviation for noise in closed_forms(epsilon, delta, experts)]
    composed = math.sqrt(2) * laplace_multiplier(epsilon, delta, experts)
    assert chosen <= min(*laws, composed) * 1.001


@settings(deadline=None)
@given(st.floats(1e-3, 10), st.floats(1e-12, 0.5))
def test_the_multiplier_falls_with_either_parameter(epsilon: float, delta: float) -> None:
    here = gaussian_multiplier(epsilon, delta)
    assert gaussian_multiplier(epsilon * 1.1, delta) <= here
    assert gaussian_multiplier(epsilon, min(delta * 1.1, 0.99)) <= here


def test_without_delta_noise_is_pure_laplace() -> None:
    noise = calibrate(0.5, 0.0, 7)
    assert noise.law == "laplace"
    assert noise.deviation == pytest.approx(math.sqrt(2) * 7 / 0.5)


@pytest.mark.parametrize("delta", [-0.1, 1.0, 2.0, math.nan, "x", None])
def test_impossible_deltas_are_refused(delta: object) -> None:
    with pytest.raises(InputError, match="delta must be"):
        calibrate(1.0, delta, 5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 0.5), (0.5, 0.7), (1.5, 1e-6)])
def test_the_papers_noise_is_refused_outside_its_range(epsilon: float, delta: float) -> None:
    with pytest.raises(InputError, match="batched-exp4"):
        paper_noise(epsilon, delta, 10)


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.4])
def test_the_papers_noise_is_enough_within_its_range(delta: float) -> None:
    noise = paper_noise(1.0, delta, 20)
    single = pld.from_laplace_mechanism(noise.composed, value_discretization_interval=1e-4)
    assert single.self_compose(20).get_delta_for_epsilon(1.0) <= delta


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1.3e-9, 5e-238),
        (1e-9, 1e-250),
        (1e-9, 1e-240),
        (1e-8, 1e-30),
        (1e-6, 0.9),
        (96.8, 1e-249),
        (50.0, 1e-100),
        (1e-9, 0.999),
    ],
)
def test_the_gaussian_curve_is_not_below_the_truth_at_the_ends(
    epsilon: float, delta: float
) -> None:
    """In sixty digits, where floating point loses all of its own."""
    with mpmath.workdps(60 + int(-math.log10(delta))):
        sigma = mpmath.mpf(gaussian_multiplier(epsilon, delta))
        shift, level = 1 / (2 * sigma), mpmath.mpf(epsilon) * sigma
        first = mpmath.erfc((level - shift) / mpmath.sqrt(2)) / 2
        second = mpmath.erfc((level + shift) / mpmath.sqrt(2)) / 2
        assert first - mpmath.exp(epsilon) * second <= delta


@pytest.mark.parametrize("delta", [1e-300, 5e-324, 1e-251])
def test_deltas_that_arithmetic_cannot_follow_are_refused(delta: float) -> None:
    for attempt in (calibrate, paper_noise):
        with pytest.raises(InputError, match="delta must be 0"):
            attempt(0.5, delta, 5)


@pytest.mark.parametrize("epsilon", [1e-9, 1.3e-9, 1e-5, 0.1, 1.0, 30.0, 100.0])
@pytest.mark.parametrize(
    "delta", mostly_slow([1e-250, 5e-238, 1e-100, 1e-20, 1e-6, 0.5], [1e-250, 1e-6])
)
def test_the_bound_on_the_gaussian_curve_is_sound_and_wastes_little(
    epsilon: float, delta: float
) -> None:
    """Between the exact curve and one at a deviation smaller by half a per cent."""
    sigma = gaussian_multiplier(epsilon, delta)
    for factor in (0.5, 0.99, 1.0, 1.01, 2.0):
        assert gaussian_delta(epsilon, sigma * factor) >= exact_delta(epsilon, sigma * factor)
    assert exact_delta(epsilon, sigma) <= delta
    assert exact_delta(epsilon * (1 - 1e-6), 0.995 * sigma) > delta


def exact_delta(epsilon: float, sigma: float) -> mpmath.mpf:
    with mpmath.workdps(400):
        shift, level = 1 / (2 * mpmath.mpf(sigma)), mpmath.mpf(epsilon) * sigma
        first = mpmath.erfc((level - shift) / mpmath.sqrt(2)) / 2
        second = mpmath.erfc((level + shift) / mpmath.sqrt(2)) / 2
        return first - mpmath.exp(epsilon) * second

"""The paper's privacy toolbox."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from research.accounting import (
    Budget,
    advanced_composition,
    basic_composition,
    group_privacy,
    indistinguishable,
    laplace_mechanism,
    local_epsilon,
    max_divergence,
    max_ratio,
    post_process,
    privacy_loss,
    tight_epsilon,
)
from scipy import integrate, stats

from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.privacy import LaplaceRelease, OneBitRelease, PlainRelease

shares = st.lists(st.integers(0, 20), min_size=2, max_size=5).filter(lambda x: sum(x) > 0)


def law(counts: list[int]) -> list[Fraction]:
    return [Fraction(count, sum(counts)) for count in counts]


@settings(deadline=None)
@given(st.data(), st.fractions(0, Fraction(9, 10), max_denominator=20))
def test_max_divergence_is_the_maximum_over_all_events(
    data: st.DataObject, delta: Fraction
) -> None:
    first = data.draw(shares)
    second = data.draw(st.lists(st.integers(0, 20), min_size=len(first), max_size=len(first)))
    if sum(second) == 0:
        second[0] = 1
    p, q = law(first), law(second)
    best = -math.inf
    for size in range(1, len(p) + 1):
        for event in itertools.combinations(range(len(p)), size):
            in_p, in_q = sum(p[i] for i in event), sum(q[i] for i in event)
            if in_p > delta:
                ratio = (in_p - delta) / in_q if in_q else math.inf
                best = max(best, math.log(ratio))
    assert max_divergence(p, q, delta) == pytest.approx(best)
    if delta == 0:
        assert math.log(max_ratio(p, q)) == pytest.approx(best)


def test_indistinguishability_looks_both_ways() -> None:
    p, q = [Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]
    assert indistinguishable(p, q, math.log(2))
    assert indistinguishable(q, p, math.log(2))
    assert not indistinguishable(p, q, math.log(2) - 1e-9)
    assert indistinguishable(p, q, 0.0, delta=Fraction(1, 4))
    assert not indistinguishable(p, q, 0.0, delta=Fraction(24, 100))


def test_composition_and_groups() -> None:
    assert basic_composition([Budget(0.1, 1e-6)] * 3) == pytest.approx((0.3, 3e-6))
    eps, delta = advanced_composition([0.01] * 1000, 1e-5)
    assert eps == pytest.approx(1.5 * 0.1 + math.sqrt(6 * 0.1 * math.log(1e5)))
    assert delta == 1e-5
    assert group_privacy(Budget(0.5), 4) == (2.0, 0.0)
    grown = group_privacy(Budget(0.5, 1e-6), 3)
    assert grown.delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)))
    assert laplace_mechanism(2.0, 0.5) == 4.0
    assert group_privacy(Budget(1.0, 1e-9), 1000).delta == 1.0


def test_post_processing_keeps_the_guarantee() -> None:
    """Merging outcomes cannot raise the divergence."""
    p, q = law([1, 2, 3, 4]), law([4, 3, 2, 1])
    merged_p, merged_q = [p[0] + p[2], p[1] + p[3]], [q[0] + q[2], q[1] + q[3]]
    assert max_divergence(merged_p, merged_q) <= max_divergence(p, q)
    assert (
        max_divergence([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]) == 0.0
    )  # what cannot happen costs nothing
    assert post_process(lambda x: x + 1, str)(2) == "3"
    assert post_process(lambda x, add=1: x + add, str)(2, add=5) == "7"


def test_randomised_response_is_local() -> None:
    release = OneBitRelease(1.0, 1)
    rows = []
    for total in (0, 2**18, 2**20):
        one = Fraction(release.a + release.b * total, release.denominator)
        rows.append([one, 1 - one])
    assert local_epsilon(rows) == pytest.approx(1.0, abs=1e-9)
    assert local_epsilon(rows[:2]) > 0.0
    assert local_epsilon([[0.75, 0.25], [0.25, 0.75]], delta=0.25) == pytest.approx(math.log(2))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("batch", [1, 10])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05])
def test_the_exact_curve_is_dp_accountings(epsilon: float, batch: int, delta: float) -> None:
    for release in (OneBitRelease(epsilon, batch), LaplaceRelease(epsilon, batch)):
        promise = release.guarantee()
        exact = promise.at_delta(delta)
        assert exact.delta == delta
        assert exact.epsilon <= epsilon
        numeric = tight_epsilon(promise, delta)
        assert exact.epsilon == pytest.approx(numeric, abs=2e-4 * epsilon)
        low = privacy_loss(promise, pessimistic=False).get_epsilon_for_delta(delta)
        assert low <= exact.epsilon + 1e-9


def test_one_bit_curve_against_brute_force() -> None:
    """The hockey-stick divergence over every pair of neighbouring sums of a tiny grid."""
    release = OneBitRelease(0.5, 3)
    a, b, denominator, units = release.a, release.b, release.denominator, 2**20
    for epsilon in (0.0, 0.1, 0.3, 0.5):
        growth = Fraction(math.exp(epsilon))
        worst = Fraction(0)
        for low in (0, units, 2 * units):
            p = Fraction(a + b * (low + units), denominator)
            q = Fraction(a + b * low, denominator)
            pairs = ((p, q), (q, p))
            worst = max(worst, *(x - growth * y for x, y in pairs))
            worst = max(worst, *((1 - x) - growth * (1 - y) for x, y in pairs))
        if worst > 0:
            assert release.guarantee().at_delta(float(worst)).epsilon == pytest.approx(epsilon)


def test_a_person_behind_many_rounds() -> None:
    promise = OneBitRelease(0.1, 1).guarantee()
    many = tight_epsilon(promise, 1e-6, rounds=100)
    assert many < 100 * 0.1
    assert many < advanced_composition([0.1] * 100, 1e-6).epsilon
    assert tight_epsilon(promise, 0.0, rounds=7) == pytest.approx(0.7)
    assert promise.for_group(7).epsilon == pytest.approx(0.7)
    assert "7 rounds" in promise.for_group(7).protects
    with pytest.raises(InputError, match=r"for_group\(2\)"):
        tight_epsilon(OneBitRelease(0.1, 5).guarantee(), 1e-6, rounds=2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: max_divergence([0.5, 0.5], [1.0]),
        lambda: max_divergence([0.7, 0.7], [0.5, 0.5]),
        lambda: max_divergence([1.5, -0.5], [0.5, 0.5]),
        lambda: max_divergence([0.5, 0.5], [0.5, 0.5], delta=1.0),
        lambda: advanced_composition([0.1], 0.0),
        lambda: group_privacy(Budget(0.1), 0),
        lambda: laplace_mechanism(0.0, 1.0),
        lambda: tight_epsilon(PlainRelease().guarantee(), 0.1),
        lambda: OneBitRelease(1.0, 1).guarantee().at_delta(1.5),
        lambda: tight_epsilon(OneBitRelease(1.0, 1).guarantee().for_group(3), 1e-9),
        lambda: tight_epsilon(OneBitRelease(1.0, 1).guarantee().at_delta(0.1), 0.0),
        lambda: local_epsilon([[0.5, 0.5]]),
        lambda: OneBitRelease(1.0, 1).guarantee().for_group(2.5),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(call: object) -> None:
    with pytest.raises(InputError):
        call()  # type: ignore[operator]


# The appendix's helper lemmas, as facts about the noise we really draw.


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_hazard_rate_of_laplace_noise(scale: float) -> None:
    """f / (1 - F) is non-decreasing and at most 1/scale: FTPL's stability rests on it."""
    z = np.linspace(-10 * scale, 10 * scale, 2001)
    hazard = stats.laplace(scale=scale).pdf(z) / stats.laplace(scale=scale).sf(z)
    assert (np.diff(hazard) >= -1e-12).all()
    assert hazard.max() <= 1 / scale + 1e-12


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("cut", [0.0, 0.2, 0.9, 2.0, 8.0])
def test_noisy_losses_are_truncated_non_negative(scale: float, loss: float, cut: float) -> None:
    """E[X 1(|X| > M)] >= 0 for X = loss + noise: HTINF's skipping rests on it."""
    density = stats.laplace(loc=loss, scale=scale).pdf
    upper = integrate.quad(lambda x: x * density(x), cut, cut + 60 * scale, points=[max(loss, cut)])
    lower = integrate.quad(lambda x: x * density(x), -cut - 60 * scale, -cut)
    assert upper[0] + lower[0] >= -1e-9


def test_norms_of_laplace_vectors() -> None:
    """Some |Z|^2 >= 10 scale^2 log^2(NT) happens in T rounds with probability at most 1/T."""
    from bandanna.privacy.release import publish_many

    size, rounds, runs = 10, 100, 300
    release = LaplaceRelease(1.0, 1)
    noise = publish_many(release.fast(), 0, release.batch, size * rounds * runs, new_stream(1))
    largest = np.abs(noise.reshape(runs, rounds * size)).max(axis=1)
    exceeded = (largest**2 >= 10 * math.log(size * rounds) ** 2).sum()
    # The true probability is far below 1/T = 0.01; more than 20 of 300 has probability < 1e-9.
    assert exceeded <= 20

"""The exact and the compiled form of a release have the same distribution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna.privacy import LaplaceRelease, OneBitRelease, SeededRelease
from bandanna.privacy.laplace import laplace_scale
from tests.laws import FALSE_ALARM, assert_law

EXACT_DRAWS, FAST_DRAWS = 20_000, 100_000


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("batch", [1, 10])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_one_bit_forms(epsilon: float, batch: int, share: float) -> None:
    release = OneBitRelease(epsilon, batch)
    total = round(share * batch * UNITS)
    chance = Fraction(release.a + release.b * total, release.denominator)
    fast = release.fast()
    assert fast.base + fast.slope * total == pytest.approx(float(chance), rel=1e-12)
    seeded = SeededRelease(release, new_stream(1))
    for form, draws in ((release, EXACT_DRAWS), (seeded, FAST_DRAWS)):
        ones = int(sum(form.release(total) for _ in range(draws)))
        assert stats.binomtest(ones, draws, float(chance)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("batch", [1, 10])
def test_laplace_forms(epsilon: float, batch: int) -> None:
    """Noise in 40 bins of equal probability under the exact discrete law."""
    release = LaplaceRelease(epsilon, batch)
    total = batch * UNITS // 3
    law = stats.dlaplace(1 / laplace_scale(epsilon))
    edges = law.ppf(np.linspace(0, 1, 41)[1:-1])
    bins = np.diff(np.concatenate(([0.0], law.cdf(edges), [1.0])))
    seeded = SeededRelease(release, new_stream(2))
    for form, draws in ((release, EXACT_DRAWS), (seeded, FAST_DRAWS)):
        values = np.array([form.release(total) for _ in range(draws)])
        noise = np.rint(values * batch * UNITS) - total
        counts = np.bincount(np.searchsorted(edges, noise, side="left"), minlength=40)
        assert_law(counts, bins)

"""Beside GrowthBook's gbstats and tea-tasting: the same trial, the same answers without noise."""

from __future__ import annotations

import pytest
from benchmarks.scorecards import OUTCOMES, away, of_gbstats, of_tea_tasting, ours

SMALL, LARGE = 1, 25
"""How often each row is counted."""
ALIKE = {"cd4": (0.01, 0.03), "progressed": (0.01, 0.05), "cd4/cd4_before": (0.05, 0.07)}
"""How far differences and lifts may be from theirs, as a share of their width: ours takes the
larger of two variances for lifts and ratios, and Fieller's interval is not symmetric."""


@pytest.mark.parametrize("metric", OUTCOMES)
def test_means_differences_and_lifts_are_theirs_without_noise(metric: str) -> None:
    means, apart, lift = ours(metric, LARGE, 100.0)
    for theirs in (of_gbstats, of_tea_tasting):
        their_means, their_apart, their_lift = theirs(metric, LARGE)
        assert means == pytest.approx(their_means, rel=2e-3)
        assert away(apart, their_apart) < ALIKE[metric][0]
        assert away(lift, their_lift) < ALIKE[metric][1]


@pytest.mark.parametrize("metric", OUTCOMES)
def test_they_come_nearer_as_epsilon_grows(metric: str) -> None:
    """Widths hardly depend on the noise that was drawn."""
    wide = [ours(metric, SMALL, epsilon)[1] for epsilon in (0.5, 5.0, 50.0)]
    widths = [said.high - said.low for said in wide]
    theirs = of_gbstats(metric, SMALL)[1]
    assert widths[0] > widths[1] > 0.99 * widths[2]
    assert widths[2] == pytest.approx(theirs.high - theirs.low, rel=0.12)

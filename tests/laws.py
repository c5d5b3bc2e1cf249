"""Statistical tests that fail by chance less than once in a million.

Seeds are fixed where the code allows it; where randomness comes from the operating system the
threshold alone keeps false alarms below ``FALSE_ALARM``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

FALSE_ALARM = 1e-6


def assert_same_mean(first: NDArray[np.float64], second: NDArray[np.float64]) -> None:
    """Welch's test at the false-alarm rate."""
    p = stats.ttest_ind(first, second, equal_var=False).pvalue
    assert p > FALSE_ALARM, f"means {np.mean(first)} and {np.mean(second)} differ, p = {p}"


def assert_mean(values: list[float] | NDArray[np.float64], expected: float) -> None:
    """One-sample t-test at the false-alarm rate."""
    p = stats.ttest_1samp(values, expected).pvalue
    assert p > FALSE_ALARM, f"mean {np.mean(values)} is not {expected}, p = {p}"


def assert_law(observed: ArrayLike, probabilities: ArrayLike) -> None:
    """Chi-square test of counts against a law; cells are merged until each expects 10."""
    counts = np.asarray(observed, dtype=float)
    expected = np.asarray(probabilities, dtype=float) * counts.sum()
    merged_counts, merged_expected = [0.0], [0.0]
    for count, expect in zip(counts, expected, strict=True):
        merged_counts[-1] += count
        merged_expected[-1] += expect
        if merged_expected[-1] >= 10:
            merged_counts.append(0.0)
            merged_expected.append(0.0)
    if len(merged_counts) > 1:
        merged_counts[-2] += merged_counts.pop()
        merged_expected[-2] += merged_expected.pop()
    scale = sum(merged_counts) / sum(merged_expected)
    p = stats.chisquare(merged_counts, np.array(merged_expected) * scale).pvalue
    assert p > FALSE_ALARM, f"counts do not follow the law, p = {p}"

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bandanna._core.compiled import step
from bandanna._core.streams import (
    Stream,
    binomial,
    discrete_laplace,
    exponential,
    laplace,
    new_stream,
    uniform,
)
from tests.laws import FALSE_ALARM, assert_law

DRAWS = 200_000


@step
def _uniforms(stream: Stream, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = uniform(stream)


@step
def _exponentials(stream: Stream, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = exponential(stream)


@step
def _laplaces(stream: Stream, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = laplace(stream, 2.5)


@step
def _discrete(stream: Stream, scale: float, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = discrete_laplace(stream, scale)


@step
def _binomials(stream: Stream, trials: int, chance: float, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = binomial(stream, trials, chance)


def test_uniform_matches_the_reference_generator() -> None:
    # Words of xoshiro256++ from the state (1, 2, 3, 4), as its authors' C code prints them.
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386]
    out = np.empty(4)
    _uniforms(np.array([1, 2, 3, 4], dtype=np.uint64), out)
    assert [int(value * 2**53) for value in out] == [word >> 11 for word in expected]


@pytest.mark.parametrize(
    ("fill", "law"),
    [
        (_uniforms, stats.uniform()),
        (_exponentials, stats.expon()),
        (_laplaces, stats.laplace(scale=2.5)),
    ],
)
def test_continuous_laws(fill, law) -> None:  # type: ignore[no-untyped-def]
    out = np.empty(DRAWS)
    fill(new_stream(1), out)
    assert stats.kstest(out, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_discrete_laplace_law(scale: float) -> None:
    out = np.empty(DRAWS)
    _discrete(new_stream(2), scale, out)
    reach = int(20 * scale) + 20
    values = np.arange(-reach, reach + 1)
    counts = [(out == value).sum() for value in values]
    assert sum(counts) == DRAWS
    assert_law(counts, stats.dlaplace(1 / scale).pmf(values))


@pytest.mark.parametrize(
    ("trials", "chance"),
    [(1, 0.3), (7, 0.5), (50, 0.02), (50, 0.97), (100, 0.3), (1000, 0.5), (5000, 0.004)],
)
def test_binomial_law(trials: int, chance: float) -> None:
    out = np.empty(DRAWS, dtype=np.int64)
    _binomials(new_stream(3), trials, chance, out)
    assert out.min() >= 0
    assert out.max() <= trials
    law = stats.binom(trials, chance).pmf(np.arange(trials + 1))
    assert_law(np.bincount(out, minlength=trials + 1), law)


def test_binomial_of_a_billion_trials_has_the_right_moments() -> None:
    out = np.empty(DRAWS, dtype=np.int64)
    _binomials(new_stream(4), 10**9, 0.3, out)
    standardised = (out - 3e8) / np.sqrt(2.1e8)
    assert stats.kstest(standardised, "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize(("trials", "chance", "count"), [(0, 0.5, 0), (9, 0.0, 0), (9, 1.0, 9)])
def test_binomial_without_chance(trials: int, chance: float, count: int) -> None:
    out = np.empty(10, dtype=np.int64)
    _binomials(new_stream(5), trials, chance, out)
    assert (out == count).all()


def test_streams_differ_without_a_seed_and_repeat_with_one() -> None:
    assert (new_stream(7) == new_stream(7)).all()
    assert (new_stream() != new_stream()).any()

"""Five sums behind a ratio: what one unit can move, and that the noise is what it says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.grid import UNITS
from bandanna.audits.attack import audit
from bandanna.counted import squares_of
from bandanna.privacy.card import make_card
from bandanna.privacy.certificate import verify
from bandanna.privacy.ratio import (
    MOST,
    RatioMechanism,
    RatioRelease,
    RatioSums,
    farthest,
    ratio_scale,
)


def five(top: Any, bottom: Any, grid: int) -> Any:
    """Return what units are in, before noise."""
    half = grid // 2
    product = (top - half) * (bottom - half) // grid
    return np.stack(
        [top, squares_of(top, grid), bottom, squares_of(bottom, grid), product], axis=-1
    )


@pytest.mark.parametrize("grid", [2, 4, 6, 8, 12, 24, 36])
def test_one_unit_moves_five_sums_no_further(grid: int) -> None:
    """Every pair of units on smaller grids: the proof holds for any even one."""
    top, bottom = (side.ravel() for side in np.meshgrid(np.arange(grid + 1), np.arange(grid + 1)))
    every = five(top, bottom, grid)
    most = max(int(np.abs(every - one).sum(axis=1).max()) for one in every)
    assert most <= farthest(grid)


def test_the_mechanism_knows_its_own_noise() -> None:
    law = RatioRelease(0.5, 100, (0.0, 20.0)).mechanism
    assert all(finding.holds for finding in law.check(0.5, 0.0))
    assert Fraction(law.scale) * Fraction(0.5) >= MOST
    for scale in (law.scale / 2, law.scale * 2):
        other = RatioMechanism(law.batch, law.units, scale, law.bottom)
        assert not all(finding.holds for finding in other.check(0.5, 0.0))
    fewer = RatioMechanism(law.batch, 2 * UNITS, law.scale, law.bottom)
    assert not all(finding.holds for finding in fewer.check(0.5, 0.0))


@pytest.mark.parametrize(
    ("entry", "value"), [("bottom", [20.0, 0.0]), ("bottom", "0,20"), ("scale", -1.0), ("units", 0)]
)
def test_impossible_entries_are_named(entry: str, value: object) -> None:
    facts = RatioRelease(0.5, 100, (0.0, 20.0)).mechanism.facts() | {entry: value}
    assert [finding.entry for finding in RatioMechanism.impossible(facts)] == [entry]


def test_what_is_released_has_the_noise_it_says() -> None:
    """Means and spreads of 4,000 releases; an alarm by chance is rarer than one in a million."""
    exact = RatioSums(500 * UNITS, 70 * UNITS, 300 * UNITS, 90 * UNITS, -50 * UNITS)
    release, scale = RatioRelease(1.0, 1_000, (0.0, 1.0)), ratio_scale(1.0)
    found: Any = np.array([release.release(exact, 1_000) for _ in range(4_000)])
    apart = (found - np.array(exact)) / scale
    assert np.abs(apart.mean(axis=0)).max() < 5.5 * np.sqrt(2.0 / 4_000)
    assert np.abs(apart.var(axis=0) - 2.0).max() < 5.5 * np.sqrt(20.0 / 4_000)
    assert np.abs(np.corrcoef(apart.T) - np.eye(5)).max() < 5.5 / np.sqrt(4_000)


def attacked(first: tuple[int, int], second: tuple[int, int], units: int) -> bool:
    """Attack all five numbers of one unit that becomes another, with noise made for ``units``."""
    rng, stop = np.random.default_rng(7), -np.expm1(-1.0 / units)  # epsilon 1

    def run(unit: tuple[int, int], draws: int) -> Any:
        noise = rng.geometric(stop, (draws, 5)) - rng.geometric(stop, (draws, 5))
        return (noise + five(np.array(unit[0]), np.array(unit[1]), UNITS)) / UNITS

    found = audit(
        lambda draws: run(first, draws),
        lambda draws: run(second, draws),
        1.0,
        draws=400_000,
        significance=1e-6,
    )
    return found.passed


@pytest.mark.slow
def test_an_attack_finds_at_most_epsilon_and_finds_what_is_left_out() -> None:
    """The bound exceeds the true epsilon with probability 1e-6 at most."""
    far = (0, 0), (5 * UNITS // 6, 5 * UNITS // 6)
    assert attacked(*far, MOST)
    assert not attacked(*far, UNITS), "noise for one of the pairs alone"


def test_a_ratio_is_certified_and_on_the_card() -> None:
    log = {
        "page": ["old", "new"] * 500,
        "spent": np.arange(1_000) % 7,
        "visits": np.arange(1_000) % 3 + 1,
    }
    found = bd.compare(
        log,
        arm="page",
        control="old",
        epsilon=1.0,
        outcomes={"spent/visits": {"loss_range": (0, 10), "over_range": (0, 5), "reward": True}},
    )
    (certificate,) = found.certificates
    assert all(finding.holds for finding in verify(to_text(certificate)))
    assert "divided by is from 0 to 5" in " ".join(certificate["assumptions"])
    assert "two sums, their squares" in make_card(certificate).to_markdown()
    forged = certificate | {"bottom": [0.0, 1.0]}
    assert not all(finding.holds for finding in verify(to_text(forged)))

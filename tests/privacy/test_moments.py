"""Sums with squares beside them, and what is bought with them: what one person can move."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.grid import UNITS
from bandanna.audits.attack import audit
from bandanna.counted import HALF, LARGEST_SQUARE, squares_of
from bandanna.logs.rows import Rows
from bandanna.privacy import bought, log_release
from bandanna.privacy.bought import sides_of
from bandanna.privacy.card import make_card
from bandanna.privacy.certificate import verify
from bandanna.privacy.laplace import MomentsMechanism, laplace_scale
from bandanna.privacy.log_release import LogMechanism, SideRelease, part_scale
from bandanna.privacy.moments import MomentsRelease


@pytest.mark.parametrize("grid", [2, 4, 6, 10, 32, 256, 1024])
def test_sum_and_square_move_by_one_outcome_at_most(grid: int) -> None:
    """Every pair of outcomes on smaller grids: the proof holds for any even one."""
    units = np.arange(grid + 1)
    square = squares_of(units, grid)
    moved = np.abs(units[:, None] - units) + np.abs(square[:, None] - square)
    assert moved.max() == grid
    assert square.max() == grid // 4


def test_the_mechanism_knows_its_own_noise() -> None:
    law = MomentsRelease(0.5, 100).mechanism
    assert all(finding.holds for finding in law.check(0.5, 0.0))
    less = MomentsMechanism(law.batch, law.units, law.scale / 2)
    assert not all(finding.holds for finding in less.check(0.5, 0.0))
    more = MomentsMechanism(law.batch, law.units, law.scale * 2)
    assert not all(finding.holds for finding in more.check(0.5, 0.0))


def test_what_is_released_has_the_noise_it_says() -> None:
    """Means and spreads of 4,000 releases; an alarm by chance is rarer than one in a million."""
    release, scale = MomentsRelease(1.0, 1_000), laplace_scale(1.0)
    drawn = [release.release(500 * UNITS, 70 * UNITS, 1_000) for _ in range(4_000)]
    found: Any = np.array(drawn)
    apart = (found - [500 * UNITS, 70 * UNITS]) / scale
    assert np.abs(apart.mean(axis=0)).max() < 5.0 * np.sqrt(2.0 / 4_000)
    assert np.abs(apart.var(axis=0) - 2.0).max() < 5.0 * np.sqrt(20.0 / 4_000)
    assert abs(np.corrcoef(apart.T)[0, 1]) < 5.0 / np.sqrt(4_000)


def integers(rng: np.random.Generator, scale: float, shape: Any) -> Any:
    """Draw discrete Laplace noise: the difference of two geometric numbers."""
    stop = -np.expm1(-1.0 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


def attacked(first: list[int], second: list[int], epsilon: float = 1.0) -> Any:
    """Attack a sum and a square of one outcome that becomes another."""
    scale, rng = laplace_scale(epsilon), np.random.default_rng(7)

    def run(exact: list[int], draws: int) -> Any:
        return (integers(rng, scale, (draws, 2)) + np.array(exact)) / UNITS

    return audit(
        lambda draws: run(first, draws),
        lambda draws: run(second, draws),
        epsilon,
        draws=400_000,
        significance=1e-6,
    )


def test_an_attack_finds_at_most_epsilon_and_finds_what_is_left_out() -> None:
    """The bound exceeds the true epsilon with probability 1e-6 at most."""
    assert attacked([0, LARGEST_SQUARE], [UNITS, LARGEST_SQUARE]).passed
    assert attacked([HALF, 0], [UNITS, LARGEST_SQUARE]).passed
    around_zero = attacked([0, 0], [UNITS, UNITS])
    assert not around_zero.passed, "squares around 0 would cost twice as much"


def rows(outcomes: Any, before: Any) -> Rows:
    log = {"plan": np.arange(len(outcomes)) % 2, "rev": outcomes, "before": before}
    asked: Any = {"arm": "plan", "outcome": "rev", "loss_range": (0.0, 10.0), "clip": True}
    return Rows.read(log, **asked, person=None, bins=(), adjust="before")


def test_one_person_moves_every_score_and_count_by_one_at_most() -> None:
    """By trying: anyone's outcome and what was known before, replaced by anything."""
    rng = np.random.default_rng(3)
    outcomes, before = rng.uniform(0, 10, 61), rng.uniform(0, 10, 61)
    points, slopes = bought.candidate_ends((0.0, 10.0)), np.linspace(-1, 1, 21)
    first, second = np.triu_indices(points.size, 1)

    def scores(one: Rows) -> list[Any]:
        sides, ends = one.sample.sides(points, 0.5), one.sample.pair_slopes(slopes)
        back = one.sample.pair_slopes(slopes, backwards=True)
        return [
            sides.below[first] + sides.above[second],
            np.abs(ends.below - ends.above) // 2,
            np.abs(back.below - back.above) // 2,
        ]

    known = scores(rows(outcomes, before))
    for person in range(61):
        other, then = outcomes.copy(), before.copy()
        other[person], then[person] = rng.choice([0.0, 10.0, rng.uniform(0, 10)]), rng.uniform(0, 9)
        for now, was in zip(scores(rows(other, then)), known, strict=True):
            assert np.abs(now - was).max() <= 1


def test_parts_cost_what_is_said() -> None:
    for kind, cost in log_release.COSTS.items():
        for epsilon in (0.013, 0.1, 0.7):
            assert cost <= Fraction(epsilon) * Fraction(part_scale(kind, epsilon))
    sides = sides_of(np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0]))
    assert (int(sides.below[0]), int(sides.above[0])) == (1, 1)


def test_everything_that_was_bought_adds_up() -> None:
    log = {"plan": ["A", "B"] * 900, "rev": np.arange(1_800) % 10, "before": np.arange(1_800) % 9}
    asked: Any = {"arm": "plan", "outcome": "rev", "epsilon": 0.8, "reward": True}
    found = bd.answer(log, **asked, loss_range="auto", bounds=(0, 100), adjust="before")
    assert found.guarantee.epsilon == pytest.approx(0.8, rel=1e-12)
    assert all(finding.holds for finding in verify(to_text(found.certificate)))
    parts = {part["what"]: part["epsilon"] for part in found.certificate["parts"]}
    assert set(parts) >= {"range", "slope", "slope back", "people who are cut"}
    assert sum(parts.values()) + found.certificate["sums_epsilon"] == pytest.approx(0.8)
    stated = " ".join(found.guarantee.assumptions)
    assert "'before', which is subtracted, was frozen" in stated
    assert "chosen privately from people's values" in stated
    shown = make_card(found.certificate).to_markdown()
    assert "chosen privately" in shown
    assert "Spent on" in shown
    dearer = [dict(part) for part in found.certificate["parts"]]
    dearer[0]["scale"] /= 2
    facts = {**found.guarantee.facts, "parts": dearer}
    law = LogMechanism.read(facts)
    assert not all(finding.holds for finding in law.prove(found.guarantee.epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [False, True])
def test_the_whole_release_under_attack(left_out: bool) -> None:
    """A range, a slope and sums of six people, one of whom is replaced.

    The attack finds at most epsilon, and finds more if a share is left out of the accounting: the
    sums then have the noise of twice the epsilon that is left for them.
    """
    rng, epsilon = np.random.default_rng(5), 2.0
    choice = SideRelease("range", "choice", 0.25 * epsilon)
    scale = laplace_scale(0.75 * epsilon) / (2.0 if left_out else 1.0)
    points = np.array([0.25, 0.5, 1.0])

    def run(outcome: float, draws: int) -> Any:
        values = np.array([0.0, 0.1, 0.2, 0.0, 0.1, outcome])
        scores = -sides_of(values, points).above - np.array([0, 1, 2])
        best = (scores + rng.exponential(choice.scale, (draws, 3))).argmax(axis=1)
        cut = np.minimum(values, points[:, None]) / points[:, None]
        units = np.rint(cut * UNITS).astype(np.int64)
        exact = np.column_stack([units.sum(axis=1), squares_of(units).sum(axis=1)])
        noisy = exact[best] + integers(rng, scale, (draws, 2))
        return np.column_stack([best, noisy / UNITS])

    found = audit(
        lambda draws: run(0.0, draws),
        lambda draws: run(1.0, draws),
        epsilon,
        draws=400_000,
        significance=1e-6,
    )
    assert found.passed is not left_out, found

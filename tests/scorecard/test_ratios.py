"""Ratio metrics: the ratio that is there, intervals that cover it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna.logs.ratios import RatioLook, _released
from bandanna.privacy.ratio import RatioRelease
from bandanna.scorecard.view import Effect
from tests.command import bandanna

TRIAL = Path(__file__).parents[2] / "examples" / "trial.csv"
ENDS: Any = {"loss_range": (0, 100), "over_range": (0, 20), "reward": True}


def shop(people: int, rng: np.random.Generator, lift: float = 0.1) -> dict[str, Any]:
    page = rng.choice(["new", "old"], people)
    visits = 1 + rng.poisson(3.0, people)
    spent = np.where(page == "new", 1.0 + lift, 1.0) * visits * rng.gamma(2.0, 2.0, people)
    return {"page": page, "visits": visits, "spent": spent, "person": np.arange(people)}


def compared(log: Any, epsilon: float, **more: Any) -> Effect:
    """Compare, and return what is said of the arm that is not the control."""
    card = bd.compare(
        log, arm="page", control="old", epsilon=epsilon, outcomes={"spent/visits": ENDS}, **more
    )
    return card.metrics[0].effects[1]


def test_with_little_noise_it_is_the_ratio_of_the_sums() -> None:
    log = shop(20_000, np.random.default_rng(1))
    inside = {
        name: np.clip(log[name], 0, top) for name, top in (("spent", 100.0), ("visits", 20.0))
    }
    old, new = (
        inside["spent"][log["page"] == page].sum() / inside["visits"][log["page"] == page].sum()
        for page in ("old", "new")
    )
    found = compared(log, 100.0)
    assert found.mean == pytest.approx(new, rel=1e-3)
    assert found.difference == pytest.approx(new - old, abs=0.01)
    assert found.lift == pytest.approx(new / old - 1.0, abs=0.003)
    assert found.low < new - old < found.high


def test_intervals_cover_and_lifts_agree_with_differences() -> None:
    rng, covered = np.random.default_rng(2), 0
    for _ in range(200):
        page = np.array([0, 1] * 1_000)
        visits = 1 + rng.poisson(3.0, 2_000)
        spent = np.where(page == 1, 1.1, 1.0) * visits * rng.gamma(2.0, 2.0, 2_000)
        units = [
            np.rint(np.minimum(values, top) / top * UNITS).astype(np.int64)
            for values, top in ((spent, 100.0), (visits, 20.0))
        ]
        release = RatioRelease(1.0, 2_000, (0.0, 20.0))
        arms = tuple(_released(release, *(one[page == k] for one in units)) for k in range(2))
        found = RatioLook(arms, (0.0, 100.0), (0.0, 20.0)).against(1, 0, 0.05)
        assert found is not None
        _, apart, lift = found
        assert lift is not None
        assert (apart.low > 0.0) == (lift.low > 0.0)
        covered += lift.low <= 0.1 <= lift.high
    assert covered >= 170  # 190 expected; fewer have probability below 1e-6


def test_people_are_added_up_with_the_arm_they_met_first() -> None:
    rng = np.random.default_rng(3)
    log = shop(6_000, rng)
    twice = {name: np.concatenate([values, values]) for name, values in log.items()}
    twice["page"][6_000:6_100] = np.where(twice["page"][6_000:6_100] == "old", "new", "old")
    card = bd.compare(
        twice,
        arm="page",
        control="old",
        epsilon=5.0,
        person="person",
        outcomes={"spent/visits": {"loss_range": (0, 200), "over_range": (0, 40)}},
    )
    assert sum(effect.people for effect in card.metrics[0].effects) == 6_000
    assert card.metrics[0].per == "people"
    assert "all outcomes of any one person" in card.protects
    assert "ratio of sums over people" in card.metrics[0].heading
    assert card.metrics[0].effects[0].mean == pytest.approx(4.0, abs=0.4)


def test_where_the_divisor_may_be_nothing_nothing_is_said() -> None:
    log = shop(100, np.random.default_rng(4))
    log["visits"] = np.zeros(100)
    found = compared(log, 0.1)
    assert (found.mean, found.difference, found.lift) == (None, None, None)
    assert "not known" in str(
        bd.compare(log, arm="page", control="old", epsilon=0.1, outcomes={"spent/visits": ENDS})
    )


def test_what_is_wrong_is_named() -> None:
    log = shop(100, np.random.default_rng(5))
    asked: Any = {"arm": "page", "control": "old", "epsilon": 1.0}
    for outcomes, said in (
        ({"spent": ENDS}, "a ratio is two columns, such as revenue/visits"),
        ({"spent/visits": {"over_range": (0, 20)}}, "needs loss_range= and over_range="),
        ({"spent/visits": {**ENDS, "binary": True}}, "got 'binary'"),
        ({"spent/visits": {**ENDS, "over_range": (-1, 20)}}, "must not be negative"),
        ({"spent/page": ENDS}, "column 'page' must hold numbers"),
        ({"spent/visit": ENDS}, "has no column 'visit'"),
    ):
        with pytest.raises(bd.InputError, match=said):
            bd.compare(log, outcomes=outcomes, **asked)  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="from rows in memory"):
        bd.compare(bd.Table("duckdb:///shop.duckdb", "x"), outcomes={"spent/visits": ENDS}, **asked)


def test_the_command_has_ratios() -> None:
    asked = ("answer", str(TRIAL), "--arm", "treatment", "--control", "zidovudine", "--reward")
    ratio = ("--outcome", "cd4/cd4_before", "--epsilon", "2")
    ends = ("--range", "cd4=0,1000", "--range", "cd4_before=0,1000")
    assert "cd4/cd4_before, ratio of sums" in bandanna(*asked, *ratio, *ends).stdout
    said = bandanna(*asked, *ratio).stderr
    assert "needs the range of both columns" in said
    assert "--outcome COLUMN, or a ratio, A/B" in bandanna(*asked, "--epsilon", "2").stderr

"""The sample-ratio test: exact, and as often wrong as it says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks.scorecards import alarms

import bandanna as bd
from bandanna import InputError
from bandanna.scorecard.health import ALARM, planned_shares, ratio_chance, sample_ratio


def exact(counts: tuple[int, ...], shares: tuple[float, ...]) -> float:
    """Sum binomial probabilities one by one."""
    people, tested = sum(counts), 1 if len(counts) == 2 else len(counts)
    tails = []
    for count, share in list(zip(counts, shares, strict=True))[:tested]:
        law = [
            math.comb(people, k) * share**k * (1 - share) ** (people - k) for k in range(people + 1)
        ]
        tails += [sum(law[: count + 1]), sum(law[count:])]
    return min(1.0, 2 * tested * min(tails))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.8), (0.2, 0.3, 0.5)])
def test_chances_are_exact(shares: tuple[float, ...]) -> None:
    for counts in itertools.product(range(7), repeat=len(shares)):
        if sum(counts):
            assert ratio_chance(counts, shares) == pytest.approx(exact(counts, shares), abs=1e-12)


@pytest.mark.parametrize("people", [100, 2_000, 20_000])
def test_fair_divisions_alarm_in_one_of_a_hundred(people: int) -> None:
    assert alarms(0.5, people) <= ALARM  # exact


def test_a_division_of_48_to_52_is_noticed() -> None:
    assert 0.998 < alarms(0.48, 20_000) <= 1.0  # exact


@pytest.mark.slow
@pytest.mark.parametrize("arms", [3, 10])
def test_fair_divisions_of_many_arms_alarm_as_rarely(arms: int) -> None:
    draw = np.random.default_rng(arms)
    counts = draw.multinomial(20_000, [1 / arms] * arms, size=1_000)
    seen = sum(not sample_ratio(range(arms), row.tolist()).good for row in counts)
    assert seen <= 33  # 10 expected; 34 or more have probability below 1e-8


def test_people_who_met_two_arms_are_told_from_those_who_came_twice() -> None:
    log = {"who": [k // 2 for k in range(8_000)], "arm": [k // 2 % 2 for k in range(8_000)]}
    log["bought"] = [k % 3 == 0 for k in range(8_000)]
    asked = {"arm": "arm", "outcome": "bought", "person": "who", "epsilon": 1.0}
    once = {check.name: check for check in bd.answer(log, **asked).checks()}  # type: ignore[arg-type]
    assert once["mixed"].text == "Nobody met two arms."
    log["arm"][:200:2] = [1 - arm for arm in log["arm"][:200:2]]
    twice = {check.name: check for check in bd.answer(log, **asked).checks()}  # type: ignore[arg-type]
    assert twice["mixed"].text.startswith("100 of 4,000 people met two arms or more")
    assert not twice["mixed"].good


def test_planned_shares() -> None:
    assert planned_shares(["a", "b"], {"b": 3, "a": 1}) == (0.25, 0.75)
    assert sample_ratio(["a", "b"], [2_500, 7_500], {"a": 1, "b": 3}).good
    check = sample_ratio(["a", "b"], [2_500, 7_500])
    assert not check.good
    assert "a 25.0%" in check.text
    with pytest.raises(InputError, match="shares are for the arms a, b; got a"):
        planned_shares(["a", "b"], {"a": 1})
    with pytest.raises(InputError, match="positive"):
        planned_shares(["a", "b"], {"a": 1, "b": 0.0})
    assert ALARM == 0.01

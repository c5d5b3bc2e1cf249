"""The recommendation follows its rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bandanna.scorecard.recommend import recommend, verdict_of
from bandanna.scorecard.view import Check, Effect, Metric, Verdict

BOUGHT = Metric(
    "bought",
    (
        Effect("a", 100, 0.1, verdict="control"),
        Effect("b", 100, 0.2, 0.1, 0.05, 0.15, verdict="better"),
    ),
)
REFUNDS = Metric(
    "refunds",
    (
        Effect("a", 100, 0.1, verdict="control"),
        Effect("b", 100, 0.1, 0.0, -0.01, 0.01, verdict="kept"),
    ),
    limit=0.02,
)


def with_verdict(metric: Metric, verdict: Verdict) -> Metric:
    return replace(metric, effects=(metric.effects[0], replace(metric.effects[1], verdict=verdict)))


@pytest.mark.parametrize(
    ("first", "guard", "action", "said"),
    [
        ("better", "kept", "ship", "Ship b: bought is 0.05 to 0.15 higher than with a"),
        ("better", "open", "go on", "refunds may break its guardrail"),
        ("better", "broken", "keep", "b is better in bought, but refunds is -0.010 to 0.010"),
        ("worse", "kept", "keep", "Keep a: b is worse in bought"),
        ("open", "kept", "go on", "Go on: no arm is surely better than a yet"),
    ],
)
def test_the_rule(first: Verdict, guard: Verdict, action: str, said: str) -> None:
    found = recommend([with_verdict(BOUGHT, first), with_verdict(REFUNDS, guard)])
    assert found.action == action
    assert said in found.headline


def test_an_unhealthy_division_stops_it() -> None:
    found = recommend([BOUGHT], [Check("division", False, "Not as planned.")])
    assert (found.action, found.arm) == ("stop", None)
    assert recommend([BOUGHT], [Check("missing", False, "Some are.")]).action == "ship"


def test_where_less_is_better() -> None:
    less = replace(
        BOUGHT,
        goal="less",
        effects=(BOUGHT.effects[0], Effect("b", 9, 0.1, -0.04, -0.06, -0.02, verdict="better")),
    )
    assert recommend([less]).headline == "Ship b: bought is 0.020 to 0.060 lower than with a"


@pytest.mark.parametrize(
    ("goal", "limit", "ends", "verdict"),
    [
        ("more", None, (0.1, 0.2), "better"),
        ("less", None, (0.1, 0.2), "worse"),
        ("less", None, (-0.2, -0.1), "better"),
        ("neither", None, (-0.2, -0.1), "open"),
        ("more", None, (-0.1, 0.1), "open"),
        ("less", 0.3, (0.1, 0.2), "kept"),
        ("less", 0.15, (0.1, 0.2), "open"),
        ("less", 0.05, (0.1, 0.2), "broken"),
        ("more", -0.15, (-0.1, 0.2), "kept"),
        ("more", -0.15, (-0.3, -0.2), "broken"),
        ("more", -0.15, (-0.2, 0.2), "open"),
    ],
)
def test_verdicts(goal: str, limit: float | None, ends: tuple[float, float], verdict: str) -> None:
    assert verdict_of(Metric("m", (), goal=goal, limit=limit), *ends) == verdict  # type: ignore[arg-type]


def test_of_several_the_one_that_is_better_by_most_for_sure() -> None:
    arms = (
        BOUGHT.effects[0],
        Effect("b", 90, 0.3, 0.12, 0.08, 0.16, verdict="better"),
        Effect("c", 9, 0.31, 0.13, 0.02, 0.24, verdict="better"),
    )
    found = recommend([replace(BOUGHT, effects=arms)])
    assert found.arm == "b"
    assert found.rule.endswith("the one with the largest sure gain.")

"""Several outcomes of a log against a control: true intervals, one epsilon, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna.logs.compare import spent
from bandanna.privacy.certificate import verify
from tests.command import bandanna

TRIAL = Path(__file__).parents[2] / "examples" / "trial.csv"
DRAW = np.random.default_rng(5)


def shop(people: int = 20_000, lift: float = 0.2) -> dict[str, NDArray[np.generic]]:
    page = DRAW.choice(["new", "old"], people)
    bought = DRAW.random(people) < np.where(page == "old", 0.2, 0.2 * (1 + lift))
    spent = np.where(bought, DRAW.gamma(2.0, 20.0, people), 0.0)
    country = DRAW.choice(["NL", "BE"], people)
    return {"page": page, "bought": bought, "spent": spent, "country": country}


@pytest.mark.slow
def test_lifts_cover_and_agree_with_differences() -> None:
    said = covered = 0
    for _ in range(150):
        found = bd.answer(
            shop(4_000), arm="page", outcome="bought", epsilon=1.0, reward=True, control="old"
        )
        effect = found.scorecard().metrics[0].effects[1]
        if effect.lift is not None:
            said += 1
            covered += effect.lift_low <= 0.2 <= effect.lift_high
            if effect.lift_low > 0.0:
                assert effect.high > 0.0
    assert said > 140
    assert covered >= 0.83 * said  # 95% expected; fewer have probability below 1e-6


def test_several_outcomes_share_epsilon_and_hold_together() -> None:
    card = bd.compare(
        shop(),
        arm="page",
        outcomes={
            "bought": {"reward": True, "share": 3},
            "spent": {"loss_range": (0, 100), "clip": True, "reward": True, "limit": -5.0},
        },
        control="old",
        by={"country": ["NL", "BE"]},
        shares={"old": 1, "new": 1},
        epsilon=2.0,
    )
    assert card.recommendation.action == "ship"
    assert card.control == "old"
    assert [metric.name for metric in card.metrics] == ["bought", "spent"]
    assert "epsilon 1.5" in card.metrics[0].note
    assert "counted up to 100" in card.metrics[1].note
    assert card.metrics[1].effects[1].verdict == "kept"
    assert {name for name, _ in card.groups} == {"country = NL", "country = BE"}
    assert sum(row["epsilon"] for row in card.certificates) <= 2.0
    for one in card.certificates:
        assert all(finding.holds for finding in verify(to_text(one)))


def test_a_division_that_is_not_as_planned_stops_it() -> None:
    card = bd.answer(
        shop(), arm="page", outcome="bought", epsilon=1.0, reward=True, control="old"
    ).scorecard(shares={"old": 1, "new": 2})
    assert card.recommendation.action == "stop"


def test_adjusted_outcomes_have_no_lift() -> None:
    log = shop(4_000) | {"before": DRAW.random(4_000)}
    found = bd.answer(
        log, arm="page", outcome="bought", epsilon=2.0, reward=True, control="old", adjust="before"
    )
    assert found.scorecard().metrics[0].effects[1].lift is None


def test_what_is_wrong_is_named() -> None:
    log = shop(100)
    told = {"arm": "page", "control": "old", "epsilon": 1.0}
    with pytest.raises(bd.InputError, match="outcomes must name one column or more"):
        bd.compare(log, outcomes="bought", **told)  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="'bought' has no option 'range'; there are adjust"):
        bd.compare(log, outcomes={"bought": {"range": (0, 1)}}, **told)  # type: ignore
    with pytest.raises(bd.InputError, match="share of 'bought' must be a finite number above"):
        bd.compare(log, outcomes={"bought": {"share": 0.0}}, **told)  # type: ignore[arg-type]
    assert sum(spent(0.1, {"a": 1, "b": 1, "c": 1}).values()) <= 0.1


def test_the_command_compares(tmp_path: Path) -> None:
    asked = (
        *("answer", str(TRIAL), "--arm", "treatment", "--control", "zidovudine"),
        *("--outcome", "cd4", "--outcome", "progressed", "--range", "cd4=0,1000"),
        *("--clip", "--reward", "--set", "outcomes.progressed.limit=0.05", "--epsilon", "4"),
    )
    page, certificate = tmp_path / "card.html", tmp_path / "paper.json"
    done = bandanna(*asked, "--html", str(page), "--certificate", str(certificate)).stdout
    assert "cd4, mean per row · counted up to 1000 · epsilon 2" in done
    assert "guardrail: at most 5 more than zidovudine" in done
    assert "Against zidovudine (control)" in page.read_text("utf-8")
    assert certificate.exists()
    assert (tmp_path / "paper-2.json").exists()
    assert json.loads(bandanna(*asked, "--json").stdout)["control"] == "zidovudine"

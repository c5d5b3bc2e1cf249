"""Studies of policies that decide by context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.report.study_report import write_report

FEATURES = {"plan": ["basic", "gold"], "age": [18, 90]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found, rng = tmp_path_factory.mktemp("contexts"), np.random.default_rng(0)
    lines = ["plan,age,best,letter,call"]
    for plan in rng.choice(["basic", "gold"], 200):
        best = {"basic": "letter", "gold": "call"}[plan]
        lines.append(
            f"{plan},{rng.integers(18, 90)},{best},{best == 'letter':d},{best == 'call':d}"
        )
    (found / "people.csv").write_text("\n".join(lines))
    return found


def study(folder: Path, context: dict[str, Any], *algorithms: str) -> bd.Study:
    grid: dict[str, list[Any]] = {
        "algorithm": list(algorithms),
        "environment": [{"context": "people.csv", **context}],
        "epsilon": [2.0],
        "rounds": [3_000],
    }
    return bd.Study(grid, replicates=2, folder=folder)


def test_contexts_go_below_the_best_single_arm(folder: Path, tmp_path: Path) -> None:
    asked = "contextual", "contextual-both", "one-bit", "contextual-no-privacy"
    made = study(folder, {"features": FEATURES, "label": "best"}, *asked)
    assert bd.Study.from_dict(made.to_dict(), folder).cells == made.cells
    results = made.run(tmp_path / "results", workers=1, progress=False)
    rows = {row["algorithm"]: row for row in results.table().iter_rows(named=True)}
    assert rows["contextual"]["mean"] < -500
    assert rows["contextual-both"]["mean"] < -100
    assert rows["one-bit"]["mean"] > -100
    assert rows["contextual-no-privacy"]["epsilon"] is None
    promised = {name: results.guarantees()[row["cell"]] for name, row in rows.items()}
    assert (promised["contextual"].epsilon, promised["contextual"].delta) == (2.0, 1e-6)
    assert promised["contextual"].protects != promised["contextual-both"].protects
    page = write_report(results, tmp_path / "report.html")[0].read_text("utf-8")
    assert "Deciding by context (contextual" in page
    assert "less than the best single arm (without privacy" in page


def test_outcomes_are_another_way_to_say_the_same(folder: Path) -> None:
    by_label = study(folder, {"features": FEATURES, "label": "best"}, "contextual")
    arms = {"features": FEATURES, "outcomes": ["call", "letter"]}  # as labels are sorted
    assert study(folder, arms, "contextual").cells[0].key == by_label.cells[0].key


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"label": "best"}, "needs features"),
        ({"features": FEATURES}, "needs label"),
        ({"features": FEATURES, "label": "best", "arm": "x"}, "no option arm"),
        ({"features": {"age": 3}, "label": "best"}, "a feature is a list"),
    ],
)
def test_what_cannot_be_read_is_refused(folder: Path, context: dict[str, Any], said: str) -> None:
    with pytest.raises(bd.InputError, match=said):
        study(folder, context, "contextual")


def test_contextual_policies_need_contexts() -> None:
    made = bd.Study({"algorithm": ["contextual"], "environment": ["bernoulli"], "epsilon": [1.0]})
    assert made.cells == []
    assert "decides by context" in made.skipped[0].reason

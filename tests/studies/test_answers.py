"""Time to answer and wrong answers in studies."""

from __future__ import annotations

from pathlib import Path

import pytest

import bandanna as bd
from bandanna.report.study_report import numbers_table


@pytest.mark.slow
def test_studies_keep_when_answers_came_and_how_many_were_wrong(tmp_path: Path) -> None:
    grid: dict[str, list[object]] = {
        "algorithm": ["race", "one-bit"],
        "environment": ["bernoulli"],
        "rounds": [3000],
        "arms": [2],
        "epsilon": [5.0],
    }
    study = bd.Study(grid, replicates=4, seed=1)
    table = study.run(tmp_path / "results", workers=1).table()
    race, other = (table.filter(algorithm=name) for name in ("race", "one-bit"))
    alone = bd.simulate(
        bd.PrivateBandit(2, 5.0, 3000, "race"),
        bd.environments.make_environment("bernoulli", 2, 3000),
        replicates=4,
        seed=1,
    ).answers("policy")
    assert alone is not None
    named = alone.winners >= 0
    assert race["answered"].item() == named.mean() > 0.0
    assert race["rounds_to_answer"].item() == alone.rounds[named].mean()
    assert race["wrong_answers"].item() <= 1.0
    assert other["answered"].item() is None
    columns, rows = numbers_table(table)
    assert [one["heading"] for one in columns][-4:-1] == [
        "named a best arm",
        "rounds to answer",
        "wrong answers",
    ]
    assert {row["cells"][0]: row["cells"][-3] for row in rows}["one-bit"] == "-"

"""Simulations of policies with guardrails and a control: the object itself, round by round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna.cli import app
from bandanna.simulation import runs

GUARDED: dict[str, Any] = {
    "metrics": {"refund": (0.0, 1.0), "time": (0.0, 60.0)},
    "guardrails": {"refund": 0.05},
    "control": 0,
    "least_share": 0.2,
}


@pytest.mark.parametrize("algorithm", ["one-bit", "dp-klucb", "phased", "race"])
def test_it_makes_the_decisions_of_the_compiled_runs(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = np.random.default_rng(3).integers(0, 2**20 + 1, (400, 3)) / 2**20
    policy = bd.PrivateBandit(3, 1.0, 400, algorithm)
    options: dict[str, Any] = {"replicates": 2, "seed": 5, "progress": False, "checkpoints": 4}
    compiled = bd.simulate(policy, losses, **options)
    monkeypatch.setattr(runs, "plays_online", lambda policy: True)
    online = bd.simulate(policy, losses, **options)
    np.testing.assert_array_equal(online.plays("policy"), compiled.plays("policy"))
    np.testing.assert_allclose(online.curves("policy"), compiled.curves("policy"), atol=1e-9)
    assert online.guard("policy") == compiled.guard("policy")
    told = online.runs["policy"].released, compiled.runs["policy"].released
    np.testing.assert_allclose(*told, atol=1e-9)


@pytest.mark.parametrize("algorithm", ["phased-net", "phased"])
def test_a_bad_arm_is_retired_and_the_control_keeps_its_share(algorithm: str) -> None:
    losses = np.tile([0.5, 0.3, 0.1], (2_000, 1))
    policy = bd.PrivateBandit(3, 2.0, 2_000, algorithm, **GUARDED)
    world = {"refund": [0.05, 0.05, 0.9]}
    found = bd.simulate(policy, losses, metrics=world, replicates=3, progress=False)
    retired = found.retired("policy")
    assert retired is not None
    assert retired.beyond.tolist() == [False, False, True]
    assert (retired.rightly, retired.wrongly) == (1.0, 0.0)
    assert (found.plays("policy")[:, 0] >= 0.18 * 2_000).all()
    assert "were retired in 100.0%" in repr(found)
    assert found.summary()[0]["wrongly_retired"] == 0.0


def test_values_may_be_a_table() -> None:
    refunds = np.zeros((1_500, 2))
    refunds[:, 1] = 1.0
    policy = bd.PrivateBandit(2, 2.0, 1_500, **GUARDED)
    found = bd.simulate(
        policy, np.zeros((1_500, 2)), metrics={"refund": refunds}, replicates=1, progress=False
    )
    retired = found.retired("policy")
    assert retired is not None
    assert retired.rounds[0, 1] > 0


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (None, "has a guardrail for 'refund'"),
        ({"refund": [0.1]}, "each of 2 arms"),
        ({"refund": [0.1, 2.0]}, "from 0 to 1"),
        ({"refund": ["a", "b"]}, "must be numbers"),
        ({"refund": [0.1, 0.1], "other": [0.0, 0.0]}, "no policy has a metric 'other'"),
    ],
)
def test_what_is_missing_or_wrong_is_said(metrics: Any, said: str) -> None:
    policy = bd.PrivateBandit(2, 1.0, 50, **GUARDED)
    with pytest.raises(bd.InputError, match=said):
        bd.simulate(policy, np.zeros((50, 2)), metrics=metrics, replicates=1)


STUDY = """
[study]
replicates = 2
[grid]
algorithm = ["phased", "uniform"]
environment = ["bernoulli"]
epsilon = [4.0]
rounds = [1000]
arms = [2]
[policy]
metrics = {refund = [0, 1]}
guardrails = {refund = 0.05}
control = 0
[metrics]
refund = [0.0, 1.0]
"""


def test_a_study_has_guardrails(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    study = bd.Study.read(path)
    assert bd.Study.from_dict(study.to_dict()) == study
    path.write_text(study.to_toml())
    assert bd.Study.read(path) == study
    table = study.run(tmp_path / "results", workers=1, progress=False).table()
    rows = {row["algorithm"]: row for row in table.iter_rows(named=True)}
    assert rows["phased"]["retired"] == 1.0
    assert rows["phased"]["wrongly_retired"] == 0.0
    assert json.loads(rows["phased"]["options"])["control"] == 0
    assert rows["uniform"]["retired"] is rows["uniform"]["options"] is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("control = 0", "batch = 3", "unknown keys in \\[policy\\]: batch"),
        ("[metrics]\nrefund", "[metrics]\nother", "unknown keys in \\[metrics\\]: other"),
        ("refund = [0.0, 1.0]", 'refund = "much"', "a list of numbers"),
    ],
)
def test_a_study_says_what_is_wrong(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace(old, new))
    with pytest.raises(bd.InputError, match=said):
        bd.Study.read(path)


def test_a_study_without_values_of_a_metric_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.partition("[metrics]")[0])
    study = bd.Study.read(path)
    assert [cell.algorithm for cell in study.cells] == ["uniform"]
    assert "guardrail for 'refund'" in study.skipped[0].reason


def test_the_command_has_a_control() -> None:
    sizes = ["--arms", "2", "--rounds", "300", "--epsilon", "2", "--replicates", "1", "--json"]
    command = ["simulate", *sizes, "--set", "control=0"]
    alone = ["--algorithms", "dp-klucb", "--set", "least_share=0.4"]
    ran = CliRunner().invoke(app, [*command, *alone])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["least_share"] == 0.4
    ran = CliRunner().invoke(app, [*command, "--set", "experts=3"])
    assert ran.exit_code != 0
    assert "control= is for policies without experts" in str(ran.exception or ran.output)

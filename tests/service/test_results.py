"""What is said about released values."""

from __future__ import annotations

import numpy as np

import bandanna as bd
from bandanna.service.results import as_csv, summary
from bandanna.service.steady import FEWEST, steadiness
from bandanna.store.rows import Release


def releases(values: list[float], choice: int = 0, size: int = 3) -> list[Release]:
    return [Release(k, choice, size, value, 1.0 + k) for k, value in enumerate(values)]


def test_means_are_the_policys_own() -> None:
    policy = bd.PrivateBandit(["a", "b"], 1.0, batch=1)
    told: list[Release] = []
    policy.on_release = lambda batch, value: told.append(
        Release(batch.number, batch.choice, batch.size, float(0.0 if value is None else value), 1.0)
    )
    for _ in range(50):
        policy.observe(policy.decide(), loss=0.25)
    found = summary(policy, told)["choices"]
    for shown, row in zip(found, policy.summary().rows, strict=True):
        known = (shown["name"], shown["batches"], shown["mean"], shown["low"], shown["high"])
        assert known == (row.arm, row.batches, row.mean, row.low, row.high)
    assert sum(choice["rounds"] for choice in found) == 50


def test_shares_are_of_released_rounds() -> None:
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3)
    found = summary(policy, releases([1.0] * 150) + releases([0.0] * 50, choice=1))
    assert [choice["share"] for choice in found["choices"]] == [0.75, 0.25]
    assert len(found["shares"]) == 20
    assert found["shares"][0]["shares"] == [1.0, 0.0]


def test_steadiness_has_few_false_alarms_and_sees_a_change() -> None:
    """2 000 steady runs: more than 60 alarms at 1% has probability below 1e-6 where it is exact."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(2_000):
        values = rng.integers(0, 2, 200).astype(float).tolist()
        alarms += steadiness(releases(values), 2)["p_value"] < 0.01
    assert alarms <= 60
    changed = [0.0] * 50 + [1.0] * 50
    assert steadiness(releases(changed), 2)["p_value"] < 1e-6
    assert steadiness(releases([1.0] * (FEWEST - 1)), 2)["p_value"] is None
    assert steadiness(releases([1.0] * FEWEST), 2)["p_value"] == 1.0


def test_a_spreadsheet_runs_nothing() -> None:
    assert "'=1+1" in as_csv([{"batch": 0, "arm": "=1+1", "released": 1.0}])

"""What is said about released values."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import bandanna as bd
from bandanna.service.routes.results import as_csv
from bandanna.service.summary import FEWEST, steadiness, summary
from bandanna.store import Secret, SqlStore
from bandanna.store.rows import ReleaseRow
from bandanna.store.totals import Half
from tests.postgres import needs_postgres
from tests.store.stores import changes, experiment, put
from tests.store.totals import totals_of


def releases(values: list[float], choice: int = 0, size: int = 3) -> list[ReleaseRow]:
    return [ReleaseRow(k, choice, size, value, 1.0 + k) for k, value in enumerate(values)]


def halves(values: list[float]) -> dict[int, tuple[Half, Half]]:
    return totals_of(releases(values)).halves


def test_means_are_the_policys_own() -> None:
    policy = bd.PrivateBandit(["a", "b"], 1.0, batch=1)
    told: list[ReleaseRow] = []
    policy.on_release = lambda batch, value: told.append(
        ReleaseRow(
            batch.number,
            batch.choice,
            batch.size,
            cast(float, 0.0 if value is None else value),
            1.0,
        )
    )
    for _ in range(50):
        policy.observe(policy.decide(), loss=0.25)
    found = summary(policy, totals_of(told))["choices"]
    for shown, row in zip(found, policy.summary().rows, strict=True):
        known = (shown["name"], shown["batches"], shown["mean"], shown["low"], shown["high"])
        assert known == (row.arm, row.batches, row.mean, row.low, row.high)
    assert sum(choice["rounds"] for choice in found) == 50


@pytest.mark.parametrize("reward", [False, True])
def test_the_last_interval_over_time_is_the_present_one(reward: bool) -> None:
    policy = bd.PrivateBandit(["a", "b"], 1.0, batch=2, loss_range=(-1.0, 3.0))
    told: list[ReleaseRow] = []
    policy.on_release = lambda batch, value: told.append(
        ReleaseRow(
            batch.number,
            batch.choice,
            batch.used,
            cast(float, 0.0 if value is None else value),
            1.0,
        )
    )
    for k in range(200):
        decision, value = policy.decide(), 3.0 * (k % 2)
        policy.observe(decision, reward=value) if reward else policy.observe(decision, loss=value)
    found = summary(policy, totals_of(told))
    assert len(found["means"]) == len(found["shares"]) > 5
    for shown, row in zip(found["means"][-1]["means"], policy.summary().rows, strict=True):
        assert shown == pytest.approx([row.mean, row.low, row.high])
    assert None not in found["means"][-1]["means"]


def test_shares_are_of_released_rounds() -> None:
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3)
    found = summary(policy, totals_of(releases([1.0] * 150) + releases([0.0] * 50, choice=1)))
    assert [choice["share"] for choice in found["choices"]] == [0.75, 0.25]
    assert len(found["shares"]) == 20
    assert found["shares"][0]["shares"] == [1.0, 0.0]


@pytest.mark.slow
def test_steadiness_has_few_false_alarms_and_sees_a_change() -> None:
    """2 000 steady runs: more than 60 alarms at 1% has probability below 1e-6 where it is exact."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(2_000):
        values = rng.integers(0, 2, 200).astype(float).tolist()
        alarms += steadiness(halves(values))["p_value"] < 0.01
    assert alarms <= 50
    changed = [0.0] * 50 + [1.0] * 50
    assert steadiness(halves(changed))["p_value"] < 1e-6
    assert steadiness(halves([1.0] * (FEWEST - 1)))["p_value"] is None
    assert steadiness(halves([1.0] * FEWEST))["p_value"] == 1.0


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=needs_postgres)])
def test_databases_add_up_releases_as_python_does(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    if kind == "postgresql":
        address = request.getfixturevalue("postgres").new_database()
    store, dice = SqlStore(address, Secret.new()), random.Random(3)
    number = put(store, experiment())
    rows = [
        ReleaseRow(k, dice.randrange(3), dice.choice((0, 3, 5)), dice.gauss(0, 10), 1.0 + k)
        for k in range(700)
    ]
    for begin in range(0, 700, 100):
        with store.transaction() as transaction:
            transaction.lock([number])
            transaction.write(number, changes(releases=rows[begin : begin + 100]))
    expected = totals_of(rows)
    found = store.totals(number)
    assert found.batches == expected.batches
    assert found.rounds == expected.rounds
    for arm, both in expected.halves.items():
        for mine, theirs in zip(both, found.halves[arm], strict=True):
            assert mine == pytest.approx(theirs, rel=1e-9)
    # Points of the database are of equally many batches, those without a round included.
    assert all(point.rounds.keys() == point.released.keys() for point in found.points)
    values = sum(total for point in found.points for _, total in point.released.values())
    everything = math.fsum(row.size * float(str(row.value)) for row in rows)
    assert values == pytest.approx(everything, abs=1e-6)
    rounds = sum(sum(point.rounds.values()) for point in found.points)
    assert rounds == sum(expected.rounds.values())
    assert found.points[-1].at == expected.points[-1].at
    assert len(found.points) <= 50
    store.close()


def test_a_spreadsheet_runs_nothing() -> None:
    assert "'=1+1" in as_csv([{"batch": 0, "arm": "=1+1", "released": 1.0}])

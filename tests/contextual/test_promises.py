"""Both promises: on tables, and on logs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandanna.contextual import ContextTable, replay, simulate_context
from bandanna.privacy.epochs import PROTECTS

FEATURES = {"plan": ["bronze", "gold", "silver"], "age": (18, 90)}


@pytest.fixture
def people() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    plan = rng.choice(["bronze", "gold", "silver"], 600)
    arm = rng.choice(["x", "y", "z"], 600)
    best = np.array([{"bronze": "x", "gold": "y", "silver": "z"}[one] for one in plan])
    features = {"plan": plan, "age": rng.integers(18, 90, 600)}
    return {
        "features": features,
        "best": best,
        "log": features
        | {"arm": arm, "reward": (arm == best) * 1.0, "chance": np.full(600, 1 / 3)},
    }


def test_labels_and_the_reward_of_every_arm_are_the_same_table(people: dict[str, Any]) -> None:
    by_label = ContextTable.from_labels(people["features"], FEATURES, people["best"])
    rewards = (people["best"][:, None] == np.array(["x", "y", "z"])) * 1.0
    by_reward = ContextTable.from_rewards(people["features"], FEATURES, rewards)
    found, other = (
        simulate_context(table, 5.0, 1e-6, 2000, seed=1) for table in (by_label, by_reward)
    )
    assert "the right one earns 1" in found.about
    assert found.last_fifth == other.last_fifth > 0.6 > found.single
    assert len(found.curve(25)) == 25


def test_a_log_by_a_model_and_by_replay(people: dict[str, Any]) -> None:
    table = ContextTable.from_log(people["log"], FEATURES)
    assert "a linear model of the reward, fitted to the log" in table.about
    for protects in PROTECTS:
        found = replay(people["log"], FEATURES, 5.0, 1e-6, protects, chance="chance")
        assert 120 < found.matched < 280 < found.rows

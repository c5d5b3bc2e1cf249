"""What contextual policies learn: seeded runs, so that nothing here fails by chance."""

from __future__ import annotations

import time

import numpy as np
import pytest
from research.context import one_category

import bandanna as bd
from bandanna.contextual import ContextTable, simulate_context
from bandanna.contextual.simulation import digits_table
from bandanna.privacy.epochs import PROTECTS, Protects


@pytest.mark.parametrize(
    ("protects", "least"), [("feedback", 0.65), ("context and feedback", 0.55)]
)
@pytest.mark.parametrize("components", [None, 20])
def test_digits(components: int | None, protects: Protects, least: float) -> None:
    pytest.importorskip("sklearn")
    made = digits_table(components)
    run = simulate_context(made, 1.0, 1e-6, 100_000, protects)
    assert run.last_fifth > least
    assert run.single < 0.12


@pytest.mark.parametrize("protects", PROTECTS)
def test_an_informative_category_is_found_among_noise(protects: Protects) -> None:
    run = simulate_context(one_category(informative=True), 1.0, 1e-6, 100_000, protects)
    assert run.single < 0.41
    assert run.last_fifth > 0.57  # 0.6 if the category is always followed


@pytest.mark.slow
@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("rounds", [20_000, 100_000])
def test_contexts_that_say_nothing_cost_little(protects: Protects, rounds: int) -> None:
    """At most 10% more loss than the policy without context."""
    world = bd.environments.Bernoulli([0.7, 0.6, 0.5], rounds)
    policies = {"alone": bd.PrivateBandit(3, 1.0, rounds)}
    alone = bd.simulate(policies, world, replicates=20, seed=1, progress=False)
    without = 0.5 + float(alone.regret("alone").mean()) / rounds
    runs = [
        simulate_context(
            one_category(informative=False), 1.0, 1e-6, rounds, protects, seed=seed, bernoulli=True
        )
        for seed in range(5)
    ]
    loss = 1.0 - float(np.mean([run.reward for run in runs]))
    assert loss < 1.1 * without


@pytest.mark.slow
@pytest.mark.parametrize("protects", PROTECTS)
def test_a_million_rounds_take_seconds(protects: Protects) -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.uniform(-1, 1, 1_000) for i in range(19)}
    features = dict.fromkeys(columns, (-1, 1))
    table = ContextTable.from_rewards(columns, features, rng.random((1_000, 10)))
    simulate_context(table, 1.0, rounds=1_000, protects=protects)  # compiles
    began = time.process_time()
    simulate_context(table, 1.0, rounds=1_000_000, protects=protects)
    assert time.process_time() - began < 10.0

"""Context trees are EXP4 with every pruned tree as an expert, to rounding; time by depth."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from numpy.typing import NDArray

from bandanna._core.streams import new_stream
from bandanna.learners.centring import entropy_baseline
from bandanna.learners.context_trees import (
    TreeParams,
    draw_by_tree,
    learn_by_tree,
    play_trees,
    start_tree,
    with_room,
)

Tree = tuple[float, dict[tuple[int, ...], int]]
"""Prior weight, and the arm of each leaf by its path."""


def all_trees(depth: int, arms: int, branches: int, path: tuple[int, ...] = ()) -> list[Tree]:
    """List every pruned tree with an arm at each leaf, with its prior weight."""
    if len(path) == depth:
        return [(1.0 / arms, {path: a}) for a in range(arms)]
    found: list[Tree] = [(0.5 / arms, {path: a}) for a in range(arms)]
    parts = [all_trees(depth, arms, branches, (*path, k)) for k in range(branches)]
    for chosen in itertools.product(*parts):
        leaves: dict[tuple[int, ...], int] = {}
        for _, part in chosen:
            leaves |= part
        found.append((0.5 * math.prod(weight for weight, _ in chosen), leaves))
    return found


def advice(trees: list[Tree], path: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the arm of every tree for a context."""
    prefixes = [tuple(path[:k].tolist()) for k in range(len(path) + 1)]
    return np.array([next(t[p] for p in prefixes if p in t) for _, t in trees])


@pytest.mark.parametrize(
    ("depth", "arms", "branches"), [(1, 3, 3), (2, 2, 2), (2, 3, 2), (3, 2, 2)]
)
def test_it_is_exp4_with_all_trees(depth: int, arms: int, branches: int) -> None:
    trees = all_trees(depth, arms, branches)
    weights = np.array([weight for weight, _ in trees])
    assert math.isclose(weights.sum(), 1.0)
    params = TreeParams(0.3, arms)
    state = start_tree(arms, depth, branches)
    stream, rng = new_stream(1), np.random.default_rng(2)
    for _ in range(300):
        path = rng.integers(0, branches, depth)
        says = advice(trees, path)
        chances = np.bincount(says, weights, minlength=arms) / weights.sum()
        state = with_room(state)
        arm, importance = draw_by_tree(params, state, path, stream)
        assert np.allclose(state.chances, chances, rtol=1e-9, atol=1e-12)
        assert math.isclose(1.0 / importance, chances[arm], rel_tol=1e-9)
        loss = float(rng.random() < 0.2 + 0.6 * (arm == path[0] % arms))
        learn_by_tree(params, state, path, arm, importance, loss)
        baselines = np.array([entropy_baseline(p / params.learning_rate)[0] for p in chances])
        estimates = baselines - 0.5
        estimates[arm] += (loss - baselines[arm]) / chances[arm]
        weights = weights * np.exp(-params.learning_rate * estimates[says])
        weights /= weights.sum()


def test_prior_weights_are_what_the_bound_uses() -> None:
    for arms, branches in ((2, 2), (3, 2), (2, 3)):
        for weight, leaves in all_trees(2, arms, branches):
            m = len(leaves)
            assert weight >= arms**-m * 2.0 ** -(2 * m - 1) * (1 - 1e-12)


def test_a_round_takes_time_in_proportion_to_depth() -> None:
    """Depth 12 against depth 3: at most 8 times the time, for ratios of 4 in levels."""
    arms, rounds = 8, 20_000
    rng = np.random.default_rng(0)
    taken = {}
    for depth in (3, 12):
        table = rng.integers(0, 2, (500, depth))
        state = start_tree(arms, depth, 2, nodes=1 << 14)
        people = rng.integers(0, 500, rounds)
        args = TreeParams(0.01, arms), state, table, people, np.full((rounds, arms), 0.5)
        streams = new_stream(1), new_stream(2)
        played = np.empty(rounds, dtype=np.int64)
        best = math.inf
        for _ in range(3):
            began = time.perf_counter()
            assert play_trees(*args, *streams, played) == rounds
            best = min(best, time.perf_counter() - began)
        taken[depth] = best
    assert taken[12] < 8 * taken[3]

"""The promise of the default where it is used most, over few runs with fixed seeds."""

from __future__ import annotations

import numpy as np
from benchmarks.adversaries import Setting, measure, searched, settings


def test_something_is_promised_only_where_it_says_something() -> None:
    assert all(0.0 < size.share < 1.0 - 1.0 / size.arms for size in settings())


def test_an_arm_that_falls_once_it_was_dropped_does_not_use_up_the_promise() -> None:
    """It used about half of it in 200 runs; the standard error of these is an eighth."""
    size = settings()[0]
    world = size.world(np.array([[0.5, 1.0], [0.5, 0.0]]), np.array([0.01, 1.0]))
    assert 0.0 < measure("falls", size, world, 40).share < 1.0


def test_a_search_makes_worlds_of_the_size_that_was_asked() -> None:
    world = searched(Setting(3, 3_000, 1.0, 700.0), tries=12, seed=0)
    assert (world.arms, world.rounds) == (3, 3_000)
    assert world.params().means.min() >= 0.0
    assert world.params().means.max() <= 1.0

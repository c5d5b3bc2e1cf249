"""What the algorithms are for: regret, on environments that were not used to tune them."""

from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna.environments import (
    Bernoulli,
    ConstrainedAdversary,
    Environment,
    Segments,
    SinusoidalDrift,
    Switching,
)
from bandanna.simulation import Results
from tests.soak import mostly_slow, mostly_soak

T, K, RUNS = 60_000, 6, 300

HELD_OUT: dict[str, Environment] = {
    "one clear arm": Segments([[0.15, *[0.85] * 5]], [T]),
    "bernoulli": Bernoulli(K, T, gap=0.3, best=3),
    "hard bernoulli": Bernoulli(K, T, gap=0.05, best=2),
    "ladder": Segments([[0.3, 0.4, 0.5, 0.6, 0.7, 0.8]], [T], bernoulli=True),
    "switching": Switching(K, T, gap=0.5, changes=3, first=0.3),
    "drift": SinusoidalDrift(K, T, gap=0.2, amplitude=0.3),
    "constrained": ConstrainedAdversary(K, T, gap=0.2),
}


def compare(name: str, epsilon: float) -> Results:
    policies = {
        "one-bit": bd.PrivateBandit(K, epsilon, T, "one-bit"),
        "htinf": bd.PrivateBandit(K, epsilon, T, "htinf"),
    }
    return bd.simulate(policies, HELD_OUT[name], replicates=RUNS, seed=99)


@pytest.mark.parametrize("epsilon", mostly_slow([1.0, 0.1], [0.1]))
@pytest.mark.parametrize("name", mostly_soak(HELD_OUT, ["ladder", "switching"]))
def test_one_bit_is_no_worse_than_the_papers_algorithm(name: str, epsilon: float) -> None:
    results = compare(name, epsilon)
    ours, theirs = results.regret("one-bit"), results.regret("htinf")
    error = np.sqrt((ours.var() + theirs.var()) / RUNS)
    assert ours.mean() <= theirs.mean() + 3 * error


@pytest.mark.parametrize("epsilon", mostly_slow([1.0, 0.1], [0.1]))
def test_one_bit_has_about_half_where_one_arm_is_clearly_better(epsilon: float) -> None:
    results = compare("one clear arm", epsilon)
    ratio = results.regret("one-bit").mean() / results.regret("htinf").mean()
    assert ratio < 0.6


@pytest.mark.soak
def test_a_hundred_million_rounds_leave_every_learner_sane() -> None:
    rounds = 10**8
    environment = Segments([[0.2, 0.8]], [rounds])
    policies = {
        "exp3": bd.Bandit(2, "exp3", rounds),
        "fast exp3": bd.Bandit(2, bd.learners.Exp3(2, 1.0, 1e-3)),
        "tsallis-inf": bd.Bandit(2, "tsallis-inf"),
        "htinf": bd.Bandit(2, "htinf"),
        "ftpl": bd.PrivateBandit(2, 0.01, rounds, "ftpl"),
    }
    results = bd.simulate(policies, environment, replicates=1)
    for name in policies:
        share = 0.1 if name == "ftpl" else 0.01
        assert 0 <= results.regret(name)[0] < share * rounds, name

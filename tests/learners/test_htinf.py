from __future__ import annotations

import math

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.learners import Htinf
from bandanna.learners.htinf import skip_factor
from tests.learners.reference import htinf_regret


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "noise"), [(2.0, 1.0), pytest.param(2.0, 0.0, marks=pytest.mark.soak), (1.5, 1.0)]
)
def test_matches_an_independent_implementation(alpha: float, noise: float) -> None:
    means, rounds, runs = np.array([0.2, 0.8, 0.5, 0.9]), 1000, 300
    sigma = math.sqrt(1 + 2 * noise**2)
    reference = htinf_regret(means, rounds, runs, noise, sigma, alpha, np.random.default_rng(11))
    learner = Htinf(4, alpha=alpha, sigma=sigma)
    if noise:
        policy: bd.Bandit | bd.PrivateBandit = bd.PrivateBandit(
            4, epsilon=1 / noise, learner=learner, release="laplace", batch=1
        )
    else:
        policy = bd.Bandit(4, learner)
    environment = bd.environments.Segments([means], [rounds])
    ours = bd.simulate(policy, environment, replicates=runs, seed=12).regret("policy")
    error = math.hypot(ours.std() / math.sqrt(runs), reference.std() / math.sqrt(runs))
    assert abs(ours.mean() - reference.mean()) <= 4 * error


def test_skip_factor_at_two_is_the_limit() -> None:
    assert skip_factor(2.0) == pytest.approx(1 - 2 ** (-1 / 3))
    assert skip_factor(2.0) == pytest.approx(skip_factor(2.0 - 1e-9), rel=1e-6)


def test_losses_too_large_for_their_probability_are_skipped() -> None:
    player = Htinf(2, sigma=1.0).play(new_stream(0))
    arm, importance = player.draw()
    threshold = skip_factor(2.0) * math.sqrt(1 / importance)  # 1/eta_1 = 1
    player.update(arm, importance, threshold * 1.001)
    assert player.state_dict()["losses"] == [0.0, 0.0]
    assert player.state_dict()["updates"][0] == 1

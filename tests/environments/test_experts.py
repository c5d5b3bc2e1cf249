"""Environments with experts: their experts are as good as they say, and chunks do not matter."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from bandanna import environments as envs
from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.environments.experts import add_expert_losses

ROUNDS = 3000
ADVISED = [
    name
    for name, make in envs.ENVIRONMENTS.items()
    if isinstance(make, type) and issubclass(make, envs.ExpertEnvironment)
]


def made(name: str, **options: Any) -> envs.ExpertEnvironment:
    environment = envs.make_environment(name, rounds=ROUNDS, **options)
    assert isinstance(environment, envs.ExpertEnvironment)
    return environment


NAMES = [*ADVISED, *(f"{name} spread" for name in ADVISED if name != "trial-rules")]
every_environment = pytest.mark.parametrize("env", NAMES, indirect=True)


@cache
def made_once(name: str) -> envs.ExpertEnvironment:
    """Return an environment when a test needs it: some train their experts first."""
    name, spread, _ = name.partition(" spread")
    return made(name, spread=True) if spread else made(name)


@pytest.fixture
def env(request: pytest.FixtureRequest) -> envs.ExpertEnvironment:
    return made_once(request.param)


def everything(env: envs.ExpertEnvironment) -> tuple[np.ndarray, np.ndarray]:
    chunks = list(env.chunks())
    return np.concatenate([c.losses for c in chunks]), np.concatenate([c.advice for c in chunks])


def expert_losses(env: envs.ExpertEnvironment) -> np.ndarray:
    """Return each expert's loss in each round, a second way."""
    losses, advice = everything(env)
    if advice.ndim == 2:
        return np.take_along_axis(losses, advice.astype(np.int64), axis=1) / UNITS
    mixed: np.ndarray = np.einsum("tk,tkn->tn", losses / UNITS, advice)
    return mixed


@every_environment
def test_chunks_hold_losses_and_advice(env: envs.ExpertEnvironment) -> None:
    losses, advice = everything(env)
    assert losses.shape == (ROUNDS, env.arms)
    assert losses.min() >= 0
    assert losses.max() <= UNITS
    if advice.ndim == 2:
        assert advice.shape == (ROUNDS, env.experts)
        assert advice.dtype == np.uint8
        assert advice.max() < env.arms
    else:
        assert advice.shape == (ROUNDS, env.arms, env.experts)
        np.testing.assert_allclose(advice.sum(axis=1), 1.0, rtol=1e-12)
    again = everything(env)
    assert np.array_equal(losses, again[0])
    assert np.array_equal(advice, again[1])


@every_environment
def test_totals_are_added_up_in_compiled_code(env: envs.ExpertEnvironment) -> None:
    totals = np.zeros(env.experts)
    for chunk in env.chunks():
        count = chunk.losses.shape[0]
        parts = (0, count // 3), (count // 3, count)
        for low, high in parts:
            add_expert_losses(chunk.losses, chunk.advice, low, high, totals)
    np.testing.assert_allclose(totals / UNITS, expert_losses(env).sum(axis=0), rtol=1e-9)


def test_the_good_expert_is_right_nine_times_in_ten() -> None:
    env = envs.OneGoodExpert(6, 5, 20_000, quality=0.9)
    shares = (np.abs(expert_losses(env) - 0.2) < 1e-5).mean(axis=0)
    # Twenty thousand coins: six standard errors are 0.013 and 0.017.
    assert abs(shares[0] - 0.9) < 0.013
    assert np.all(np.abs(shares[1:] - 0.2) < 0.017)


def test_clusters_say_the_same_and_the_first_is_best() -> None:
    env = envs.ClusteredExperts(9, 4, 5000)
    _, votes = everything(env)
    agree = (votes[:, 0] == votes[:, 1]).mean()
    assert agree > 0.8 > (votes[:, 0] == votes[:, 8]).mean()
    assert expert_losses(env).mean(axis=0).argmin() < 3


def test_the_good_expert_changes_midway() -> None:
    losses = expert_losses(envs.SwitchingExperts(4, 4, 10_000))
    assert losses[:4000].mean(axis=0).argmin() == 0
    assert losses[5500:].mean(axis=0).argmin() == 1
    assert losses.mean(axis=0).argmin() == 1


def test_digit_experts_know_digits() -> None:
    env = envs.DigitsExperts(2000)
    assert env.experts == len(env.expert_names) == 20
    errors = expert_losses(env).mean(axis=0)
    assert errors.min() < 0.15
    assert 0.15 < errors.max() < 0.75


def test_treatment_rules_cover_the_trial() -> None:
    env = envs.TrialExperts(2000)
    assert env.experts == len(env.expert_names) == 64
    losses, _ = everything(env)
    assert 0.15 < losses.mean() / UNITS < 0.35
    assert envs.TrialExperts().rounds == 2139


def test_a_chunk_is_small_however_many_experts() -> None:
    for env in (
        envs.OneGoodExpert(1000, 10, 10**6),
        envs.OneGoodExpert(1000, 10, 10**6, spread=True),
    ):
        chunk = next(iter(env.chunks()))
        assert chunk.advice.nbytes + chunk.losses.nbytes < 10_000_000


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"name": "two-good"}, "unknown environment"),
        ({"name": "digits", "experts": 3}, "has 20 experts"),
        ({"name": "digits", "arms": 4}, "has 10 arms"),
        ({"name": "one-good", "experts": 0}, "experts must be"),
        ({"name": "bernoulli", "experts": 3}, "has no experts"),
    ],
)
def test_what_cannot_be_made_is_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        envs.make_environment(**arguments)


def test_options_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="no option 'spread'; it has seed"):
        envs.make_environment("trial-rules", spread=True)


def test_tables_are_checked_before_anything_runs() -> None:
    losses = np.full((50, 2), 0.5)
    advice = np.zeros((50, 3))
    advice[41, 2] = 7
    with pytest.raises(InputError, match="expert 2 in round 41"):
        envs.ExpertTable(losses, advice)
    with pytest.raises(InputError, match="has its own advice"):
        envs.as_environment(made_once("one-good"), advice)

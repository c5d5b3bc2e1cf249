"""Which learner, release and batch an algorithm's name stands for."""

from __future__ import annotations

import math

import pytest
from research.prior_work import ClippedExp3

import bandanna as bd
from bandanna.algorithms import names
from bandanna.learners import Exp3, Ftpl, Htinf, TsallisInf
from bandanna.privacy import LaplaceRelease, OneBitRelease
from bandanna.spec import Problem
from bandanna.theory.tsallis import best_one_bit_batch

T, K, EPS = 1_000_000, 10, 0.03


def make(algorithm: str, **changes: object) -> bd.PrivateBandit:
    return bd.PrivateBandit(K, EPS, T, algorithm, **changes)  # type: ignore[arg-type]


def test_phases_with_a_net_are_the_default_and_parts_are_of_one_bit() -> None:
    assert bd.PrivateBandit(K, EPS, T).recipe == make("phased-net").recipe
    assert bd.PrivateBandit(K, EPS).algorithm == "phased-net"
    assert bd.PrivateBandit(100_001, EPS).algorithm == "adaptive"
    assert (
        bd.PrivateBandit(K, EPS, release="one-bit").recipe
        == bd.PrivateBandit(K, EPS, algorithm="one-bit").recipe
        == (TsallisInf(K), OneBitRelease(EPS, round(2 / EPS)))
    )
    assert bd.PrivateBandit(K, 3.0, algorithm="one-bit").batch == 1
    assert bd.PrivateBandit(K, 50.0, algorithm="one-bit").batch == 1
    assert bd.privatize("exp3", K, EPS, T).recipe.learner.name == "exp3"
    assert make("one-bit").recipe == (
        TsallisInf(K),
        OneBitRelease(EPS, best_one_bit_batch(Problem(K, T, EPS))),
    )


def test_the_papers_corollaries() -> None:
    release = LaplaceRelease(EPS, math.ceil(1 / EPS))
    assert make("htinf").recipe == (Htinf(K, alpha=2.0, sigma=math.sqrt(6)), release)
    assert bd.PrivateBandit(K, EPS, algorithm="htinf").recipe == make("htinf").recipe
    log_term = math.log(EPS * K * T)
    rate = math.sqrt(math.log(K) / (22 * EPS * K * T * log_term**2))
    exp3 = make("exp3").recipe
    assert exp3.release == release
    assert isinstance(exp3.learner, Exp3)
    assert exp3.learner.learning_rate == pytest.approx(rate)
    assert exp3.learner.mixing == pytest.approx(4 * rate * K * log_term)
    ftpl = make("ftpl").recipe
    assert ftpl.release == release
    assert isinstance(ftpl.learner, Ftpl)
    assert ftpl.learner.resamples == math.ceil(math.sqrt(EPS * K * T))
    assert ftpl.learner.learning_rate == pytest.approx(
        min(
            math.sqrt(math.log(K) / (EPS * K * T + 10 * EPS * K * T * log_term**2)),
            1 / (math.sqrt(EPS * K * T) * (1 + 4 * math.log(EPS * T))),
        )
    )


def test_prior_work_is_local() -> None:
    local = make("ldp-exp3")
    assert local.recipe.release == LaplaceRelease(EPS, 1)
    assert local.guarantee.model == "local"
    noise, log_term = 1 / EPS, math.log(K * T)
    rate = math.sqrt(math.log(K) / (2 * K * T * (1 + 2 * noise**2 * log_term**2)))
    assert isinstance(local.recipe.learner, Exp3)
    assert local.recipe.learner.learning_rate == pytest.approx(rate)
    assert local.recipe.learner.mixing == pytest.approx(rate * K * (1 + 4 * noise * log_term))
    clipped = make("dp-exp3-lap").recipe.learner
    assert isinstance(clipped, ClippedExp3)
    assert clipped.bound == pytest.approx(math.log(T) / EPS)


def test_parts_can_be_replaced() -> None:
    assert make("one-bit", batch=7).batch == 7
    assert isinstance(make("one-bit", batch=7).recipe.learner, TsallisInf)
    # Under Laplace noise losses are unbounded: HTINF takes over, with the tight second moment.
    mixed = make("one-bit", release="laplace").recipe
    batch = math.ceil(1 / EPS)
    assert isinstance(mixed.learner, Htinf)
    assert mixed.learner.sigma == pytest.approx(math.sqrt(1 + 2 / (batch * EPS) ** 2))
    assert make("htinf", release="one-bit").recipe.release == OneBitRelease(EPS, round(2 / EPS))
    assert make("exp3", batch=50).recipe.release == LaplaceRelease(EPS, 50)
    assert isinstance(make("ftpl", release="one-bit").recipe.learner, Ftpl)
    assert make("one-bit", learner="tsallis-inf-iw").recipe.learner == TsallisInf(
        K, "importance-weighted"
    )
    assert make("one-bit", learner=Htinf(K, 1.5)).recipe.learner == Htinf(K, 1.5)
    own = LaplaceRelease(EPS / 2, 3)
    assert make("htinf", release=own).recipe.release is own
    assert make("htinf", release=own).guarantee.epsilon == EPS / 2


@pytest.mark.parametrize("algorithm", ["exp3", "ftpl", "ldp-exp3", "dp-exp3-lap"])
def test_algorithms_that_need_a_horizon_say_so(algorithm: str) -> None:
    with pytest.raises(bd.InputError, match="pass rounds="):
        bd.PrivateBandit(K, EPS, algorithm=algorithm)


@pytest.mark.parametrize("learner", ["exp3", "ftpl"])
def test_learners_that_need_a_horizon_say_so(learner: str) -> None:
    with pytest.raises(bd.InputError, match="pass rounds="):
        bd.Bandit(K, learner)


@pytest.mark.parametrize("algorithm", names(with_experts=False, private=True))
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("arms", [2, 10, 100])
def test_the_smallest_horizon_named_is_the_smallest_that_works(
    algorithm: str, epsilon: float, arms: int
) -> None:
    try:
        bd.PrivateBandit(arms, epsilon, 1, algorithm)
        return
    except bd.InputError as error:
        if algorithm.startswith("phased") and "more rounds" in str(error):  # a phase needs a few
            return
        if str(error).endswith(" rounds are enough."):  # with another batch it may work before
            enough = int(str(error).removesuffix(" rounds are enough.").split()[-1])
            bd.PrivateBandit(arms, epsilon, enough, algorithm)
            return
        smallest = int(str(error).removesuffix(".").split()[-1])
    bd.PrivateBandit(arms, epsilon, smallest, algorithm)
    with pytest.raises(bd.InputError, match=f"smallest rounds that works is {smallest}"):
        bd.PrivateBandit(arms, epsilon, smallest - 1, algorithm)


@pytest.mark.parametrize("algorithm", names(with_experts=False, private=True))
def test_epsilon_above_one_is_allowed(algorithm: str) -> None:
    policy = bd.PrivateBandit(K, 2.0, T, algorithm)
    if algorithm not in ("phased", "phased-net", "ab-test", "race"):
        assert policy.batch == (4 if algorithm == "adaptive" else 1)
    assert policy.guarantee.epsilon == 2.0

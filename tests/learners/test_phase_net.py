"""The net under phases: its estimates have no bias, and it keeps the promise where it must.

Simulations are seeded. Means are compared with bounds that they are below by many standard errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.environments import Bernoulli
from bandanna.learners import Phased
from bandanna.learners.phase_net import add_regrets, noise_of
from bandanna.learners.steps import learn_phase_once, open_phase_once
from bandanna.spec import Problem
from bandanna.theory.adaptive import released_noise
from bandanna.theory.phases import phased_promise
from tests.learners.test_phased import released, run
from tests.simulation.test_engine import drive_by_hand
from tests.soak import mostly_slow

SIZES = [(4, 10**5, 0.1), (10, 10**6, 0.1), (10, 2 * 10**5, 1.0), (50, 5 * 10**5, 0.5)]
SIZES += [(2, 2 * 10**4, 0.5)]


def with_net(arms: int, epsilon: float, rounds: int, **options: Any) -> Phased:
    budget = phased_promise(Problem(arms, rounds, epsilon))
    return Phased(arms, epsilon, rounds, budget=budget, pilot=True, **options)


# --- estimates ------------------------------------------------------------------------------


def test_without_noise_and_doubt_the_estimate_is_the_regret() -> None:
    state = Phased(3, 1.0, 1000).start()
    state.odds[:], state.guesses[:], state.limits[:] = 1.0, 0.3, 1e9
    counts, means = np.array([10.0, 20.0, 70.0]), np.array([0.5, 0.2, 0.4])
    assert not add_regrets(state, counts, means)
    np.testing.assert_allclose(state.regrets, counts @ means - 100 * means)


def test_estimated_regret_has_no_bias() -> None:
    """The estimates' mean is the mean regret: z below 6, by chance 1 in 5e8 for each arm.

    Where an arm could not be probed its losses count as 0, so the estimate is too large.
    """
    arms, rounds, epsilon = 5, 20_000, 0.5
    learner = with_net(arms, epsilon, rounds)
    params = learner.params()
    means = np.array([0.3, 0.5, 0.45, 0.6, 0.5])
    errors = []
    for seed in range(300):
        state, stream, rng = learner.start(), new_stream(seed), np.random.default_rng(seed)
        error = np.zeros(arms)
        for number in range(12):
            size, memo = open_phase_once(params, state, stream)
            now = means + (0.2 if number > 8 else 0.0) * np.array([1, 0, 0, -1, 0])
            values = released(state.planned, now, epsilon, rng)
            before, probed = state.regrets.copy(), state.odds > 0.0
            learn_phase_once(params, state, memo, state.planned.copy(), values, values * math.nan)
            found = state.regrets - before - (state.planned @ now - size * now)
            assert np.all(found[~probed] > -20.0 * math.sqrt(arms) / epsilon)
            error += np.where(probed, found, 0.0)
            if state.phase[0].safe or state.totals[0].rate:
                break
        errors.append(error)
    all_errors = np.array(errors)
    z = all_errors.mean(0) / (all_errors.std(0) / math.sqrt(len(all_errors)))
    assert np.abs(z).max() < 6.0


def test_the_lemma_on_what_passes_a_limit() -> None:
    """``E (s + W - h)^+ <= (M + E|W|) P(s + W > h)`` for sums of two Laplace variables."""
    grid = np.linspace(-40, 40, 8_001)
    for scale in (0.1, 1.0, 3.0):
        first, second = np.exp(-np.abs(grid)), np.exp(-np.abs(grid) / scale)
        law = np.convolve(first, second, "same")
        law /= law.sum()
        size = float(law @ np.abs(grid))
        for most in (0.0, 0.5, 4.0):
            for start in (most, 0.0, -1.0, -8.0):
                beyond = np.maximum(start + grid, 0.0)
                chance = float(law[start + grid >= 0].sum())
                assert float(law @ beyond) <= (most + size) * chance * (1 + 1e-3)


def test_the_noise_is_the_one_that_is_released() -> None:
    assert noise_of(0.1, 71) == released_noise(71, 0.1)


# --- the promise ----------------------------------------------------------------------------


@pytest.mark.parametrize(("arms", "rounds", "epsilon"), SIZES)
def test_phased_promises_five_times_the_smallest_guarantee(
    arms: int, rounds: int, epsilon: float
) -> None:
    plan = bd.plan(arms, rounds, epsilon)
    row = next(row for row in plan.rows if row.algorithm == "phased-net")
    policy = bd.PrivateBandit(arms, epsilon, rounds, "phased-net")
    assert policy.plan.own is not None
    assert row.regret == policy.plan.own.regret <= 5.0001 * plan.best.regret
    assert not row.vacuous
    assert policy.net == {"budget": pytest.approx(row.regret), "switched": False}


def hostile(arms: int) -> list[np.ndarray]:
    """All losses of an arm are 0 or 1, at random, and change forty times."""
    return list(np.random.default_rng(3).integers(0, 2, (40, arms)).astype(float))


def regret_of(plans: list[np.ndarray], means: list[np.ndarray], rounds: int) -> float:
    t, lost = 0, 0.0
    for plan in plans:
        lost += plan @ means[min(t * len(means) // rounds, len(means) - 1)]
        t += int(plan.sum())
    return lost - float(np.mean(means, axis=0).min()) * rounds


@pytest.mark.parametrize("guard", mostly_slow([True, False], [True]))
def test_a_hostile_world_makes_it_switch_and_the_promise_is_kept(guard: bool) -> None:
    arms, rounds, epsilon = 4, 20_000, 1.0
    learner, means = with_net(arms, epsilon, rounds, guard=guard), hostile(arms)
    assert learner.budget is not None
    switched, regrets = [], []
    for seed in range(10):
        state, plans = run(learner, means, seed, rounds)
        switched.append(bool(state.totals[0].rate))
        regrets.append(regret_of(plans, means, rounds))
    assert np.mean(regrets) < learner.budget
    if not guard:
        assert np.mean(switched) > 0.5


@pytest.mark.parametrize("kind", ["gap", "equal", "trend"])
def test_it_does_not_switch_in_ordinary_worlds(kind: str) -> None:
    arms, rounds, epsilon = 4, 20_000, 0.5
    means = [np.array([0.3, 0.5, 0.5, 0.6])] * 8
    if kind == "equal":
        means = [np.full(arms, 0.5)] * 8
    if kind == "trend":
        means = [mean + 0.04 * k for k, mean in enumerate(means)]
    learner = with_net(arms, epsilon, rounds)
    states = [run(learner, means, seed, rounds)[0] for seed in range(20)]
    assert sum(bool(state.totals[0].rate) for state in states) <= 2
    assert all(state.phase[0].safe for state in states if not state.phase[0].handed)


# --- the policy -----------------------------------------------------------------------------


@pytest.mark.slow
def test_simulator_and_policy_agree_after_the_switch() -> None:
    rounds, arms = 6_000, 4
    policy = bd.PrivateBandit(arms, 4.0, rounds, "phased-net", guard=False)
    losses = np.repeat(np.array(hostile(arms)), rounds // 40, axis=0)
    results = bd.simulate(policy, losses, replicates=3, seed=5, checkpoints=4)
    switched = results.switched("policy")
    assert switched is not None
    assert switched > 0
    for number in range(3):
        played = drive_by_hand(policy, losses, 5, number)
        plays = np.bincount(played, minlength=arms)
        np.testing.assert_array_equal(results.plays("policy")[number], plays)


@pytest.mark.slow
def test_a_policy_says_whether_it_switched() -> None:
    policy = bd.PrivateBandit(2, 1.0, 20_000, "phased-net", seed=1)
    assert "the net was not needed" in str(policy.summary())
    results = bd.simulate({"p": policy}, Bernoulli(2, 20_000, gap=0.1), replicates=20)
    assert results.switched("p") == 0.0


def test_where_there_is_no_net_nothing_is_promised() -> None:
    plain = bd.PrivateBandit(4, 0.5, 20_000, "phased")
    assert plain.net is None
    assert plain.plan.own is not None
    assert "phased-net" in str(plain.plan.own.reason)
    unseen = bd.PrivateBandit(4, 0.5, 20_000, "phased-net", probes=False)
    assert unseen.net is None
    assert unseen.plan.own is not None
    assert unseen.plan.own.bound is None
    for rounds in (None, 300):
        small = bd.PrivateBandit(4, 0.5, rounds, "phased-net")
        assert small.net is None
        assert small.regret_bound is None
        row = next(row for row in bd.plan(4, 300, 0.5).rows if row.algorithm == "phased-net")
        assert row.bound is None
    policy = bd.PrivateBandit(["a", "b", "c"], 1.0, 20_000, "phased-net", seed=1)
    policy.decide(eligible=["a", "b"])
    assert policy.net is None
    assert policy.plan.own is not None
    assert "not all arms were eligible" in policy.plan.own.reason
    with pytest.raises(InputError, match="budget"):
        Phased(3, 1.0, budget=10.0)
    learner = with_net(3, 1.0, 20_000)
    state, _ = run(learner, [np.array([0.2, 0.5, 0.5])], 1, 5_000)
    assert learner.with_arms(state, [0, 1], 1)[0].budget is None

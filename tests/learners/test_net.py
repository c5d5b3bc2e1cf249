"""The net under adaptive: its pieces exactly, and the promise that it keeps.

Simulations are seeded. Means are compared with bounds that they are below by many standard errors.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.environments import Bernoulli, LossTable
from bandanna.learners import Adaptive
from bandanna.learners.adaptive import (
    AdaptiveState,
    _most_in_a_step,
    regret_so_far_once,
)
from bandanna.learners.net import rate_for, rest_regret, within_unit
from bandanna.learners.steps import draw_once, update_once
from bandanna.spec import Problem
from bandanna.theory.adaptive import adaptive, adaptive_clamp, released_noise
from bandanna.theory.centred import centred_regret
from tests.soak import mostly_slow

SIZES = [(4, 10**5, 0.1), (10, 10**6, 0.1), (10, 2 * 10**5, 1.0), (50, 5 * 10**5, 0.5)]
SIZES += [(2, 2 * 10**4, 0.5)]


# --- the pieces -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 4.0, 40.0])
@pytest.mark.parametrize("top", [1, 7, 30])
def test_a_release_within_unit_has_a_straight_line_for_its_mean(scale: float, top: int) -> None:
    """On a grid of ``top`` units with discrete Laplace noise, summed exactly."""
    ratio = math.exp(-1.0 / scale)
    noise = 1.0 / (top * (1.0 - ratio))
    slope = 1.0 / (1.0 + 2.0 * noise)
    reach = int(60 * scale) + top + 10
    values = np.arange(-reach, reach + 1)
    law = (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(values)
    for total in range(top + 1):
        said = np.array([within_unit(value / top, noise) for value in values + total])
        assert np.all((said >= 0.0) & (said <= 1.0))
        expected = 0.5 * (1.0 - slope) + slope * total / top
        assert float(law @ said) == pytest.approx(expected, abs=1e-12)


def test_the_noise_that_is_told_is_that_of_the_grid() -> None:
    assert released_noise(71, 0.1) == pytest.approx(1 / 7.1, rel=1e-6)
    assert released_noise(71, 0.1) > 1 / 7.1
    assert released_noise(10**6, 1e-9) == pytest.approx(1e3)


def test_the_rest_has_the_bound_of_centred_exp3() -> None:
    for arms, losses, noise in ((2, 1, 0.1), (10, 5000, 0.2), (100, 37, 1.0)):
        expected = (1.0 + 2.0 * noise) * centred_regret(math.log(arms), losses, arms)
        assert rest_regret(rate_for(losses, arms), arms, noise) == pytest.approx(expected)


@pytest.mark.parametrize("doubts", [0.0, 0.3])
@pytest.mark.parametrize("memory", [None, 400.0])
def test_no_step_adds_more_to_the_bound_than_was_allowed_for(
    doubts: float, memory: float | None
) -> None:
    rng = np.random.default_rng(3)
    for arms in (2, 5):
        learner = Adaptive(arms, 600, memory, first_rate=0.6, noise=0.15, budget=1e9, doubts=doubts)
        params, state, stream = learner.params(), learner.start(), new_stream(arms)
        before, allowed = regret_so_far_once(params, state), _most_in_a_step(params, state)
        for t in range(600):
            arm, importance = draw_once(params, state, stream)
            hard = (-3.0, 0.0, 1.0, 4.0, float(rng.random()), float(t % 100 > 50))
            update_once(params, state, arm, importance, hard[rng.integers(6)], 1)
            after = regret_so_far_once(params, state)
            assert after <= before + allowed + 1e-9
            before, allowed = after, _most_in_a_step(params, state)


# --- the learner ----------------------------------------------------------------------------


def played(learner: Adaptive, means: np.ndarray, seed: int) -> tuple[float, AdaptiveState]:
    rng = np.random.default_rng(seed)
    params, state, stream = learner.params(), learner.start(), new_stream(seed)
    total = 0.0
    for row in means:
        arm, importance = draw_once(params, state, stream)
        total += row[arm]
        noisy = float(row[arm] + rng.laplace(0.0, learner.noise)) if learner.noise else row[arm]
        update_once(params, state, arm, importance, noisy, 1)
    return total - float(means.sum(axis=0).min()), state


def net_for(arms: int, losses: int, noise: float, times: float = 3.0) -> Adaptive:
    smallest = (1.0 + 2.0 * noise) * centred_regret(math.log(arms), losses, arms) / 1.25
    clamp = adaptive_clamp(arms, losses, noise)
    shape = {"first_rate": 0.6, "noise": noise, "clamp": clamp}
    return Adaptive(arms, losses, float(losses), **shape, budget=times * smallest)


def test_it_switches_where_losses_cannot_be_predicted_and_keeps_the_promise() -> None:
    """Every loss is 0 or 1 at random."""
    losses, arms = 4000, 4
    means = np.random.default_rng(1).integers(0, 2, (losses, arms)).astype(float)
    learner = net_for(arms, losses, 0.14, times=2.25)
    assert learner.budget is not None
    runs = [played(learner, means, seed) for seed in range(20)]
    reports = [learner.report(state) for _, state in runs]
    assert all(report.net is not None and report.net["switched"] for report in reports)
    bounds = [report.regret for report in reports]
    assert all(bound is not None and bound + 1.0 <= learner.budget for bound in bounds)
    assert np.mean([regret for regret, _ in runs]) < learner.budget


@pytest.mark.parametrize("kind", mostly_slow(["gap", "equal", "late"], ["gap"]))
def test_it_does_not_switch_in_ordinary_worlds(kind: str) -> None:
    losses, arms = 4000, 4
    means = np.tile([0.3, 0.5, 0.5, 0.6], (losses, 1))
    if kind == "equal":
        means[:] = 0.5
    if kind == "late":
        means[losses // 2 :] = [0.8, 0.6, 0.1, 0.6]
    learner = net_for(arms, losses, 0.14)
    states = [played(learner, means, seed)[1] for seed in range(20)]
    assert not any(state.totals[0].rate for state in states)


def test_after_the_switch_it_learns_from_zero_as_centred_exp3() -> None:
    learner = dataclasses.replace(net_for(3, 2000, 0.1), budget=1e-3)
    regret, state = played(learner, np.tile([0.2, 0.8, 0.8], (2000, 1)), 5)
    report = learner.report(state)
    assert report.net == {"budget": 1e-3, "switched": True, "after": 0}
    assert state.chances[0] > 0.9
    assert report.regret is not None
    assert regret < report.regret < 1.2 * centred_regret(math.log(3), 2000, 3)


def test_other_arms_are_not_in_the_budget() -> None:
    learner = net_for(3, 500, 0.1)
    _, state = played(learner, np.tile([0.2, 0.8, 0.8], (300, 1)), 5)
    more, _ = learner.with_arms(state, [0, 1, 2], 1)
    assert more.budget is None
    small = dataclasses.replace(learner, budget=1e-3)
    _, state = played(small, np.tile([0.2, 0.8, 0.8], (300, 1)), 5)
    _, fresh = small.with_arms(state, [0, 2], 2)
    assert isinstance(fresh, AdaptiveState)
    assert fresh.chances.sum() == pytest.approx(1.0)
    assert fresh.chances[2] == fresh.chances[3] == fresh.chances.max()


def test_a_budget_needs_to_know_how_many_losses() -> None:
    with pytest.raises(InputError, match="losses"):
        Adaptive(3, budget=10.0)
    with pytest.raises(InputError, match="budget"):
        Adaptive(3, losses=10, budget=0.0)
    with pytest.raises(InputError, match="noise"):
        Adaptive(3, noise=-1.0)


# --- the policy -----------------------------------------------------------------------------


@pytest.mark.parametrize(("arms", "rounds", "epsilon"), SIZES)
def test_adaptive_promises_three_times_the_smallest_guarantee(
    arms: int, rounds: int, epsilon: float
) -> None:
    plan = bd.plan(arms, rounds, epsilon)
    row = next(row for row in plan.rows if row.algorithm == "adaptive")
    own = bd.PrivateBandit(arms, epsilon, rounds, losses="any").plan.own
    assert own is not None
    assert row.regret == own.regret <= 3.0001 * plan.best.regret
    assert not row.vacuous


def test_without_rounds_or_with_a_short_memory_there_is_no_net() -> None:
    for problem in (Problem(4, None, 0.1), Problem(4, 10**5, 0.1, changes=10)):
        assert "budget" not in adaptive(problem).learner
    assert "budget" not in adaptive(Problem(50, 1000, 0.1)).learner  # it would say nothing
    assert bd.PrivateBandit(4, 0.1).net is None


def random_batches(policy: bd.PrivateBandit, rounds: int, seed: int) -> np.ndarray:
    """In every batch each arm's losses are all 0 or all 1."""
    arms, count = len(policy.arms), -(-rounds // policy.batch)
    bits = np.random.default_rng(seed).integers(0, 2, (count, arms))
    return np.repeat(bits, policy.batch, axis=0)[:rounds].astype(float)


def test_a_policy_keeps_its_promise_in_the_simulator() -> None:
    rounds = 300_000
    policy = bd.PrivateBandit(2, 0.5, rounds, "adaptive")
    results = bd.simulate(
        {"p": policy}, LossTable(random_batches(policy, rounds, 0)), replicates=20
    )
    switched, own = results.switched("p"), policy.plan.own
    assert switched is not None
    assert switched > 0.5
    assert own is not None
    assert results.regret("p").mean() < own.regret
    assert any("centred EXP3 took over" in note for note in results.notes)
    steady = bd.simulate({"p": policy}, Bernoulli(2, rounds, gap=0.1), replicates=20)
    assert steady.switched("p") == 0.0
    assert not any("took over" in note for note in steady.notes)


def test_a_policy_says_whether_it_switched() -> None:
    rounds = 20_000
    policy = bd.PrivateBandit(2, 4.0, rounds, "adaptive", seed=1)
    assert policy.net is not None
    assert not policy.net["switched"]
    bound = policy.net["budget"]
    assert policy.plan.own is not None
    assert bound == pytest.approx(policy.plan.own.regret)
    assert "the net was not needed" in str(policy.summary())
    losses = random_batches(policy, rounds, 1)
    for t in range(rounds):
        decision = policy.decide()
        policy.observe(decision, loss=losses[t, decision.index])
    assert policy.regret_bound is not None
    assert policy.regret_bound <= bound
    if policy.net["switched"]:
        assert policy.net["after"] < rounds
        assert "centred EXP3 plays since round" in str(policy.summary())

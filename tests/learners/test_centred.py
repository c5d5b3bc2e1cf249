"""Learners with centred estimates: against a second implementation, and what only they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.learners import Adaptive, CompiledLearner, Exp3, Exp4, TsallisInf
from bandanna.learners.centring import baseline_of, with_baseline
from bandanna.learners.exp4 import exp4_choose, exp4_update
from bandanna.theory import centred
from bandanna.theory.centred import centred_rate, centred_regret, centred_regret_paid
from tests.laws import assert_same_mean
from tests.learners import centred_reference as reference
from tests.soak import mostly_soak

MEANS = np.array([0.3, 0.6, 0.5, 0.7])
ROUNDS, RUNS = 300, 80


def mine(learner: CompiledLearner, means: np.ndarray, seed: int) -> tuple[float, Any]:
    """Play Bernoulli losses; regret against the best arm of each round, and the state."""
    rng, player, regret = np.random.default_rng(seed), learner.play(new_stream(seed)), 0.0
    for row in means:
        arm, importance = player.draw()
        regret += row[arm] - row.min()
        player.update(arm, importance, float(rng.random() < row[arm]))
    return regret, player.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.01])
def test_exp3_agrees_with_a_second_implementation(share: float) -> None:
    means = np.where(np.arange(ROUNDS)[:, None] < 180, MEANS, MEANS[::-1])
    learner = Exp3(4, 0.1, centred=True, share=share)
    ours = np.array([mine(learner, means, seed)[0] for seed in range(RUNS)])
    rng = np.random.default_rng(1)
    theirs = [reference.exp3_regret(means, ROUNDS, 0.1, share, rng) for _ in range(RUNS)]
    assert_same_mean(ours, np.array(theirs))


@pytest.mark.slow
@pytest.mark.parametrize("fixed", mostly_soak([False, True], [False]))
def test_tsallis_agrees_with_a_second_implementation(fixed: bool) -> None:
    learner = TsallisInf(4, "centred", ROUNDS if fixed else None)
    means = np.tile(MEANS, (ROUNDS, 1))
    ours = np.array([mine(learner, means, seed)[0] for seed in range(RUNS)])
    rng = np.random.default_rng(2)
    theirs = [reference.tsallis_regret(MEANS, ROUNDS, fixed, rng) for _ in range(RUNS)]
    assert_same_mean(ours, np.array(theirs))


@pytest.mark.slow
@pytest.mark.parametrize("spread", mostly_soak([False, True], [True]))
def test_exp4_agrees_with_a_second_implementation(spread: bool) -> None:
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.ones(4) * 0.3, (ROUNDS, 6))
    if not spread:
        shares = np.eye(4)[shares.argmax(axis=2)]
    learner = Exp4(6, 4, 0.15, centred=True)
    ours = []
    for seed in range(RUNS):
        params, state, stream = learner.params(), learner.start(), new_stream(seed)
        total = 0.0
        for row in shares:
            advice = np.ascontiguousarray(row.T) if spread else row.argmax(axis=1).astype(np.uint8)
            arm, importance = exp4_choose(params, state, advice, stream)
            total += MEANS[arm]
            loss = float(rng.random() < MEANS[arm])
            exp4_update(params, state, advice, arm, importance, loss)
        assert np.all(np.isfinite(state.losses))
        ours.append(total)
    theirs = [reference.exp4_loss(shares, MEANS, 0.15, rng) for _ in range(RUNS)]
    assert_same_mean(np.array(ours), np.array(theirs))


def test_votes_and_the_same_as_distributions_teach_the_same() -> None:
    rng = np.random.default_rng(4)
    learner = Exp4(9, 5, 0.2, centred=True)
    params, first, second = learner.params(), learner.start(), learner.start()
    for _ in range(200):
        votes = rng.integers(0, 5, 9).astype(np.uint8)
        spread = np.ascontiguousarray(np.eye(5)[votes].T)
        seed = int(rng.integers(2**32))
        arm, importance = exp4_choose(params, first, votes, new_stream(seed))
        same_arm, same_importance = exp4_choose(params, second, spread, new_stream(seed))
        assert same_arm == arm
        assert same_importance == pytest.approx(importance)
        for state, advice in ((first, votes), (second, spread)):
            exp4_update(params, state, advice, arm, importance, float(arm % 2))
    np.testing.assert_allclose(first.losses, second.losses, atol=1e-9)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-9)
    np.testing.assert_allclose(first.cost, second.cost, rtol=1e-9)


LATE_BY_ARM = [
    Exp3(3, 0.4, centred=True),
    TsallisInf(3),
    TsallisInf(3, "centred"),
    TsallisInf(3, "centred", 50),
    Adaptive(3, 40, doubts=0.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("learner", LATE_BY_ARM, ids=lambda learner: repr(learner)[:40])
def test_estimates_are_unbiased_where_delays_depend_on_the_arm(learner: CompiledLearner) -> None:
    """Losses of arm 0 come ten draws late, of the others at once.

    The sum over runs of each arm's estimated losses minus its losses, compared with arm 0's, is 0
    within 5.5 standard errors: false alarms have probability 4e-8 each.
    """
    losses, runs, rounds = np.array([0.7, 0.2, 0.5]), 2000, 40
    gaps = np.zeros((runs, 3))
    for seed in range(runs):
        player: Any = learner.play(new_stream(seed))
        waiting: list[tuple[int, int, float]] = []
        for t in range(rounds):
            arm, importance = player.draw()
            waiting.append((t + 10 if arm == 0 else t, arm, importance))
            for late in [late for late in waiting if late[0] <= t]:
                player.update(*late[1:], float(losses[late[1]]))
                waiting.remove(late)
        for _, late_arm, late_importance in waiting:
            player.update(late_arm, late_importance, float(losses[late_arm]))
        state = np.array(player.state_dict()["losses"])
        gaps[seed] = (state - state[0]) - rounds * (losses - losses[0])
    errors = gaps.std(axis=0) / math.sqrt(runs)
    assert np.all(np.abs(gaps.mean(axis=0)) <= 5.5 * errors)


@pytest.mark.slow
def test_so_are_those_of_experts() -> None:
    """Two experts who disagree about half of the time; losses of arm 0 come ten rounds late."""
    learner, runs, rounds = Exp4(2, 3, 0.4, centred=True), 2000, 40
    losses = np.array([0.7, 0.2, 0.5])
    params, rng = learner.params(), np.random.default_rng(1)
    votes = rng.integers(0, 3, (rounds, 2)).astype(np.uint8)
    gaps = np.zeros(runs)
    for seed in range(runs):
        state, stream = learner.start(), new_stream(seed)
        waiting: list[tuple[int, Any, int, float]] = []
        for t, advice in enumerate(votes):
            arm, importance = exp4_choose(params, state, advice, stream)
            waiting.append((t + 10 if arm == 0 else t, advice, arm, importance))
            for late in [late for late in waiting if late[0] <= t]:
                exp4_update(params, state, *late[1:], float(losses[late[2]]))
            waiting = [late for late in waiting if late[0] > t]
        for late in waiting:
            exp4_update(params, state, *late[1:], float(losses[late[2]]))
        gaps[seed] = state.losses[1] - state.losses[0]
    gaps -= losses[votes[:, 1]].sum() - losses[votes[:, 0]].sum()
    assert abs(gaps.mean()) < 5.5 * gaps.std() / math.sqrt(runs)


def test_an_importance_carries_a_baseline() -> None:
    rng = np.random.default_rng(2)
    for importance in (1.0, 1.5, 2.0, 1.0 / 0.3, 1e15, *(1.0 + 1e6 * rng.random(200) ** 4)):
        for baseline in (0.0, 0.5, 1.0, float(rng.random())):
            carried = with_baseline(importance, baseline)
            assert carried >= 1.0
            assert abs(carried / importance - 1.0) < 2.0**-32
            assert baseline_of(carried, baseline) == baseline  # in order, exactly
            assert abs(baseline_of(carried, 0.77) - baseline) <= 2.0**-20


@pytest.mark.slow
def test_regret_stays_below_what_was_paid() -> None:
    rounds, arms = 3000, 5
    rate = centred_rate(math.log(arms), rounds, arms)
    means = np.tile(0.5 + np.array([0.0, 1, 1, 1, 1]) * 0.06, (rounds, 1))
    runs = [mine(Exp3(arms, rate, centred=True), means, seed) for seed in range(40)]
    updates, cost = runs[0][1]["cost"]
    assert updates == rounds
    assert 0.0 < cost < rounds * arms / 8
    paid = [
        centred_regret_paid(math.log(arms), rate, rounds, arms, state["cost"][1])
        for _, state in runs
    ]
    assert np.mean([regret for regret, _ in runs]) < np.mean(paid)
    assert max(paid) < centred_regret(math.log(arms), rounds, arms)


def test_without_a_rate_it_falls_with_the_losses_and_the_bound_holds() -> None:
    rng = np.random.default_rng(3)
    learner, arms, rounds = Exp3(3, None, centred=True), 3, 2000
    means = np.array([0.4, 0.5, 0.6])
    regrets = []
    for seed in range(20):
        player = learner.play(new_stream(seed))
        total = 0.0
        for _ in range(rounds):
            arm, importance = player.draw()
            total += means[arm] - 0.4
            player.update(arm, importance, float(rng.random() < means[arm]))
        regrets.append(total)
    assert 5.0 < np.mean(regrets) < centred.centred_anytime_regret(rounds, arms)
    known = centred.centred_regret(math.log(arms), 10**8, arms)
    assert centred.centred_anytime_regret(10**8, arms) < 1.415 * known


def test_an_arm_whose_weight_vanished_comes_back() -> None:
    player = Exp3(2, 1.0, centred=True).play(new_stream(0))
    player.update(0, 1.0, 2000.0)
    assert player.state_dict()["chances"][0] == 0.0
    player.update(1, 1.0, 2010.0)
    assert player.state_dict()["chances"][0] > 0.99


def test_many_arms() -> None:
    player = Exp3(100_000, 0.001, centred=True).play(new_stream(0))
    for _ in range(20):
        arm, importance = player.draw()
        player.update(arm, importance, 1.0)
    assert sum(player.state_dict()["chances"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Exp3(2, 0.1, mixing=0.1, centred=True), "mixing"),
        (lambda: Exp3(2, 0.1, share=0.1), "centred"),
        (lambda: Exp3(2, 0.1, centred=True, share=1.0), "share"),
        (lambda: Exp4(2, 2, 0.1, mixing=0.1, centred=True), "mixing"),
        (lambda: TsallisInf(2, losses=100), "centred"),
        (lambda: TsallisInf(2, "centred", losses=17), "losses"),
    ],
)
def test_parameters_are_validated(make: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make()

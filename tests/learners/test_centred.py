"""Learners with centred estimates: against a second implementation, and what only they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.learners import CompiledLearner, Exp3, Exp4, TsallisInf
from bandanna.learners.centring import entropy_baseline
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


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_exp3_agrees_with_a_second_implementation(share: float) -> None:
    means = np.where(np.arange(ROUNDS)[:, None] < 180, MEANS, MEANS[::-1])
    learner = Exp3(4, 0.1, centred=True, share=share)
    ours = np.array([mine(learner, means, seed)[0] for seed in range(RUNS)])
    rng = np.random.default_rng(1)
    theirs = [reference.exp3_regret(means, ROUNDS, 0.1, share, rng) for _ in range(RUNS)]
    assert_same_mean(ours, np.array(theirs))


@pytest.mark.parametrize("fixed", mostly_soak([False, True], [False]))
def test_tsallis_agrees_with_a_second_implementation(fixed: bool) -> None:
    learner = TsallisInf(4, "centred", ROUNDS if fixed else None)
    means = np.tile(MEANS, (ROUNDS, 1))
    ours = np.array([mine(learner, means, seed)[0] for seed in range(RUNS)])
    rng = np.random.default_rng(2)
    theirs = [reference.tsallis_regret(MEANS, ROUNDS, fixed, rng) for _ in range(RUNS)]
    assert_same_mean(ours, np.array(theirs))


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
        stream = new_stream(int(rng.integers(2**32)))
        arm, importance = exp4_choose(params, first, votes, stream)
        for state, advice in ((first, votes), (second, spread)):
            exp4_update(params, state, advice, arm, importance, float(arm % 2))
    np.testing.assert_allclose(first.losses, second.losses, atol=1e-9)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-9)
    np.testing.assert_allclose(first.cost, second.cost, rtol=1e-9)


@pytest.mark.parametrize("learner", [TsallisInf(3, "centred"), TsallisInf(3, "centred", 50)])
def test_late_feedback_is_unbiased(learner: CompiledLearner) -> None:
    """Over the arm that a late draw could have given, estimates average to the losses."""
    truth = np.array([0.2, 0.9, 0.4])

    def warmed_up() -> tuple[Any, np.ndarray]:
        player = learner.play(new_stream(7))
        for t in range(30):
            arm, importance = player.draw()
            player.update(arm, importance, (t * arm) % 3 / 2)
        player.draw()  # the late draw; its distribution is now in the state
        old = np.array(player.state_dict()["chances"])
        player.update(1, 2.0, 0.7)  # another loss arrives first
        player.draw()
        return player, old

    moved = np.zeros(3)
    _, old = warmed_up()
    for arm in range(3):
        player, _ = warmed_up()
        before = np.array(player.state_dict()["losses"])
        player.update(arm, 1.0 / old[arm], truth[arm])
        after = np.array(player.state_dict()["losses"])
        gap = (after - before) - (after - before)[0]
        moved += old[arm] * gap
    np.testing.assert_allclose(moved, truth - truth[0], atol=1e-9)


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


def test_baselines_are_those_of_the_draw_however_late_the_loss() -> None:
    """Losses of arm 0 come three draws late, of the others at once: estimates stay unbiased.

    The sum over runs of each arm's estimated loss minus its loss, within five standard errors.
    """
    losses, runs, rounds = np.array([0.7, 0.2, 0.5]), 1000, 12
    gaps = np.zeros((runs, 3))
    for seed in range(runs):
        player: Any = Exp3(3, 0.4, centred=True).play(new_stream(seed))
        estimates, waiting = np.zeros(3), []
        for t in range(rounds):
            chances = np.array(player.state_dict()["chances"])
            arm, importance = player.draw()
            baselines = np.array([entropy_baseline(p / 0.4)[0] for p in chances])
            estimates += baselines
            estimates[arm] += (losses[arm] - baselines[arm]) * importance
            waiting.append((t + 3 if arm == 0 else t, arm, importance))
            for late in [late for late in waiting if late[0] <= t]:
                player.update(*late[1:], float(losses[late[1]]))
                waiting.remove(late)
        for _, late_arm, late_importance in waiting:
            player.update(late_arm, late_importance, float(losses[late_arm]))
        state = np.array(player.state_dict()["losses"])
        np.testing.assert_allclose(state - state[0], estimates - estimates[0], atol=1e-9)
        gaps[seed] = estimates - rounds * losses
    assert np.all(np.abs(gaps.mean(axis=0)) < 5 * gaps.std(axis=0) / math.sqrt(runs))


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

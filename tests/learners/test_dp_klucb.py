"""KL-UCB, Thompson sampling, DP-KLUCB and its guard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.environments import Bernoulli, Segments
from bandanna.learners import DpKlucb, KlUcb, Thompson
from bandanna.learners.kl_ucb import kl_upper, private_upper
from bandanna.learners.stationarity import largest_difference
from bandanna.learners.steps import CHOSEN, length
from bandanna.theory.stationary import loss_divergence, stationary_lower_bound
from tests.learners import index_reference as reference

MEANS = np.array([0.35, 0.6, 0.5])


def rounds_of(learner: DpKlucb, player: Any, arm: int) -> int:
    """Return for how many rounds the arm just drawn is played."""
    return length(learner.params(), player._state, arm)


def together(ours: Any, theirs: Any) -> float:
    return math.sqrt(np.var(ours) / len(ours) + np.var(theirs) / len(theirs))


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.03, 0.5, 0.97, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("level", [1e-8, 0.01, 0.3, 3.0, 40.0])
def test_indices_are_the_largest_that_fit(x: float, level: float) -> None:
    assert kl_upper(x, level, 1.0) == pytest.approx(reference.upper(x, level, None), abs=1e-9)
    for epsilon in (0.01, 0.3, 5.0):
        expected = reference.upper(x, level, epsilon)
        assert private_upper(x, level, epsilon) == pytest.approx(expected, abs=1e-6)


def test_private_divergence_is_its_minimum() -> None:
    for epsilon in (0.01, 0.3, 5.0):
        for x, y in ((0.0, 0.3), (0.2, 0.9), (0.45, 0.55), (0.6, 0.61)):
            expected = reference.private(x, y, epsilon)
            assert loss_divergence(1 - x, 1 - y, epsilon) == pytest.approx(expected, rel=1e-9)
    assert loss_divergence(0.3, 0.4, 1.0) == 0.0


def test_lower_bound_without_privacy_is_that_of_lai_and_robbins() -> None:
    expected = 0.2 * math.log(1000) / reference.kl(0.4, 0.6)
    assert stationary_lower_bound([0.4, 0.6], 1000, math.inf) == pytest.approx(expected)
    assert stationary_lower_bound([0.4, 0.6], 1000, 0.1) > expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "theirs"),
    [(KlUcb(3), reference.kl_ucb_regret), (Thompson(3), reference.thompson_regret)],
)
def test_without_privacy_agrees_with_a_second_implementation(learner: Any, theirs: Any) -> None:
    rounds, runs = 300, 60
    means, rng = MEANS, np.random.default_rng(1)
    ours = []
    for seed in range(runs):
        player, regret = learner.play(new_stream(seed)), 0.0
        for _ in range(rounds):
            arm, importance = player.draw()
            regret += means[arm] - means.min()
            player.update(arm, importance, float(rng.random() < means[arm]))
        ours.append(regret)
    other = [theirs(means, rounds, rng) for _ in range(runs)]
    assert abs(np.mean(ours) - np.mean(other)) < 4 * together(ours, other)


def dp_klucb_regret(learner: DpKlucb, rounds: int, rng: np.random.Generator) -> float:
    player, regret, t = learner.play(new_stream(0)), 0.0, 0
    while t < rounds:
        arm, importance = player.draw()
        size = rounds_of(learner, player, arm)
        played = min(size, rounds - t)
        regret += played * (MEANS[arm] - MEANS.min())
        t += played
        if played == size:
            total = rng.binomial(size, MEANS[arm]) + rng.laplace(0, 1 / learner.epsilon)
            player.update(arm, importance, total / size, size)
    return regret


@pytest.mark.slow
def test_textbook_agrees_with_a_second_implementation() -> None:
    rng = np.random.default_rng(2)
    learner = DpKlucb(3, 0.5, guard=False)
    ours = [dp_klucb_regret(learner, 2000, rng) for _ in range(300)]
    theirs = [reference.dp_klucb_regret(MEANS, 2000, 0.5, rng) for _ in range(150)]
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * together(ours, theirs)


def test_rounds_travel_with_the_batch() -> None:
    """Batches open at the same time and released out of order count with their own rounds."""
    learner = DpKlucb(2, 1.0)
    player: Any = learner.play(new_stream(0))
    drawn = [player.draw() for _ in range(2)]
    assert [arm for arm, _ in drawn] == [0, 1]
    for arm, importance in reversed(drawn):
        player.update(arm, importance, 0.25, 2)
    assert player.state_dict()["plays"] == [2.0, 2.0]
    opened = []
    for _ in range(2):
        arm, importance = player.draw()
        opened.append((arm, importance, 0.5, rounds_of(learner, player, arm)))
    before = np.array(player._state.plays)
    for batch in reversed(opened):
        player.update(*batch)
    grown = np.array(player.state_dict()["plays"]) - before
    assert grown.sum() == sum(batch[-1] for batch in opened)


def test_an_arm_whose_first_release_is_late_does_not_stop_the_others() -> None:
    player = DpKlucb(2, 1.0).play(new_stream(0))
    player.draw()
    arm, importance = player.draw()
    assert arm == 1
    player.update(arm, importance, 0.5, 2)
    assert player.draw()[0] == 1


def change(learner: DpKlucb, rounds: int) -> tuple[Any, list[tuple[int, float, int]]]:
    """Play constant losses that change half-way; returns the player and what was open then."""
    waiting: list[tuple[int, float, int]] = []
    player: Any = learner.play(new_stream(3))
    t = 0
    while t < rounds:
        arm, importance = player.draw()
        if player._state.guard[0].alarm:
            break
        size = rounds_of(learner, player, arm)
        t += size
        if len(waiting) < 2 and t > rounds / 3:
            waiting.append((arm, importance, size))  # its release will be late
            continue
        early = t < rounds / 2
        player.update(arm, importance, [0.2, 0.5][arm] if early else [0.9, 0.5][arm], size)
    return player, waiting


def test_guard_notices_and_adaptive_plays_on() -> None:
    learner = DpKlucb(2, 1.0, rounds=100_000)
    player, waiting = change(learner, 100_000)
    report = learner.report(player._state).guard
    assert report is not None
    assert report["alarm"]
    assert report["most_telling"]["arm"] == 0
    assert report["most_telling"]["loss_then"] > report["most_telling"]["loss_before"] + 0.1
    before = player.state_dict()
    for arm, importance, size in waiting:
        player.update(arm, importance, 0.5, size)
    after = player.state_dict()
    assert {field: after[field] for field in after if field != "waiting"} == {
        field: before[field] for field in before if field != "waiting"
    }
    arms = []
    for _ in range(400):
        arm, importance = player.draw()
        assert importance != CHOSEN
        arms.append(arm)
        player.update(arm, importance, [0.9, 0.5][arm])
    assert np.mean(arms[-100:]) > 0.9


def test_without_the_guard_nothing_is_tested() -> None:
    learner = DpKlucb(2, 1.0, guard=False)
    player, _ = change(learner, 100_000)
    report = learner.report(player._state).guard
    assert report == {"guard": False, "tests": 0, "alarm": False, "false_alarm": 1e-4}


@pytest.mark.slow
def test_false_alarms_are_rarer_than_stated() -> None:
    """Steady arms at the largest variance; with alpha 0.5 more than half would be a failure.

    The bounds are loose: 200 runs give fewer than 20 alarms. Were the rate 0.5, that would happen
    with probability below 1e-30.
    """
    rng = np.random.default_rng(5)
    alarms = 0
    learner = DpKlucb(3, 0.3, false_alarm=0.5)
    for _ in range(200):
        player, t = learner.play(new_stream(0)), 0
        while t < 20_000:
            arm, importance = player.draw()
            if importance != CHOSEN:
                alarms += 1
                break
            size = rounds_of(learner, player, arm)
            t += size
            total = rng.binomial(size, [0.5, 0.5, 0.45][arm]) + rng.laplace(0, 1 / 0.3)
            player.update(arm, importance, total / size, size)
    assert alarms < 20


def test_each_part_of_the_allowance_holds() -> None:
    """Draws and noise stay within their parts at levels that can be simulated."""
    rng = np.random.default_rng(6)
    for releases in (1, 3, 20):
        level = 3.0
        noise = rng.laplace(0, 1, (200_000, releases)).sum(axis=1)
        beyond = np.mean(np.abs(noise) > 2 * math.sqrt(releases * level) + level)
        assert beyond <= 2 * math.exp(-level)
    paths = (rng.random((2000, 3000)) < 0.5).cumsum(axis=1) - 0.5 * np.arange(1, 3001)
    spread = 0.25 * np.arange(1, 3001) + 25.0
    allowed = np.sqrt(2 * spread * (math.log(1 / 0.2) + 0.5 * np.log(spread / 25.0)))
    assert np.mean(np.any(np.abs(paths) > allowed, axis=1)) < 0.2
    close = largest_difference(1e6, 1e6, 20.0, 1.0, 1e-5)
    assert 0.005 < close < 0.02


def test_arms_that_are_added_stay_within_the_odds_of_a_false_alarm() -> None:
    learner = DpKlucb(2, 1.0)
    state: Any = learner.start()
    assert state.shares.sum() == pytest.approx(0.5)
    spent = list(state.shares)
    for _ in range(30):
        learner, state = learner.with_arms(state, list(range(1, learner.arms)), 2)
        spent += list(state.shares[-2:])
    assert learner.arms == 32
    assert 0.98 < sum(spent) < 1.0


def test_regret_near_the_lower_bound_and_far_below_a_fixed_arm() -> None:
    """In the simulator, on batches whose size is decided when they open."""
    arms, rounds, epsilon = 5, 200_000, 0.5
    policy = bd.PrivateBandit(arms, epsilon, rounds, "dp-klucb")
    steady = bd.simulate(policy, Bernoulli(arms, rounds, gap=0.2), replicates=60, checkpoints=1)
    bound = stationary_lower_bound([0.4] + 4 * [0.6], rounds, epsilon)
    assert steady.regret("policy").mean() < 1.6 * bound
    means = [[0.3, 0.5, 0.5, 0.5, 0.5], [0.5, 0.25, 0.5, 0.5, 0.5]]
    world = Segments(means, [rounds // 3, rounds - rounds // 3], bernoulli=True)
    moved = bd.simulate(policy, world, replicates=20, checkpoints=1)
    assert moved.regret("policy").mean() < -0.02 * rounds


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: KlUcb(1), "arms"),
        (lambda: Thompson(0), "arms"),
        (lambda: DpKlucb(1, 1.0), "arms"),
        (lambda: DpKlucb(2, 0.0), "epsilon"),
        (lambda: DpKlucb(2, 1.0, growth=1.0), "growth"),
        (lambda: DpKlucb(2, 1.0, false_alarm=0.0), "false_alarm"),
        (lambda: DpKlucb(2, 1.0, rounds=0), "rounds"),
    ],
)
def test_parameters_are_validated(make: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make()

"""What answers say is true: under drift, for arms that come and go, without some feedback.

``benchmarks/truth.py`` has the worlds and counts everything that is wrong in many runs; here are
quick versions. Where something may be wrong by chance the bound has probability below 1e-6.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth import WORLDS, count
from scipy import stats

import bandanna as bd
from bandanna.error_budget import ErrorBudget
from bandanna.inference import Totals, difference_interval, law_of, mean_interval
from bandanna.phase_evidence import phase_evidence
from bandanna.policy.intervals import InPhases, leader_of, standing
from bandanna.policy.outcomes import guardrail_error
from bandanna.policy.statements import Units

QUICK = {
    "phased, common drift": 12,
    "ab-test, common drift": 12,
    "phased, order turns over": 6,
    "ab-test, order turns over": 6,
    "phased, arms added and retired": 4,
    "phased, feedback given up": 6,
    "ab-test, feedback given up": 6,
    "adaptive, clipped tail": 3,
    "phased, clipped tail": 6,
    "race, 3 equal arms, tolerance .2": 3,
}


@pytest.mark.slow
@pytest.mark.parametrize("world", QUICK)
def test_nothing_is_wrong_and_nothing_contradicts(world: str) -> None:
    runs = QUICK[world]
    found = count(world, runs)
    assert found.contradictions == 0, found
    assert found.leader <= runs // 3, found
    assert found.wrong <= stats.binom.ppf(1 - 1e-6, runs, 0.05), found


def test_every_world_can_be_played() -> None:
    assert set(QUICK) < set(WORLDS)


# --- drift ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["phased", "ab-test"])
def test_a_trend_does_not_turn_over_who_is_ahead(algorithm: str) -> None:
    """A loses .1 less in every round, and is played more while everything is worse."""
    rounds = 4_000
    early = np.arange(rounds)[:, None] < rounds // 10
    losses = np.where(early, [0.1, 0.2], [0.6, 0.7])
    for seed in range(3):
        policy = bd.PrivateBandit(["A", "B"], 2.0, rounds, algorithm, seed=seed)
        for row in losses:
            made = policy.decide()
            policy.observe(made, loss=float(row[made.index]))
        found = policy.compare("A", "B")
        assert found.difference is not None
        assert found.low < 0.1 < found.high
        assert abs(found.difference - 0.1) < 0.05
        assert policy.leader == "A"
        assert policy.answer().best in ("A", None)
        assert "on average over the phases that played both" in found.sentence
        assert "over its own rounds" in str(policy.answer())


def test_ranks_go_by_differences_and_not_by_means() -> None:
    """Two phases: A is better in each, and pooled means say the opposite."""
    counts = np.array([[10.0, 90.0], [90.0, 10.0]])
    sums = counts * np.array([[0.1, 0.2], [0.6, 0.7]])
    known = InPhases(law_of(0.0), counts, sums)
    assert known.estimate(0) > known.estimate(1)
    assert known.apart(0, 1) == pytest.approx(0.1)
    assert leader_of(known, [0, 1]) == 0


def test_arms_that_beat_each_other_in_turn_have_no_best() -> None:
    """Averages over different phases need not be in an order."""
    counts = np.tile(np.array([[500.0, 500, 0], [0, 500, 500], [500, 0, 500]]), (20, 1))
    lost = np.tile(np.array([[0.1, 0.6, 0], [0, 0.1, 0.6], [0.6, 0, 0.1]]), (20, 1))
    known = InPhases(law_of(1.0), counts, counts * lost)
    budget = ErrorBudget(0.05, 3, transitive=False)
    assert all(known.better(a, b, budget.pair(a, b)) for a, b in ((0, 1), (1, 2), (2, 0)))
    assert standing(known, budget, range(3), 3) == ((0, 1, 2), None)
    assert leader_of(known, range(3)) is not None


def test_an_arm_that_beats_one_that_beats_another_is_not_yet_the_best() -> None:
    counts = np.tile(np.array([[500.0, 500, 0], [0, 500, 500]]), (20, 1))
    lost = np.tile(np.array([[0.1, 0.6, 0], [0, 0.1, 0.6]]), (20, 1))
    known = InPhases(law_of(1.0), counts, counts * lost)
    budget = ErrorBudget(0.05, 3, transitive=False)
    assert standing(known, budget, range(3), 3) == ((0,), None)


# --- one budget -------------------------------------------------------------------------------


@pytest.mark.parametrize("transitive", [False, True])
@pytest.mark.parametrize("first", [1, 2, 3, 10, 100])
def test_the_budget_is_never_overspent(first: int, transitive: bool) -> None:
    """Over all arms that there ever are: means, both sides of pairs, and the best one."""
    budget, arms = ErrorBudget(0.05, first, transitive), first + 60
    means = sum(budget.mean(arm) for arm in range(arms))
    pairs = 2.0 * sum(budget.pair(a, b) for b in range(arms) for a in range(b))
    best = first * budget.best
    assert means + pairs + best <= 0.05 + 1e-12
    assert means + pairs + best >= 0.04 or first == 1
    assert (budget.best > 0.0) == (transitive and first > 2)
    half = budget.half
    assert half.pair(0, 1) == pytest.approx(budget.pair(0, 1) / 2)
    assert budget.of_pairs(5).tolist() == [budget.pair(0, max(arm, 1)) for arm in range(5)]


def test_guardrails_share_their_error_over_all_arms_there_ever_are() -> None:
    spent = sum(2 * guardrail_error(0.05, 2, 50, 4, arm) for arm in range(1, 50))
    assert 0.047 < spent <= 0.05


def test_who_was_retired_counts() -> None:
    """Looking at many equal arms and keeping two picks a pair: all pairs are paid for."""
    policy = bd.PrivateBandit(10, 4.0, 2_000, learner="uniform", release="laplace", batch=20)
    rng = np.random.default_rng(0)
    for _ in range(1_000):
        policy.observe(policy.decide(), loss=float(rng.random() < 0.5))
    before = policy._shown(0.95)().budget
    for arm in range(2, 10):
        policy.retire_arm(arm)
    after = policy._shown(0.95)().budget
    assert after == before
    policy.add_arm("new")
    assert policy._shown(0.95)().budget == before
    assert after.pair(0, 1) < 0.05 / 90


def test_arms_that_are_added_are_counted_after_a_file(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(3, 4.0, 2_000, "phased", seed=0)
    for _ in range(600):
        policy.observe(policy.decide(), loss=0.5)
    policy.add_arm("late")
    path = tmp_path / "policy.json"
    policy.save(path)
    loaded = bd.load(path)
    assert isinstance(loaded, bd.PrivateBandit)
    assert loaded.state.first_arms == policy.state.first_arms == 3
    assert loaded.answer() == policy.answer()


# --- what noise does --------------------------------------------------------------------------


def test_an_estimate_is_in_its_interval_whatever_the_noise() -> None:
    """Noise that leaves the range is no evidence that a mean is at its end."""
    law, rng = law_of(2.0), np.random.default_rng(4)
    for _ in range(200):
        terms = float(rng.integers(1, 50))
        one, two = (Totals(float(rng.normal(0.5 * terms, 15.0)), terms, 1.0) for _ in range(2))
        low, high = mean_interval(law, one, 0.05)
        held = min(max(one.total / terms, 0.0), 1.0), min(max(two.total / terms, 0.0), 1.0)
        assert low - 1e-9 <= held[0] <= high + 1e-9
        apart = difference_interval(law, one, two, 0.05)
        assert apart.low - 1e-7 <= held[1] - held[0] <= apart.high + 1e-7
    assert mean_interval(law, Totals(-30.0, 1.0, 1.0), 0.05) == (0.0, 1.0)


def test_no_arm_of_one_row_is_known_to_eight_digits() -> None:
    said = Units().gain(1.0, 0.999999999, 1.0)
    assert len(said) < 40
    policy = bd.PrivateBandit(2, 1.0, 10, learner="uniform", release="laplace", batch=1)
    for _ in range(2):
        policy.observe(policy.decide(), loss=0.5)
    for arm in policy.answer().arms:
        assert arm.high - arm.low > 0.5


# --- feedback that was given up ---------------------------------------------------------------


@pytest.mark.parametrize("default", [0.0, 1.0])
@pytest.mark.parametrize("algorithm", ["adaptive", "one-bit", "phased", "ab-test", "dp-klucb"])
def test_what_was_given_up_is_left_out(algorithm: str, default: float) -> None:
    """Half of A's feedback is given up: its mean is that of the other half."""
    policy = bd.PrivateBandit(["A", "B"], 60.0, 3_000, algorithm, default_loss=default, seed=1)
    for number in range(3_000):
        made = policy.decide()
        if made.arm == "A" and number % 2:
            policy.give_up(made)
        else:
            policy.observe(made, loss=0.3 if made.arm == "A" else 0.5)
    answer = policy.answer()
    for arm, mean in zip(answer.arms, (0.3, 0.5), strict=True):
        assert arm.low - 1e-9 <= mean <= arm.high + 1e-9
        if algorithm != "one-bit" and arm.rounds > 200:
            assert arm.mean == pytest.approx(mean, abs=0.02)
    assert policy.leader == "A"
    assert answer.best in ("A", None)
    assert "what was given up is left out" in answer.sentence
    given = sum(policy.state.totals[arm].rounds for arm in policy.state.totals)
    assert policy.state.left_out > 10
    assert given + policy.state.left_out <= policy.decided


def test_what_was_given_up_is_left_out_of_the_race() -> None:
    policy = bd.PrivateBandit(["A", "B"], 4.0, goal="answer", default_loss=1.0, seed=2)
    rng = np.random.default_rng(0)
    while not policy.answered and policy.decided < 20_000:
        made = policy.decide()
        if made.arm == "A" and rng.random() < 0.7:
            policy.give_up(made)
        else:
            policy.observe(made, loss=float(rng.random() < (0.3 if made.arm == "A" else 0.6)))
    assert policy.answer().best == "A"


# --- guardrails -------------------------------------------------------------------------------


def test_a_guardrail_does_not_retire_what_moves_with_all_others() -> None:
    """All arms' metric moves while the best arm changes: nobody is further from the control."""
    policy = bd.PrivateBandit(
        ["A", "B", "C"],
        8.0,
        6_000,
        metrics={"refund": (0, 1)},
        guardrails={"refund": 0.05},
        control="A",
        least_share=0.1,
        seed=0,
    )
    rng = np.random.default_rng(1)
    for number in range(6_000):
        made, now = policy.decide(), number / 6_000
        best = "B" if now < 0.5 else "C"
        refund = float(rng.random() < (0.1 if now < 0.5 else 0.7))
        loss = float(rng.random() < (0.2 if made.arm == best else 0.6))
        policy.observe(made, loss=loss, metrics={"refund": refund})
    assert policy.algorithm == "phased-net"
    assert policy.dropped == ()


# --- exact cases that try to refute the bounds ------------------------------------------------


def test_the_exact_chance_of_a_wrong_pair_in_a_phase_is_small() -> None:
    """Every split of six rounds, without noise."""
    losses = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [0, 0]], dtype=float)
    true = losses[:, 1].mean() - losses[:, 0].mean()
    wrong, law = 0, law_of(0.0)
    splits = list(combinations(range(6), 3))
    for mine in splits:
        other = [k for k in range(6) if k not in mine]
        counts = np.array([[3.0, 3.0]])
        sums = np.array([[losses[list(mine), 0].sum(), losses[other, 1].sum()]])
        low, high = InPhases(law, counts, sums).difference(0, 1, 0.1)
        wrong += not low <= true <= high
    assert wrong / len(splits) <= 0.2


def test_the_process_of_a_pair_is_at_most_one_in_expectation() -> None:
    """Exactly, for one phase of four rounds and discrete Laplace noise on a coarse grid."""
    losses = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    true = float(losses[:, 1].mean() - losses[:, 0].mean())
    scale, steps = 1.0, np.arange(-40, 41)
    weight = np.exp(-np.abs(steps) / scale)
    weight /= weight.sum()
    counts, expected = np.array([[2.0, 2.0]]), 0.0
    splits = list(combinations(range(4), 2))
    for mine in splits:
        other = [k for k in range(4) if k not in mine]
        base = losses[list(mine), 0].sum(), losses[other, 1].sum()
        for i, chance_i in zip(steps, weight, strict=True):
            for j, chance_j in zip(steps, weight, strict=True):
                if chance_i * chance_j < 1e-12:
                    continue
                sums = np.array([[base[0] + i, base[1] + j]], dtype=float)
                found = phase_evidence(counts, sums, 0, 1, scale=scale)
                assert found is not None
                process = math.exp(found.against(found.difference - true))
                expected += chance_i * chance_j * process / len(splits)
    assert expected <= 1.0


def test_looks_are_in_the_order_of_levels() -> None:
    """A later arm's pairs never have more error than an earlier one's."""
    for first in (2, 3, 7):
        levels = ErrorBudget(0.05, first).of_pairs(first + 20).tolist()
        assert all(a >= b for a, b in pairwise(levels))

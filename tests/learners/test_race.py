"""The race for the best arm: sure when it says so, quick, and no arm left behind."""

from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.environments import Bernoulli, LossTable
from bandanna.learners import Race
from bandanna.learners.race import RaceState, run_race
from bandanna.planner.time_to_answer import (
    UNIFORM,
    AnswerProblem,
    plan_answer,
    race_for,
    time_to_answer,
)
from bandanna.simulation.engine import play_run


def raced(learner: Race, means: list[float], run: int) -> tuple[float, RaceState]:
    state = learner.start()
    losses, scale = np.array(means), 1.0 / learner.epsilon
    return run_race(learner.params(), state, losses, 0.0, scale, 1e7, new_stream(run)), state


@pytest.mark.parametrize(
    ("means", "runs", "most"),
    [
        pytest.param([0.3, 0.4], 400, 2_050, marks=pytest.mark.slow),
        ([0.3, 0.4, 0.4, 0.4, 0.4], 60, 6_700),
    ],
)
def test_the_best_arm_is_found_in_time(means: list[float], runs: int, most: float) -> None:
    """Means of 1,000 runs are 1,836 and 5,382; standard errors here are below 40 and 220."""
    learner = Race(len(means), 0.5)
    found = [raced(learner, means, run) for run in range(runs)]
    assert np.mean([rounds for rounds, _ in found]) < most
    wrong = sum(state.answer[0].winner != 1.0 for _, state in found)
    assert wrong <= 0.05 * runs


def test_arms_that_do_not_differ_are_hardly_ever_told_apart() -> None:
    """200 races of equal arms, 20,000 rounds each: at most 5% may name one."""
    learner, named = Race(2, 0.5), 0
    for run in range(200):
        state = learner.start()
        run_race(learner.params(), state, np.array([0.4, 0.4]), 0.0, 2.0, 2e4, new_stream(run))
        named += state.answer[0].winner > 0.0
    assert named <= 10


def test_playing_only_who_is_in_the_race_is_quicker_than_playing_all_alike() -> None:
    means = [0.3, 0.35, 0.4, 0.5, 0.6]
    ours = np.mean([raced(Race(5, 0.5), means, run)[0] for run in range(40)])
    alike = np.mean([raced(Race(5, 0.5, uniform=True), means, run)[0] for run in range(40)])
    assert ours < 0.8 * alike


def test_who_left_is_reported_with_the_evidence() -> None:
    learner = Race(3, 1.0)
    _, state = raced(learner, [0.2, 0.8, 0.5], 0)
    report = learner.report(state).race
    assert report is not None
    assert report.winner == 0
    assert report.racing == (0,)
    assert {one.arm for one in report.dropped} == {1, 2}
    assert report.dropped[0].rounds <= report.dropped[1].rounds
    assert all(one.log_evidence >= learner.params().level for one in report.dropped)
    assert report.rounds == report.dropped[-1].rounds
    fresh = learner.report(learner.start()).race
    assert fresh is not None
    assert fresh.winner is None
    assert fresh.racing == (0, 1, 2)


def test_good_enough_is_found_where_nothing_is_best() -> None:
    took = [raced(Race(2, 0.5, tolerance=0.1), [0.5, 0.5], run)[0] for run in range(20)]
    assert min(took) > 0
    assert np.mean(took) < 4_000


def test_simulation_measures_time_to_answer_and_plays_as_the_policy_does() -> None:
    policy = bd.PrivateBandit(2, 1.0, goal="answer")
    found = bd.simulate(policy, Bernoulli([0.2, 0.5], 4_000), replicates=50, progress=False)
    answers = found.answers("policy")
    assert answers is not None
    assert (answers.winners == 0).mean() >= 0.9
    assert answers.wrong(0) == 0.0
    row = found.summary()[0]
    assert 50 < float(row["rounds_to_answer"]) < 1_500
    assert "named a best arm" in found.notes[-1]
    plain = bd.simulate(bd.Bandit(2), Bernoulli([0.2, 0.5], 100), replicates=2, progress=False)
    assert plain.answers("policy") is None


def test_plans_say_how_many_people_it_takes_and_the_other_way_round() -> None:
    problem = AnswerProblem(2, 0.5, 0.1, 0.6)
    found = plan_answer(problem, people=2_200, runs=60)
    race, alike, plain = found.rows
    assert 1_050 < race.mean < 1_700  # it is 1,370; a standard error is 90
    assert plain.mean < race.mean
    assert race.most > race.mean
    assert alike.wrong <= 0.05
    assert found.detectable is not None
    assert 0.07 < found.detectable < 0.14
    assert found.smallest_epsilon is not None
    assert 0.25 < found.smallest_epsilon < 0.9
    assert "people until the best arm is known, 95% sure" in found.sentence
    assert found.to_dict()["detectable_gap"] == found.detectable
    slower = time_to_answer(AnswerProblem(2, 0.1, 0.1, 0.6), runs=40)
    assert slower.mean > 2 * race.mean
    with pytest.raises(bd.InputError, match="at most 1 - base_rate"):
        AnswerProblem(2, 0.5, 0.5, 0.6)


def test_plans_by_a_standard_deviation_are_what_races_on_lab_values_take() -> None:
    """Within 5% of each other are 1,200 races; here 150, whose standard error is 3%."""
    rng, sd, gap = np.random.default_rng(3), 0.14, 0.067
    planned = time_to_answer(AnswerProblem(2, 0.5, gap, sd=sd), runs=1_000)
    in_units = AnswerProblem(2, 0.5, 67.0, sd=140.0, outcome_range=(0.0, 1000.0))
    assert time_to_answer(in_units, runs=1_000) == planned
    policy = bd.PrivateBandit(2, epsilon=0.5, goal="answer")
    took = []
    for run in range(150):
        drawn = rng.gamma(6.5, 0.055, (6_000, 2)).clip(0.0, 0.933)
        losses = drawn + np.array([0.0, gap])
        stops = np.array([6_000])
        took.append(play_run(policy.recipe, LossTable(losses), stops, 36, run).answer[1])
    assert np.mean(took) == pytest.approx(planned.mean, rel=0.2)
    with pytest.raises(bd.InputError, match="half of the range"):
        AnswerProblem(2, 0.5, 0.6, sd=sd)
    with pytest.raises(bd.InputError, match="--base-rate"):
        AnswerProblem(2, 0.5, 0.1)


def test_a_race_without_its_best_arm_is_over_and_wrong() -> None:
    """Else arms that are alike would race until the planner gives up, and spoil its mean."""
    learner = Race(3, 0.5)
    state = learner.start()
    state.racing[0] = 0.0
    means = np.array([0.3, 0.4, 0.4])
    rounds = run_race(learner.params(), state, means, 0.0, 2.0, 1e10, new_stream(1))
    assert 0.0 < rounds < 100.0
    assert state.answer[0].winner == 0.0
    assert race_for(means, 0.5, how=UNIFORM, runs=200).mean < 20_000.0


def test_rounds_that_are_left_make_the_answer_narrower() -> None:
    """The rival is played on, in at most 15% of the rounds, until its mean is clear."""
    rounds = 20_000
    widths: list[float] = []
    played: list[float] = []
    for known in (None, rounds):
        policy = bd.PrivateBandit(2, 0.5, known, goal="answer", seed=1)
        rng = np.random.default_rng(2)
        for _ in range(rounds):
            decision = policy.decide()
            policy.observe(decision, loss=float(rng.random() < (0.7, 0.6)[decision.index]))
        row = policy.summary().rows[0]
        assert row.low is not None
        assert row.high is not None
        assert row.share is not None
        widths.append(row.high - row.low)
        played.append(row.share)
    assert played[0] < played[1] < 0.2
    assert widths[1] < 0.7 * widths[0]

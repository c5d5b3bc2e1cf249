"""What private algorithms are compared with, and regret where the best arm changes."""

from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna.environments import Environment, ExpertEnvironment
from bandanna.simulation.baselines import (
    STRONGEST,
    make_contestant,
    price_in,
    same_learner,
    shown_name,
    strongest,
)
from bandanna.simulation.comparators import best_of_segments
from bandanna.simulation.engine import run_streams


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "others"),
    [
        (bd.environments.Bernoulli(3, 5000), ("tsallis-inf", "exp3")),
        (bd.environments.SinusoidalDrift(3, 5000), ("tsallis-inf",)),
        (bd.environments.OneGoodExpert(4, 3, 2000), ("exp4",)),
    ],
)
def test_no_privacy_is_the_strongest_without_it(
    environment: Environment | ExpertEnvironment, others: tuple[str, ...]
) -> None:
    chosen = make_contestant("no-privacy", environment, 1.0)
    assert not chosen.guarantee.private
    size = environment.arms, environment.rounds
    for name in others:
        other = (
            bd.Bandit(environment.arms, name, environment.rounds)
            if environment.experts is None
            else bd.Experts(environment.experts, *size, name)
        )
        # Fixed seeds, and the mean of others is more than twice as far from the best.
        found = bd.simulate({"best": chosen, "other": other}, environment, replicates=10, seed=5)
        assert found.regret("best").mean() < found.regret("other").mean()


@pytest.mark.slow
def test_slow_learners_are_left_out_where_they_would_take_too_long() -> None:
    environment = bd.environments.Bernoulli(3, 3000)
    assert strongest(environment).algorithm == "thompson"
    assert strongest(environment, most_seconds=1e-4).algorithm not in ("thompson", "kl-ucb")
    assert strongest(environment, batch=7).batch == 7
    assert set(STRONGEST) <= set(bd.learners.LEARNERS)
    assert shown_name("auto", "one-bit-exp4") == "auto (one-bit-exp4)"


def test_regret_against_segments_is_against_the_best_arm_of_each() -> None:
    environment = bd.environments.Segments(
        [[0.2, 0.6], [0.3, 0.6], [0.9, 0.1]], [300, 200, 100], bernoulli=True
    )
    assert environment.edges is not None
    assert environment.edges.tolist() == [0, 500, 600]
    stops = np.array([10, 500, 550, 600])
    found = best_of_segments(environment, stops)
    assert found is not None
    np.testing.assert_allclose(found, [2.0, 120.0, 125.0, 130.0])
    results = bd.simulate(bd.Bandit(2), environment, replicates=4, checkpoints=stops)
    assert results.segments == 2
    assert results.ahead is not None
    np.testing.assert_allclose(results.ahead, [0.0, 0.0, 40.0, 80.0])
    np.testing.assert_allclose(results.segment_regret("policy"), results.regret("policy") + 80.0)
    assert "against segments" in repr(results)
    assert "against segments" in results._repr_html_()
    assert "segment_mean" in results.to_frame().columns


def test_worlds_that_do_not_change_have_no_segments() -> None:
    for environment in (
        bd.environments.Bernoulli(3, 100),
        bd.environments.ConstrainedAdversary(3, 1000),
        bd.environments.SinusoidalDrift(3, 10**6, period=4.0),  # nobody follows that
    ):
        assert environment.edges is None
    results = bd.simulate(bd.Bandit(3), np.zeros((10, 3)), replicates=2)
    assert results.ahead is None
    assert "segment_mean" not in results.summary()[0]


def test_drift_has_a_segment_for_each_arm_and_wave() -> None:
    environment = bd.environments.SinusoidalDrift(
        6, 200_000, gap=0.05, amplitude=0.3, period=100_000
    )
    assert environment.edges is not None
    assert environment.edges.size - 1 == 12
    end = np.array([environment.rounds])
    found = best_of_segments(environment, end)
    assert found is not None
    t = np.arange(environment.rounds)
    levels = np.where(np.arange(6) == 0, 0.475, 0.525)
    waves = np.sin(2 * np.pi * (t[:, None] / 100_000 + np.arange(6) / 6))
    each_round = (levels + 0.3 * waves).min(axis=1).sum()
    assert each_round <= found[0] < each_round + 0.001 * environment.rounds


def test_experts_too_have_segments() -> None:
    environment = bd.environments.SwitchingExperts(4, 3, 3000)
    results = bd.simulate(bd.Experts(4, 3, 3000), environment, replicates=2, checkpoints=5)
    assert results.segments == 2
    assert results.best_expert == 1
    losses, advice = environment.make(0, 0, 3000)
    each = np.take_along_axis(losses, np.asarray(advice, dtype=np.int64), axis=1) / 2**20
    assert environment.edges is not None
    change = environment.edges[1]
    best = each[:change].sum(axis=0).min() + each[change:].sum(axis=0).min()
    assert results.ahead is not None
    np.testing.assert_allclose(results.ahead[-1], each.sum(axis=0).min() - best, rtol=1e-4)


def test_what_the_guard_saw_is_shown() -> None:
    policies = {
        "guarded": bd.PrivateBandit(2, 1.0, 20_000, "dp-klucb"),
        "published": bd.PrivateBandit(2, 1.0, 20_000, "dp-klucb", guard=False),
    }
    steady = bd.simulate(policies, bd.environments.Bernoulli(2, 20_000), replicates=5)
    changing = bd.simulate(
        policies, bd.environments.Switching(2, 20_000, bernoulli=True), replicates=5
    )
    for results, share in ((steady, 0.0), (changing, 1.0)):
        guard = results.guard("guarded")
        assert guard is not None
        assert guard.alarms == share  # five false alarms at 1e-4 each: never
        assert guard.false_alarm == 1e-4
        assert results.guard("published") is None
        assert ("guard of guarded: fired in" in repr(results)) == (share > 0.0)
    assert "guard" not in repr(bd.simulate(bd.Bandit(2), np.zeros((9, 2)), replicates=2))


def test_a_policy_says_what_its_guard_saw() -> None:
    policy = bd.PrivateBandit(2, 1.0, 4000, "dp-klucb", seed=1)
    for number in range(4000):
        decision = policy.decide()
        policy.observe(decision, loss=float((decision.index == 0) == (number > 1500)))
    assert policy.stationarity is not None
    assert policy.stationarity["alarm"]
    assert "Losses change: after" in str(policy.summary())
    assert "Losses change: after" in policy._repr_html_()
    assert "<td>0</td>" in policy.summary()._repr_html_()
    fresh = bd.PrivateBandit(2, 1.0, 4000, "dp-klucb")
    assert "Losses look steady" in str(fresh.summary())
    assert bd.PrivateBandit(2, 1.0, algorithm="one-bit").summary().stationarity == ""


def test_the_price_of_privacy_is_counted_from_the_same_and_from_the_strongest() -> None:
    environment = bd.environments.Bernoulli([0.2, 0.8], 4000)
    same = same_learner("ab-test", environment)
    assert same is not None
    policies = {
        "ab-test": bd.PrivateBandit(2, 0.05, 4000, "ab-test"),
        "no-privacy": strongest(environment),
        "ab-test-no-privacy": same,
    }
    assert [policy.guarantee.private for policy in policies.values()] == [True, False, False]
    results = bd.simulate(policies, environment, replicates=20, progress=False)
    price = price_in(results, policies)
    assert price is not None
    assert (price.algorithm, price.same, price.strongest) == ("ab-test", "ab-test", "thompson")
    # Both explore 800 rounds, half of them on the arm that loses 0.6 more.
    assert price.same_regret is not None
    assert abs(price.same_regret - 240.0) < 40.0
    assert price.strongest_regret < price.same_regret <= price.regret
    assert "Without privacy the same algorithm has " in price.words
    del policies["ab-test"]
    assert price_in(results, policies) is None


@pytest.mark.parametrize(
    ("name", "learner"),
    [("adaptive", "adaptive"), ("dp-klucb", "kl-ucb"), ("one-bit-exp3", "exp3"), ("race", "race")],
)
def test_every_private_algorithm_is_played_without_privacy(name: str, learner: str) -> None:
    chosen = same_learner(name, bd.environments.Bernoulli(2, 1000))
    assert chosen is not None
    assert chosen.algorithm == learner
    assert not chosen.guarantee.private


def test_what_has_no_counterpart_without_privacy_says_so() -> None:
    environment = bd.environments.OneGoodExpert(4, 3, 500)
    assert same_learner("phased-net", bd.environments.Bernoulli(2, 1000)) is None
    with pytest.raises(bd.InputError, match="there is no uniform without privacy"):
        make_contestant("uniform-no-privacy", environment, 1.0)
    with pytest.raises(bd.InputError, match="auto stands for another"):
        make_contestant("auto-no-privacy", environment, 1.0)
    for name, learner in (("one-bit-exp4", "centred-exp4"), ("dp-klucb", "kl-ucb")):
        assert make_contestant(f"{name}-no-privacy", environment, 1.0).algorithm == learner
    with pytest.raises(bd.InputError, match="decides how long arms are kept"):
        bd.Bandit(2, "phased", 1000, batch=4)


def test_phases_without_privacy_are_online_what_they_are_simulated() -> None:
    losses = np.random.default_rng(1).random((600, 2)) * [0.6, 1.0]
    policy = bd.Bandit(2, "ab-test", 600)
    assert policy.batch == 120
    results = bd.simulate(policy, losses, replicates=1, seed=4, checkpoints=1, progress=False)
    arms, releases, _ = run_streams(4, 0)
    online = policy.rehearse(arms, releases)
    plays = [0, 0]
    for row in losses:
        decision = online.decide()
        online.observe(decision, loss=float(row[decision.index]))
        plays[decision.index] += 1
    # Means as they are: with 60 losses each, the arm that loses 0.2 less is found.
    assert plays == results.plays("policy")[0].tolist() == [540, 60]

"""What private algorithms are compared with, and regret where the best arm changes."""

from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna.environments import Environment, ExpertEnvironment
from bandanna.simulation.comparators import best_of_segments
from bandanna.simulation.contestants import STRONGEST, make_contestant, shown_name, strongest


@pytest.mark.parametrize(
    ("place", "others"),
    [
        (bd.environments.Bernoulli(3, 5000), ("tsallis-inf", "exp3")),
        (bd.environments.SinusoidalDrift(3, 5000), ("tsallis-inf",)),
        (bd.environments.OneGoodExpert(4, 3, 2000), ("exp4",)),
    ],
)
def test_no_privacy_is_the_strongest_without_it(
    place: Environment | ExpertEnvironment, others: tuple[str, ...]
) -> None:
    chosen = make_contestant("no-privacy", place, 1.0)
    assert not chosen.guarantee.private
    size = place.arms, place.rounds
    for name in others:
        other = (
            bd.Bandit(place.arms, name, place.rounds)
            if place.experts is None
            else bd.Experts(place.experts, *size, name)
        )
        # Fixed seeds, and the mean of others is more than twice as far from the best.
        found = bd.simulate({"best": chosen, "other": other}, place, replicates=10, seed=5)
        assert found.regret("best").mean() < found.regret("other").mean()


def test_slow_learners_are_left_out_where_they_would_take_too_long() -> None:
    place = bd.environments.Bernoulli(3, 3000)
    assert strongest(place).algorithm == "thompson"
    assert strongest(place, most_seconds=1e-4).algorithm not in ("thompson", "kl-ucb")
    assert strongest(place, batch=7).batch == 7
    assert set(STRONGEST) <= set(bd.learners.LEARNERS)
    assert shown_name("auto", "one-bit-exp4") == "auto (one-bit-exp4)"


def test_regret_against_segments_is_against_the_best_arm_of_each() -> None:
    place = bd.environments.Segments(
        [[0.2, 0.6], [0.3, 0.6], [0.9, 0.1]], [300, 200, 100], bernoulli=True
    )
    assert place.edges is not None
    assert place.edges.tolist() == [0, 500, 600]
    stops = np.array([10, 500, 550, 600])
    found = best_of_segments(place, stops)
    assert found is not None
    np.testing.assert_allclose(found, [2.0, 120.0, 125.0, 130.0])
    results = bd.simulate(bd.Bandit(2), place, replicates=4, checkpoints=stops)
    assert results.segments == 2
    assert results.ahead is not None
    np.testing.assert_allclose(results.ahead, [0.0, 0.0, 40.0, 80.0])
    np.testing.assert_allclose(results.segment_regret("policy"), results.regret("policy") + 80.0)
    assert "against segments" in repr(results)
    assert "against segments" in results._repr_html_()
    assert "segment_mean" in results.table().columns


def test_worlds_that_do_not_change_have_no_segments() -> None:
    for place in (
        bd.environments.Bernoulli(3, 100),
        bd.environments.ConstrainedAdversary(3, 1000),
        bd.environments.SinusoidalDrift(3, 10**6, period=4.0),  # nobody follows that
    ):
        assert place.edges is None
    results = bd.simulate(bd.Bandit(3), np.zeros((10, 3)), replicates=2)
    assert results.ahead is None
    assert "segment_mean" not in results.summary()[0]


def test_drift_has_a_segment_for_each_arm_and_wave() -> None:
    place = bd.environments.SinusoidalDrift(6, 200_000, gap=0.05, amplitude=0.3, period=100_000)
    assert place.edges is not None
    assert place.edges.size - 1 == 12
    end = np.array([place.rounds])
    found = best_of_segments(place, end)
    assert found is not None
    t = np.arange(place.rounds)
    levels = np.where(np.arange(6) == 0, 0.475, 0.525)
    waves = np.sin(2 * np.pi * (t[:, None] / 100_000 + np.arange(6) / 6))
    each_round = (levels + 0.3 * waves).min(axis=1).sum()
    assert each_round <= found[0] < each_round + 0.001 * place.rounds


def test_experts_too_have_segments() -> None:
    place = bd.environments.SwitchingExperts(4, 3, 3000)
    results = bd.simulate(bd.Experts(4, 3, 3000), place, replicates=2, checkpoints=5)
    assert results.segments == 2
    assert results.best_expert == 1
    losses, advice = place.make(0, 0, 3000)
    each = np.take_along_axis(losses, np.asarray(advice, dtype=np.int64), axis=1) / 2**20
    assert place.edges is not None
    change = place.edges[1]
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
        assert "guard of guarded: fired in" in repr(results)
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
    assert bd.PrivateBandit(2, 1.0).summary().stationarity == ""

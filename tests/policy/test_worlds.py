"""Three worlds: steady, any, changing. What is chosen for each, and what it must show."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.environments import Bernoulli
from bandanna.learners import Adaptive, DpKlucb
from bandanna.policy.facade import policy_from_dict
from bandanna.privacy import LaplaceRelease
from bandanna.privacy.certificate import verify
from bandanna.theory.stationary import stationary_lower_bound


def played(policy: bd.PrivateBandit, means: list[float], rounds: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.decide()
        policy.observe(decision, loss=float(rng.random() < means[decision.index]))


@pytest.mark.parametrize(
    ("losses", "algorithm"),
    [("any", "adaptive"), ("steady", "phased-net"), ("changing", "adaptive"), (None, "phased-net")],
)
def test_a_world_chooses_the_algorithm(losses: Any, algorithm: str) -> None:
    policy = bd.PrivateBandit(4, 0.5, 100_000, losses=losses)
    assert policy.algorithm == algorithm
    assert algorithm in policy.why
    assert policy.guarantee.epsilon == 0.5


def test_what_it_costs_not_to_say_how_many_rounds_there_are_is_said() -> None:
    assert "Without rounds= nothing is promised" in bd.PrivateBandit(4, 0.5).why
    assert "Without rounds=" not in bd.PrivateBandit(4, 0.5, 100_000).why


def test_whoever_says_how_often_the_best_arm_changes_says_changing() -> None:
    said, meant = (
        bd.PrivateBandit(4, 0.5, 10_000, losses=losses, changes=5) for losses in (None, "changing")
    )
    assert (said.recipe, said.why) == (meant.recipe, meant.why)


def test_steady_losses_need_no_probes_and_have_no_net() -> None:
    usual, steady = (
        bd.PrivateBandit(4, 0.5, 10**5),
        bd.PrivateBandit(4, 0.5, 10**5, losses="steady"),
    )
    assert (usual.spec.probes, steady.spec.probes) == (True, False)
    assert (usual.net is None, steady.net is None) == (False, True)
    assert steady.recipe == bd.PrivateBandit(4, 0.5, 10**5, probes=False).recipe
    for policy in (steady, bd.PrivateBandit(4, 0.5, 10**5, probes=False)):
        own = policy.plan.own
        assert own is not None
        assert own.bound is None


def test_memory_follows_changes_unless_it_is_given() -> None:
    def memory(**options: Any) -> float:
        policy = bd.PrivateBandit(4, 0.5, 90_000, **options)
        assert isinstance(policy.recipe.learner, Adaptive)
        assert policy.recipe.learner.memory is not None
        return policy.recipe.learner.memory * policy.batch

    assert memory(losses="any") == pytest.approx(90_000)
    assert memory(losses="changing") == pytest.approx(3_000)
    assert memory(losses="changing", changes=3) == pytest.approx(10_000)
    assert memory(algorithm="adaptive", memory=500) == pytest.approx(500)
    experts = bd.PrivateExperts(5, 3, 0.5, 0.0, 90_000, "adaptive", changes=3)
    assert isinstance(experts.recipe.learner, Adaptive)
    assert experts.recipe.learner.memory == pytest.approx(10_000 / experts.batch)


@pytest.mark.parametrize(
    "options",
    [
        {"losses": "changing"},
        {"algorithm": "adaptive", "changes": 4},
        {"algorithm": "adaptive", "memory": 5_000},
        {"algorithm": "one-bit-exp3", "changes": 4},
    ],
)
def test_own_bound_is_for_what_was_said_of_changes(options: Any) -> None:
    policy = bd.PrivateBandit(3, 1.0, 200_000, **options)
    own = policy.plan.own
    assert own is not None
    assert own.bound is not None
    assert own.bound.batch == policy.batch
    said_less = bd.PrivateBandit(3, 1.0, 200_000, algorithm=policy.algorithm).plan.own
    assert said_less is not None
    assert said_less.bound is not None
    assert own.bound.regret != said_less.bound.regret
    loaded = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
    assert loaded.plan.own == own


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"losses": "odd"}, "losses must be one of any, changing, steady; got 'odd'"),
        ({"losses": "any", "algorithm": "htinf"}, "chooses the algorithm; leave out 'htinf'"),
        ({"losses": "changing", "rounds": None}, "memory="),
        ({"losses": "any", "rounds": None, "changes": 3}, "give rounds=, too, or give memory="),
        ({"losses": "steady", "changes": 3}, "changes= is for adaptive and one-bit-exp3"),
        ({"memory": 30, "batch": 2}, "memory= is for adaptive; one-bit does not"),
        ({"losses": "any", "memory": 0}, "memory must be"),
        ({"algorithm": "adaptive", "guard": False}, "guard=False is about dp-klucb"),
        ({"algorithm": "dp-klucb", "batch": 7}, "decides its batches itself"),
        (
            {"algorithm": "dp-klucb", "epsilon": 1e-4, "rounds": 500},
            "smallest rounds that works is 20000",
        ),
        ({"learner": DpKlucb(3, 0.5), "release": "laplace"}, "do not make a policy"),
        ({"learner": DpKlucb(3, 0.5)}, "do not make a policy"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(bd.InputError, match=message):
        bd.PrivateBandit(**{"arms": 3, "epsilon": 0.5, "rounds": 10_000, **options})


def test_growing_batches_are_promised_as_what_they_are() -> None:
    for options in ({}, {"guard": False}):
        policy = bd.PrivateBandit(3, 4.0, 20_000, "dp-klucb", **options)  # type: ignore[arg-type]
        assert policy.batch == 1
        promise = policy.guarantee
        assert (promise.epsilon, promise.model) == (4.0, "central")
        assert "sizes decided from earlier releases" in promise.mechanism
        # Several rounds of one person may share a batch.
        assert promise.for_group(3).epsilon == 12.0
        assert all(finding.holds for finding in verify(json.dumps(policy.certificate())))
        played(policy, [0.2, 0.5, 0.6], 2_000)
        assert policy.released < 200
        other = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
        assert other.guarantee == promise
        assert other.stationarity == policy.stationarity


def test_a_release_keeps_to_the_sizes_it_promises() -> None:
    with pytest.raises(bd.InputError, match=r"batches of 3; got 4"):
        LaplaceRelease(1.0, 3).start(4)
    with pytest.raises(bd.InputError, match=r"batches up to 9; got 10"):
        LaplaceRelease(1.0, 3, longest=9).start(10)
    LaplaceRelease(1.0, 3, longest=9).start(9)
    with pytest.raises(bd.InputError, match="longest"):
        LaplaceRelease(1.0, 1, longest=1)


def test_what_is_known_afterwards() -> None:
    steady = bd.PrivateBandit(2, 1.0, 6_000, "dp-klucb")
    assert steady.stationarity is not None
    assert (steady.stationarity["tests"], steady.stationarity["alarm"]) == (0, False)
    assert steady.regret_bound is None
    played(steady, [0.2, 0.6], 3_000)
    assert steady.stationarity["false_alarm"] == 1e-4
    assert not steady.stationarity["alarm"]
    played(steady, [0.9, 0.6], 3_000)
    assert steady.stationarity["alarm"]
    assert steady.stationarity["most_telling"]["arm"] == 0
    adaptive = bd.PrivateBandit(2, 1.0, 6_000, losses="any", loss_range=(0, 2))
    played(adaptive, [0.2, 0.6], 6_000)
    assert adaptive.stationarity is None
    assert adaptive.regret_bound is not None
    assert 0.0 < adaptive.regret_bound < 2 * 6_000


def test_the_bound_afterwards_is_above_the_regret() -> None:
    """A mean of ten runs each, and the bound is several times the regret: no false alarm here."""
    means, bounds, regrets = [0.3, 0.5, 0.5], [], []
    for seed in range(10):
        policy = bd.PrivateBandit(3, 1.0, 3_000, losses="any", seed=seed)
        rng, regret = np.random.default_rng(seed), 0.0
        for _ in range(3_000):
            decision = policy.decide()
            regret += means[decision.index] - means[0]
            policy.observe(decision, loss=float(rng.random() < means[decision.index]))
        bounds.append(policy.regret_bound)
        regrets.append(regret)
    assert np.mean(regrets) < np.mean(bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e-9, 0.1])
def test_auto_follows_experts_where_no_bound_says_anything(epsilon: float) -> None:
    policy = bd.PrivateExperts(10, 3, epsilon, rounds=300)
    assert policy.algorithm == "adaptive"
    assert "It guarantees nothing at this size" in policy.why
    late = bd.PrivateExperts(10, 3, epsilon, rounds=300, delay=5)  # no bound is known
    assert late.algorithm == "one-bit"
    for _ in range(300):
        decision = policy.decide([2] * 10)
        assert decision.index == 2
        policy.observe(decision, loss=0.5)


# --- what they must show --------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "below"), [(1.0, 40_000), (0.1, 25_000)])
def test_changing_losses_are_followed(epsilon: float, below: float) -> None:
    """Six sinusoids: over five runs the mean is several standard errors below."""
    rounds = 200_000
    t, arm = np.arange(rounds)[:, None] / rounds, np.arange(6)[None, :]
    losses = 0.5 + 0.3 * np.sin(2 * np.pi * (2 * t + arm / 6)) - 0.05 * (arm == 1)
    policy = bd.PrivateBandit(6, epsilon, rounds, losses="changing")
    results = bd.simulate(policy, losses.clip(0, 1), replicates=5)
    assert results.regret("policy").mean() <= -below


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("gap", [0.05, 0.3])
def test_steady_losses_cost_little_more_than_they_must(epsilon: float, gap: float) -> None:
    """Expected regret by the arms played, the mean of 100 runs; the guard is on."""
    policy = bd.PrivateBandit(10, epsilon, 10**6, "dp-klucb")
    means = np.full(10, 0.5 + gap / 2)
    means[0] -= gap
    results = bd.simulate(policy, Bernoulli(means.tolist(), 10**6), replicates=100)
    regret = results.plays("policy") @ (means - means.min())
    assert regret.mean() <= 1.4 * stationary_lower_bound(list(means), 10**6, epsilon)


def test_adaptive_has_less_regret_than_one_bit() -> None:
    """200 000 rounds, ten Bernoulli arms; it was 0.46 of one-bit's mean at a gap of 0.1."""
    policies = {name: bd.PrivateBandit(10, 0.1, 200_000, name) for name in ("adaptive", "one-bit")}
    results = bd.simulate(policies, Bernoulli(10, 200_000, gap=0.1), replicates=40)
    assert results.regret("adaptive").mean() <= 0.65 * results.regret("one-bit").mean()


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["kl-ucb", "thompson"])
def test_the_strongest_without_privacy(learner: str) -> None:
    policies = {name: bd.Bandit(10, name, 100_000) for name in (learner, "tsallis-inf")}
    results = bd.simulate(policies, Bernoulli(10, 100_000, gap=0.2), replicates=40)
    assert results.regret(learner).mean() < results.regret("tsallis-inf").mean()

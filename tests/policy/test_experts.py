"""Choosing by expert advice, as a person uses it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna.algorithms import algorithms
from bandanna.environments import Chunk
from bandanna.learners import Htinf
from bandanna.planner.plan import row_of
from bandanna.simulation.engine import ExpertRun, run_streams
from bandanna.spec import Problem


def test_the_example_of_the_readme_runs() -> None:
    policy = bd.PrivateExperts(experts=20, arms=5, epsilon=0.5, delta=0, rounds=1_000_000)
    advice = np.random.default_rng(0).dirichlet(np.ones(5), 20)
    decision = policy.decide(advice)
    policy.observe(decision, loss=0.2)
    assert policy.guarantee.epsilon == 0.5
    assert policy.algorithm in policy.why


@pytest.mark.parametrize(
    ("size", "runs", "best"),
    [
        ((5, 100, 10**7, 0.5, 1e-6), "one-bit-exp4", "one-bit-exp4"),
        ((50, 3, 10**7, 0.01, 0.0), "adaptive", "one-bit-exp3"),
        ((3, 10_000, 10**10, 1e-4, 1e-6), "adaptive", "one-bit-tsallis"),
        ((4, 10, 10**5, 0.5, 0.0), "adaptive", "one-bit-exp4"),
    ],
)
def test_auto_weighs_experts_where_they_are_many(
    size: tuple[Any, ...], runs: str, best: str
) -> None:
    arms, experts, rounds, epsilon, delta = size
    policy = bd.PrivateExperts(experts, arms, epsilon, delta, rounds)
    problem = Problem(arms, rounds, epsilon, experts, delta)
    private = [row for row in algorithms(with_experts=True) if row.private]
    assert min(private, key=lambda row: row_of(row, problem).regret).name == best
    assert policy.plan.best.algorithm == best
    assert policy.algorithm == runs
    assert policy.plan.own is not None
    planned = policy.plan.own.bound
    assert planned is not None
    assert policy.batch == planned.batch
    # What it promises is said: three times the smallest guarantee of a conversion, or its own.
    others = [row for row in policy.plan.rows if row.entry.private and row.entry.over is not None]
    if policy.plan.own.vacuous:
        assert "It guarantees nothing at this size." in policy.why
    elif runs != best:
        least = min(row.regret for row in others if row.algorithm != runs)
        assert planned.regret <= 3.0 * least * (1.0 + 1e-9)
        assert f"{planned.regret / rounds:.1%}" in policy.why


def test_worlds_choose_among_conversions() -> None:
    steady = bd.PrivateExperts(3, 2, 0.5, rounds=10_000, losses="steady")
    assert steady.algorithm == "dp-klucb"
    assert "no bound on its regret" in steady.why
    assert steady.plan.own is not None
    assert steady.plan.own.bound is None
    changing = bd.PrivateExperts(3, 2, 0.5, rounds=10_000, losses="changing")
    assert (changing.algorithm, changing.spec.changes) == ("adaptive", 10)
    with pytest.raises(bd.InputError, match="chooses the algorithm"):
        bd.PrivateExperts(3, 2, 0.5, rounds=10_000, algorithm="one-bit-exp4", losses="any")


def test_growing_batches_follow_experts_as_the_simulator_does() -> None:
    """DP-KLUCB with experts decides how long it follows each."""
    rng = np.random.default_rng(3)
    losses, advice = rng.random((400, 3)), rng.integers(0, 3, (400, 4))
    policy = bd.PrivateExperts(4, 3, 1.0, rounds=400, losses="steady")
    run = ExpertRun(policy.recipe, 4, 3, np.array([400]), 5, 0)
    units = np.round(losses * UNITS).astype(np.int64)
    run.play(Chunk(0, units, advice.astype(np.uint8)))
    streams = run_streams(5, 0)
    online = policy.rehearse(streams[0], streams[1])
    lost = 0
    for t in range(400):
        decision = online.decide(advice[t])
        lost += int(units[t, decision.index])
        online.observe(decision, loss=losses[t, decision.index])
    assert lost == run.result.losses[0]
    report = run.result.report
    assert report is not None
    assert report.guard is not None
    assert report.guard["alarm"] is False
    assert online.released < 400 // policy.batch  # later batches are longer than the first


def test_experts_have_names() -> None:
    policy = bd.PrivateExperts(["lr", "rf"], ["A", "B"], 1.0, rounds=1000, seed=1)
    for _ in range(60):
        decision = policy.decide({"rf": "A", "lr": "B"})
        policy.observe(decision, reward=float(decision.arm == "A"))
    assert policy.experts == 2
    assert policy.expert_names == ("lr", "rf")
    assert [row.arm for row in policy.summary().rows] == ["lr", "rf"]
    assert "lr" in str(policy.compare("lr", "rf"))
    assert policy.spec.to_dict()["experts"] == ["lr", "rf"]
    assert bd.PrivateExperts(2, 2, 1.0).spec.to_dict()["experts"] == 2
    with pytest.raises(bd.InputError, match="expert 'rf' said nothing"):
        policy.decide({"lr": "A"})
    with pytest.raises(bd.InputError, match="an unknown expert, 'svm'"):
        policy.decide({"lr": "A", "svm": "B"})
    with pytest.raises(bd.InputError, match="names of experts must differ"):
        bd.PrivateExperts(["lr", "lr"], 2, 1.0)
    results = bd.simulate(policy, np.full((50, 2), 0.25), advice=np.zeros((50, 2), int))
    assert results.reward("policy").tolist() == [0.75] * 100
    assert results.best_reward == 0.75
    assert "the best expert, lr, has a reward of 0.75 a round" in repr(results)


def test_one_expert_is_followed_and_nothing_is_released() -> None:
    policy = bd.PrivateExperts(experts=1, arms=3, epsilon=0.1, rounds=100)
    for arm in (2, 0, 1):
        decision = policy.decide([arm])
        assert decision.arm == arm
        policy.observe(decision, loss=1.0)
    assert (policy.guarantee.epsilon, policy.guarantee.delta) == (0.0, 0.0)
    with pytest.raises(bd.InputError, match="nothing to certify"):
        policy.certificate()


def test_conversions_take_any_learner_and_either_release() -> None:
    class Stubborn:
        def draw(self) -> int:
            return 1

        def update(self, arm: int, loss: float) -> None:
            assert loss in (0.0, 1.0)

    for learner in (Htinf(3), "exp3", Stubborn()):
        policy = bd.PrivateExperts(3, 2, 1.0, rounds=500, learner=learner, batch=2)
        for _ in range(6):
            policy.observe(policy.decide([0, 1, 0]), reward=0.5)
        assert policy.released == 3
        results = bd.simulate(
            policy, np.full((40, 2), 0.5), advice=np.zeros((40, 3), dtype=int), replicates=2
        )
        assert results.regret("policy").tolist() == [0.0, 0.0]
    laplace = bd.PrivateExperts(3, 2, 1.0, learner="htinf", release="laplace", batch=4)
    assert "Laplace" in laplace.guarantee.mechanism


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"experts": 0}, "experts must be"),
        ({"experts": 2.5}, "experts must be"),
        ({"arms": 1}, "arms must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": -1e-9}, "delta must be"),
        ({"delta": math.nan}, "delta must be"),
        ({"algorithm": "exp5"}, "unknown algorithm 'exp5'"),
        ({"algorithm": "one-bit-exp4", "rounds": None}, "pass rounds="),
        ({"algorithm": "one-bit-exp4", "batch": 3}, "follows one expert"),
        ({"algorithm": "batched-exp4"}, "delta above 0"),
        ({"algorithm": "batched-exp4", "delta": 0.9}, "composition step"),
        ({"algorithm": "batched-exp4", "delta": 1e-6}, "smallest rounds that works is"),
        ({"algorithm": "local-exp4", "rounds": 1}, "smallest rounds that works is"),
        ({"learner": Htinf(7)}, "7 arms"),
        ({"release": "none"}, "unknown release"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], reason: str) -> None:
    good = {"experts": 4, "arms": 3, "epsilon": 0.5, "rounds": 1000}
    with pytest.raises(bd.InputError, match=reason):
        bd.PrivateExperts(**(good | options))


@pytest.mark.parametrize("algorithm", ["batched-exp4", "local-exp4"])
def test_the_smallest_horizon_named_does_work_and_one_less_does_not(algorithm: str) -> None:
    def attempt(rounds: int) -> bd.PrivateExperts:
        return bd.PrivateExperts(4, 3, 0.5, 1e-6, rounds, algorithm)

    with pytest.raises(bd.InputError) as refused:
        attempt(1)
    smallest = int(str(refused.value).rstrip(".").split()[-1])
    attempt(smallest)
    with pytest.raises(bd.InputError):
        attempt(smallest - 1)


def test_experts_without_privacy() -> None:
    assert not bd.Experts(3, 2, 100).guarantee.private
    with pytest.raises(bd.InputError, match="rounds="):
        bd.Experts(3, 2, learner="exp4")
    assert bd.Experts(3, 2).algorithm == "adaptive"
    with pytest.raises(bd.InputError, match="unknown learner"):
        bd.Experts(3, 2, learner="oracle")

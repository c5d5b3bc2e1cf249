"""goal="answer": a policy that finds the best arm, says when it is sure, and plays it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.types import JSON

MEANS = {"A": 0.4, "B": 0.7, "C": 0.2}


def run(policy: bd.PrivateBandit, rounds: int, seed: int = 0) -> list[str]:
    rng, played = np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = policy.decide()
        played.append(str(decision.arm))
        policy.observe(decision, reward=float(rng.random() < MEANS[str(decision.arm)]))
    return played


def test_the_best_arm_is_named_and_played(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(["A", "B", "C"], 1.0, goal="answer", seed=1)
    assert policy.algorithm == "race"
    assert not policy.answered
    assert policy.dropped == ()
    run(policy, 1_500)
    assert policy.answered
    answer = policy.answer()
    assert answer.best == policy.leader == "B"
    assert answer.racing == ("B",)
    assert {one.name for one in policy.dropped} == {"A", "C"}
    assert all(one.by == "B" for one in policy.dropped)
    policy.save(tmp_path / "policy.json")
    loaded = bd.load(tmp_path / "policy.json")
    assert loaded.answered
    assert loaded.dropped == policy.dropped
    run(policy, 200)
    assert set(run(policy, 100)) == {"B"}
    assert policy.guarantee.epsilon == 1.0
    assert policy.answer(confidence=0.999).best in (None, "B")


def test_tolerance_is_in_the_users_units() -> None:
    policy = bd.PrivateBandit(
        ["A", "B"], 1.0, goal="answer", seed=1, loss_range=(0, 20), tolerance=4.0
    )
    rng = np.random.default_rng(0)
    while not policy.answered:
        assert policy.decided < 20_000
        policy.observe(policy.decide(), loss=20.0 * float(rng.random() < 0.5))
    answer = policy.answer()
    assert answer.best is None  # the worse one may be good enough
    assert answer.good_enough in ("A", "B")
    assert answer.to_dict()["good_enough"] == answer.good_enough
    assert "no other arm is better by more than 4 per decision" in answer.sentence


def test_other_policies_say_whether_they_know_the_answer() -> None:
    policy = bd.PrivateBandit(["A", "B"], 1.0, 1_000, learner="uniform", release="laplace")
    assert policy.answered is False
    assert policy.dropped == ()


def test_mistakes_are_explained() -> None:
    mistakes: tuple[JSON, ...] = ({"algorithm": "exp3"}, {"losses": "any"}, {"batch": 3})
    for options in mistakes:
        with pytest.raises(bd.InputError, match='goal="answer" runs race'):
            bd.PrivateBandit(2, 1.0, 1_000, goal="answer", **options)
    with pytest.raises(bd.InputError, match="goal must be one of"):
        bd.PrivateBandit(2, 1.0, goal="fame")  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="confidence must be"):
        bd.PrivateBandit(2, 1.0, goal="answer", confidence=2.0)

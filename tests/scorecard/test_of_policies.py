"""The scorecard of a running policy says what its answers and comparisons say."""

from __future__ import annotations

import random

import pytest

import bandanna as bd


def played() -> bd.PrivateBandit:
    people = random.Random(1)
    bandit = bd.PrivateBandit(
        ["A", "B"],
        epsilon=2.0,
        rounds=6_000,
        algorithm="phased",
        metrics={"refund": (0, 1)},
        guardrails={"refund": 0.2},
        control="A",
        least_share=0.3,
    )
    for _ in range(6_000):
        decision = bandit.decide()
        won = people.random() < (0.2 if decision.arm == "A" else 0.6)
        returned = {"refund": float(people.random() < 0.05)}
        bandit.observe(decision, reward=float(won), metrics=returned)
    return bandit


def test_it_says_what_answers_say() -> None:
    bandit = played()
    card = bandit.scorecard(outcome="conversion")
    compared = bandit.compare("A", "B", 0.975)
    _, treated = card.metrics[0].effects
    assert (treated.low, treated.high) == (compared.low, compared.high)
    assert treated.verdict == "better"
    assert treated.lift is not None
    assert treated.lift_low <= 2.0 <= treated.lift_high
    assert card.metrics[1].effects[1].verdict == "kept"
    assert card.recommendation.action == "ship"
    assert card.recommendation.headline.startswith("Ship B: conversion is ")
    for text in (str(card), card.html(), card._repr_html_()):
        assert "conversion, of 100 decisions" in text
    assert card.to_dict()["control"] == "A"


def test_before_anything_was_released() -> None:
    bandit = bd.PrivateBandit(["A", "B"], epsilon=0.5, rounds=1_000)
    card = bandit.scorecard()
    assert card.recommendation.action == "go on"
    assert "not known" in str(card)
    with pytest.raises(bd.InputError, match="control must be one of 'A', 'B'; got 'C'"):
        bandit.scorecard("C")


def test_phases_are_drawn_over_time() -> None:
    card = played().scorecard(outcome="conversion")
    assert card.followed == "B"
    last = card.moments[-1]
    treated = card.metrics[0].effects[1]
    assert last.rounds == 6_000
    assert (last.lift, last.low, last.high) == (treated.lift, treated.lift_low, treated.lift_high)
    assert all(sum(moment.shares) == pytest.approx(1.0) for moment in card.moments)
    assert "Lift of B over time" in card._repr_html_()
    assert not bd.PrivateBandit(["A", "B"], epsilon=1.0, rounds=900).scorecard().moments

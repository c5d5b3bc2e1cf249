"""Parameters of batched EXP4: the best ones are found, and their bound holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bandanna as bd
from bandanna.algorithms import find
from bandanna.environments import OneGoodExpert, SwitchingExperts
from bandanna.planner.plan import row_of
from bandanna.privacy.calibration import closed_forms
from bandanna.spec import Constants, Problem
from bandanna.theory.batched_exp4 import (
    Batched,
    best_calibrated,
    calibrated_bound,
    calibrated_terms,
)
from tests.soak import mostly_slow

PROBLEMS = [
    Problem(5, 10**6, 1.0, experts=10, delta=1e-6),
    Problem(5, 10**7, 0.5, experts=100, delta=1e-6),
    Problem(10, 10**9, 1e-4, experts=1000, delta=1e-6),
    Problem(5, 10**6, 1.0, experts=4),
    Problem(3, 5000, 2.0, experts=2),
]


@pytest.mark.parametrize("problem", mostly_slow(PROBLEMS, PROBLEMS[:1]), ids=str)
def test_no_point_of_a_wide_grid_has_a_smaller_bound(problem: Problem) -> None:
    parameters, noise = best_calibrated(problem)
    found = math.fsum(calibrated_terms(problem, noise, parameters).values())
    best = math.inf
    for batch in np.unique(np.geomspace(1, problem.horizon("it"), 60).astype(int)):
        for mixing in np.geomspace(1e-4, 1.0, 40):
            for rate in np.geomspace(1e-5, 1.0, 40):
                point = Batched(int(batch), float(rate), float(mixing))
                terms = calibrated_terms(problem, noise, point)
                best = min(best, math.fsum(terms.values()))
    assert found <= best * 1.001


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_bound_agrees_with_a_second_computation(problem: Problem) -> None:
    (arms, rounds, epsilon), experts = problem.size, problem.num_experts
    (tau, eta, gamma), _ = best_calibrated(problem)
    pure, normal = closed_forms(epsilon, problem.delta, experts)
    n, unit = rounds // tau, arms / gamma / 2**30
    if pure.deviation < normal.deviation:
        b = experts / epsilon * arms / (gamma * tau)
        noise = math.log(1 / (1 - (eta * b) ** 2))
    else:
        sigma = normal.gaussian * math.sqrt(experts) * arms / (gamma * tau)
        noise = (eta * sigma) ** 2 / 2
    second = (
        gamma * n * tau
        + (1 - gamma) * tau * (math.log(experts) / eta + n * noise / eta)
        + (1 - gamma) * eta * n * tau * (1 + (arms - 1) / tau) / 2
        + n * tau * (3 * unit + unit**2 / 2)
        + rounds
        - n * tau
    )
    bound = calibrated_bound(problem)
    assert bound.regret == pytest.approx(second, rel=1e-12)
    assert bound.batch == tau


def test_rounding_costs_its_square_where_actions_may_be_rare() -> None:
    noise, _ = closed_forms(1.0, 0.0, 4)
    unit = 10 / (1e-8 * 2**30)
    problem = Problem(10, 1000, 1.0, experts=4)
    terms = calibrated_terms(problem, noise, Batched(10, 1e-9, 1e-8))
    assert terms["rounding"] == pytest.approx(1000 * (3 * unit + unit**2 / 2))


def test_simulated_regret_stays_below_the_bounds() -> None:
    experts, arms, rounds = 8, 3, 200_000
    problem = Problem(arms, rounds, 1.0, experts, 1e-3)
    names: dict[str, Constants | None] = {
        "one-bit-exp4": None,
        "one-bit": None,
        "batched-exp4": "ours",
    }
    limits = {
        name: row_of(find(name, with_experts=True, constants=whose), problem).regret
        for name, whose in names.items()
    }
    policies = {
        name: bd.PrivateExperts(experts, arms, 1.0, 1e-3, rounds, name, constants=whose)
        for name, whose in names.items()
    }
    for make in (OneGoodExpert, SwitchingExperts):
        environment = make(experts, arms, rounds)
        results = bd.simulate(policies, environment, replicates=6)
        for name, bound in limits.items():
            assert bound < rounds
            assert results.regret(name).mean() < bound


def test_noise_on_the_grid_has_no_larger_moments_than_on_the_line() -> None:
    """The regret bound takes the continuous laws; the discrete ones are below, term by term."""
    for scale in (1.0, 3.0, 50.0):
        for eta in (0.1 / scale, 0.5 / scale, 0.95 / scale):
            z = np.arange(-int(600 * scale), int(600 * scale) + 1)
            laplace = np.exp(-np.abs(z) / scale + 0.0)
            moment = (np.exp(eta * z - np.abs(z) / scale)).sum() / laplace.sum()
            assert moment <= 1.0 / (1.0 - (eta * scale) ** 2) * (1 + 1e-12)
            normal = np.exp(-(z**2) / (2 * scale**2))
            with_eta = np.exp(eta * z - z**2 / (2 * scale**2)).sum() / normal.sum()
            assert with_eta <= math.exp((eta * scale) ** 2 / 2) * (1 + 1e-12)

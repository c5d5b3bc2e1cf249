"""From what a user asks for to what runs: policies with expert advice."""

from __future__ import annotations

from typing import NamedTuple

from bandanna.learners import Exp4, FixedArm, Learner
from bandanna.policies.recipe import Recipe, Request, named_learner, needed_horizon, private_recipe
from bandanna.privacy import (
    LaplaceRelease,
    OneBitRelease,
    PlainRelease,
    Release,
    SilentRelease,
    VectorRelease,
)
from bandanna.privacy.calibration import paper_noise
from bandanna.theory import expert_parameters
from bandanna.types import InputError

CONVERSIONS = {
    "one-bit-conversion": "one-bit",
    "one-bit-exp3-conversion": "one-bit-exp3",
    "htinf-conversion": "htinf",
    "exp3-conversion": "exp3",
    "ftpl-conversion": "ftpl",
}
"""Each expert an arm of a private bandit algorithm (the paper's Algorithm 6 over Algorithm 1)."""

EXP4_ALGORITHMS = ("one-bit-exp4", "local-exp4", "batched-exp4", "calibrated-exp4")
WITHOUT_HORIZON = "one-bit-conversion or htinf-conversion"
EXPERT_ALGORITHMS = (*CONVERSIONS, *EXP4_ALGORITHMS)


ExpertRecipe = Recipe


class ExpertRequest(NamedTuple):
    """What a user asks for."""

    algorithm: str
    experts: int
    arms: int
    epsilon: float
    delta: float
    rounds: int | None
    learner: Learner | str | None = None
    release: Release | str | None = None
    batch: int | None = None


def private_expert_recipe(request: ExpertRequest) -> ExpertRecipe:
    """Choose learner, release and batch for a named algorithm."""
    if request.algorithm not in EXPERT_ALGORITHMS:
        known = ", ".join(("auto", *EXPERT_ALGORITHMS))
        raise InputError(f"unknown algorithm {request.algorithm!r}; there are {known}.")
    if request.experts == 1:
        return ExpertRecipe(FixedArm(1), SilentRelease())
    if request.algorithm in CONVERSIONS:
        return _conversion(request)
    if (request.learner, request.release, request.batch) != (None, None, None):
        raise InputError(
            f"learner, release and batch can be replaced in conversions "
            f"({', '.join(CONVERSIONS)}), not in {request.algorithm}."
        )
    return _exp4(request)


def _conversion(request: ExpertRequest) -> ExpertRecipe:
    over_experts = Request(
        algorithm=CONVERSIONS[request.algorithm],
        arms=request.experts,
        epsilon=request.epsilon,
        rounds=request.rounds,
        learner=request.learner,
        release=request.release,
        batch=request.batch,
    )
    return ExpertRecipe(*private_recipe(over_experts))


def _exp4(request: ExpertRequest) -> ExpertRecipe:
    experts, arms, epsilon, delta = request[1:5]
    rounds = needed_horizon(request.algorithm, request.rounds, WITHOUT_HORIZON)
    problem = (arms, experts, rounds, epsilon)
    if request.algorithm == "one-bit-exp4":
        bounded = expert_parameters.one_bit_exp4(*problem)
        return ExpertRecipe(Exp4(experts, arms, *bounded), OneBitRelease(epsilon, 1))
    if request.algorithm == "local-exp4":
        learner = Exp4(experts, arms, *expert_parameters.local_exp4(*problem))
        return ExpertRecipe(learner, LaplaceRelease(epsilon, 1))
    if request.algorithm == "batched-exp4":
        paper_noise(epsilon, delta, experts)  # before the parameters: refuses what cannot be
        batch, rate, mixing = expert_parameters.batched_exp4(*problem, delta)
        release = VectorRelease(epsilon, delta, experts, arms, batch, mixing, "paper")
    else:
        (batch, rate, mixing), _ = expert_parameters.calibrated_exp4(*problem, delta)
        release = VectorRelease(epsilon, delta, experts, arms, batch, mixing)
    return ExpertRecipe(Exp4(experts, arms, rate, mixing), release)


def plain_expert_recipe(
    *, experts: int, arms: int, rounds: int | None, learner: Learner | str
) -> ExpertRecipe:
    """Choose the learner of a policy without privacy."""
    release = PlainRelease()
    if isinstance(learner, Learner):
        return ExpertRecipe(learner, release)
    if learner == "uniform":
        return ExpertRecipe(Exp4(experts, arms, learning_rate=1.0, mixing=1.0), release)
    if experts == 1:
        return ExpertRecipe(FixedArm(1), release)
    if learner == "random-expert":
        return ExpertRecipe(named_learner("uniform", experts, rounds, release), release)
    if learner == "exp4":
        rate = expert_parameters.bounded_exp4(
            arms, experts, needed_horizon(learner, rounds, WITHOUT_HORIZON)
        )
        return ExpertRecipe(Exp4(experts, arms, *rate), release)
    return ExpertRecipe(named_learner(learner, experts, rounds, release), release)

"""Every policy there is, small enough to fill a batch, and how to play it."""

from __future__ import annotations

from typing import Any

import numpy as np

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.algorithms import algorithms
from bandanna.policy import Policy
from bandanna.policy.parts import columns_of
from bandanna.privacy import VectorRelease

EXPERTS, ARMS = 5, 3
ROUNDS = {
    "race": 100,
    "batched-exp4": 10**7,
    **{"ab-test": 300, "phased": 1000, "phased-net": 1000},  # phases of less than a hundred rounds
}
OURS, FOLLOWED = ", our constants", ", over experts"
DELTA = {"batched-exp4": 1e-6, f"batched-exp4{OURS}": 1e-2}


def versions(*, with_experts: bool) -> list[str]:
    """Return a name for each private row of the catalogue, and for each with our constants."""
    return [
        row.name + FOLLOWED * (row.over is not None) + OURS * (row.constants == "ours")
        for entry in algorithms(with_experts=with_experts)
        for row in entry.versions
        if row.private
    ]


WITH_EXPERTS = versions(with_experts=True)
PRIVATE = (*versions(with_experts=False), *WITH_EXPERTS)
PLAIN_EXPERTS = ("exp4", "random-expert", "uniform-experts")
PLAIN = ("no-privacy", "uniform", *PLAIN_EXPERTS)
EVERY = (*PRIVATE, *PLAIN)


def advised(name: str) -> bool:
    """Whether a policy takes advice."""
    return name in WITH_EXPERTS or name in PLAIN_EXPERTS


def make(name: str, **options: Any) -> Policy:
    """Return a policy; the two batched ones with a batch that a test can fill."""
    rounds, delta = ROUNDS.get(name, 10_000), DELTA.get(name, 0.0)
    algorithm = name.removesuffix(OURS).removesuffix(FOLLOWED)
    if name.endswith(OURS):
        options["constants"] = "ours"
    if name in PLAIN_EXPERTS:
        return bd.Experts(EXPERTS, ARMS, rounds, name.removesuffix("-experts"), **options)
    if name in PLAIN:
        learner = "uniform" if name == "uniform" else "tsallis-inf"
        return bd.Bandit(ARMS, learner, **options)
    if not advised(name):
        return bd.PrivateBandit(ARMS, 0.8, rounds, algorithm, **options)
    policy = bd.PrivateExperts(EXPERTS, ARMS, 0.8, delta, rounds, algorithm, **options)
    release = policy.recipe.release
    if isinstance(release, VectorRelease):
        saved = release.to_dict() | {"batch": 7}
        del saved["name"]
        recipe = policy.recipe._replace(release=VectorRelease(**saved))
        Policy.__init__(policy, policy.spec, recipe, seed=options.get("seed"))
    return policy


def advise(name: str, rng: np.random.Generator, spread: bool = False) -> Any:
    """Return a round's advice, or nothing where there are no experts."""
    if not advised(name):
        return None
    if spread:
        return rng.dirichlet(np.ones(ARMS), EXPERTS)
    return rng.integers(0, ARMS, EXPERTS)


def hear_what_waits(policy: Policy, waiting: list[bd.Decision]) -> None:
    """Observe what is waited for, with noise that two policies who went the same way share."""
    policy._parts.release = seeded = policy.recipe.release.seeded(new_stream(7))
    policy._parts.columns = columns = columns_of(policy.spec, seeded)
    for batch in policy.state.open.values():
        batch.tally._release = seeded  # type: ignore[attr-defined]
        if columns is not None:
            batch.tally.also(columns)
    for decision in waiting:
        policy.observe(decision, loss=0.25)

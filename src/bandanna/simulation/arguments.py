"""The arguments of a simulation, checked before anything runs, and how long it will take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import LossRange
from bandanna._core.types import ArmName, InputError, plain
from bandanna.environments import Environment, ExpertEnvironment
from bandanna.policy import Policy, Recipe, Segments
from bandanna.simulation.online import plays_online

MAX_STEPS = 1e13
"""Learning steps in one call; at about 100 ns each, several days on two cores."""
MAX_NUMBERS = 1e9

PHASED_ROUND_SECONDS, PHASED_ARM_SECONDS = 1.2e-8, 3e-10
"""Time of a round of a phase, and of it for each arm: rounds are drawn one by one."""

STEP_SECONDS = 15e-9
"""Time of a learning step for each arm or expert; ten more for what does not depend on them."""

ROUND_SECONDS = 25e-6
"""Time of a round of the online object, in Python; see ``online.py``."""

SLOW = {"kl-ucb": 5.0, "thompson": 5.0}
"""Learners whose steps take so many times as long."""

SHARES_SECONDS = {"phased": 2e-4}
"""Time of an arm in a run of learners that draw shares for each of their phases."""

FEW_TIMES = 4
"""Rounds may be so many times more than a policy was made for without a word."""

Policies = Policy | Mapping[str, Policy]


def checkpoint_rounds(
    rounds: int, checkpoints: int | Sequence[int] | NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return numbers of rounds in order, the last being all of them."""
    if isinstance(checkpoints, Sequence | np.ndarray):
        chosen = np.unique(np.asarray([*checkpoints, rounds], dtype=np.int64))
        if chosen[0] < 1 or chosen[-1] > rounds:
            raise InputError(f"checkpoints must be rounds from 1 to {rounds}; got {checkpoints!r}.")
        return chosen
    count = checks.whole("checkpoints", checkpoints, at_least=1)
    spaced = np.unique(np.rint(np.geomspace(1, rounds, count)).astype(np.int64))
    spaced[-1] = rounds
    return spaced


def by_name(policies: Policies) -> dict[str, Policy]:
    """Require policies, by name; one alone is called "policy"."""
    if isinstance(policies, Segments):
        raise InputError(
            "simulate compares policies on the same losses, and segments have losses of their own: "
            "use bandanna.simulation.simulate_segments(segments, losses by segment), or "
            "simulate(dict(segments), losses) to compare them on the same ones."
        )
    if not isinstance(policies, Policy | Mapping):
        raise InputError(
            f"policies must be a policy or a dict of names and policies; got "
            f"{type(policies).__name__}."
        )
    named = {"policy": policies} if isinstance(policies, Policy) else dict(policies)
    if not named:
        raise InputError("simulate needs at least one policy; got none.")
    for name, policy in named.items():
        if not isinstance(policy, Policy):
            raise InputError(
                f"policy {name!r} must be a PrivateBandit, PrivateExperts or the like; got "
                f"{type(policy).__name__}."
            )
    return named


def by_segment(segments: Segments, losses: object) -> dict[ArmName, tuple[Policy, object]]:
    """Require losses for each segment; returns them with its policy."""
    names = ", ".join(map(repr, segments))
    if not isinstance(losses, Mapping):
        raise InputError(
            f"segments have losses of their own: give a dict with those of {names}; got "
            f"{type(losses).__name__}. To compare policies on the same losses use "
            f"simulate(dict(segments), losses)."
        )
    if set(losses) != set(segments):
        given = ", ".join(map(repr, losses))
        raise InputError(f"give the losses of each segment, {names}; got those of {given}.")
    return {name: (policy, losses[name]) for name, policy in segments.items()}


def common_range(policies: Mapping[str, Policy]) -> LossRange:
    """Return the range that the policies were made for, in which a table of losses is."""
    ranges = {policy.loss_range: name for name, policy in policies.items()}
    if len(ranges) > 1:
        (first, one), (second, other), *_ = ranges.items()
        raise InputError(
            f"policies must have the same loss_range to be compared; {one!r} has {first} and "
            f"{other!r} {second}."
        )
    return next(iter(ranges))


def check_fit(name: str, policy: Policy, environment: Environment | ExpertEnvironment) -> None:
    """Refuse a policy of another size than the problem's."""
    if policy.experts is None and environment.experts is not None:
        raise InputError(
            f"policy {name!r} must be PrivateExperts or Experts, since there is advice; got "
            f"{type(policy).__name__}."
        )
    if policy.experts is not None and environment.experts is None:
        raise InputError(
            f"policy {name!r} must be a PrivateBandit or a Bandit; got {type(policy).__name__}; "
            f"it needs advice=."
        )
    if policy.retired:
        raise InputError(f"policy {name!r} has retired arms; simulate a new one without them.")
    if (policy.experts, len(policy.arms)) != (environment.experts, environment.arms):
        own, problem = f"{len(policy.arms)} arms", f"{environment.arms}"
        if policy.experts is not None:
            own = f"{policy.experts} experts and {own}"
            problem = f"{environment.experts} and {problem}"
        raise InputError(f"policy {name!r} has {own}; the losses have {problem}.")


def misfits(
    name: str, policy: Policy, environment: Environment | ExpertEnvironment
) -> Iterator[str]:
    """Say where a policy was made for other losses than it is simulated on."""
    own, theirs = policy.loss_range, environment.loss_range
    if own != theirs:
        yield (
            f"policy {name!r} was made for losses from {plain(own[0])} to {plain(own[1])}, and "
            f"these are from {plain(theirs[0])} to {plain(theirs[1])}; it is simulated as if made "
            f"for these. Make it with loss_range=({plain(theirs[0])}, {plain(theirs[1])})."
        )
    planned, rounds = policy.rounds, environment.rounds
    if planned is not None and rounds > FEW_TIMES * planned:
        yield (
            f"policy {name!r} was made for {planned:,} rounds and is simulated for {rounds:,}; "
            f"make it with rounds={rounds} to see what it does then."
        )


def run_seconds(recipe: Recipe, rounds: int, arms: int, experts: int | None) -> float:
    """Guess how long one run takes on one core: right within a factor of five or so."""
    slow = SLOW.get(recipe.learner.name, 1.0)
    if experts is not None:  # advice is looked at every round
        return STEP_SECONDS * slow * rounds * (10.0 + experts)
    if getattr(recipe.learner, "phases", False):
        each = PHASED_ROUND_SECONDS + PHASED_ARM_SECONDS * arms
        return each * rounds + SHARES_SECONDS.get(recipe.learner.name, 0.0) * arms
    return STEP_SECONDS * slow * rounds / recipe.batch * (10.0 + arms)


def seconds_of(policies: Iterable[Policy], rounds: int) -> float:
    """Guess how long one run of each takes on one core."""
    return sum(
        ROUND_SECONDS * rounds
        if plays_online(policy)
        else run_seconds(policy.recipe, rounds, len(policy.arms), policy.experts)
        for policy in policies
    )


def check_size(
    recipes: Mapping[str, Recipe],
    environment: Environment | ExpertEnvironment,
    runs: int,
    stops: int,
) -> None:
    """Refuse what would take days or more memory than machines have, before starting."""
    rounds, experts = environment.rounds, environment.experts
    if experts is None:
        steps = runs * sum(-(-rounds // recipe.batch) for recipe in recipes.values())
    else:
        steps = runs * len(recipes) * rounds * experts
    if steps > MAX_STEPS:
        what = "runs times batches" if experts is None else "runs times rounds times experts"
        raise InputError(
            f"this would take {steps:.2g} learning steps ({what}), more than {MAX_STEPS:g}; use "
            f"fewer rounds or replicates{', or larger batches' if experts is None else ''}."
        )
    numbers = len(recipes) * runs * (2 * stops + environment.arms * (1 + 2 * stops))
    if numbers > MAX_NUMBERS:
        raise InputError(
            f"the results would hold {numbers:.2g} numbers, more than {MAX_NUMBERS:g}; use fewer "
            f"replicates, arms or checkpoints."
        )

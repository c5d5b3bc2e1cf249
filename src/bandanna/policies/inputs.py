"""What constructors are given, checked: arms, rounds, experts, learners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Integral

import numpy as np

from bandanna._core import checks
from bandanna._core.advice import MAX_EXPERTS
from bandanna._core.types import ArmName, Decision, DecisionError, InputError
from bandanna.learners import Learner
from bandanna.policies.foreign import adapt


def arm_names(arms: object) -> tuple[ArmName, ...]:
    """Turn a number of arms or their names, in order, into names."""
    if isinstance(arms, str | bytes | set | frozenset) or not isinstance(
        arms, Iterable | float | Integral
    ):
        raise InputError(f"arms must be a number or a list of names; got {arms!r}.")
    if not isinstance(arms, Iterable):
        return tuple(range(checks.arms(arms)))
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in arms)
    if len(names) < 2:
        raise InputError(f"a bandit needs at least 2 arms; got {len(names)}: {list(names)!r}.")
    for name in names:
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InputError(f"names of arms must be texts or whole numbers; got {name!r}.")
    repeated = [str(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"names of arms must differ; repeated: {', '.join(repeated)}.")
    return names


def eligible_arms(eligible: object, names: tuple[ArmName, ...]) -> tuple[int, ...] | None:
    """Turn arms, by name or index, into indices in their order; None if these are all arms.

    Where names are whole numbers, a number is a name.
    """
    if isinstance(eligible, str | bytes) or not isinstance(eligible, Iterable):
        raise InputError(f"eligible must be a list of arms, by name or index; got {eligible!r}.")
    found = {arm_index(arm, names) for arm in eligible}
    if not found:
        raise InputError("no arm is eligible; give at least one, or leave eligible out.")
    return None if len(found) == len(names) else tuple(sorted(found))


def arm_index(arm: object, names: tuple[ArmName, ...]) -> int:
    """Return the index of an arm given by its name, or by its index where names are texts."""
    plain = arm.item() if isinstance(arm, np.generic) else arm
    if isinstance(plain, str | int) and not isinstance(plain, bool):
        if plain in names:
            return names.index(plain)
        by_index = not any(isinstance(name, int) for name in names)
        if isinstance(plain, int) and by_index and 0 <= plain < len(names):
            return plain
    raise InputError(f"unknown arm {arm!r}; there are {', '.join(map(repr, names))}.")


def check_rounds(rounds: object) -> int | None:
    """Require a positive whole number of rounds, or none."""
    return None if rounds is None else checks.rounds(rounds)


def required_learner(learner: object, names: tuple[ArmName, ...]) -> Learner | str:
    """Require a learner, checked as by ``checked_learner``."""
    chosen = checked_learner(learner, names)
    if chosen is None:
        raise InputError("learner must be a name or a learner; got None.")
    return chosen


def checked_learner(learner: object, names: tuple[ArmName, ...]) -> Learner | str | None:
    """Take names as they are, adapt foreign learners, and require the right number of arms."""
    if learner is None or isinstance(learner, str):
        return learner
    adapted = learner if isinstance(learner, Learner) else adapt(learner, names)
    if adapted.arms != len(names):
        raise InputError(f"the learner has {adapted.arms} arms and the bandit {len(names)}.")
    return adapted


def check_experts(experts: object) -> int:
    """Require a number of experts."""
    return checks.whole("experts", experts, at_least=1, at_most=MAX_EXPERTS)


def check_bit(bit: object) -> int:
    """Require the bit that a device sends."""
    if type(bit) is not int or bit not in (0, 1):
        raise InputError("a device sends a bit, 0 or 1, as a whole number.")
    return bit


def as_decision(decision: Decision | Mapping[str, object]) -> Decision:
    """Take a decision, or the dictionary of one, refusing anything else."""
    try:
        made = Decision(**decision) if isinstance(decision, Mapping) else decision  # type: ignore[arg-type]
    except TypeError:
        made = None
    if not isinstance(made, Decision):
        raise DecisionError(
            f"observe takes the Decision that decide() returned, or its _asdict(); got "
            f"{type(decision).__name__}."
        )
    numbers = made.index, made.round, made.batch, made.position
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise DecisionError(
            "this decision was never made by this policy: its index, round, batch and position "
            "must be whole numbers."
        )
    return made

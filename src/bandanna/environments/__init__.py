"""Loss sequences and adversaries, synthetic and from real data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from bandanna.environments.adaptive import PunishLeader, PunishRepeats
from bandanna.environments.array import LossTable
from bandanna.environments.base import COMPARATORS, Environment
from bandanna.environments.drift import SinusoidalDrift
from bandanna.environments.segments import Segments
from bandanna.environments.synthetic import (
    Barrier,
    Bernoulli,
    ConstrainedAdversary,
    LeakageInstance,
    Switching,
)
from bandanna.environments.trial import TREATMENTS, ClinicalTrial, trial_outcomes
from bandanna.types import InputError

ENVIRONMENTS: dict[str, Callable[..., Environment]] = {
    "bernoulli": Bernoulli,
    "switching": Switching,
    "drift": SinusoidalDrift,
    "constrained": ConstrainedAdversary,
    "punish-repeats": PunishRepeats,
    "punish-leader": PunishLeader,
    "barrier": Barrier,
    "trial": ClinicalTrial,
}
"""Environments that can be asked for by name. All but the last two take any number of arms."""

_FIXED_ARMS = {"barrier": 2, "trial": len(TREATMENTS)}


def make_environment(
    name: str, arms: int | None = None, rounds: int = 100_000, **options: Any
) -> Environment:
    """Make an environment by name; ``options`` are its other parameters."""
    check_environment(name, options)
    if name in _FIXED_ARMS:
        if arms not in (None, _FIXED_ARMS[name]):
            raise InputError(
                f"environment {name!r} has {_FIXED_ARMS[name]} arms; got arms {arms!r}."
            )
        return ENVIRONMENTS[name](rounds=rounds, **options)
    return ENVIRONMENTS[name](arms=10 if arms is None else arms, rounds=rounds, **options)


def check_environment(name: str, options: Iterable[str] = ()) -> None:
    """Refuse a name or an option that does not exist."""
    if name not in ENVIRONMENTS:
        raise InputError(f"unknown environment {name!r}; there are {', '.join(ENVIRONMENTS)}.")
    known = [
        option
        for option in inspect.signature(ENVIRONMENTS[name]).parameters
        if option not in ("arms", "rounds")
    ]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"environment {name!r} has no option {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(known) or 'none'}."
        )


def as_environment(losses: Any) -> Environment:
    """Take an environment as it is, and anything else as a table of losses."""
    return losses if isinstance(losses, Environment) else LossTable(losses)


__all__ = [
    "COMPARATORS",
    "ENVIRONMENTS",
    "TREATMENTS",
    "Barrier",
    "Bernoulli",
    "ClinicalTrial",
    "ConstrainedAdversary",
    "Environment",
    "LeakageInstance",
    "LossTable",
    "PunishLeader",
    "PunishRepeats",
    "Segments",
    "SinusoidalDrift",
    "Switching",
    "as_environment",
    "check_environment",
    "make_environment",
    "trial_outcomes",
]

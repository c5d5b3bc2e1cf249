"""Loss sequences and adversaries, synthetic and from real data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from bandanna.environments.adaptive import PunishLeader, PunishRepeats
from bandanna.environments.array import LossTable
from bandanna.environments.base import COMPARATORS, Environment
from bandanna.environments.digits import DigitsExperts
from bandanna.environments.drift import SinusoidalDrift
from bandanna.environments.expert_base import ExpertEnvironment, ExpertTable
from bandanna.environments.segments import Segments
from bandanna.environments.synthetic import (
    Barrier,
    Bernoulli,
    ConstrainedAdversary,
    LeakageInstance,
    Switching,
)
from bandanna.environments.synthetic_experts import (
    ClusteredExperts,
    OneGoodExpert,
    SwitchingExperts,
    SyntheticExperts,
)
from bandanna.environments.trial import TREATMENTS, ClinicalTrial, trial_outcomes
from bandanna.environments.trial_experts import TrialExperts
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


EXPERT_ENVIRONMENTS: dict[str, Callable[..., ExpertEnvironment]] = {
    "one-good": OneGoodExpert,
    "clustered": ClusteredExperts,
    "switching-experts": SwitchingExperts,
    "digits": DigitsExperts,
    "trial-rules": TrialExperts,
}
"""Environments with expert advice. All but the last two take any number of experts and arms."""

OWN_EXPERTS = ("digits", "trial-rules")
"""Those that bring their own."""


def check_environment(name: str, options: Iterable[str] = ()) -> None:
    """Refuse a name or an option that does not exist."""
    every = {**ENVIRONMENTS, **EXPERT_ENVIRONMENTS}
    if name not in every:
        raise InputError(f"unknown environment {name!r}; there are {', '.join(every)}.")
    parameters = inspect.signature(every[name]).parameters
    known = [option for option in parameters if option not in ("arms", "rounds", "experts")]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"environment {name!r} has no option {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(known) or 'none'}."
        )


def make_expert_environment(
    name: str,
    experts: int | None = None,
    arms: int | None = None,
    rounds: int = 100_000,
    **options: Any,
) -> ExpertEnvironment:
    """Make an environment with experts by name; ``options`` are those of its class."""
    if name not in EXPERT_ENVIRONMENTS:
        known = ", ".join(EXPERT_ENVIRONMENTS)
        raise InputError(f"unknown environment with experts {name!r}; there are {known}.")
    check_environment(name, options)
    make = EXPERT_ENVIRONMENTS[name]
    if name not in OWN_EXPERTS:
        sizes = 10 if experts is None else experts, 10 if arms is None else arms
        return make(*sizes, rounds, **options)
    environment = make(rounds, **options)
    for what, asked, own in (
        ("experts", experts, environment.experts),
        ("arms", arms, environment.arms),
    ):
        if asked not in (None, own):
            raise InputError(f"environment {name!r} has {own} {what}; got {asked!r}.")
    return environment


def as_environment(losses: Any) -> Environment:
    """Take an environment as it is, and anything else as a table of losses."""
    return losses if isinstance(losses, Environment) else LossTable(losses)


def as_expert_environment(losses: Any, advice: Any = None) -> ExpertEnvironment:
    """Take an environment with experts as it is, and anything else as tables."""
    if not isinstance(losses, ExpertEnvironment):
        return ExpertTable(losses, advice)
    if advice is not None:
        raise InputError("this environment brings its own advice; leave advice= out.")
    return losses


__all__ = [
    "COMPARATORS",
    "ENVIRONMENTS",
    "EXPERT_ENVIRONMENTS",
    "OWN_EXPERTS",
    "TREATMENTS",
    "Barrier",
    "Bernoulli",
    "ClinicalTrial",
    "ClusteredExperts",
    "ConstrainedAdversary",
    "DigitsExperts",
    "Environment",
    "ExpertEnvironment",
    "ExpertTable",
    "LeakageInstance",
    "LossTable",
    "OneGoodExpert",
    "PunishLeader",
    "PunishRepeats",
    "Segments",
    "SinusoidalDrift",
    "Switching",
    "SwitchingExperts",
    "SyntheticExperts",
    "TrialExperts",
    "as_environment",
    "as_expert_environment",
    "check_environment",
    "make_environment",
    "make_expert_environment",
    "trial_outcomes",
]

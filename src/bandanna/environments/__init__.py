"""Loss sequences and adversaries, synthetic and from real data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bandanna._core.grid import LossRange
from bandanna._core.private_inputs import private_inputs
from bandanna._core.types import InputError
from bandanna.environments.adaptive import PunishLeader, PunishRepeats
from bandanna.environments.base import COMPARATORS, Environment, World
from bandanna.environments.digits import DigitsExperts
from bandanna.environments.drift import SinusoidalDrift
from bandanna.environments.experts import (
    Chunk,
    ClusteredExperts,
    ExpertEnvironment,
    ExpertTable,
    OneGoodExpert,
    SwitchingExperts,
    SyntheticExperts,
)
from bandanna.environments.frames import SUFFIXES, is_table
from bandanna.environments.logged import AdvisedLog, Logged
from bandanna.environments.returning import Returning
from bandanna.environments.synthetic import (
    Barrier,
    Bernoulli,
    ConstrainedAdversary,
    Segments,
    Switching,
)
from bandanna.environments.tables import LossTable, read_losses
from bandanna.environments.trial import TREATMENTS, ClinicalTrial, TrialExperts, trial_outcomes

ENVIRONMENTS: dict[str, Callable[..., Environment | ExpertEnvironment]] = {
    kind.name: kind
    for kind in (
        *(Bernoulli, Switching, SinusoidalDrift, ConstrainedAdversary, PunishRepeats, PunishLeader),
        *(Barrier, ClinicalTrial, Returning, OneGoodExpert, ClusteredExperts, SwitchingExperts),
        *(DigitsExperts, TrialExperts),
    )
}
"""Environments that can be asked for by name; those that have no parameter ``arms`` or ``experts``
bring their own. ``register`` adds one."""

SIZE = 10
"""Arms, and experts, where none are asked for."""


def register(name: str, make: Callable[..., Environment | ExpertEnvironment]) -> None:
    """Let an environment be asked for by name, on the command line and in studies too.

    ``make`` takes ``rounds``, any of ``arms`` and ``experts``, and its own options by name.
    """
    if name in ENVIRONMENTS and ENVIRONMENTS[name] is not make:
        raise InputError(f"there is an environment {name!r} already.")
    ENVIRONMENTS[name] = make


def make_environment(
    name: str,
    arms: int | None = None,
    rounds: int = 100_000,
    experts: int | None = None,
    **options: Any,
) -> Environment | ExpertEnvironment:
    """Make an environment by name; ``options`` are its other parameters."""
    parameters = check_environment(name, options)
    asked = {"experts": experts, "arms": arms}
    sizes = {
        what: SIZE if size is None else size for what, size in asked.items() if what in parameters
    }
    environment = ENVIRONMENTS[name](**sizes, rounds=rounds, **options)
    for what, size in asked.items():
        own = getattr(environment, what)
        if size not in (None, own):
            raise InputError(f"environment {name!r} has {own or 'no'} {what}; got {size!r}.")
    return environment


SIZES = ("arms", "rounds", "experts")


def options_of(name: str | None) -> set[str]:
    """Return the parameters of an environment besides its size; without a name, of them all."""
    if name is not None and is_table(name):
        return set()
    names = ENVIRONMENTS if name is None else [name]
    return {option for each in names for option in check_environment(each)} - set(SIZES)


def check_environment(name: str, options: Iterable[str] = ()) -> list[str]:
    """Refuse a name or an option that does not exist; returns the parameters there are."""
    if name not in ENVIRONMENTS:
        if is_table(name):
            raise InputError(f"a table of losses is a file {', '.join(SUFFIXES)}; got {name!r}.")
        raise InputError(f"unknown environment {name!r}; there are {', '.join(ENVIRONMENTS)}.")
    parameters = list(inspect.signature(ENVIRONMENTS[name]).parameters)
    known = [option for option in parameters if option not in SIZES]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"environment {name!r} has no option {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(known) or 'none'}."
        )
    return parameters


@private_inputs
def as_environment(
    losses: object, advice: object = None, loss_range: LossRange = (0.0, 1.0)
) -> Environment | ExpertEnvironment:
    """Take an environment as it is, and anything else as tables, or their files, in a range."""
    if is_table(losses):
        said = Path(str(advice)) if is_table(advice) else None
        table = read_losses(Path(str(losses)), loss_range, said)
        if said is not None or advice is None:
            return table.environment()
        return ExpertTable(table.losses, advice, loss_range, table.arms)
    if isinstance(losses, str):
        raise InputError(
            f"losses are a table, a file {', '.join(SUFFIXES)}, or an environment such as "
            f"bd.environments.make_environment({losses!r}); got {losses!r}."
        )
    if not isinstance(losses, World):
        if advice is None:
            return LossTable(losses, loss_range)
        return ExpertTable(losses, advice, loss_range)
    if isinstance(losses, Logged):
        losses = losses.as_environment()
    assert isinstance(losses, Environment | ExpertEnvironment)
    if advice is not None:
        own = "no experts to advise" if losses.experts is None else "its own advice"
        raise InputError(f"environment {losses.name!r} has {own}; leave advice= out.")
    return losses


__all__ = [
    "COMPARATORS",
    "ENVIRONMENTS",
    "TREATMENTS",
    "AdvisedLog",
    "Barrier",
    "Bernoulli",
    "Chunk",
    "ClinicalTrial",
    "ClusteredExperts",
    "ConstrainedAdversary",
    "DigitsExperts",
    "Environment",
    "ExpertEnvironment",
    "ExpertTable",
    "Logged",
    "LossTable",
    "OneGoodExpert",
    "PunishLeader",
    "PunishRepeats",
    "Returning",
    "Segments",
    "SinusoidalDrift",
    "Switching",
    "SwitchingExperts",
    "SyntheticExperts",
    "TrialExperts",
    "World",
    "as_environment",
    "check_environment",
    "make_environment",
    "register",
    "trial_outcomes",
]

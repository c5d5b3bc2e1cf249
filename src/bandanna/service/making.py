"""The policy that was asked for, from the settings of an experiment."""

from __future__ import annotations

import math

from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, InputError
from bandanna.policy import PrivateBandit, PrivateExperts
from bandanna.policy.policy import Policy
from bandanna.service.context import make_contextual
from bandanna.service.signing import is_local
from bandanna.spec import parameters

BY_POSITION = ("arms", "epsilon", "experts")
OPTIONS = [name for name, one in parameters().items() if one.served and name not in BY_POSITION]


def settings_and_head(settings: JSON) -> tuple[JSON, JSON]:
    """Make the policy that was asked for; returns the settings as they are kept, and its head."""
    asked = {name: value for name, value in settings.items() if name != "segments"}
    if settings.get("features") is not None:
        from bandanna.store.context_unit import head_of  # loaded when first used

        contextual = make_contextual(asked)
        named: JSON = {"arms": list(contextual.arms), "algorithm": contextual.algorithm}
        named |= {"protects": contextual.protects, "delta": contextual.promised.delta}
        return asked | named, head_of(contextual)
    if settings.get("protects") is not None:
        raise InputError("protects goes with features, which say what contexts hold.")
    policy: Policy = make_policy(settings)
    kept = asked | {"arms": list(policy.arms), "algorithm": policy.algorithm}
    kept |= {"default_loss": policy.default_loss, "batch": policy.batch}
    return kept, policy.to_dict(private=False)


def make_policy(settings: JSON) -> PrivateBandit | PrivateExperts:
    """Make the policy that was asked for."""
    options = {name: settings[name] for name in OPTIONS if settings.get(name) is not None}
    closing = (settings.get("rounds_per_slot"), settings.get("deadline_seconds"))
    if settings.get("per_person") is not None and closing == (None, None):
        raise InputError(
            "with per_person give rounds_per_slot or deadline_seconds: otherwise slots stay open."
        )
    if is_local(settings):
        _check_local(settings)
        options["release"] = "device"
    late = rounds_late(settings.get("deadline_seconds"), settings.get("decisions_per_second"))
    options |= {"delay": late} if late else {}
    if settings.get("experts") is not None:
        return PrivateExperts(settings["experts"], settings["arms"], settings["epsilon"], **options)
    return PrivateBandit(settings["arms"], settings["epsilon"], **options)


def _check_local(settings: JSON) -> None:
    if settings.get("deadline_seconds") is None:
        raise InputError(
            "local experiments need deadline_seconds: a device may never come back, and after the "
            "deadline the default loss is counted, randomised as a device would."
        )
    for name in ("per_person", "experts", "segments"):
        if settings.get(name) is not None:
            raise InputError(
                f"devices send an event's id and a bit, and keep their persons' budgets: leave out "
                f"{name} in local experiments."
            )


def rounds_late(deadline_seconds: float | None, decisions_per_second: float | None) -> int:
    """Return how many further decisions are made, at most, until feedback must have come."""
    if decisions_per_second is None:
        return 0
    if deadline_seconds is None:
        raise InputError("decisions_per_second goes with deadline_seconds: the two say how late.")
    return min(MAX_ROUNDS, math.ceil(deadline_seconds * decisions_per_second))

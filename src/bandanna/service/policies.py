"""The policy of an experiment: made from its settings, one for each public segment."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.device import make_release
from bandanna.policy import PrivateBandit, PrivateExperts
from bandanna.policy.policy import Policy
from bandanna.policy.segments import promise_together
from bandanna.service.models import LOCAL, is_edge, is_local
from bandanna.spec import defaults, parameters
from bandanna.store.rows import Experiment

if TYPE_CHECKING:
    from bandanna.contextual.policy import PrivateContextual


BY_POSITION = ("arms", "epsilon", "experts")
OPTIONS = [name for name, one in parameters().items() if one.served and name not in BY_POSITION]


def settings_and_head(settings: JSON, identity: str) -> tuple[JSON, JSON]:
    """Make the policy that was asked for; returns the settings as they are kept, and its head."""
    asked = {name: value for name, value in settings.items() if name != "segments"}
    if is_edge(settings):
        return _at_the_edge(settings, identity)
    for name in ("phase_seconds", "reward"):
        if settings.get(name) is not None:
            raise InputError(f'{name} goes with "decides": "edge".')
    if settings.get("features") is not None:
        contextual = make_contextual(asked)
        named: JSON = {"arms": list(contextual.arms), "algorithm": contextual.algorithm}
        named |= {"protects": contextual.protects, "delta": contextual.spec.delta}
        return asked | named, contextual.to_dict(private=False)
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
        taken = {name: value for name, value in options.items() if parameters()[name].experts}
        _refuse_others(options, taken, "experts")
        return PrivateExperts(settings["experts"], settings["arms"], settings["epsilon"], **taken)
    return PrivateBandit(settings["arms"], settings["epsilon"], **options)


def _refuse_others(given: JSON, known: Collection[str], what: str) -> None:
    """Refuse what some experiments cannot have, unless it says what is usual."""
    usual = defaults()
    for name, value in given.items():
        if name not in known and value not in (None, usual.get(name)):
            raise InputError(f"{name} does not go with {what}; leave it out.")


def _at_the_edge(settings: JSON, identity: str) -> tuple[JSON, JSON]:
    """Return the settings and the head of an experiment whose decisions are made elsewhere."""
    from bandanna.store.edge_unit import OPTIONS as TAKEN  # loaded when first used
    from bandanna.store.edge_unit import course_of, head_of

    _refuse_others(settings, {*EDGE_SETTINGS, *TAKEN}, '"decides": "edge"')
    for name in ("phase_seconds", "deadline_seconds"):
        if settings.get(name) is None:
            raise InputError(f'"decides": "edge" needs {name}: phases close by the clock.')
    if settings.get("algorithm") not in (None, "phased"):
        raise InputError('"decides": "edge" runs "phased"; leave algorithm out.')
    if settings.get("privacy") == LOCAL:
        raise InputError('"decides": "edge" needs "privacy": "central": values are sent here.')
    arms = settings["arms"]
    named = [str(arm) for arm in (range(arms) if isinstance(arms, int) else arms)]
    kept = settings | {"arms": named, "algorithm": "phased", "clip": True}
    return kept, head_of(course_of(identity, kept), secrets.token_hex(16))


EDGE_SETTINGS = (
    *("arms", "epsilon", "loss_range", "decides", "phase_seconds", "deadline_seconds"),
    *("algorithm", "privacy", "project"),
)
"""All that such an experiment may have, besides what its course takes."""


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


def device_release(settings: JSON) -> dict[str, str]:
    """Return the numbers of a release for devices: fixed when the experiment is made."""
    low, high = settings.get("loss_range") or (0.0, 1.0)
    default = settings["default_loss"]
    return make_release(settings["epsilon"], loss_low=low, loss_high=high, default_loss=default)


def rounds_late(deadline_seconds: float | None, decisions_per_second: float | None) -> int:
    """Return how many further decisions are made, at most, until feedback must have come."""
    if decisions_per_second is None:
        return 0
    if deadline_seconds is None:
        raise InputError("decisions_per_second goes with deadline_seconds: the two say how late.")
    return min(MAX_ROUNDS, math.ceil(deadline_seconds * decisions_per_second))


# --- decisions by context -------------------------------------------------------------

CONTEXT_OPTIONS = ("delta", "rounds", "loss_range", "clip", "per_person")
"""Parameters of a policy that go with features, besides arms and epsilon."""

CONTEXT_SETTINGS = (
    *("name", "arms", "epsilon", "features", "protects", "privacy", "algorithm", "segments"),
    *("deadline_seconds", "decisions_per_second", "keep_seconds"),
    *("sticky_seconds", "project"),
    *CONTEXT_OPTIONS,
)
"""All that an experiment with features may have."""


def make_contextual(settings: JSON) -> PrivateContextual:
    """Make the policy that was asked for."""
    from bandanna.contextual.policy import PrivateContextual  # loaded when first used

    _refuse_others(settings, CONTEXT_SETTINGS, "features")
    if settings.get("privacy") == "local":
        raise InputError('features need "privacy": "central": devices send nothing but bits.')
    if settings.get("algorithm") not in (None, "linear"):
        raise InputError(
            'with features the service runs "linear" only; leave algorithm out. Trees are in the '
            'library: bd.PrivateContextual(..., algorithm="trees").'
        )
    options = {name: settings[name] for name in CONTEXT_OPTIONS if settings.get(name) is not None}
    if settings.get("protects") is not None:
        options["protects"] = settings["protects"]
    declared = {name: _declared(one) for name, one in settings["features"].items()}
    return PrivateContextual(settings["arms"], declared, settings["epsilon"], **options)


def _declared(feature: object) -> object:
    """Return a feature as ``PrivateContextual`` takes it: two numbers in JSON are a range."""
    if isinstance(feature, Mapping):
        return list(feature["categories"])
    assert isinstance(feature, list | tuple)
    numbers = all(isinstance(one, int | float) for one in feature)
    return tuple(feature) if numbers and len(feature) == 2 else list(feature)


def own_features(settings: JSON, entries: Mapping[str, object]) -> dict[str, object] | None:
    """Return those entries of an evaluation context that an experiment declares as features."""
    if settings.get("features") is None:
        return None
    return {name: entries[name] for name in settings["features"] if name in entries}


def known_before(settings: JSON, entries: Mapping[str, object]) -> float | None:
    """Return the number in an evaluation context that an experiment subtracts from outcomes."""
    known = entries.get(settings.get("adjust") or "")
    number = isinstance(known, int | float) and not isinstance(known, bool)
    return float(known) if number else None  # type: ignore[arg-type]


# --- segments -------------------------------------------------------------------------


def grouped(rows: Iterable[Experiment]) -> list[list[Experiment]]:
    """Return experiments, each with all its parts, in the order of their making."""
    groups: dict[str, list[Experiment]] = {}
    for row in rows:
        groups.setdefault(row.id, []).append(row)
    return list(groups.values())


def part_for(parts: list[Experiment], segment: str | None) -> Experiment:
    """Return the part for a segment; one has to be named exactly where there are some."""
    if segment is None and not parts[0].segment:
        return parts[0]
    if not parts[0].segment:
        raise InputError("this experiment has no segments; leave segment out.")
    for part in parts:
        if part.segment == segment:
            return part
    known = ", ".join(repr(part.segment) for part in parts[:20])
    more = ", ..." if len(parts) > 20 else ""
    given = "give a segment" if segment is None else f"unknown segment {segment!r}"
    raise InputError(f"{given}; there are {known}{more}.")


def same_as_made(known: list[Experiment], asked: list[Experiment]) -> list[Experiment]:
    """Return an experiment that was made before, if it is the one that is asked for again."""
    if [_made(part) for part in known] != [_made(part) for part in asked]:
        raise InputError("this Idempotency-Key was used before, for another experiment.")
    return known


def _made(part: Experiment) -> object:
    """Return what an experiment was made as; arms may have been added since."""
    settings = {name: value for name, value in part.settings.items() if name != "arms"}
    return part.name, part.segment, json.loads(json.dumps(settings))


def promised(promises: Mapping[str, Guarantee]) -> Guarantee:
    """Return what an experiment promises, from the promises of its parts by segment."""
    return promises[""] if "" in promises else promise_together(promises)

"""Experiments that decide by context: how they are made, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bandanna._core.types import JSON, InputError
from bandanna.policy.diagnostics import CONFIDENCE
from bandanna.spec import defaults
from bandanna.store.totals import ReleaseTotals

if TYPE_CHECKING:
    from bandanna.contextual.policy import PrivateContextual

TAKEN = ("delta", "rounds", "loss_range", "clip", "per_person")
"""Parameters of a policy that go with features, besides arms and epsilon."""

KEPT = (
    *("name", "arms", "epsilon", "features", "protects", "privacy", "algorithm", "segments"),
    *("deadline_seconds", "decisions_per_second", "keep_seconds"),
    *TAKEN,
)
"""All that an experiment with features may have."""

NO_BOUND = "No bound on regret is proved for a linear model of rewards."
NOT_TESTED = "Whether arms change over time is not tested where decisions depend on context."


def make_contextual(settings: JSON) -> PrivateContextual:
    """Make the policy that was asked for."""
    from bandanna.contextual.policy import PrivateContextual  # loaded when first used

    usual = defaults()
    for name, value in settings.items():
        if name not in KEPT and value not in (None, usual.get(name)):
            raise InputError(f"{name} does not go with features; leave it out.")
    if settings.get("privacy") == "local":
        raise InputError('features need "privacy": "central": devices send nothing but bits.')
    if settings.get("algorithm") not in (None, "linear"):
        raise InputError(
            'with features the service runs "linear" only; leave algorithm out. Trees are in the '
            'library: bd.PrivateContextual(..., algorithm="trees").'
        )
    options = {name: settings[name] for name in TAKEN if settings.get(name) is not None}
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


def context_results(policy: PrivateContextual, totals: ReleaseTotals, slots: int) -> JSON:
    """Return what can be said about the run so far, from what was released."""
    per_person = policy.promised.mechanism.per_person
    return {
        "what": "arm",
        "confidence": CONFIDENCE,
        "answer": policy.answer().to_dict(),
        "choices": [],
        "shares": [],
        "decided": policy.decided,
        "batch": policy.state.sizes[-1] if policy.state.sizes else policy.state.ends[0],
        "places": None if per_person is None else {"used": slots, "most": per_person},
        "batches_released": totals.batches,
        "rounds_released": sum(totals.rounds.values()),
        "regret_bound": None,
        "regret_condition": NO_BOUND,
        "steadiness": {"p_value": None, "says": NOT_TESTED, "guard": None},
    }


def context_ledger(policy: PrivateContextual, counters: JSON, opened: int) -> dict[str, int]:
    """Return how far the releases of an experiment have come."""
    return {
        "batches_begun": counters["batches"],
        "batches_released": counters["released"],
        "batches_open": opened,
        "decided": policy.decided,
        "resumed_from_older_copies": policy.resumed,
    }

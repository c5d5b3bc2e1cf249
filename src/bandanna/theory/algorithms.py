"""What there is to choose from: every algorithm that has a bound, as rows of a plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bandanna.theory import bounds, expert_bounds, tight_bounds, tight_expert_bounds
from bandanna.theory.bounds import Bound
from bandanna.types import JSON, InputError, Model


class Row(NamedTuple):
    """One algorithm: its guarantee, or why there is none."""

    algorithm: str
    model: Model
    delta: float
    bound: Bound | None
    reason: str = ""

    def to_dict(self, rounds: int) -> JSON:
        """Return stable keys for JSON."""
        shown: JSON = {"algorithm": self.algorithm, "model": self.model, "delta": self.delta}
        if self.bound is None:
            empty = dict.fromkeys(("batch", "bound", "share", "vacuous"))
            return {**shown, **empty, "reason": self.reason}
        share = self.bound.share(rounds)
        numbers = {"batch": self.bound.batch, "bound": self.bound.regret, "share": share}
        why = {"source": self.bound.source, "settings": self.bound.settings}
        return {**shown, **numbers, "vacuous": share >= 1.0, **why}


class Algorithm(NamedTuple):
    """An algorithm for a problem whose number of rounds is still open."""

    name: str
    model: Model
    delta: float
    bound: Callable[[int], Bound]

    def row(self, rounds: int) -> Row:
        """Return its guarantee for a number of rounds, or why there is none."""
        try:
            found = self.bound(rounds)
        except InputError as error:
            return Row(self.name, self.model, self.delta, None, f"does not apply: {error}")
        # In batches of one every loss is released by itself.
        local = self.model == "central" and found.batch == 1 and self.delta == 0.0
        return Row(self.name, "local" if local else self.model, self.delta, found)


def algorithms(
    arms: int, epsilon: float, experts: int | None = None, delta: float = 0.0
) -> list[Algorithm]:
    """Return what there is to choose from."""
    return (
        _with_arms(arms, epsilon)
        if experts is None
        else _with_experts(arms, experts, epsilon, delta)
    )


def _with_arms(arms: int, epsilon: float) -> list[Algorithm]:
    conversions = {
        "one-bit": bounds.one_bit_conversion,
        "one-bit-exp3": tight_bounds.one_bit_exp3,
        "htinf (tight)": tight_bounds.htinf_conversion_tight,
        "exp3 (tight)": tight_bounds.exp3_conversion_tight,
        "ftpl (tight)": tight_bounds.ftpl_conversion_tight,
        "htinf": bounds.htinf_conversion,
        "exp3": bounds.exp3_conversion,
        "ftpl": bounds.ftpl_conversion,
    }
    local = {"ldp-exp3 (tight)": tight_bounds.local_exp3_tight, "ldp-exp3": bounds.local_exp3}
    return [
        *(
            Algorithm(name, "central", 0.0, partial(bound, arms, epsilon=epsilon))
            for name, bound in conversions.items()
        ),
        *(
            Algorithm(name, "local", 0.0, partial(bound, arms, epsilon=epsilon))
            for name, bound in local.items()
        ),
        Algorithm("no privacy", "none", 0.0, partial(bounds.no_privacy, arms)),
    ]


def _with_experts(arms: int, experts: int, epsilon: float, delta: float) -> list[Algorithm]:
    conversions: dict[str, Callable[[int, int, float], Bound]] = {
        "one-bit-conversion": bounds.one_bit_conversion,
        "one-bit-exp3-conversion": tight_bounds.one_bit_exp3,
        "htinf-conversion (tight)": tight_bounds.htinf_conversion_tight,
        "htinf-conversion": bounds.htinf_conversion,
    }
    local = {
        "one-bit-exp4": expert_bounds.one_bit_exp4,
        "local-exp4 (tight)": tight_expert_bounds.local_exp4_tight,
        "local-exp4": expert_bounds.local_exp4,
    }
    with_delta = {
        "batched-exp4 (tight)": tight_expert_bounds.batched_exp4_tight,
        "batched-exp4": expert_bounds.batched_exp4,
        "calibrated-exp4": expert_bounds.calibrated_exp4,
    }
    return [
        *(
            Algorithm(
                name,
                "central",
                0.0,
                partial(expert_bounds.over_experts, bound, experts, epsilon=epsilon),
            )
            for name, bound in conversions.items()
        ),
        *(
            Algorithm(name, "local", 0.0, partial(bound, arms, experts, epsilon=epsilon))
            for name, bound in local.items()
        ),
        *(
            Algorithm(
                name, "central", delta, partial(bound, arms, experts, epsilon=epsilon, delta=delta)
            )
            for name, bound in with_delta.items()
        ),
        Algorithm(
            "no privacy", "none", 0.0, partial(expert_bounds.no_privacy_experts, arms, experts)
        ),
    ]

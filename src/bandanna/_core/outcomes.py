"""Secondary outcomes of a policy as they are declared: metrics with ranges, and guardrails."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bandanna._core import checks
from bandanna._core.types import ArmName, InputError

MAX_METRICS = 20
LONGEST_NAME = 60

Ranges = Mapping[str, tuple[float, float]]
"""Metrics by name, with the smallest and largest value of each."""
Limits = Mapping[str, float]
"""Metrics by name, with how far an arm may be from the control: above it, or below if negative."""


def check_metrics(value: object) -> Ranges | None:
    """Require metrics by name with their ranges; None and an empty mapping are none."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError(
            f'metrics must be ranges by name, such as {{"refund": (0, 1)}}; got '
            f"{type(value).__name__}."
        )
    if len(value) > MAX_METRICS:
        raise InputError(f"there may be at most {MAX_METRICS} metrics; got {len(value)}.")
    found: dict[str, tuple[float, float]] = {}
    for name, ends in value.items():
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise InputError(
                f"the name of a metric must be a text of 1 to {LONGEST_NAME} printable characters; "
                f"got {name!r}."
            )
        try:
            found[name] = checks.loss_range(ends)
        except InputError:
            raise InputError(
                f"metric {name!r} must have a range, its smallest and largest value, such as "
                f"(0, 1); got {ends!r}."
            ) from None
    return found or None


def check_guardrails(value: object) -> Limits | None:
    """Require limits by the name of a metric; None and an empty mapping are none."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError(
            f'guardrails must be limits by metric, such as {{"refund": 0.02}}; got '
            f"{type(value).__name__}."
        )
    found = {str(name): checks.as_float(limit) for name, limit in value.items()}
    for name, limit in found.items():
        if not math.isfinite(limit) or limit == 0.0:
            raise InputError(
                f"the guardrail of {name!r} must be how far an arm may be above the control, a "
                f"number above 0, or how far below it, a number below 0; got {value[name]!r}."
            )
    return found or None


def check_together(
    metrics: Ranges | None,
    guardrails: Limits | None,
    control: ArmName | None,
    least_share: float,
    arms: tuple[ArmName, ...],
) -> None:
    """Refuse outcomes, guardrails and control that do not fit together."""
    if control is not None and control not in arms:
        known = ", ".join(map(repr, arms))
        raise InputError(f"control must be one of the arms, {known}; got {control!r}.")
    if least_share > 0.0 and control is None:
        raise InputError("least_share goes with control=, the arm that keeps this share.")
    for name, limit in (guardrails or {}).items():
        if name not in (metrics or {}):
            known = ", ".join(map(repr, metrics or {})) or "none"
            raise InputError(f"guardrail {name!r} is not about a metric; there are {known}.")
        low, high = (metrics or {})[name]
        if abs(limit) >= high - low:
            raise InputError(
                f"the guardrail of {name!r} must be smaller than its range, {high - low:g}; got "
                f"{limit:g}."
            )
    if guardrails and control is None:
        raise InputError("guardrails compare arms with a control: name it with control=.")

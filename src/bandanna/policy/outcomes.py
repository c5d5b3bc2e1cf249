"""Metrics and guardrails of a policy: values as they are given, and what was released of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bandanna._core.checks import Limits, Ranges
from bandanna._core.grid import to_units
from bandanna._core.start import Start, part_within
from bandanna._core.types import ArmName, InputError
from bandanna.inference import Totals, evidence_below, point
from bandanna.policy.state import Retirement, State
from bandanna.policy.statements import (
    FIXED,
    STEADY,
    AnyTime,
    InPhases,
    Known,
    PhaseArm,
    arm_in_phases,
)
from bandanna.privacy.metrics import MetricsRelease
from bandanna.privacy.release import ArmTotals
from bandanna.privacy.sums import SumRelease

PhaseRow = Iterable[tuple[int, int, float]]
"""Arm, rounds and released mean, of each arm that was played in a phase."""


def known_of(
    names: tuple[ArmName, ...],
    release: SumRelease,
    seen: Mapping[int, ArmTotals],
    phases: Sequence[PhaseRow] = (),
) -> Known:
    """Return what a release has told of arms; by phase where statements can rest on phases."""
    law = release.law()
    if law is None or not phases:
        totals = {arm: release.totals(values) for arm, values in seen.items()}
        rounds = {arm: values.rounds for arm, values in seen.items()}
        return Known(names, totals, rounds, None if law is None else AnyTime(law))
    counts = np.zeros((len(phases), len(names)))
    sums = np.zeros_like(counts)
    for number, phase in enumerate(phases):
        for arm, count, mean in phase:
            counts[number, arm], sums[number, arm] = count, count * mean
    totals = {
        arm: arm_in_phases(
            Totals(float(sums[:, arm].sum()), float(counts[:, arm].sum()), float(times)), arm
        )
        for arm, times in enumerate((counts > 0).sum(axis=0))
        if times > 0
    }
    rounds = {arm: known.terms for arm, known in totals.items()}
    return Known(names, totals, rounds, InPhases(law, counts, sums))


def and_start(known: Known, start: Start) -> Known:
    """Return what is known with the releases of a log that the policy started from.

    The run's noise is on every sum, so a log with more noise counts in part.
    """
    if not isinstance(known.method, AnyTime):
        return known
    totals, rounds = dict(known.totals), dict(known.rounds)
    part = part_within(start.scale, known.method.law.scale)
    for arm, one in start.of(known.names).items():
        own = totals.get(arm, Totals())
        totals[arm] = own._replace(
            total=own.total + part * one.total,
            terms=own.terms + part * one.rows,
            releases=own.releases + one.releases,
        )
        rounds[arm] = rounds.get(arm, 0.0) + one.rows
    return known._replace(totals=totals, rounds=rounds)


# --- metrics ----------------------------------------------------------------------------------


def metrics_to_units(given: object, ranges: Ranges | None, *, clip: bool) -> tuple[int, ...]:
    """Turn the metrics of a round into grid units, in the order in which they were declared."""
    if ranges is None:
        if given:
            raise InputError("this policy has no metrics; make it with metrics=, by name.")
        return ()
    if not isinstance(given, Mapping) or set(given) != set(ranges):
        known = ", ".join(map(repr, ranges))
        raise InputError(
            f"give a value of every metric with the feedback, and of no other, as metrics=: "
            f"{known}."
        )
    return tuple(
        to_units(f"metric {name!r}", given[name], ends, clip=clip) for name, ends in ranges.items()
    )


def metric_known(
    names: tuple[ArmName, ...],
    metrics: MetricsRelease,
    state: State,
    metric: str,
    *,
    in_phases: bool,
) -> Known:
    """Return what was released of one metric."""
    if metric not in metrics.names:
        known = ", ".join(map(repr, metrics.names))
        raise InputError(f"there is no metric {metric!r}; there are {known}.")
    column = metrics.names.index(metric)
    seen = {arm: totals[column] for arm, totals in state.metric_totals.items()}
    phases = [
        [(arm, count, means[column]) for arm, count, means in phase]
        for phase in (state.metric_phases if in_phases else ())
    ]
    return known_of(names, metrics.plain, seen, phases)


def turned_over(known: Known) -> Known:
    """Return what is known of the other end of the range: of 1 minus a metric."""
    totals: dict[int, Totals] = {}
    for arm, one in known.totals.items():
        other = one._replace(total=one.terms - one.total)
        totals[arm] = arm_in_phases(other, arm) if isinstance(one, PhaseArm) else other
    method = known.method
    if isinstance(method, InPhases):
        method = method._replace(sums=method.counts - method.sums)
    return known._replace(totals=totals, method=method)


# --- guardrails -------------------------------------------------------------------------------


def breaches(
    known: Mapping[str, Known],
    guardrails: Limits,
    ranges: Ranges,
    control: int,
    arms: Iterable[int],
    alpha: float,
    rounds: int,
) -> list[Retirement]:
    """Return which of some arms are further from the control than a guardrail allows.

    Parameters
    ----------
    known
        What was released of each metric that has a guardrail.
    guardrails, ranges
        The limits, in units of the metric, and the metrics' ranges.
    control, arms
        The arm to compare with, and those that are compared.
    alpha
        With which probability, at most, each comparison is wrong at any time.
    rounds
        How many decisions have been made.
    """
    found = []
    for arm in arms:
        for metric, limit in guardrails.items():
            low, high = ranges[metric]
            seen = _breach(known[metric], limit / (high - low), control, arm, alpha)
            if seen is not None:
                assumption = FIXED if isinstance(known[metric].method, InPhases) else STEADY
                found.append(Retirement(arm, metric, rounds, *seen, assumption))
                break
    return found


def _breach(
    known: Known, limit: float, control: int, arm: int, alpha: float
) -> tuple[float, float, float] | None:
    """Return difference, least distance and evidence if an arm is too far from the control."""
    totals, method = known.totals, known.method
    if method is None or control not in totals or arm not in totals:
        return None
    difference = point(totals[arm]) - point(totals[control])
    below, above = (control, arm) if limit > 0.0 else (arm, control)
    if abs(limit) >= (difference if limit > 0.0 else -difference):
        return None  # no evidence that it is further away, and no need to compute any
    ends = totals[below], totals[above]
    if not method.better(*ends, alpha, -abs(limit)):
        return None
    evidence = math.log(1.0 / alpha)
    if isinstance(method, AnyTime):
        evidence = evidence_below(method.law, *ends, -abs(limit))
    return difference, max(method.difference(*ends, 2.0 * alpha).low, abs(limit)), evidence


def reason_of(one: Retirement, ranges: Ranges, control: ArmName, confidence: float) -> str:
    """Say why a guardrail retired an arm."""
    low, high = ranges[one.metric]
    width, side = high - low, "higher" if one.difference > 0.0 else "lower"
    apart = min(abs(one.difference), 1.0)  # noise may take it out of the range
    return (
        f"{one.metric} is {side} than with {control} by {width * apart:.4g} (at "
        f"least {width * one.least:.4g}), {100.0 * confidence:.4g}% sure, provided {one.assumption}"
    )

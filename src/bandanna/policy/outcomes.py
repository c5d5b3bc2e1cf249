"""Metrics and guardrails of a policy: values as they are given, and what was released of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bandanna._core.checks import Limits, Ranges
from bandanna._core.grid import to_units
from bandanna._core.start import Start, part_within
from bandanna._core.types import ArmName, InputError
from bandanna.error_budget import LATER, ErrorBudget
from bandanna.inference import MOST_SQUARE, STEEPEST, Totals, law_of, most_square
from bandanna.policy.intervals import AnyTime, InPhases, Known
from bandanna.policy.state import Retirement, State
from bandanna.policy.statements import Units
from bandanna.privacy.columns import LOSS, Columns
from bandanna.privacy.release import ArmTotals
from bandanna.privacy.sums import SumRelease

PhaseRow = Iterable[tuple[int, int, float]]
"""Arm, rounds and released mean, of each arm that was played in a phase."""


class Spreads(NamedTuple):
    """How it is known how much outcomes vary: by what was released, or as they are 0 or 1."""

    squares: Mapping[int, ArmTotals] = {}
    phases: Sequence[Mapping[int, float]] = ()
    """Mean squares by arm, of each phase."""
    binary: bool = False

    def of(self, arm: int) -> float:
        """Return an arm's mean square; the most it can be where none was released."""
        known = self.squares.get(arm)
        return known.mean if known is not None and known.rounds else MOST_SQUARE

    def in_phase(self, number: int, arm: int) -> float:
        """Return the same of a phase."""
        known = self.phases[number] if number < len(self.phases) else {}
        return known.get(arm, MOST_SQUARE)


def known_of(
    names: tuple[ArmName, ...],
    release: SumRelease,
    seen: Mapping[int, ArmTotals],
    phases: Sequence[PhaseRow] = (),
    spreads: Spreads | None = None,
    squares: Mapping[int, float] | None = None,
) -> Known:
    """Return what a release has told of arms; by phase where statements can rest on phases.

    With ``spreads`` by the normal approximation; else proved for any outcomes in the range, also
    with bounds on the mean ``squares`` of arms that are played one at a time.
    """
    law = release.law()
    rounds = {arm: values.rounds for arm, values in seen.items()}
    if law is None:
        return Known(names, rounds, None)
    if not phases:
        totals = {arm: release.totals(values) for arm, values in seen.items()}
        if spreads is None and squares is not None:
            law = law_of(law.scale, STEEPEST)
            totals = {
                arm: one._replace(square=squares.get(arm, MOST_SQUARE))
                for arm, one in totals.items()
            }
        if spreads is None:
            return Known(names, rounds, AnyTime(law, totals))
        summed = {arm: one.terms * spreads.of(arm) for arm, one in totals.items()}
        return Known(names, rounds, AnyTime(law, totals, summed, binary=spreads.binary))
    counts = np.zeros((len(phases), len(names)))
    sums, squared = np.zeros_like(counts), np.zeros_like(counts)
    for number, phase in enumerate(phases):
        for arm, count, mean in phase:
            counts[number, arm], sums[number, arm] = count, count * mean
            if spreads is not None:
                squared[number, arm] = count * spreads.in_phase(number, arm)
    in_phases = InPhases(law, counts, sums)
    if spreads is not None:
        in_phases = replace(in_phases, squares=squared, binary=spreads.binary)
    return Known(names, {arm: one.terms for arm, one in in_phases.totals.items()}, in_phases)


def and_start(known: Known, start: Start) -> Known:
    """Return what is known with the releases of a log that the policy started from.

    The run's noise is on every sum, so a log with more noise counts in part.
    """
    if not isinstance(known.intervals, AnyTime):
        return known
    totals, rounds = dict(known.intervals.totals), dict(known.rounds)
    part = part_within(start.scale, known.intervals.law.scale)
    for arm, one in start.of(known.names).items():
        own = totals.get(arm, Totals())
        totals[arm] = own._replace(
            total=own.total + part * one.total,
            terms=own.terms + part * one.rows,
            releases=own.releases + one.releases,
        )
        rounds[arm] = rounds.get(arm, 0.0) + one.rows
    intervals = replace(known.intervals, totals=totals)
    if intervals.squares is not None:
        squares = dict(intervals.squares)
        for arm, one in start.of(known.names).items():
            squares[arm] = squares.get(arm, 0.0) + part * one.square
        intervals = replace(intervals, squares=squares)
    return known._replace(rounds=rounds, intervals=intervals)


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
    columns: Columns,
    state: State,
    metric: str,
    *,
    proved: bool,
) -> Known:
    """Return what was released of one metric; ``proved`` if it is not to be approximated."""
    names_of_metrics = list(columns.ranges)
    if metric not in names_of_metrics:
        known = ", ".join(map(repr, names_of_metrics))
        raise InputError(f"there is no metric {metric!r}; there are {known}.")
    value = 1 + names_of_metrics.index(metric)
    column = released_of(columns, state, value, square=False)
    assert column is not None, "every metric has its sum"
    spreads = None if proved else spreads_of(columns, state, value)
    return known_of(names, columns.each, *column, spreads)


OfColumn = tuple[dict[int, ArmTotals], list[list[tuple[int, int, float]]]]
"""What was released of one column, of each arm in all, and phase by phase."""


def released_of(
    columns: Columns | None, state: State, value: int, *, square: bool
) -> OfColumn | None:
    """Return what was released of a column; None where there is none."""
    at = None if columns is None else columns.index(value, square=square)
    if at is None:
        return None
    phases = [[(arm, n, means[at]) for arm, n, means in phase] for phase in state.column_phases]
    return {arm: totals[at] for arm, totals in state.column_totals.items()}, phases


def square_bounds(
    columns: Columns | None, state: State, scale: float, budget: ErrorBudget
) -> dict[int, float] | None:
    """Return what each arm's mean square is at most; None where none were released."""
    column = released_of(columns, state, LOSS, square=True)
    if column is None:
        return None
    return {
        arm: most_square(scale, one.total, one.rounds, one.batches, budget.square(arm))
        for arm, one in column[0].items()
    }


def spreads_of(columns: Columns | None, state: State, value: int = LOSS) -> Spreads | None:
    """Return what was released of how much a value of rounds varies; None where nothing was."""
    column = released_of(columns, state, value, square=True)
    if column is None:
        return None
    seen, phases = column
    return Spreads(seen, [{arm: mean for arm, _, mean in phase} for phase in phases])


def turned_over(known: Known) -> Known:
    """Return what is known of the other end of the range: of 1 minus a metric."""
    return known._replace(intervals=known.intervals and known.intervals.turned_over())


# --- guardrails -------------------------------------------------------------------------------


def guardrail_error(alpha: float, guardrails: int, arms: int, first: int, arm: int) -> float:
    """Return the error probability of one guardrail for one arm.

    Of all arms that there ever are, and all guardrails, they add up to at most ``alpha``; a share
    waits for arms that are added, as in ``ErrorBudget``.
    """
    rank = max(arm - first + 1, 0)
    if rank == 0:
        return alpha * (1.0 - LATER) / (guardrails * max(first - 1, 1))
    return alpha * LATER / (guardrails * rank * (rank + 1))


def breaches(
    known: Mapping[str, Known],
    guardrails: Limits,
    ranges: Ranges,
    control: int,
    errors: Mapping[int, float],
    rounds: int,
    assumption: str,
) -> list[Retirement]:
    """Return which of some arms are further from the control than a guardrail allows.

    Parameters
    ----------
    known
        What was released of each metric that has a guardrail, by phase: arms are compared where
        they were played at the same time.
    guardrails, ranges
        The limits, in units of the metric, and the metrics' ranges.
    control, errors
        The arm to compare with; and for each that is compared, with which probability, at most,
        each comparison is wrong at any time.
    rounds
        How many decisions have been made.
    assumption
        What must be true.
    """
    retirements = []
    for arm, error in errors.items():
        for metric, limit in guardrails.items():
            low, high = ranges[metric]
            seen = _breach(known[metric], limit / (high - low), control, arm, error)
            if seen is not None:
                retirements.append(Retirement(arm, metric, rounds, *seen, assumption))
                break
    return retirements


def _breach(
    known: Known, limit: float, control: int, arm: int, error: float
) -> tuple[float, float, float] | None:
    """Return difference, least distance and evidence if an arm is too far from the control."""
    intervals = known.intervals
    if intervals is None or control not in intervals.known or arm not in intervals.known:
        return None
    difference = intervals.apart(control, arm)
    if difference is None or abs(limit) >= (difference if limit > 0.0 else -difference):
        return None  # no evidence that it is further away, and no need to compute any
    below, above = (control, arm) if limit > 0.0 else (arm, control)
    if not intervals.better(below, above, error, -abs(limit)):
        return None
    least = max(intervals.difference(below, above, error).low, abs(limit))
    return difference, least, math.log(1.0 / error)


def reason_of(
    one: Retirement, ranges: Ranges, control: ArmName, confidence: float, *, clip: bool
) -> str:
    """Say why a guardrail retired an arm."""
    low, high = ranges[one.metric]
    width, side = high - low, "higher" if one.difference > 0.0 else "lower"
    apart = min(abs(one.difference), 1.0)  # noise may take it out of the range
    metric = f"{Units(low, high, outcome=one.metric, clip=clip).noun}{',' if clip else ''}"
    return (
        f"{metric} is {side} than with {control} by {width * apart:.4g} (at "
        f"least {width * one.least:.4g}), {100.0 * confidence:.4g}% sure, provided {one.assumption}"
    )

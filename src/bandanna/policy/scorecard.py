"""The scorecard of a running policy: its answers and comparisons, against one arm, in one view."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bandanna._core.types import ArmName, InputError
from bandanna.inference import Interval
from bandanna.policy.answers import (
    ANY_TIME_NORMAL,
    Answer,
    ArmAnswer,
    Comparison,
    Question,
    answer_arm,
    check_confidence,
    compare_from,
    index_of,
)
from bandanna.policy.intervals import InPhases
from bandanna.policy.statements import NORMAL, Units
from bandanna.scorecard.card import Scorecard
from bandanna.scorecard.lift import Lift, from_intervals
from bandanna.scorecard.recommend import effect_of, recommend
from bandanna.scorecard.view import Check, Effect, Goal, Metric, Moment

if TYPE_CHECKING:
    from bandanna.policy.diagnostics import Diagnostics

MOMENTS = 40
"""After how many phases, at most, a lift is drawn."""


def scorecard_of(
    policy: Diagnostics, control: ArmName | None, outcome: str, confidence: float
) -> Scorecard:
    """Return the scorecard of a policy: the outcome first, then every metric.

    Each of them gets the same part of the error probability, so all of it holds together.
    """
    control = _control(policy, control)
    metrics = list(policy.spec.metrics or {})
    alpha = 1.0 - check_confidence(confidence)
    each = 1.0 - alpha / (1 + len(metrics))
    main = policy.answer(each, outcome=outcome)
    measured = [_metric(policy, main, control, each)]
    for name in metrics:
        measured.append(_metric(policy, policy.answer(each, metric=name), control, each, name))
    health = tuple(_health(policy, main))
    how = f",{NORMAL}" if main.looks == ANY_TIME_NORMAL else ""
    promise, advice = policy.guarantee, recommend(measured, health)
    others = [effect for effect in measured[0].effects[1:] if effect.difference is not None]
    followed = advice.arm if advice.arm not in {None, control} else None
    if followed is None and others:
        best = max if measured[0].goal == "more" else min
        followed = best(others, key=lambda effect: effect.difference or 0.0).arm
    moments = () if followed is None else over_phases(policy, main.units, control, followed, each)
    return Scorecard(
        advice,
        tuple(measured),
        confidence,
        promise.epsilon,
        promise.delta,
        promise.protects,
        f"All of it holds together, however often you look{how}, provided {main.assumption}.",
        main.about,
        health,
        moments=moments,
        followed=followed if moments else None,
    )


def over_phases(
    policy: Diagnostics, units: Units, control: ArmName, arm: ArmName, confidence: float
) -> tuple[Moment, ...]:
    """Return how an arm stood against the control after each phase, and the shares in it.

    All of it holds together: what is said of a run in phases holds at all times.
    """
    shown = policy.shown(confidence)
    intervals = shown.known.intervals
    if not isinstance(intervals, InPhases) or units.adjusted:
        return ()
    names = [control, *(name for name in policy.choices if name != control)]
    columns = [index_of(policy.choices, name) for name in names]
    phases, moments = len(intervals.counts), []
    rounds = np.cumsum(intervals.counts.sum(axis=1))
    for number in sorted({round(phases * part / MOMENTS) for part in range(1, MOMENTS + 1)} - {0}):
        then = intervals.until(number)
        one = shown._replace(known=shown.known._replace(intervals=then))
        compared = compare_from(one, Question(units, range(len(names))), control, arm)
        lift = _lift(compared, answer_arm(one, units, columns[0]), units.low)
        played = intervals.counts[number - 1, columns]
        shares = tuple(float(share) for share in played / max(played.sum(), 1.0))
        after = int(rounds[number - 1])
        moments.append(
            Moment(after, None, 0.0, 0.0, shares) if lift is None else Moment(after, *lift, shares)
        )
    return tuple(moments)


def _control(policy: Diagnostics, control: ArmName | None) -> ArmName:
    arms = policy.choices
    if len(arms) < 2:
        raise InputError(f"a scorecard compares arms; there is only {arms[0]!r}.")
    if control is None:
        return arms[0] if policy.spec.control is None else policy.spec.control
    if control not in arms:
        raise InputError(f"control must be one of {', '.join(map(repr, arms))}; got {control!r}.")
    return control


def _metric(
    policy: Diagnostics,
    answer: Answer,
    control: ArmName,
    confidence: float,
    name: str | None = None,
) -> Metric:
    """Return one outcome of every arm of which something was released, the control first."""
    units, limit = answer.units, None
    goal: Goal = "more" if units.reward else "less"
    if name is not None:
        limit, goal = (policy.spec.guardrails or {}).get(name), "neither"
    times = 100 if units.low == 0.0 and units.high == 1.0 else 1
    counted = units.counted if units.clip else ""
    shell = Metric(name or units.name, (), units.per, times, goal, limit, counted)
    arms = {arm.name: arm for arm in answer.arms}
    effects = [Effect(control, arms[control].rounds, arms[control].mean, verdict="control")]
    for arm in answer.arms:
        if arm.name == control:
            continue
        compared, lift = policy.compare(control, arm.name, confidence, metric=name), None
        if not units.adjusted:  # a share of what is left of an outcome says nothing
            lift = _lift(compared, arms[control], units.low)
        apart = compared.difference, compared.low, compared.high
        effects.append(effect_of(shell, arm.name, arm.rounds, arm.mean, apart, lift))
    if answer.best is not None and limit is None:
        # It stays so once it was settled, also where an end is 0.
        effects = [_settled(effect, answer.best, control) for effect in effects]
    return shell.with_effects(effects)


def _settled(effect: Effect, best: ArmName, control: ArmName) -> Effect:
    """Return an arm's effect with the verdict that follows from which arm is the best."""
    if effect.verdict != "open" or best not in (effect.arm, control):
        return effect
    return replace(effect, verdict="better" if best == effect.arm else "worse")


def _lift(compared: Comparison, control: ArmAnswer, least: float) -> Lift | None:
    """Return the lift from a comparison with the control and the control's own interval."""
    if compared.difference is None:
        return None
    apart, around = Interval(compared.low, compared.high), Interval(control.low, control.high)
    return from_intervals(compared.difference, apart, control.mean or 0.0, around, least)


def _health(policy: Diagnostics, answer: Answer) -> list[Check]:
    """Return what public counts and guards say of the run."""
    missed, rounds = policy.happened.missed, max(policy.decided, 1)
    checks = [
        Check(
            "feedback",
            missed <= 0.05 * rounds,
            f"Feedback was given up for {missed:,} of {rounds:,} decisions.",
        )
    ]
    if policy.waiting:
        text = f"{policy.waiting:,} decisions wait for their feedback."
        checks.append(Check("waiting", True, text))
    changed = answer.warning
    checks.append(Check("change", not changed, changed or "No arm has been seen to change."))
    return checks

"""The scorecard of a running policy: its answers and comparisons, against one arm, in one view."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from bandanna._core.types import ArmName, Guarantee, InputError
from bandanna.inference import Interval
from bandanna.planner.plan import Happened
from bandanna.policy.answers import ANY_TIME, Answer, ArmAnswer, Comparison, check_confidence
from bandanna.scorecard.card import Scorecard
from bandanna.scorecard.lift import from_intervals
from bandanna.scorecard.recommend import recommend, verdict_of
from bandanna.scorecard.view import Check, Effect, Goal, Metric
from bandanna.spec import Spec


class Policy(Protocol):
    """What a scorecard reads of a policy."""

    @property
    def spec(self) -> Spec:
        """What the policy is."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""

    @property
    def happened(self) -> Happened:
        """What happened that bounds do not cover."""

    @property
    def decided(self) -> int:
        """How many decisions were made."""

    @property
    def waiting(self) -> int:
        """How many of them wait for feedback."""

    @property
    def choices(self) -> tuple[ArmName, ...]:
        """The arms, or the experts."""

    def answer(self, confidence: float, *, outcome: str = "", metric: str | None = None) -> Answer:
        """Say which arm is best."""

    def compare(
        self,
        first: ArmName,
        second: ArmName,
        confidence: float,
        *,
        metric: str | None = None,
    ) -> Comparison:
        """Say how two arms differ."""


def scorecard_of(
    policy: Policy, control: ArmName | None, outcome: str, confidence: float
) -> Scorecard:
    """Return the scorecard of a policy: the outcome first, then every metric.

    Each of them gets the same part of the error probability, so all of it holds together.
    """
    control = _control(policy, control)
    metrics = list(policy.spec.metrics or {})
    guardrails = policy.spec.guardrails or {}
    alpha = 1.0 - check_confidence(confidence)
    each = 1.0 - alpha / (1 + len(metrics))
    main = policy.answer(each, outcome=outcome)
    goal: Goal = "more" if main.units.reward else "less"
    found = [_metric(policy, main, None, control, each, goal, None)]
    for name in metrics:
        limit = guardrails.get(name)
        answer = policy.answer(each, metric=name)
        found.append(_metric(policy, answer, name, control, each, "neither", limit))
    health = tuple(_health(policy, main))
    promise = policy.guarantee
    return Scorecard(
        recommend(found, health),
        tuple(found),
        confidence,
        promise.epsilon,
        promise.delta,
        promise.protects,
        f"All of it holds together, provided {main.assumption}.",
        ANY_TIME,
        health,
    )


def _control(policy: Policy, control: ArmName | None) -> ArmName:
    arms = policy.choices
    if len(arms) < 2:
        raise InputError(f"a scorecard compares arms; there is only {arms[0]!r}.")
    if control is None:
        return arms[0] if policy.spec.control is None else policy.spec.control
    if control not in arms:
        raise InputError(f"control must be one of {', '.join(map(repr, arms))}; got {control!r}.")
    return control


def _metric(
    policy: Policy,
    answer: Answer,
    name: str | None,
    control: ArmName,
    confidence: float,
    goal: Goal,
    limit: float | None,
) -> Metric:
    """Return one outcome of every arm of which something was released, the control first."""
    units = answer.units
    counted = f"counted from {units.low:g} to {units.high:g}" if units.clip else ""
    binary = units.low == 0.0 and units.high == 1.0
    shell = Metric(
        name or units.noun,
        (),
        units.per,
        100 if binary else 1,
        goal,
        limit,
        counted,
    )
    arms = {arm.name: arm for arm in answer.arms}
    effects = [Effect(control, arms[control].rounds, arms[control].mean, verdict="control")]
    for arm in answer.arms:
        if arm.name == control:
            continue
        compared = policy.compare(control, arm.name, confidence, metric=name)
        effects.append(
            _effect(shell, compared, arm.name, arm.rounds, arm.mean, arms[control], units.low)
        )
    return shell.with_effects(effects)


def _effect(
    metric: Metric,
    compared: Comparison,
    arm: ArmName,
    rounds: int,
    mean: float | None,
    control: ArmAnswer,
    least: float,
) -> Effect:
    if compared.difference is None or mean is None:
        return Effect(arm, rounds, mean)
    apart = Interval(compared.low, compared.high)
    around = Interval(control.low, control.high)
    lift = from_intervals(compared.difference, apart, control.mean or 0.0, around, least)
    verdict = verdict_of(metric, *apart)
    found = Effect(arm, rounds, mean, compared.difference, *apart, verdict=verdict)
    if lift is None:
        return found
    return replace(found, lift=lift.lift, lift_low=lift.low, lift_high=lift.high)


def _health(policy: Policy, answer: Answer) -> list[Check]:
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

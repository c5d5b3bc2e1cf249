"""Ship, keep, go on or stop: one recommendation from intervals, guardrails and health."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bandanna._core.types import ArmName
from bandanna.scorecard.lift import Lift
from bandanna.scorecard.text import interval, lift_of
from bandanna.scorecard.view import Check, Effect, Metric, Recommendation, Verdict

SHIP = "Rule: ship an arm that is better than the control", " while all guardrails are kept"
KEEP = "Rule: keep the control when all other arms are worse", " or break a guardrail"
GO_ON = "Rule: go on until an arm is better", " and keeps its guardrails", ", or all are worse"
STOP = "Rule: stop when people are not divided as planned."


def verdict_of(metric: Metric, low: float, high: float) -> Verdict:
    """Return what an interval of the difference to the control says."""
    limit = metric.limit
    if limit is not None:
        if limit < 0.0:
            low, high, limit = -high, -low, -limit
        return "kept" if high <= limit else "broken" if low > limit else "open"
    if metric.goal == "neither" or low <= 0.0 <= high:
        return "open"
    return "better" if (low > 0.0) == (metric.goal == "more") else "worse"


def effect_of(
    metric: Metric,
    arm: ArmName,
    people: int,
    mean: float | None,
    apart: tuple[float | None, float, float],
    lift: Lift | None,
) -> Effect:
    """Return one arm of a metric, its difference to the control, and what its interval says."""
    difference, low, high = apart
    if difference is None or mean is None:
        return Effect(arm, people, mean)
    verdict = verdict_of(metric, low, high)
    effect = Effect(arm, people, mean, difference, low, high, verdict=verdict)
    if lift is None:
        return effect
    return replace(effect, lift=lift.lift, lift_low=lift.low, lift_high=lift.high)


def recommend(
    metrics: Sequence[Metric], health: Sequence[Check] = (), more: str = ""
) -> Recommendation:
    """Recommend from the first metric, the guardrails among the others, and the health checks.

    ``more`` says how many people would tell, where that is known.
    """
    first, control = metrics[0], metrics[0].effects[0].arm
    ill = next((check for check in health if not check.good and check.name == "division"), None)
    if ill is not None:
        return Recommendation("stop", None, "Stop: do not decide from this", STOP)
    guardrails = [metric for metric in metrics[1:] if metric.limit is not None]
    guards = {
        effect.arm: [_in(metric, effect.arm).verdict for metric in guardrails]
        for effect in first.effects[1:]
    }

    def rule_of(words: tuple[str, ...]) -> str:
        return f"{words[0]}{words[1] if guardrails else ''}{''.join(words[2:])}."

    better = [effect for effect in first.effects[1:] if effect.verdict == "better"]
    fit = [e for e in better if all(guard == "kept" for guard in guards[e.arm])]
    if fit:
        chosen = max(fit, key=lambda effect: min(abs(effect.low), abs(effect.high)))
        rule = rule_of(SHIP)
        if fit[1:]:
            rule += " Of several, the one with the largest sure gain."
        return Recommendation("ship", chosen.arm, f"Ship {_by(chosen, first)}", rule)
    out = [
        effect
        for effect in first.effects[1:]
        if effect.verdict == "worse" or "broken" in guards[effect.arm]
    ]
    if len(out) == len(first.effects) - 1:
        broken = any("broken" in guards[effect.arm] for effect in out)
        why = "every other arm is worse" + (" or breaks a guardrail" if broken else "")
        if len(out) == 1:
            why = f"{out[0].arm} {_against(out[0], metrics)}"
        return Recommendation("keep", control, f"Keep {control}: {why}", rule_of(KEEP))
    waiting = [effect for effect in better if "broken" not in guards[effect.arm]]
    if waiting:
        best = waiting[0]
        open_ = next(
            metric.name for metric in guardrails if _in(metric, best.arm).verdict == "open"
        )
        words = f"Go on: {best.arm} is better than {control}, but {open_} may break its guardrail"
        return Recommendation("go on", None, words, rule_of(GO_ON))
    words = f"Go on: no arm is surely better than {control} yet"
    return Recommendation("go on", None, words, f"{rule_of(GO_ON)} {more}".rstrip())


def _in(metric: Metric, arm: ArmName) -> Effect:
    return next(effect for effect in metric.effects if effect.arm == arm)


def _against(effect: Effect, metrics: Sequence[Metric]) -> str:
    """Say what speaks against an arm: the guardrail it breaks, or that it is worse."""
    guarded = [metric for metric in metrics[1:] if metric.limit is not None]
    broken = [metric for metric in guarded if _in(metric, effect.arm).verdict == "broken"]
    if not broken:
        return f"is worse in {metrics[0].name}"
    better = f"is better in {metrics[0].name}, but " if effect.verdict == "better" else ""
    return better + " and ".join(_too_far(_in(metric, effect.arm), metric) for metric in broken)


def _too_far(effect: Effect, metric: Metric) -> str:
    """Say how far a guardrail is broken."""
    limit, low, high = metric.limit or 0.0, effect.low, effect.high
    side, ends = "higher", (low, high)
    if limit < 0.0:
        side, ends = "lower", (-high, -low)
    each = f" per {metric.times} {metric.per}" if metric.times > 1 else ""
    apart = interval(*ends, metric.times).replace("+", "")
    allowed = f"at most {metric.times * abs(limit):.4g} allowed"
    return f"{metric.name} is {apart} {side}{each} ({allowed})"


def _by(effect: Effect, metric: Metric) -> str:
    """Say by how much an arm is better than the control."""
    side = "higher" if (effect.difference or 0.0) > 0.0 else "lower"
    control = metric.effects[0].arm
    _, ends = lift_of(effect)
    if not ends:
        ends = interval(effect.low, effect.high, metric.times)
    low, _, high = ends.replace("+", "").replace("-", "").partition(" to ")
    if side == "lower":
        low, high = high, low
    return f"{effect.arm}: {metric.name} is {low} to {high} {side} than with {control}"

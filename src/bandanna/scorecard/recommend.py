"""Ship, keep, go on or stop: one recommendation from intervals, guardrails and health."""

from __future__ import annotations

from collections.abc import Sequence

from bandanna._core.types import ArmName
from bandanna.scorecard.text import interval, lift_of
from bandanna.scorecard.view import Check, Effect, Metric, Recommendation, Verdict

SHIP = "Rule: ship an arm that is better than the control while all guardrails are kept."
KEEP = "Rule: keep the control when all other arms are worse or break a guardrail."
GO_ON = "Rule: go on until an arm is better and keeps its guardrails, or all are worse."
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
    guards = {
        effect.arm: [_in(metric, effect.arm) for metric in metrics[1:] if metric.limit is not None]
        for effect in first.effects[1:]
    }
    better = [effect for effect in first.effects[1:] if effect.verdict == "better"]
    fit = [e for e in better if all(guard == "kept" for guard in guards[e.arm])]
    if fit:
        chosen = max(fit, key=lambda effect: min(abs(effect.low), abs(effect.high)))
        rule = f"{SHIP} Of several, the one with the largest sure gain." if fit[1:] else SHIP
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
        return Recommendation("keep", control, f"Keep {control}: {why}", KEEP)
    waiting = [effect for effect in better if "broken" not in guards[effect.arm]]
    if waiting:
        best = waiting[0]
        open_ = next(
            metric.name
            for metric in metrics[1:]
            if metric.limit is not None and _in(metric, best.arm) == "open"
        )
        words = f"Go on: {best.arm} is better than {control}, but {open_} may break its guardrail"
        return Recommendation("go on", None, words, GO_ON)
    words = f"Too early to tell: no arm is surely better than {control}"
    return Recommendation("go on", None, words, f"{GO_ON} {more}".rstrip())


def _in(metric: Metric, arm: ArmName) -> Verdict:
    return next(effect.verdict for effect in metric.effects if effect.arm == arm)


def _against(effect: Effect, metrics: Sequence[Metric]) -> str:
    """Say what speaks against an arm: the guardrail it breaks, or that it is worse."""
    guarded = [metric for metric in metrics[1:] if metric.limit is not None]
    broken = [metric.name for metric in guarded if _in(metric, effect.arm) == "broken"]
    if not broken:
        return f"is worse in {metrics[0].name}"
    better = f"is better in {metrics[0].name}, but " if effect.verdict == "better" else ""
    return f"{better}breaks the guardrail of {' and '.join(broken)}"


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

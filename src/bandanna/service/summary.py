"""What releases say: shares, means with intervals, bounds. Nothing else enters here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bandanna._core.types import JSON
from bandanna.inference import estimate, mean_interval
from bandanna.policy.diagnostics import CONFIDENCE
from bandanna.policy.policy import Policy
from bandanna.policy.promises import own_row
from bandanna.policy.summary import ArmSummary
from bandanna.privacy.release import ArmTotals
from bandanna.privacy.sums import SumRelease
from bandanna.service.models import moment
from bandanna.store.totals import Half, ReleaseTotals, TrendPoint

if TYPE_CHECKING:
    from bandanna.contextual.policy import PrivateContextual


def summary(
    policy: Policy, totals: ReleaseTotals, slots: int = 0, missed: int = 0, outcome: str = ""
) -> JSON:
    """Return what can be said about each arm, and about the run so far.

    ``slots`` are those that people have taken, ``missed`` rounds that nothing was learned from,
    ``outcome`` is what the feedback is, in the team's words.
    """
    rows = policy.summary().rows
    rounds = [totals.rounds.get(choice, 0) for choice in range(len(rows))]
    everything = sum(rounds)
    choices = [_choice(row, mine, everything) for row, mine in zip(rows, rounds, strict=True)]
    return _so_far(policy, totals, slots) | {
        "what": "arm" if policy.experts is None else "expert",
        "answer": policy.answer(outcome=outcome).to_dict(),
        "choices": [] if totals.weighed else choices,
        "shares": [] if totals.weighed else _shares(len(rows), totals.points),
        "means": [] if totals.weighed else _means(policy, len(rows), totals.points),
        "regret_bound": _bound_so_far(policy, missed),
        "regret_condition": policy.problem.assumed_of_feedback,
        "steadiness": steadiness(totals.halves) | {"guard": policy.stationarity},
        "control": policy.spec.control,
        "metrics": [_metric(policy, name) for name in policy.spec.metrics or {}],
        "dropped": [one._asdict() for one in policy.dropped],
    }


def _so_far(policy: Policy | PrivateContextual, totals: ReleaseTotals, slots: int) -> JSON:
    """Return what is counted of every run; of people's slots how many, without saying whose."""
    most = policy.spec.per_person
    return {
        "confidence": CONFIDENCE,
        "decided": policy.decided,
        "batch": policy.batch,
        "places": None if most is None else {"used": slots, "most": most},
        "batches_released": totals.batches,
        "rounds_released": sum(totals.rounds.values()),
    }


def scorecard(
    policy: Policy,
    control: str | None,
    outcome: str,
    confidence: float,
    phases: Sequence[JSON] | None = None,
) -> JSON:
    """Return what a team decides from, as values and as HTML.

    It is of releases alone. How much feedback waits changes between them, so it stands elsewhere.
    With ``phases``, in which others decided, it says whether people were divided as published.
    """
    named = {str(name): name for name in policy.choices}
    arm = None if control is None else named.get(control, control)
    card = policy.scorecard(arm, outcome=outcome, confidence=confidence)
    kept = tuple(check for check in card.health if check.name not in ("feedback", "waiting"))
    if phases is not None:
        from bandanna.phases.course import division  # loaded when first used

        kept = division(phases), *kept
    card = replace(card, health=kept)
    return {"scorecard": card.to_dict(), "html": card.element()}


def _metric(policy: Policy, name: str) -> JSON:
    """Return what was released of a further outcome, and its guardrail."""
    spec = policy.spec
    assert spec.metrics is not None
    return {
        "name": name,
        "range": list(spec.metrics[name]),
        "guardrail": (spec.guardrails or {}).get(name),
        "answer": policy.answer(metric=name).to_dict(),
    }


def _choice(row: ArmSummary, rounds: int, everything: int) -> JSON:
    shown = {"name": row.arm, "chance": row.chance, "batches": row.batches, "rounds": rounds}
    shown["share"] = rounds / everything if everything else None
    return shown | {"mean": row.mean, "low": row.low, "high": row.high}


def _shares(count: int, points: Sequence[TrendPoint]) -> list[JSON]:
    """Return the shares of arms in the rounds released since the moment before."""
    listed: list[JSON] = []
    for point in points:
        total = sum(point.rounds.values())
        shares = [point.rounds.get(choice, 0) / total for choice in range(count)]
        listed.append({"at": moment(point.at), "shares": shares})
    return listed


def _means(policy: Policy, count: int, points: Sequence[TrendPoint]) -> list[JSON]:
    """Return the mean of each arm and the ends of its interval, as known at each moment.

    The intervals hold at all moments together, as those of the answer do.
    """
    release = policy.recipe.release
    law = release.law() if isinstance(release, SumRelease) else None
    if law is None or not isinstance(release, SumRelease):
        return []
    if any(totals.offset for totals in policy.state.totals.values()):
        return []  # bits hold default losses that these points do not tell
    units, budget = policy.answer().units, policy.error_budget(CONFIDENCE)
    seen: dict[int, ArmTotals] = {}
    known: list[list[float] | None] = [None] * count
    means: list[JSON] = []
    for at, rounds, released in points:
        for arm, (batches, total) in released.items():
            before = seen.get(arm, ArmTotals())
            seen[arm] = ArmTotals(
                before.batches + batches, before.total + total, before.rounds + rounds[arm]
            )
            told = release.totals(seen[arm])
            ends = mean_interval(law, told, budget.mean(arm))
            known[arm] = [units.value(estimate(told)), *units.interval(ends)]
        means.append({"at": moment(at), "means": list(known)})
    return means


def _bound_so_far(policy: Policy, missed: int) -> float | None:
    """Return the most that the regret is guaranteed to be in expectation, if anything is.

    What a policy guarantees for all its rounds it guarantees for those so far: the losses of the
    others may all be 0. Without a number of rounds it must be tuned alike for any. None where it
    says no more than choosing at random does.
    """
    if policy.decided < 1:
        return None
    low, high = policy.counted_range
    at_random = (high - low) * policy.decided * (1.0 - 1.0 / len(policy.arms))
    if policy.regret_bound is not None:
        return policy.regret_bound if policy.regret_bound < at_random else None
    rounds = policy.decided if policy.rounds is None else policy.rounds
    if rounds < policy.decided or not policy.guarantee.private or policy.experts == 1:
        return None
    own = own_row(policy.spec, policy.recipe, policy.problem.but(rounds=rounds))
    so_far = own.after(policy.happened._replace(missed=missed))
    bound = (high - low) * so_far.regret
    return bound if bound < at_random else None


# --- decisions by context -------------------------------------------------------------

NO_BOUND = "No bound on regret is proved for a linear model of rewards."
NOT_TESTED = "Whether arms change over time is not tested where decisions depend on context."


def context_results(policy: PrivateContextual, totals: ReleaseTotals, slots: int) -> JSON:
    """Return what can be said about the run so far, from what was released."""
    return _so_far(policy, totals, slots) | {
        "what": "arm",
        "answer": policy.answer().to_dict(),
        "choices": [],
        "shares": [],
        "regret_bound": None,
        "regret_condition": NO_BOUND,
        "steadiness": {"p_value": None, "says": NOT_TESTED, "guard": None},
    }


# --- do arms stay as good as they were? -----------------------------------------------

FEWEST = 20
"""Batches of an arm below which nothing is said about it."""


def steadiness(halves: Mapping[int, tuple[Half, Half]]) -> JSON:
    """Compare the first half of each arm's releases with the second.

    Under the hypothesis that an arm's losses have one law, which half a release fell into says
    nothing: the difference of means is compared with its spread by the normal law, and the
    smallest p-value over arms is multiplied by their number (Bonferroni).
    """
    tested = [
        _p_value(*both) for both in halves.values() if both[0].batches + both[1].batches >= FEWEST
    ]
    if not tested:
        return {"p_value": None, "says": f"Not enough yet: it needs {FEWEST} batches of an arm."}
    smallest = min(1.0, len(tested) * min(tested))
    says = (
        "The arms changed over time: old results say little about today."
        if smallest < 0.01
        else "No sign that arms changed over time. That is no proof."
    )
    return {"p_value": smallest, "says": says}


def _p_value(first: Half, second: Half) -> float:
    """Return how likely so large a difference between halves is, both having one law."""
    count = first.batches + second.batches
    total, squares = first.total + second.total, first.squares + second.squares
    variance = (squares - total * total / count) / (count - 1)
    if variance <= 1e-12 * squares / count:  # all are the same, but for rounding
        return 1.0
    gap = first.total / first.batches - second.total / second.batches
    spread = math.sqrt(variance * (1 / first.batches + 1 / second.batches))
    return math.erfc(abs(gap) / spread / math.sqrt(2.0))

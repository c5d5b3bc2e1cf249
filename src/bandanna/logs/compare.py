"""Several outcomes of one experiment in one view: one epsilon, divided by stated shares.

An outcome is a mean, or a ratio of two sums. Each is released by itself, with its part of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypedDict

from bandanna._core import checks
from bandanna._core.grid import LossRange
from bandanna._core.private_inputs import private_inputs
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.logs import LogAnswer, answer
from bandanna.logs.answers import card_of
from bandanna.logs.ratios import RatioAnswer, answer_ratio
from bandanna.logs.rows import Categories
from bandanna.one_look import HOW
from bandanna.policy.answers import check_confidence
from bandanna.privacy.composition import float_below
from bandanna.scorecard.card import Scorecard
from bandanna.scorecard.view import Metric


class Outcome(TypedDict, total=False):
    """How one outcome is counted: options of ``bd.answer``, and two of its own."""

    loss_range: LossRange
    bounds: LossRange
    clip: bool
    reward: bool
    binary: bool
    adjust: str
    slope: float
    adjusted_range: LossRange
    limit: float
    """Makes it a guardrail: how much more than with the control is allowed; less, if negative."""
    over_range: LossRange
    """Makes it a ratio, named revenue/visits: the range of what is divided by."""
    share: float
    """Its share of epsilon, relative to the others'; 1 by default."""


OF_RATIOS = {"loss_range", "over_range", "reward", "limit", "share", "clip"}
"""What may be said of a ratio; its sums are always clipped."""


@private_inputs
def compare(
    log: object,
    *,
    arm: str,
    outcomes: Mapping[str, Outcome] | Sequence[str],
    epsilon: float,
    control: ArmName,
    person: str | None = None,
    by: Categories | None = None,
    shares: Mapping[ArmName, float] | None = None,
    confidence: float = 0.95,
) -> Scorecard:
    """Compare arms with a control in several outcomes of a finished log, privately.

    Parameters
    ----------
    log, arm, person, by
        As for ``bd.answer``.
    outcomes
        The outcomes by column, each with its options: those of ``bd.answer``, ``limit`` for a
        guardrail and ``share`` of epsilon. The first one decides. ``"revenue/visits"`` with an
        ``over_range`` is a ratio: the sum of one column over the sum of another, each added up by
        row, or by person, and moved into its range. What is missing counts as 0.
    epsilon
        For all outcomes together.
    control
        The arm that others are compared with, fixed before looking.
    shares
        How people were meant to be divided over arms; in equal parts by default.
    confidence
        With which all differences hold together, over arms and outcomes.

    Examples
    --------
    >>> import bandanna as bd
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> page = rng.choice(["old", "new"], 20_000)
    >>> log = {"page": page, "bought": rng.random(20_000) < np.where(page == "old", 0.1, 0.2),
    ...        "returned": rng.random(20_000) < 0.01}
    >>> card = bd.compare(log, arm="page", outcomes={"bought": {"reward": True},
    ...                     "returned": {"limit": 0.02}}, control="old", epsilon=1.0)
    >>> card.recommendation.action, card.recommendation.arm
    ('ship', 'new')
    """
    epsilon = checks.epsilon(epsilon)
    asked = _asked(outcomes)
    parts = spent(epsilon, {name: options.get("share", 1.0) for name, options in asked.items()})
    each = 1.0 - (1.0 - check_confidence(confidence)) / len(asked)

    def answered_about(name: str, options: Outcome) -> LogAnswer | RatioAnswer:
        alike: JSON = {"arm": arm, "person": person, "confidence": each, "epsilon": parts[name]}
        own = {key: value for key, value in options.items() if key not in {"limit", "share"}}
        if "over_range" not in options:
            alike |= {"control": control, "by": by}
            return answer(log, outcome=name, **alike, **own)  # type: ignore[arg-type]
        _check_ratio(name, options)
        own.pop("clip", None)  # its sums are always clipped
        return answer_ratio(log, ratio=name, **alike, **own)  # type: ignore[arg-type]

    answers = {name: answered_about(name, options) for name, options in asked.items()}
    metrics: list[Metric] = []
    groups: tuple[tuple[str, Metric], ...] = ()
    for name, answered in answers.items():
        limit = asked[name].get("limit")
        metric, of_groups = answered.effects(control, limit=limit)
        spends = f"epsilon {parts[name]:.3g}" if len(asked) > 1 else ""
        note = " · ".join(filter(None, [metric.note, spends]))
        metrics.append(replace(metric, note=note))
        groups = groups or of_groups
    first = next(iter(answers.values()))
    health = list(first.checks(shares))
    for name, answered in answers.items():
        health += [
            replace(check, text=f"{name}: {check.text}")
            for check in answered.checks(shares)
            if check.name == "counted" and answered is not first
        ]
    return replace(
        card_of(first, metrics, health, groups, planned=shares is not None),
        confidence=confidence,
        epsilon=epsilon,
        looks=_looks(answers),
        certificates=tuple(one.certificate for one in answers.values()),
    )


def _check_ratio(name: str, options: Outcome) -> None:
    """Refuse what does not go with a ratio."""
    wrong = sorted(set(options) - OF_RATIOS)
    if wrong or "loss_range" not in options:
        raise InputError(
            f"the ratio {name!r} needs loss_range= and over_range=, and takes reward, limit and "
            f"share besides{f'; got {wrong[0]!r}' if wrong else ''}."
        )


def _looks(answers: Mapping[str, LogAnswer | RatioAnswer]) -> str:
    """Say when it may be looked at, and how each outcome's intervals are made."""
    kinds = {name: answered.interval for name, answered in answers.items()}
    if len(set(kinds.values())) == 1:
        return next(iter(answers.values())).looks
    how = "; ".join(f"{name}: {HOW[kind]}" for name, kind in kinds.items())
    return f"The intervals are for one look at a finished log. {how}."


def _asked(outcomes: Mapping[str, Outcome] | Sequence[str]) -> dict[str, Outcome]:
    if isinstance(outcomes, str) or not isinstance(outcomes, Mapping | Sequence) or not outcomes:
        raise InputError(
            f'outcomes must name one column or more, such as ["bought"] or {{"revenue": '
            f'{{"loss_range": (0, 200), "clip": True}}}}; got {outcomes!r}.'
        )
    if not isinstance(outcomes, Mapping):
        return {str(name): Outcome() for name in outcomes}
    known = set(Outcome.__annotations__)
    for name, options in outcomes.items():
        if not isinstance(options, Mapping):
            raise InputError(
                f'the options of outcome {name!r} must be a dict such as {{"loss_range": (0, 200), '
                f'"limit": 5.0}}; got {options!r}.'
            )
        wrong = sorted(set(options) - known)
        if wrong:
            raise InputError(
                f"outcome {name!r} has no option {wrong[0]!r}; there are "
                f"{', '.join(sorted(known))}."
            )
        limit = options.get("limit")
        if limit is not None and not math.isfinite(checks.as_float(limit)):
            raise InputError(f"the limit of {name!r} must be a number; got {limit!r}.")
    return dict(outcomes)


def spent(epsilon: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Divide epsilon: the parts add up to it at most.

    Examples
    --------
    >>> spent(1.0, {"bought": 3, "revenue": 1})
    {'bought': 0.75, 'revenue': 0.25}
    """
    for name, weight in weights.items():
        checks.positive(f"the share of {name!r}", weight)
    whole = sum(map(Fraction, weights.values()))
    return {
        name: float_below(Fraction(epsilon) * Fraction(weight) / whole)
        for name, weight in weights.items()
    }

"""People who come back: what it costs to protect persons instead of rounds."""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna._core.types import JSON
from bandanna.environments import Returning
from bandanna.policy import PrivateBandit
from bandanna.privacy.composition import SlotCost, composed_epsilon
from bandanna.simulation.runs import simulate
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point

COMPOSED, PURE, NAIVE = "composition", "pure", "naive: epsilon for each slot"


class Regret(NamedTuple):
    """Regret counted by people, and its standard error."""

    mean: float
    error: float


def reproduce(quick: bool) -> Reproduction:
    """Measure regret by people for several numbers of slots, and against rounds that are people's.

    Everyone comes ``visits`` times; k slots take ``visits / k`` of these each.
    """
    settings = frozen_settings("people", quick)
    epsilon, delta, visits = settings["epsilon"], settings["delta"], settings["visits"]
    rows, drawn = [], []
    for slots in settings["slots"]:
        policies = {
            COMPOSED: _policy(settings, slots, per_person=slots, delta=delta),
            PURE: _policy(settings, slots, per_person=slots),
            NAIVE: _policy(settings, slots),
        }
        for name, policy in policies.items():
            found = _measure(policy, settings, slots, visits // slots)
            each = policy.recipe.release.guarantee().epsilon
            whole = epsilon if policy.people else slots * epsilon
            cells = [name, f"{slots}", f"{each:.4g}", f"{whole:g}"]
            rows.append([*cells, f"{found.mean:,.0f}", f"{found.error:,.0f}"])
            half = 1.96 * found.error
            low, high = max(found.mean - half, 1.0), found.mean + half
            drawn.append(Point("", name, slots, found.mean, low, high))
    return Reproduction(
        name="people",
        claim=f"{settings['people']:,} people who come {visits} times each, epsilon {epsilon:g}",
        headings=["accounting", "slots", "eps a slot", "eps a person", "regret", "s.e."],
        rows=rows,
        verdicts=[*_sticky(settings), *_costs(settings)],
        settings=settings,
        figure=Figure("Regret by people", "slots per person", "regret, counted by people", drawn),
    )


def _sticky(settings: JSON) -> list[Verdict]:
    """Compare one slot a person with one round a person, and with a share of epsilon a round."""
    base = _measure(_policy(settings, 1), settings, 1, 1)
    verdicts, ratios = [], []
    for visits in settings["sticky"]:
        found = _measure(_policy(settings, 1, per_person=1), settings, 1, visits)
        ratio, most = found.mean / base.mean, settings["most"]
        ratios.append(ratio)
        verdicts.append(
            Verdict(
                f"one slot and {visits} visits each: regret as with one round each",
                f"{ratio:.2f} times",
                f"at most {most:g} times",
                ratio <= most,
            )
        )
    few, many = settings["sticky"][0], settings["sticky"][-1]
    verdicts.append(
        Verdict(
            f"{many} visits each are no worse than {few}",
            f"{ratios[-1]:.2f} against {ratios[0]:.2f} times",
            "no more",
            ratios[-1] <= ratios[0],
        )
    )
    split = settings["split"]
    share = _policy(settings | {"epsilon": settings["epsilon"] / split}, split)
    ratio = _measure(share, settings, split, 1).mean / base.mean
    low, high = settings["split_from"], settings["split_to"]
    verdicts.append(
        Verdict(
            f"a share eps/{split} for each of {split} rounds costs more",
            f"{ratio:.2f} times",
            f"{low:g} to {high:g} times",
            low <= ratio <= high,
        )
    )
    return verdicts


def _costs(settings: JSON) -> list[Verdict]:
    each, tolerance = settings["each"], settings["costs_tolerance"]
    verdicts = []
    for slots, known in settings["costs"].items():
        found = composed_epsilon(SlotCost(each, 0.0), int(slots), settings["delta"])
        holds = abs(found / known - 1.0) <= tolerance
        claim = f"{slots} slots of epsilon {each:g} cost {known:g}"
        verdicts.append(Verdict(claim, f"{found:.4f}", f"{tolerance:.1%}", holds))
    return verdicts


def _policy(
    settings: JSON, slots: int, per_person: int | None = None, delta: float = 0.0
) -> PrivateBandit:
    size = settings["arms"], settings["epsilon"], settings["people"] * slots
    return PrivateBandit(*size, "one-bit", per_person=per_person, delta=delta)


def _measure(policy: PrivateBandit, settings: JSON, slots: int, visits: int) -> Regret:
    """Play a number of slots with a number of visits each, for each person."""
    rounds = settings["people"] * slots
    people = Returning(settings["arms"], rounds, visits=visits, gap=settings["gap"])
    runs, seed = settings["replicates"], settings["seed"]
    played = simulate({"it": policy}, people, replicates=runs, seed=seed, checkpoints=1)
    regret = played.regret("it") / slots
    return Regret(float(regret.mean()), float(regret.std(ddof=1)) / math.sqrt(regret.size))

"""What can be said after some rounds, from nothing but what was released."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bandanna._core.types import JSON
from bandanna.learners import Adaptive, DpKlucb
from bandanna.learners.dp_klucb import DpKlucbState
from bandanna.learners.stationarity import ALARM, GuardReport
from bandanna.policies.recipe import Recipe
from bandanna.theory.adaptive import adaptive_regret_paid


def regret_so_far(recipe: Recipe, learned: Callable[[], JSON]) -> float | None:
    """Bound the regret of the rounds released so far, in units of the loss range.

    Only the adaptive learner keeps what that needs. In expectation over runs, for losses fixed in
    advance whose feedback came in order, regret is at most the mean of this.
    """
    if not isinstance(recipe.learner, Adaptive):
        return None
    state = learned()
    met = adaptive_regret_paid(state["rates"], state["below"], state["totals"])
    return recipe.batch * (met + 1.0)


def stationarity(recipe: Recipe, learned: Callable[[], JSON]) -> GuardReport | None:
    """Say what DP-KLUCB's guard has seen."""
    learner = recipe.learner
    return learner.stationarity(learned()) if isinstance(learner, DpKlucb) else None


def alarmed(recipe: Recipe, state: NamedTuple | None) -> bool | None:
    """Say whether DP-KLUCB's guard has seen losses change; None where there is no guard."""
    guarded = isinstance(recipe.learner, DpKlucb) and recipe.learner.guard
    if not guarded or not isinstance(state, DpKlucbState):
        return None
    return bool(state.guard[ALARM] > 0.0)


def stationarity_words(seen: GuardReport | None) -> str:
    """Say in a sentence what ``stationarity`` tells; nothing where there is no guard."""
    if seen is None or not seen["guard"]:
        return ""
    tests, chance = seen["tests"], f"{seen['false_alarm']:g}"
    if not seen["alarm"]:
        return (
            f"Losses look steady: {tests:,} comparisons of an arm's releases with its earlier "
            f"ones, no alarm (a false one has probability at most {chance})."
        )
    told = seen["most_telling"]
    return (
        f"Losses change: after {told['after_rounds']:,} rounds arm {told['arm'] + 1}'s went from "
        f"{told['loss_before']:.3g} to {told['loss_then']:.3g}, beyond the "
        f"{told['difference_allowed']:.2g} that chance allows (false alarms: probability at most "
        f"{chance}); the adaptive learner plays since."
    )

"""What can be said after some rounds, from nothing but what was released."""

from __future__ import annotations

from collections.abc import Callable

from bandanna.learners import Adaptive, DpKlucb
from bandanna.learners.stationarity import GuardReport
from bandanna.policies.recipe import Recipe
from bandanna.theory.adaptive import adaptive_regret_paid
from bandanna.types import JSON


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

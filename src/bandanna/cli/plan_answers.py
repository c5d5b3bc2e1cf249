"""``bandanna plan``: from what was given, and what was left out, to a plan."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, InputError
from bandanna.cli.options import whole_number

if TYPE_CHECKING:
    from bandanna.planner.plan import Plan

MOST = "most"
NEEDED = ("arms", "rounds", "epsilon")
ANYTHING: dict[str, JSON] = {
    "arms": {"arms": 2},
    "rounds": {},
    "epsilon": {"epsilon": inf},
    "experts": {},
}
"""What stands for the number that is asked for, until it is known."""


def check_world(losses: str, changes: str | None) -> int | None:
    """Check what was said of losses; returns how often the best arm changes, if that was said."""
    from bandanna.algorithms import CHANGING, check_losses

    check_losses(losses)
    if changes is not None and losses != CHANGING:
        raise InputError(f"--changes goes with --losses {CHANGING}; got --losses {losses}.")
    return None if changes is None else whole_number("--changes", changes)


def answered(
    given: JSON, regret: float | None, most_experts: bool, *, local: bool
) -> tuple[Plan, str | None]:
    """Fill in what is asked for; return the plan for it and the answer in words."""
    from bandanna.planner.inverse import ask
    from bandanna.planner.plan import plan as make_plan
    from bandanna.problem import Problem

    missing = [name for name in NEEDED if given[name] is None]
    asked = [*missing, *(["experts"] if most_experts else [])]
    if regret is None:
        if missing:
            options = ", ".join(f"--{name}" for name in missing)
            raise InputError(f"needs {options}; or give --regret and leave out one of them.")
        if most_experts:
            raise InputError(f"--experts {MOST} asks how many a target allows; give it: --regret.")
        return make_plan(Problem(**given), local=local), None
    if local:
        raise InputError("--local answers no question; leave out --regret.")
    if len(asked) != 1:
        options = ", ".join(f"--{name}" for name in asked) or "nothing"
        raise InputError(
            f"with --regret leave out exactly one of --arms, --rounds and --epsilon, the one you "
            f"ask for, or ask by --experts {MOST}; asked for: {options}."
        )
    answer = ask(asked[0], regret, Problem(**{**given, **ANYTHING[asked[0]]}))
    return make_plan(answer.problem), answer.words


def for_people(
    given: JSON,
    regret: float | None,
    per_person: str | None,
    people: str | None,
    *,
    local: bool,
) -> tuple[Plan, str | None]:
    """Plan for persons; or answer how many places they may have."""
    from bandanna.planner.inverse import places_for
    from bandanna.planner.plan import plan as make_plan
    from bandanna.problem import Problem

    if per_person is None:
        raise InputError("--people goes with --per-person, the places each may have.")
    asks = per_person == MOST
    if asks != (regret is not None):
        raise InputError(f"--per-person {MOST} and --regret go together: how many for which.")
    places = None if asks else whole_number("--per-person", per_person)
    if people is not None:
        if places is None or given["rounds"] is not None:
            raise InputError(f"--people is instead of --rounds, and not with {MOST}.")
        given = given | {"rounds": places * whole_number("--people", people, MAX_ROUNDS // places)}
    missing = [f"--{name}" for name in NEEDED if given[name] is None]
    if missing:
        raise InputError(f"needs {', '.join(missing)} for a plan that protects persons.")
    problem, words = Problem(**given), None
    if regret is not None:
        answer = places_for(regret, problem)
        places, words = int(answer.value), answer.words
    return make_plan(problem, per_person=places, local=local), words

"""The planner's inverse questions: what a target regret, a share of the rounds, takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.checks import MAX_SLOTS
from bandanna._core.types import InputError
from bandanna.algorithms import Algorithm
from bandanna.planner.plan import Row, any_arm, plan, row_of
from bandanna.spec import Problem
from bandanna.theory.tuning import TOLERANCE, smallest

MOST_ARMS = 10**6
MOST_EXPERTS = 10**9


class Solution(NamedTuple):
    """What was asked for, the problem with it filled in, and the answer in words."""

    value: float
    problem: Problem
    words: str


def ask(question: str, target: float, problem: Problem) -> Solution:
    """Answer how many rounds, arms or experts, or which epsilon, a target regret allows.

    Parameters
    ----------
    question
        ``rounds``, ``epsilon``, ``arms`` or ``experts``.
    target
        The regret that can be borne, as a share of the rounds.
    problem
        The rest of it; what is asked for is not looked at.

    Examples
    --------
    >>> from bandanna.planner.inverse import ask
    >>> ask("arms", 0.05, Problem(arms=2, rounds=10**5, epsilon=0.5)).words
    'Up to 14 arms, regret of at most 0.05 of the rounds is guaranteed.'
    """
    if question not in QUESTIONS:
        raise InputError(f"unknown question {question!r}; there are {', '.join(QUESTIONS)}.")
    _check_target(target)
    value = QUESTIONS[question](target, problem)
    more = " and more" if value in (MOST_ARMS, MOST_EXPERTS) else ""
    words = {
        "arms": f"Up to {value:,} arms{more}",
        "rounds": f"From {value:,} rounds on",
        "epsilon": f"From epsilon {value:.4g} on",
        "experts": f"Up to {value:,} experts{more}",
    }[question]
    promise = f"regret of at most {target:g} of the rounds is guaranteed."
    return Solution(value, problem.but(**{question: value}), f"{words}, {promise}")


def slots_for(target: float, problem: Problem) -> Solution:
    """Answer how many slots a person may have for a target regret; rounds are slots.

    Examples
    --------
    >>> slots_for(0.02, Problem(arms=3, rounds=10**6, epsilon=1.0, delta=1e-6)).value
    55
    """
    _check_target(target)

    def share(slots: int) -> float:
        return plan(problem, per_person=slots).best.share

    if share(1) > target:
        raise InputError(
            f"a regret of {target:g} of the slots is not guaranteed even if everyone has one of "
            f"the {problem.rounds:,}: the best is {share(1):.3g}. Use more of them."
        )
    value = smallest(lambda slots: share(slots) > target, 2, MAX_SLOTS) - 1
    words = f"Up to {value:,} slots a person, regret of at most {target:g} of the slots"
    return Solution(value, problem, f"{words} is guaranteed.")


def says_something_from(entry: Algorithm, problem: Problem) -> int | None:
    """Return a number of rounds from which on a guarantee is below them, if there is one."""

    def at(rounds: int) -> Row:
        return row_of(entry, problem.but(rounds=rounds))

    # A bound that is what choosing at random guarantees says nothing.
    target = math.nextafter(any_arm(problem), 0.0)
    return None if at(checks.MAX_ROUNDS).share > target else _from(target, at)


def _rounds(target: float, problem: Problem) -> int:
    def best(rounds: int) -> Row:
        return plan(problem.but(rounds=rounds)).best

    share = best(checks.MAX_ROUNDS).share
    if share > target:
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed for any number of rounds up "
            f"to {checks.MAX_ROUNDS:g}; there it is {share:.3g}."
        )
    return _from(target, best)


def _from(target: float, best: Callable[[int], Row]) -> int:
    """Return a number of rounds from which on the best guarantee stays below a target.

    A bound as a share of the rounds is not monotone in them: it rises a little whenever another
    batch fits in. In multiples of a fixed batch it does fall, and between them even further. So
    the batch of the first good number is kept, and its first good multiple holds for all that
    follows, whatever batch is best there, with what ``best_batch`` may lose to spare.
    """
    first = smallest(lambda rounds: best(rounds).share <= target, 1, checks.MAX_ROUNDS)
    row = best(first)
    assert row.bound is not None
    batch = row.bound.batch

    def good(count: int) -> bool:
        size = row.problem.but(rounds=count * batch)
        return row_of(row.entry, size, batch).share <= target * (1.0 - TOLERANCE)

    most = checks.MAX_ROUNDS // batch
    # A bound whose batch follows from the rounds by a formula is monotone itself.
    return smallest(good, 1, most) * batch if good(most) else first


def _share(problem: Problem, name: str, value: float) -> float:
    """Return the smallest guarantee with another value, as a share of the rounds."""
    return plan(problem.but(**{name: value})).best.share


def _epsilon(target: float, problem: Problem) -> float:
    share = partial(_share, problem, "epsilon")
    low, high = checks.MIN_EPSILON, checks.MAX_EPSILON
    if share(high) > target:
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed in {problem.rounds:,} rounds "
            f"even with hardly any privacy: the best is {share(high):.3g}. Use more rounds."
        )
    if share(low) <= target:
        return low
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if share(middle) <= target else (middle, high)
    return high


def _largest(things: str, most: int, target: float, problem: Problem) -> int:
    share = partial(_share, problem, things)
    if share(2) > target:
        rounds, arms = f"{problem.rounds:,} rounds", f" of {problem.arms:,} arms"
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed even for 2 {things} in "
            f"{rounds}{'' if things == 'arms' else arms} at epsilon {problem.epsilon:g}: the best "
            f"is {share(2):.3g}. Use more rounds or a larger epsilon."
        )
    if share(most) <= target:
        return most
    return smallest(lambda count: share(count) > target, 2, most) - 1


def _check_target(target: float) -> None:
    if not 0.0 < checks.positive("regret", target) < 1.0:
        raise InputError(f"regret must be a share of the rounds, below 1; got {target!r}.")


QUESTIONS: dict[str, Callable[[float, Problem], float]] = {
    "rounds": _rounds,
    "epsilon": _epsilon,
    "arms": partial(_largest, "arms", MOST_ARMS),
    "experts": partial(_largest, "experts", MOST_EXPERTS),
}

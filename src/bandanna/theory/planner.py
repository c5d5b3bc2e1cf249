"""Before the first decision: which algorithm, what batch, what is guaranteed, what is possible."""

from __future__ import annotations

from dataclasses import replace

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.privacy.composition import check_places, place_for
from bandanna.problem import Problem
from bandanna.theory.algorithm import Algorithm
from bandanna.theory.catalogue import algorithms
from bandanna.theory.guaranteed import row_of
from bandanna.theory.plan import Plan
from bandanna.theory.worlds import ANY, CHANGING, check_losses

ONE_BIT = "one-bit"
"""Name of the release that devices do, in batches of one."""

VECTOR = "vector"
"""Name of the release that spends delta by itself; its file loads NumPy, which a plan does not."""


def plan(
    arms: int | Problem,
    rounds: int | None = None,
    epsilon: float | None = None,
    *,
    experts: int | None = None,
    delta: float = 0.0,
    delay: int = 0,
    per_person: int | None = None,
    local: bool = False,
    losses: str = ANY,
    changes: int | None = None,
) -> Plan:
    """Compare what every algorithm guarantees.

    Parameters
    ----------
    arms, rounds, epsilon
        The problem; or a ``Problem`` alone.
    experts
        Number of experts, for bandits with expert advice.
    delta
        What may be spent; algorithms that need none use none.
    delay
        How many further decisions may be made before the feedback of one has come; 0 is feedback in
        order. Bounds with it are larger, and for most algorithms none is proved.
    per_person
        Protect persons who may have so many places: epsilon and delta are then theirs, and rounds
        are places. A problem is given besides it.
    local
        Compare what people's own devices can feed, a bit for each round, and other algorithms that
        never see more than one randomised loss at a time.
    losses, changes
        What losses are like, as for ``PrivateBandit``: regret to expect is for such losses, and the
        bound of ``tracking`` against all sequences of arms that change so often.

    Examples
    --------
    >>> plan(arms=10, rounds=1_000_000, epsilon=0.1).best.algorithm
    'one-bit-exp3'
    """
    if isinstance(arms, Problem):
        if (rounds, epsilon, experts, delta, delay) != (None, None, None, 0.0, 0):
            raise InputError("a Problem says everything; give it alone, or change it by .but().")
        problem = arms
    else:
        if rounds is None or epsilon is None:
            raise InputError("a plan needs rounds= and epsilon=, such as bd.plan(4, 1e5, 0.5).")
        problem = Problem(arms, rounds, epsilon, experts, delta, delay)
    checks.epsilon(problem.epsilon)
    problem.horizon("a plan")
    problem = _in_world(problem, losses, changes)
    if problem.advised:
        problem = replace(problem, experts=problem.advisers)
    if local and (problem.advised or per_person is not None):
        raise InputError(
            "devices ask for arms without experts, and keep their persons' budgets themselves: "
            "leave out experts and per_person in a local plan."
        )
    rows = [
        row_of(
            entry,
            problem if per_person is None else place_problem(problem, per_person, entry),
            batch,
        )
        for entry, batch in planned(problem, local=local)
    ]
    rows.sort(key=lambda row: row.regret)
    return Plan(problem, rows, per_person=per_person, local=local, losses=losses)


def _in_world(problem: Problem, losses: str, changes: int | None) -> Problem:
    """Check what was said of losses, and put it into the problem."""
    check_losses(losses)
    if changes is None:
        return problem
    if losses != CHANGING:
        raise InputError(f"changes= goes with losses='changing'; got losses={losses!r}.")
    return problem.but(changes=changes)


def planned(problem: Problem, *, local: bool = False) -> list[tuple[Algorithm, int | None]]:
    """Return the algorithms of a plan, with the batch they must have, if any."""
    entries = [entry for entry in algorithms(advised=problem.advised) if _is_planned(entry)]
    if not local:
        return [(entry, None) for entry in entries]
    single = [entry for entry in entries if entry.local or entry.release == ONE_BIT]
    plain = [entry for entry in entries if not entry.private]
    return [(entry, 1 if entry.release == ONE_BIT else None) for entry in (*single, *plain)]


def place_problem(problem: Problem, per_person: int, entry: Algorithm) -> Problem:
    """Return the problem of one place, with what it may cost of a person's epsilon and delta."""
    places, spends = check_places(per_person), entry.release == VECTOR
    each = place_for(problem.epsilon, problem.delta, places, spend_delta=spends)
    return problem.but(epsilon=each.epsilon, delta=each.delta)


def _is_planned(entry: Algorithm) -> bool:
    """Whether an algorithm belongs into a plan: all do but those that do not try to learn."""
    return entry.private or entry.bound is not None

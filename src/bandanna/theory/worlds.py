"""What the world is like: a question people can answer, in place of an algorithm's name."""

from __future__ import annotations

from bandanna._core.types import InputError
from bandanna.problem import Problem
from bandanna.theory.catalogue import IN_PARTS
from bandanna.theory.exp3 import CHANGES

STEADY_WARNING = (
    "It notices when an arm that it plays changes, and adaptive then plays the rest; it cannot see "
    "an arm it has stopped playing become the best while nothing else changes."
)
STEADY, ANY, CHANGING = "steady", "any", "changing"
ALGORITHMS: dict[str, tuple[str, str]] = {
    ANY: ("adaptive", "Losses may be anything: adaptive follows the surprises it meets."),
    STEADY: ("dp-klucb", f"Losses are steady: dp-klucb. {STEADY_WARNING}"),
    CHANGING: ("adaptive", "The best arm changes: adaptive with a short memory follows it."),
}
"""For each world, the algorithm and why: what ``bandanna reproduce algorithms`` measured."""


def chosen(
    algorithm: str | None, losses: str | None, problem: Problem, *, in_parts: bool = False
) -> tuple[str, Problem, str]:
    """Return the algorithm for a world or as named, the problem with its changes, and why.

    Whoever says nothing says that losses are any; ``in_parts`` says that parts are given.
    """
    if losses is None and in_parts:
        algorithm = algorithm or IN_PARTS
    if losses is None and algorithm is not None:
        check_changes(algorithm, problem)
        return algorithm, problem, f"{algorithm} was asked for."
    losses = losses or ANY
    check_losses(losses)
    if algorithm is not None:
        raise InputError(f"losses={losses!r} chooses the algorithm; leave out {algorithm!r}.")
    name, why = ALGORITHMS[losses]
    if losses == CHANGING and (problem.changes, problem.memory) == (None, None):
        problem = problem.but(changes=CHANGES)
        problem.horizon("losses='changing' without memory=", instead="memory=")
    check_changes(name, problem)
    return name, problem, why


def check_losses(losses: str) -> None:
    """Refuse a world there is not."""
    if losses not in ALGORITHMS:
        raise InputError(f"losses must be one of {', '.join(ALGORITHMS)}; got {losses!r}.")


def check_changes(name: str, problem: Problem) -> None:
    """Refuse numbers that an algorithm would not use."""
    if problem.changes is not None and name.removesuffix("-conversion") not in (
        "adaptive",
        "tracking",
    ):
        raise InputError(f"changes= is for adaptive and tracking; {name} does not use it.")
    if problem.memory is not None and name.removesuffix("-conversion") != "adaptive":
        raise InputError(f"memory= is for adaptive; {name} does not use it.")

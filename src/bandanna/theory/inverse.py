"""The planner's inverse questions: what a target regret, a share of the rounds, takes."""

from __future__ import annotations

from collections.abc import Callable

from bandanna import checks
from bandanna.theory.algorithms import Algorithm
from bandanna.theory.planner import plan
from bandanna.types import InputError

MOST_ARMS = 10**6
MOST_EXPERTS = 10**9


def rounds_for(
    target: float, arms: int, epsilon: float, *, experts: int | None = None, delta: float = 0.0
) -> int:
    """Return how many rounds it takes until the best guarantee is a share ``target`` of them."""
    _check_target(target)

    def share(rounds: int) -> float:
        return _share(arms, rounds, epsilon, experts, delta)

    if share(checks.MAX_ROUNDS) > target:
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed for any number of rounds up "
            f"to {checks.MAX_ROUNDS:g}; there it is {share(checks.MAX_ROUNDS):.3g}."
        )
    return _smallest(lambda rounds: share(rounds) <= target, 1, checks.MAX_ROUNDS)


def epsilon_for(
    target: float, arms: int, rounds: int, *, experts: int | None = None, delta: float = 0.0
) -> float:
    """Return the smallest epsilon whose best guarantee is a share ``target`` of the rounds."""
    _check_target(target)

    def share(epsilon: float) -> float:
        return _share(arms, rounds, epsilon, experts, delta)

    low, high = checks.MIN_EPSILON, checks.MAX_EPSILON
    if share(high) > target:
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed in {rounds:,} rounds even "
            f"with hardly any privacy: the best is {share(high):.3g}. Use more rounds."
        )
    if share(low) <= target:
        return low
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if share(middle) <= target else (middle, high)
    return high


def arms_for(
    target: float, rounds: int, epsilon: float, *, experts: int | None = None, delta: float = 0.0
) -> int:
    """Return the largest number of arms for which a share ``target`` is guaranteed."""

    def share(arms: int) -> float:
        return _share(arms, rounds, epsilon, experts, delta)

    return _largest(target, share, MOST_ARMS, "arms", f"{rounds:,} rounds at epsilon {epsilon:g}")


def experts_for(
    target: float, arms: int, rounds: int, epsilon: float, *, delta: float = 0.0
) -> int:
    """Return the largest number of experts for which a share ``target`` is guaranteed."""

    def share(experts: int) -> float:
        return _share(arms, rounds, epsilon, experts, delta)

    where = f"{rounds:,} rounds of {arms:,} arms at epsilon {epsilon:g}"
    return _largest(target, share, MOST_EXPERTS, "experts", where)


def says_something_from(algorithm: Algorithm) -> int | None:
    """Return the number of rounds from which a guarantee is below them, if there is one."""

    def good(rounds: int) -> bool:
        bound = algorithm.row(rounds).bound
        return bound is not None and bound.share(rounds) < 1.0

    return _smallest(good, 1, checks.MAX_ROUNDS) if good(checks.MAX_ROUNDS) else None


def _largest(
    target: float, share: Callable[[int], float], most: int, things: str, where: str
) -> int:
    _check_target(target)
    if share(2) > target:
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed even for 2 {things} in "
            f"{where}: the best is {share(2):.3g}. Use more rounds or a larger epsilon."
        )
    if share(most) <= target:
        return most
    return _smallest(lambda count: share(count) > target, 2, most) - 1


def _share(arms: int, rounds: int, epsilon: float, experts: int | None, delta: float) -> float:
    """Return the best guarantee as a share of the rounds."""
    bound = plan(arms, rounds, epsilon, experts=experts, delta=delta).best.bound
    assert bound is not None
    return bound.share(rounds)


def _smallest(good: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest whole number that is good; being good must be monotone."""
    if good(low):
        return low
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _check_target(target: float) -> None:
    if not 0.0 < checks.positive("regret", target) < 1.0:
        raise InputError(f"regret must be a share of the rounds, below 1; got {target!r}.")

"""Before the first decision: which algorithm, what batch, what is guaranteed, what is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from bandanna import checks
from bandanna.theory import bounds, expert_bounds, tight_bounds, tight_expert_bounds
from bandanna.theory.bounds import Bound
from bandanna.types import JSON, InputError, Model

MOST_ARMS = 10**6


class Row(NamedTuple):
    """One algorithm: its guarantee, or why there is none."""

    algorithm: str
    model: Model
    delta: float
    bound: Bound | None
    reason: str = ""

    def to_dict(self, rounds: int) -> JSON:
        """Return stable keys for JSON."""
        shown: JSON = {"algorithm": self.algorithm, "model": self.model, "delta": self.delta}
        if self.bound is None:
            empty = dict.fromkeys(("batch", "bound", "share", "vacuous"))
            return {**shown, **empty, "reason": self.reason}
        share = self.bound.share(rounds)
        numbers = {"batch": self.bound.batch, "bound": self.bound.regret, "share": share}
        why = {"source": self.bound.source, "settings": self.bound.settings}
        return {**shown, **numbers, "vacuous": share >= 1.0, **why}


@dataclass(frozen=True)
class Plan:
    """What each algorithm guarantees for a problem, the best first."""

    arms: int
    rounds: int
    epsilon: float
    experts: int | None
    delta: float
    rows: list[Row]

    @property
    def best(self) -> Row:
        """The private algorithm with the smallest guaranteed regret."""
        private = [row for row in self.rows if row.bound is not None and row.model != "none"]
        return min(private, key=lambda row: row.bound.regret if row.bound else 0.0)

    @property
    def why(self) -> str:
        """The choice in one sentence."""
        bound = self.best.bound
        assert bound is not None
        share = bound.share(self.rounds)
        if share >= 1.0:
            return (
                f"Nothing is guaranteed at this size: the smallest bound, {self.best.algorithm}'s, "
                f"is {share:.1f} times the rounds. More rounds, fewer arms or more epsilon help."
            )
        return (
            f"{self.best.algorithm} has the smallest guaranteed regret, {share:.1%} of the rounds, "
            f"with batches of {bound.batch:,}."
        )

    def to_dict(self) -> JSON:
        """Return the plan with stable keys."""
        return {
            "arms": self.arms,
            "rounds": self.rounds,
            "epsilon": self.epsilon,
            "experts": self.experts,
            "delta": self.delta,
            "best": self.best.algorithm,
            "why": self.why,
            "rows": [row.to_dict(self.rounds) for row in self.rows],
        }


def plan(
    arms: int,
    rounds: int,
    epsilon: float,
    *,
    experts: int | None = None,
    delta: float = 0.0,
) -> Plan:
    """Compare what every algorithm guarantees.

    Parameters
    ----------
    arms, rounds, epsilon
        The problem.
    experts
        Number of experts, for bandits with expert advice.
    delta
        What may be spent; algorithms that need none use none.

    Examples
    --------
    >>> plan(arms=10, rounds=1_000_000, epsilon=0.1).best.algorithm
    'one-bit exp3'
    """
    checks.arms(arms)
    checks.rounds(rounds)
    checks.epsilon(epsilon)
    if experts is not None:
        checks.whole("experts", experts, at_least=2)
    if not 0.0 <= delta < 1.0:
        raise InputError(f"delta must be from 0 to below 1; got {delta!r}.")
    rows = (
        _bandit_rows(arms, rounds, epsilon)
        if experts is None
        else _expert_rows(arms, experts, rounds, epsilon, delta)
    )
    rows.sort(key=lambda row: row.bound.regret if row.bound else float("inf"))
    return Plan(arms, rounds, epsilon, experts, delta, rows)


def _bandit_rows(arms: int, rounds: int, epsilon: float) -> list[Row]:
    conversions = {
        "one-bit": bounds.one_bit_conversion,
        "one-bit exp3": tight_bounds.one_bit_exp3,
        "htinf (tight)": tight_bounds.htinf_conversion_tight,
        "exp3 (tight)": tight_bounds.exp3_conversion_tight,
        "ftpl (tight)": tight_bounds.ftpl_conversion_tight,
        "htinf": bounds.htinf_conversion,
        "exp3": bounds.exp3_conversion,
        "ftpl": bounds.ftpl_conversion,
        "ldp-exp3 (tight)": tight_bounds.local_exp3_tight,
        "ldp-exp3": bounds.local_exp3,
    }
    return [
        *(
            _row(name, "central", 0.0, bound, arms, rounds, epsilon)
            for name, bound in conversions.items()
        ),
        _row("no privacy", "none", 0.0, bounds.no_privacy, arms, rounds),
    ]


def _expert_rows(arms: int, experts: int, rounds: int, epsilon: float, delta: float) -> list[Row]:
    problem = (arms, experts, rounds, epsilon)
    conversions: dict[str, Callable[[int, int, float], Bound]] = {
        "one-bit conversion": bounds.one_bit_conversion,
        "one-bit exp3 conversion": tight_bounds.one_bit_exp3,
        "htinf conversion (tight)": tight_bounds.htinf_conversion_tight,
        "htinf conversion": bounds.htinf_conversion,
    }
    local = {
        "one-bit exp4 (tight)": tight_expert_bounds.one_bit_exp4_tight,
        "one-bit exp4": expert_bounds.one_bit_exp4,
        "local exp4 (tight)": tight_expert_bounds.local_exp4_tight,
        "local exp4": expert_bounds.local_exp4,
    }
    batched = {
        "batched exp4 (tight)": tight_expert_bounds.batched_exp4_tight,
        "batched exp4": expert_bounds.batched_exp4,
    }
    over = expert_bounds.over_experts
    return [
        *(
            _row(name, "central", 0.0, partial(over, c), *problem[1:])
            for name, c in conversions.items()
        ),
        *(_row(name, "local", 0.0, bound, *problem) for name, bound in local.items()),
        *(_row(name, "central", delta, bound, *problem, delta) for name, bound in batched.items()),
        _row("no privacy", "none", 0.0, expert_bounds.no_privacy_experts, *problem[:3]),
    ]


def _row(
    name: str, model: Model, delta: float, bound: Callable[..., Bound], *problem: float
) -> Row:
    try:
        found = bound(*problem)
    except InputError as error:
        return Row(name, model, delta, None, f"does not apply: {error}")
    if model == "central" and found.batch == 1 and delta == 0.0:
        model = "local"  # every loss is released by itself
    return Row(name, model, delta, found)


def rounds_for(
    target: float, arms: int, epsilon: float, *, experts: int | None = None, delta: float = 0.0
) -> int:
    """Return how many rounds it takes until the best guarantee is a share ``target`` of them."""
    _check_target(target)

    def good(rounds: int) -> bool:
        bound = plan(arms, rounds, epsilon, experts=experts, delta=delta).best.bound
        return bound is not None and bound.share(rounds) <= target

    if not good(checks.MAX_ROUNDS):
        best = _best_share(arms, epsilon, experts, delta)
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed for any number of rounds up "
            f"to {checks.MAX_ROUNDS:g}; there it is {best:.3g}."
        )
    return _smallest(good, 1, checks.MAX_ROUNDS)


def epsilon_for(
    target: float, arms: int, rounds: int, *, experts: int | None = None, delta: float = 0.0
) -> float:
    """Return the smallest epsilon whose best guarantee is a share ``target`` of the rounds."""
    _check_target(target)

    def share(epsilon: float) -> float:
        bound = plan(arms, rounds, epsilon, experts=experts, delta=delta).best.bound
        assert bound is not None
        return bound.share(rounds)

    low, high = 1e-9, 100.0
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


def arms_for(target: float, rounds: int, epsilon: float) -> int:
    """Return the largest number of arms for which a share ``target`` is guaranteed."""
    _check_target(target)

    def bad(arms: int) -> bool:
        bound = plan(arms, rounds, epsilon).best.bound
        return bound is None or bound.share(rounds) > target

    if bad(2):
        raise InputError(
            f"a regret of {target:g} of the rounds is not guaranteed even for 2 arms in "
            f"{rounds:,} rounds at epsilon {epsilon:g}. Use more rounds or a larger epsilon."
        )
    return MOST_ARMS if not bad(MOST_ARMS) else _smallest(bad, 2, MOST_ARMS) - 1


def _smallest(good: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest whole number that is good; being good must be monotone."""
    if good(low):
        return low
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _best_share(arms: int, epsilon: float, experts: int | None, delta: float) -> float:
    found = plan(arms, checks.MAX_ROUNDS, epsilon, experts=experts, delta=delta)
    assert found.best.bound is not None
    return found.best.bound.share(checks.MAX_ROUNDS)


def _check_target(target: float) -> None:
    if not 0.0 < checks.positive("regret", target) < 1.0:
        raise InputError(f"regret must be a share of the rounds, below 1; got {target!r}.")

"""Before the first decision: which algorithm, what batch, what is guaranteed, what is possible."""

from __future__ import annotations

from dataclasses import dataclass

from bandanna import checks
from bandanna.theory.algorithms import Row, algorithms
from bandanna.types import JSON


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
    'one-bit-exp3'
    """
    checks.arms(arms)
    checks.rounds(rounds)
    checks.epsilon(epsilon)
    if experts is not None:
        checks.whole("experts", experts, at_least=2)
    checks.delta(delta)
    rows = [algorithm.row(rounds) for algorithm in algorithms(arms, epsilon, experts, delta)]
    rows.sort(key=lambda row: row.bound.regret if row.bound else float("inf"))
    return Plan(arms, rounds, epsilon, experts, delta, rows)

"""The price of privacy: a private algorithm beside the same and the strongest without privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from bandanna._core.types import JSON
from bandanna.environments import Environment, ExpertEnvironment
from bandanna.policy import Policy
from bandanna.simulation.contestants import MOST_SECONDS, NO_PRIVACY, SAME, same_learner
from bandanna.simulation.requests import seconds_of
from bandanna.simulation.results import Results


@dataclass(frozen=True)
class Price:
    """Mean regret of the best private algorithm, and of the two baselines without privacy."""

    algorithm: str
    regret: float
    strongest: str
    """The learner that has the least regret here without privacy."""
    strongest_regret: float
    same: str = ""
    """The learner of the private algorithm, without privacy; empty where there is none."""
    same_regret: float | None = None

    @property
    def words(self) -> str:
        """Both prices in a sentence."""
        return (
            f"Price of privacy: of the private algorithms {self.algorithm} has the least regret, "
            f"{self.regret:,.0f}. Without privacy {self._same}the strongest, "
            f"{self.strongest}, has {self.strongest_regret:,.0f}."
        )

    @property
    def _same(self) -> str:
        if self.same_regret is None:
            return ""
        learner = "" if self.same == self.algorithm else f", {self.same},"
        return f"the same algorithm{learner} has {self.same_regret:,.0f}, "

    def to_dict(self) -> JSON:
        """Return the price with stable keys."""
        return {**asdict(self), "words": self.words}


def best_private(results: Results, policies: Mapping[str, Policy]) -> str | None:
    """Return the name of the private policy with the least mean regret; None if there is none."""
    private = [name for name, policy in policies.items() if policy.guarantee.private]
    return min(private, key=lambda name: float(results.regret(name).mean()), default=None)


def same_without(
    algorithm: str, environment: Environment | ExpertEnvironment
) -> tuple[str, Policy] | None:
    """Return an algorithm without privacy and its name; None where a run would take too long."""
    policy = same_learner(algorithm, environment)
    if policy is None or seconds_of([policy], environment.rounds) > MOST_SECONDS:
        return None
    return f"{algorithm}{SAME}", policy


def price_in(results: Results, policies: Mapping[str, Policy]) -> Price | None:
    """Return what privacy costs by some results; None where no baseline was played."""
    best = best_private(results, policies)
    if best is None or NO_PRIVACY not in policies:
        return None

    def mean(name: str) -> float:
        return float(results.regret(name).mean())

    own, plain = policies[best].algorithm, policies[NO_PRIVACY].algorithm
    found = Price(own, mean(best), plain, mean(NO_PRIVACY))
    name = f"{own}{SAME}"
    if name not in policies:
        return found
    return replace(found, same=policies[name].algorithm, same_regret=mean(name))

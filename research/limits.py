"""What no private algorithm can beat, beside what ours do.

The paper's Lemma on a class of algorithms: two arms; on the base instance arm 1 always costs 1/2
and arm 2 always 1. If an epsilon-private algorithm (1) plays arm 2 at least ``gamma T`` times with
probability 1/2, and (2) after round ``tau`` plays it at most ``p`` times in ``p / gamma`` rounds
with probability 1/2, then its worst-case expected regret is at least what ``limit`` returns. The
step of the proof from one set of changed rounds to the supremum over all needs privacy against
adversaries that adapt to the arms; ours have it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.audits.attack import lower_limit, upper_limit
from bandanna.environments import Barrier
from bandanna.learners import Exp3
from bandanna.policy import Policy, PrivateBandit
from bandanna.simulation.arguments import checkpoint_rounds
from bandanna.simulation.results import Results
from bandanna.simulation.runs import simulate
from research import Reproduction, Verdict, frozen_settings


class Limit(NamedTuple):
    """A lower bound on worst-case regret, and its two terms."""

    regret: float
    base_instance: float
    """``gamma T / 4``, on the base instance."""
    shifted_instance: float
    """``(1 - exp(eps p) / 2) p / (4 gamma) - tau / 2``, when arm 2 becomes free after tau."""


def limit(*, gamma: float, tau: int, p: int, epsilon: float, rounds: int) -> Limit:
    """Return the Lemma's lower bound.

    Examples
    --------
    >>> limit(gamma=0.01, tau=100, p=4, epsilon=0.1, rounds=100_000).regret
    250.0
    """
    checks.whole("rounds", rounds, at_least=1)
    checks.whole("p", p, at_least=1)
    checks.whole("tau", tau, at_least=0)
    if not 0.0 < checks.positive("epsilon", epsilon) <= 1.0:
        raise InputError(f"the Lemma is for epsilon up to 1; got {epsilon:g}.")
    if not 0.0 < gamma <= 0.5:
        raise InputError(f"gamma must be above 0 and at most 1/2; got {gamma!r}.")
    if not (tau < rounds / 2 and 2 * gamma * tau <= p <= gamma * (rounds - tau)):
        raise InputError(
            f"the Lemma needs tau < T/2 and 2 gamma tau <= p <= gamma (T - tau); got tau = {tau}, "
            f"p = {p}, gamma = {gamma:g}, T = {rounds}."
        )
    base = gamma * rounds / 4.0
    shifted = (1.0 - 0.5 * math.exp(epsilon * p)) * p / (4.0 * gamma) - tau / 2.0
    return Limit(max(base, shifted), base, shifted)


def best_p(epsilon: float) -> int:
    """Return the number of plays p that makes ``p (1 - exp(eps p) / 2)`` largest."""
    candidates = range(1, max(2, math.ceil(math.log(2.0) / epsilon) + 1))
    return max(candidates, key=lambda p: p * (1.0 - 0.5 * math.exp(epsilon * p)))


@dataclass(frozen=True)
class Condition:
    """A probability that should be at least 1/2, as measured."""

    share: float
    low: float
    high: float
    """A 99% confidence interval (Clopper and Pearson)."""

    @property
    def holds(self) -> bool:
        """Whether at least 1/2 is certain at that level."""
        return self.low >= 0.5

    def __str__(self) -> str:
        return f"{self.share:.3f} (99% sure: {self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class LimitsReport:
    """The Lemma applied to a policy."""

    gamma: float
    tau: int
    p: int
    plays_enough: Condition
    """Condition (1): arm 2 is played at least gamma T times."""
    drops_quickly: Condition
    """Condition (2): after tau, at most p times in p / gamma rounds."""
    limit: Limit
    regret: float
    regret_error: float
    """Mean regret on the base instance, and its standard error."""
    shifted_regret: float
    shifted_error: float
    """The same when arm 2 becomes free after tau."""

    @property
    def applies(self) -> bool:
        """Whether both conditions hold."""
        return self.plays_enough.holds and self.drops_quickly.holds

    @property
    def respected(self) -> bool:
        """Whether the worse of the two measured regrets is at least the limit, beyond error."""
        base = self.regret + 4 * self.regret_error
        shifted = self.shifted_regret + 4 * self.shifted_error
        return max(base, shifted) >= self.limit.regret


def check_limits(
    policy: Policy, rounds: int, *, replicates: int = 400, seed: int = 0
) -> LimitsReport:
    """Choose gamma, tau and p for a policy, check both conditions, and run both instances."""
    epsilon = policy.guarantee.epsilon
    if not epsilon <= 1.0:
        raise InputError(
            f"the Lemma is for private policies with epsilon up to 1; got {epsilon:g}."
        )
    if len(policy.arms) != 2:
        raise InputError(f"the Lemma's instances have 2 arms; the policy has {len(policy.arms)}.")
    p = best_p(epsilon)
    grid = checkpoint_rounds(rounds, 60)
    pilot = simulate(policy, Barrier(rounds), replicates=replicates, seed=seed, checkpoints=grid)
    candidates = [
        (gamma, tau)
        for gamma in _gammas(_plays(pilot), grid)
        for tau in map(int, grid)
        if tau < rounds / 2 and 2 * gamma * tau <= p <= gamma * (rounds - tau)
    ]
    if not candidates:
        raise InputError(
            f"no gamma and tau fit the Lemma, which needs 2 gamma tau <= p <= gamma (T - tau) with "
            f"p = {p}. Use more rounds or a larger epsilon."
        )
    # The best pair is chosen on one simulation and judged on another.
    choosing = _judge(policy, rounds, p, candidates, replicates, seed + 1)[0]
    chosen = max(candidates, key=lambda pair: min(found.low for found in choosing[pair]))
    judged, runs = _judge(policy, rounds, p, [chosen], replicates, seed + 2)
    gamma, tau = chosen
    plays_enough, drops_quickly = judged[chosen]
    shifted = simulate(
        policy, Barrier(rounds, shift=max(tau, 1)), replicates=replicates, seed=seed + 3
    )
    base, moved = runs.regret("policy"), shifted.regret("policy")
    return LimitsReport(
        gamma=gamma,
        tau=tau,
        p=p,
        plays_enough=plays_enough,
        drops_quickly=drops_quickly,
        limit=limit(gamma=gamma, tau=tau, p=p, epsilon=epsilon, rounds=rounds),
        regret=float(base.mean()),
        regret_error=float(base.std() / math.sqrt(replicates)),
        shifted_regret=float(moved.mean()),
        shifted_error=float(moved.std() / math.sqrt(replicates)),
    )


def _judge(
    policy: Policy,
    rounds: int,
    p: int,
    pairs: list[tuple[float, int]],
    replicates: int,
    seed: int,
) -> tuple[dict[tuple[float, int], tuple[Condition, Condition]], Results]:
    """Measure both conditions for pairs of gamma and tau, on a simulation of their own."""
    ends = {pair: min(rounds, pair[1] + math.ceil(p / pair[0])) for pair in pairs}
    stops = np.unique([*(tau for _, tau in pairs), *ends.values(), rounds])
    runs = simulate(policy, Barrier(rounds), replicates=replicates, seed=seed, checkpoints=stops)
    plays = _plays(runs)
    column = {int(stop): index for index, stop in enumerate(stops)}
    found = {}
    for pair in pairs:
        late = plays[:, column[ends[pair]]] - plays[:, column[pair[1]]]
        found[pair] = (_condition(plays[:, -1] >= pair[0] * rounds), _condition(late <= p))
    return found, runs


def _gammas(plays: np.ndarray, grid: np.ndarray) -> list[float]:
    """Suggest shares of arm 2, from its overall share down to its share late in the run."""
    overall = float(np.quantile(plays[:, -1], 0.35)) / grid[-1]
    middle = int(np.searchsorted(grid, grid[-1] / 2))
    late = float(np.median(plays[:, -1] - plays[:, middle])) / (grid[-1] - grid[middle])
    lowest = max(min(late, overall), overall / 100)
    if overall <= 0:
        return []
    return [float(share) for share in np.geomspace(overall, lowest, 8) if 0 < share <= 0.5]


def _plays(runs: Results) -> np.ndarray:
    """How often arm 2 was played before each checkpoint: each play costs 1/2 more."""
    return np.rint(2.0 * runs.curves("policy"))


def _condition(happened: np.ndarray) -> Condition:
    hits, runs, level = int(happened.sum()), happened.size, 0.005
    return Condition(hits / runs, lower_limit(hits, runs, level), upper_limit(hits, runs, level))


HEADINGS = ["policy", "gamma", "tau", "p", "(1)", "(2)", "applies", "limit", "regret", "shifted"]


def reproduce(quick: bool) -> Reproduction:
    """Check both conditions for each policy, and its regret against the bound."""
    settings = frozen_settings("limits", quick)
    rounds, epsilon = settings["rounds"], settings["epsilon"]
    eager = Exp3(2, *settings["eager_exp3"])
    policies: dict[str, Policy] = {
        "htinf": PrivateBandit(2, epsilon, rounds, "htinf"),
        "one-bit": PrivateBandit(2, epsilon, rounds, "one-bit"),
        "eager exp3": PrivateBandit(2, epsilon, learner=eager, release="laplace"),
    }
    reports = {
        name: check_limits(policy, rounds, replicates=settings["replicates"])
        for name, policy in policies.items()
    }
    return Reproduction(
        name="limits",
        claim=f"limits of private bandits, epsilon = {epsilon:g}, T = {rounds:,}",
        headings=HEADINGS,
        rows=[_row(name, report) for name, report in reports.items()],
        verdicts=[
            Verdict(
                f"{name}: worst measured regret is at least the Lemma's bound",
                f"{max(report.regret, report.shifted_regret):,.0f} against "
                f"{report.limit.regret:,.0f}"
                + ("" if report.applies else "; its conditions do not hold, so nothing was owed"),
                "4 standard errors",
                report.respected or not report.applies,
            )
            for name, report in reports.items()
        ],
        settings=settings,
    )


def _row(name: str, report: LimitsReport) -> list[str]:
    return [
        name,
        f"{report.gamma:.2g}",
        f"{report.tau:,}",
        f"{report.p}",
        f"{report.plays_enough.share:.2f}",
        f"{report.drops_quickly.share:.2f}",
        "yes" if report.applies else "no",
        f"{report.limit.regret:,.0f}",
        f"{report.regret:,.0f}",
        f"{report.shifted_regret:,.0f}",
    ]

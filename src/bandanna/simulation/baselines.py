"""Policies by name, for comparisons: every algorithm of the catalogue, and baselines.

``auto`` is what runs with experts unless one is named; ``best-expert`` follows the expert who is
best in hindsight, and so needs the environment.

What privacy costs is counted from two baselines. ``adaptive-no-privacy`` is the same algorithm with
epsilon infinite: the learner of ``adaptive`` on the losses themselves, and so for every private
algorithm. ``no-privacy`` is the strongest learner without privacy; which one that is depends on the
losses. ``Price`` puts a private algorithm beside both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bandanna._core.grid import LossRange
from bandanna._core.types import JSON, InputError
from bandanna.algorithms import AUTO, find
from bandanna.environments import Environment, ExpertEnvironment
from bandanna.learners import FixedArm
from bandanna.policy import Bandit, Experts, Policy, PrivateBandit, PrivateExperts
from bandanna.simulation.arguments import seconds_of
from bandanna.simulation.comparators import best_expert
from bandanna.simulation.results import Results
from bandanna.simulation.runs import simulate
from bandanna.spec import Problem, parameters

BEST_EXPERT = "best-expert"
NO_PRIVACY = "no-privacy"
SAME = f"-{NO_PRIVACY}"
"""After the name of a private algorithm: the same without privacy."""

STRONGEST: tuple[str, ...] = ("tsallis-inf", "adaptive", "thompson", "kl-ucb")
"""Learners without privacy that are the strongest somewhere; with experts every expert is an arm
of theirs, and EXP4, plain and centred, are two more."""

PLAIN_LEARNERS = {"dp-klucb": "kl-ucb", "one-bit-exp4": "centred-exp4"}
"""Algorithms whose learner has another name without privacy."""

ONLY_PRIVATE = ("phased-net",)
"""Algorithms whose parts without privacy are none of the learners that can be named."""

FEWEST, MOST, EXPERT_TRIALS = 5, 30, 2
"""Runs of each, to see which is the strongest: as many as take some seconds, within these; with
experts always so many."""

TRIAL_SECONDS = 5.0

MOST_SECONDS = 2.0
"""Learners that take longer for one run are not tried; the first of all is taken where all do."""


def make_policy(
    name: str,
    problem: Problem,
    batch: int | None = None,
    loss_range: LossRange = (0.0, 1.0),
    **options: Any,
) -> Policy:
    """Make a policy by name; ``batch`` replaces the algorithm's own.

    A private policy takes all further ``options`` that ``bandanna.spec`` declares. Without an
    environment ``no-privacy`` is Tsallis-INF, or EXP4; ``strongest`` chooses for one. After the
    name of a private algorithm, ``-no-privacy`` means the same without privacy.

    Examples
    --------
    >>> make_policy("htinf", Problem(arms=3, rounds=1000, epsilon=0.5)).batch
    2
    >>> make_policy("auto", Problem(arms=2, rounds=1000, epsilon=0.5, experts=3)).algorithm
    'adaptive'
    """
    learner = _plain_learner(name, with_experts=problem.with_experts)
    if learner is not None:
        return _plain_policy(name, learner, problem, batch, loss_range)
    if problem.epsilon == math.inf:
        raise InputError(f"algorithm {name!r} is private and needs an epsilon, such as 0.1.")
    options |= {"batch": batch, "loss_range": loss_range, "delay": problem.delay}
    options |= {"changes": problem.changes, "memory": problem.memory}
    arms, rounds = problem.arms, problem.rounds
    if problem.experts is None:
        delta = 0.0 if options.get("per_person") is None else problem.delta
        return PrivateBandit(arms, problem.epsilon, rounds, name, delta=delta, **options)
    if unfit := [option for option in options if not parameters()[option].experts]:
        raise InputError(f"{unfit[0]}= is for policies without experts.")
    size = problem.experts, arms, problem.epsilon, problem.delta, rounds
    return PrivateExperts(*size, name, **options)


def _plain_learner(name: str, *, with_experts: bool) -> str | None:
    """Return the learner that plays without privacy; None where a name is a private algorithm's."""
    own = name.removesuffix(SAME)
    if own == AUTO and with_experts:
        if name != own:
            raise InputError(f"{AUTO} stands for another algorithm: name that before {SAME}.")
        return None
    entry = find(own, with_experts=with_experts)
    if name != own:  # epsilon is infinite: the learner sees the losses themselves
        if not entry.private or own in ONLY_PRIVATE:
            raise InputError(f"there is no {own} without privacy; {NO_PRIVACY} is the strongest.")
        return PLAIN_LEARNERS.get(own, entry.learner)
    if entry.private:
        return None
    return name if with_experts and name != NO_PRIVACY else entry.learner


def _plain_policy(
    name: str, learner: str, problem: Problem, batch: int | None, loss_range: LossRange
) -> Policy:
    """Return a policy without privacy."""
    arms, rounds = problem.arms, problem.rounds
    if problem.experts is None:
        return Bandit(arms, learner, rounds, batch=batch or 1, loss_range=loss_range)
    if batch not in (None, 1):
        raise InputError(f"{name} with experts learns every round; got batch {batch}.")
    return Experts(problem.experts, arms, rounds, learner, loss_range=loss_range)


def make_contestant(
    name: str,
    environment: Environment | ExpertEnvironment,
    epsilon: float,
    delta: float = 0.0,
    **options: Any,
) -> Policy:
    """Make a policy by name for an environment, ``best-expert`` and the ``strongest`` too."""
    if name == NO_PRIVACY:
        return strongest(environment)
    if name == BEST_EXPERT and isinstance(environment, ExpertEnvironment):
        best = FixedArm(environment.experts, best_expert(environment))
        return Experts(environment.experts, environment.arms, learner=best)
    size = environment.arms, environment.rounds, epsilon
    problem, loss_range = Problem(*size, environment.experts, delta), environment.loss_range
    return make_policy(name, problem, loss_range=loss_range, **options)


def strongest(
    environment: Environment | ExpertEnvironment,
    *,
    batch: int | None = None,
    seed: int = 0,
    most_seconds: float = MOST_SECONDS,
) -> Policy:
    """Return the learner without privacy that has the least regret here, by a few runs of each.

    Parameters
    ----------
    environment
        Where.
    batch
        Rounds for which an arm is kept, without experts; by default 1.
    seed
        Makes the choice repeatable.
    most_seconds
        What one run may take by a guess: slower learners are left out. Where all are slow it is
        Tsallis-INF, or EXP4.
    """
    rounds = environment.rounds
    problem = Problem(environment.arms, rounds, math.inf, environment.experts)
    names, loss_range = STRONGEST, environment.loss_range
    if environment.experts is not None:
        several = ("centred-exp4", *STRONGEST) if environment.experts > 1 else ()
        names, batch = ("exp4", *several), None
    candidates = {name: _plain_policy(name, name, problem, batch, loss_range) for name in names}
    seconds = {name: seconds_of([policy], rounds) for name, policy in candidates.items()}
    tried = {name: policy for name, policy in candidates.items() if seconds[name] <= most_seconds}
    if len(tried) < 2:
        return next(iter((tried or candidates).values()))
    each = sum(seconds[name] for name in tried)
    runs = min(MOST, max(FEWEST, int(TRIAL_SECONDS / each)))
    runs = runs if environment.experts is None else EXPERT_TRIALS
    results = simulate(
        tried, environment, replicates=runs, seed=seed, checkpoints=1, progress=False
    )
    return tried[min(tried, key=lambda name: float(results.regret(name).mean()))]


def same_learner(name: str, environment: Environment | ExpertEnvironment) -> Policy | None:
    """Return a private algorithm without privacy; None where there is none.

    Examples
    --------
    >>> from bandanna.environments import Bernoulli
    >>> same_learner("one-bit-exp3", Bernoulli(2, 1000)).algorithm
    'exp3'
    """
    problem = Problem(environment.arms, environment.rounds, math.inf, environment.experts)
    try:
        return make_policy(f"{name}{SAME}", problem, loss_range=environment.loss_range)
    except InputError:  # it only makes sense with noise, or the problem is too small
        return None


def shown_name(name: str, ran: str) -> str:
    """Return what tables call a policy, with what it stands for.

    Examples
    --------
    >>> shown_name("no-privacy", "thompson"), shown_name("htinf", "htinf")
    ('no privacy (thompson)', 'htinf')
    >>> shown_name("adaptive-no-privacy", "adaptive"), shown_name("dp-klucb-no-privacy", "kl-ucb")
    ('adaptive, no privacy', 'dp-klucb, no privacy (kl-ucb)')
    """
    if name == NO_PRIVACY:
        return f"no privacy ({ran})"
    if name.endswith(SAME):
        own = name.removesuffix(SAME)
        return f"{own}, no privacy" + ("" if ran == own else f" ({ran})")
    return f"{name} ({ran})" if name == AUTO else name


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
    same = policies.get(f"{own}{SAME}")
    return Price(
        own,
        mean(best),
        plain,
        mean(NO_PRIVACY),
        "" if same is None else same.algorithm,
        None if same is None else mean(f"{own}{SAME}"),
    )

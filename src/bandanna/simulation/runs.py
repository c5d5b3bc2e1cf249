"""Many runs of many policies, spread over the cores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna.environments import Environment, ExpertEnvironment, as_environment
from bandanna.learners import Uniform
from bandanna.policy import Policy, Recipe, Segments
from bandanna.privacy import PlainRelease
from bandanna.simulation.arguments import (
    ROUND_SECONDS,
    Policies,
    by_name,
    by_segment,
    check_fit,
    check_size,
    checkpoint_rounds,
    common_range,
    misfits,
    run_seconds,
)
from bandanna.simulation.comparators import Comparators, best_arm, best_of_segments, single_best
from bandanna.simulation.engine import ExpertRun, Run, play_run
from bandanna.simulation.online import (
    Worlds,
    beyond,
    check_metrics_used,
    known_before,
    metric_worlds,
    play_online,
    plays_online,
)
from bandanna.simulation.progress import Progress
from bandanna.simulation.results import PolicyRuns, Results, Retired, SegmentResults, policy_runs

CHECKPOINTS = 50
UNIFORM_RUNS = 50

Floats = NDArray[np.float64]


def simulate(
    policies: Policies,
    losses: object,
    *,
    advice: object = None,
    replicates: int = 100,
    first_run: int = 0,
    seed: int = 0,
    cores: int | None = None,
    checkpoints: int | Sequence[int] | NDArray[np.int64] = CHECKPOINTS,
    progress: bool | None = None,
    metrics: Mapping[str, object] | None = None,
    before: object = None,
) -> Results:
    """Play policies many times each and measure their regret.

    Every run starts afresh, whatever the policy given has already seen, and with seeded noise:
    this is for comparison, not for decisions about people.

    Parameters
    ----------
    policies
        Policies by name, or one policy.
    losses
        A (rounds, arms) table of losses, the name of a CSV, Parquet or NumPy file with one, or an
        environment. A table is in the policies' ``loss_range``, and then so is regret.
    advice
        With a table of losses and policies with experts: (rounds, experts) indices of arms, or
        (rounds, experts, arms) distributions; or a file. An environment with experts brings its
        own.
    replicates
        Runs of each policy, at least 1.
    first_run
        Number of the first one. A run depends on the seed and its number alone, so that many can
        be played in parts.
    seed
        Makes everything repeatable; a whole number, at least 0.
    cores
        How many threads to use, by default one for each core. The result does not depend on it.
    checkpoints
        At how many rounds, evenly spaced on a logarithmic scale, regret is recorded; or the
        numbers of rounds themselves.
    progress
        Show a progress bar; by default on a terminal, once two seconds have passed.
    metrics
        For policies with guardrails: by metric, its mean for each arm, or a (rounds, arms) table of
        its values. With means a value is one end of the metric's range, at random. Policies with
        guardrails or a ``least_share`` are played round by round in Python, which takes some
        hundred times as long. Regret is against the best arm, also if guardrails retire it.
    before
        For policies with ``adjust``: what was known before each round. Such policies are played in
        Python as well. Regret is of outcomes as they are.

    Examples
    --------
    >>> import bandanna as bd, numpy as np
    >>> losses = np.tile([0.1, 0.9], (1000, 1))
    >>> results = bd.simulate({"one-bit": bd.PrivateBandit(2, epsilon=1.0)}, losses, replicates=20)
    >>> results.regret("one-bit").shape
    (20,)
    """
    runs = checks.whole("replicates", replicates, at_least=1)
    first = checks.whole("first_run", first_run, at_least=0)
    checks.whole("seed", seed, at_least=0)
    available = os.cpu_count() or 1
    threads = checks.whole("cores", available if cores is None else cores, at_least=1)
    named = by_name(policies)
    environment = as_environment(losses, advice, common_range(named))
    for name, policy in named.items():
        check_fit(name, policy, environment)
        for said in misfits(name, policy, environment):
            warnings.warn(said, stacklevel=2)
    stops = checkpoint_rounds(environment.rounds, checkpoints)
    recipes = {name: policy.recipe for name, policy in named.items()}
    check_size(recipes, environment, runs, stops.size)
    size = environment.arms, environment.rounds
    known = known_before(named, before, environment.rounds)
    online = {
        name: Online(policy, metric_worlds(name, policy, metrics or {}, *size), known)
        for name, policy in named.items()
        if plays_online(policy)
    }
    check_metrics_used(metrics or {}, named.values())
    play = _Play(stops, seed, range(first, first + runs), threads)
    compared = None
    if isinstance(environment, ExpertEnvironment):
        played_runs, best, uniform, compared = play.with_experts(recipes, environment, progress)
        followed = compared.followed
    else:
        played_runs, best, uniform = play.alone(recipes, environment, progress, online)
        followed = best_of_segments(environment, stops)
    span, edges, high = environment.span, environment.edges, environment.loss_range[1]
    fixed = next(iter(best.values()))
    return Results(
        runs={
            name: policy_runs(played, best[name], stops, recipes[name], span, high)
            if name not in online
            else online[name].measured(
                policy_runs(played, best[name], stops, recipes[name], span, high), played
            )
            for name, played in played_runs.items()
        },
        rounds=environment.rounds,
        stops=stops,
        comparator=environment.comparator,
        uniform_regret=uniform * span,
        best_arm=single_best(environment),
        best_expert=None if compared is None else compared.best,
        best_reward=high - span * float(np.mean(fixed[..., -1])) / environment.rounds,
        arm_names=environment.arm_names,
        expert_names=environment.expert_names or _named(named),
        about=environment.about,
        sample=getattr(environment, "sample", None),
        ahead=None if followed is None else (fixed - followed) * span,
        segments=1 if edges is None else edges.size - 1,
    )


def simulate_segments(
    segments: Segments, losses: Mapping[Any, object], **options: Any
) -> SegmentResults:
    """Simulate segments, each on losses of its own.

    Parameters
    ----------
    segments
        Policies by segment.
    losses
        For each segment what ``simulate`` takes as losses.
    options
        Further parameters of ``simulate``. Each segment has the next seed.

    Examples
    --------
    >>> import bandanna as bd, numpy as np
    >>> shops = bd.Segments(lambda country: bd.PrivateBandit(2, epsilon=1.0), ["de", "fr"])
    >>> losses = {"de": np.tile([0.1, 0.9], (500, 1)), "fr": np.tile([0.9, 0.1], (900, 1))}
    >>> results = bd.simulation.simulate_segments(shops, losses, replicates=20)
    >>> results.rounds, results.regret().shape
    (1400, (20,))
    """
    seed = options.pop("seed", 0)
    pairs = by_segment(segments, losses).items()
    return SegmentResults(
        {
            name: simulate(policy, one, seed=seed + number, **options)
            for number, (name, (policy, one)) in enumerate(pairs)
        }
    )


def _named(policies: Mapping[str, Policy]) -> tuple[str, ...]:
    """Return what policies call their experts, where one has names for them."""
    by_policy = (policy.expert_names for policy in policies.values())
    return next(
        (
            tuple(map(str, names))
            for names in by_policy
            if any(isinstance(one, str) for one in names)
        ),
        (),
    )


Found = tuple[dict[str, list[Run]], dict[str, Floats], Floats]
"""Every policy's runs, what each is measured against, and the uniform player's regret."""


class Online(NamedTuple):
    """A policy that is played by the object itself, and the values of its metrics."""

    policy: Policy
    worlds: Worlds
    before: Floats | None = None

    def play(self, environment: Environment, how: _Play, run: int) -> Run:
        """Play one run."""
        size = how.stops, how.seed, run
        return play_online(self.policy, environment, self.worlds, *size, self.before)

    def measured(self, runs: PolicyRuns, played: Sequence[Run]) -> PolicyRuns:
        """Return runs with what guardrails did in them, where there are any."""
        if not self.policy.spec.guardrails:
            return runs
        when = np.array([run.retired for run in played])
        return replace(runs, retired=Retired(when, beyond(self.policy, self.worlds)))


class _Play(NamedTuple):
    """How the runs are played: their number, seeds and checkpoints."""

    stops: NDArray[np.int64]
    seed: int
    runs: range
    threads: int

    def alone(
        self,
        recipes: Mapping[str, Recipe],
        environment: Environment,
        progress: bool | None,
        online: Mapping[str, Online],
    ) -> Found:
        """Play without experts, run by run; those that are ``online`` by the object itself."""
        size = environment.rounds, environment.arms, None
        each = {name: run_seconds(recipe, *size) for name, recipe in recipes.items()}
        each |= dict.fromkeys(online, ROUND_SECONDS * environment.rounds)
        plays: dict[str, Callable[[int], Run]] = {}
        for name, recipe in recipes.items():
            compiled = partial(play_run, recipe, environment, self.stops, self.seed)
            one = online.get(name)
            plays[name] = compiled if one is None else partial(one.play, environment, self)
        with Progress(sum(each.values()) * len(self.runs), show=progress) as bar:
            played = {
                name: self._all_runs(one, partial(bar.advance, each[name]))
                for name, one in plays.items()
            }
        best = {name: best_arm(environment, self.stops, runs) for name, runs in played.items()}
        return played, best, self._uniform_regret(environment)

    def with_experts(
        self, recipes: Mapping[str, Recipe], environment: ExpertEnvironment, progress: bool | None
    ) -> tuple[*Found, Comparators]:
        """Play every run of every policy through the same chunks; returns also the experts'."""
        size = environment.experts, environment.arms, self.stops
        played = {
            name: [ExpertRun(recipe, *size, self.seed, run) for run in self.runs]
            for name, recipe in recipes.items()
        }
        comparators = Comparators(environment, self.stops)
        chunks = -(-environment.rounds // environment.chunk_rounds)
        cost = environment.rounds, environment.arms, environment.experts
        each = sum(run_seconds(recipe, *cost) for recipe in recipes.values()) / len(recipes)
        with Progress(each * len(recipes) * len(self.runs), show=progress) as bar:
            advance = partial(bar.advance, each / chunks)
            for number, chunk in enumerate(environment.chunks()):
                comparators.add(chunk)
                rest = [run for group in played.values() for run in group]
                if number == 0:  # one of each first: it compiles
                    for group in played.values():
                        group[0].play(chunk)
                        advance()
                    rest = [run for group in played.values() for run in group[1:]]
                self._spread((partial(run.play, chunk) for run in rest), advance)
        best = np.array(comparators.best_expert)
        played_runs = {name: [run.result for run in group] for name, group in played.items()}
        uniform = np.array(comparators.mean_expert) - best
        return played_runs, dict.fromkeys(recipes, best), uniform, comparators

    def _all_runs(self, one: Callable[[int], Run], advance: Callable[[], None]) -> list[Run]:
        results: dict[int, Run] = {}

        def play(run: int) -> None:
            results[run] = one(run)

        play(self.runs[0])  # compiles
        advance()
        self._spread((partial(play, run) for run in self.runs[1:]), advance)
        return [results[run] for run in self.runs]

    def _spread(self, tasks: Iterable[Callable[[], None]], advance: Callable[[], None]) -> None:
        """Do everything; compiled runs leave the interpreter, so threads use all cores."""
        with ThreadPoolExecutor(self.threads) as pool:
            waiting = [pool.submit(task) for task in tasks]
            try:
                for done in as_completed(waiting):
                    done.result()
                    advance()
            except BaseException:  # Ctrl-C or a failing learner: do not start what has not begun
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _uniform_regret(self, environment: Environment) -> Floats:
        """Return the uniform player's expected regret; against an adaptive adversary, simulated."""
        if environment.comparator != "adaptive":
            totals = environment.arm_totals(self.stops)
            expected: Floats = totals.mean(axis=1) - totals.min(axis=1)
            return expected
        recipe = Recipe(Uniform(environment.arms), PlainRelease())
        few = self._replace(runs=range(UNIFORM_RUNS))
        player = partial(play_run, recipe, environment, self.stops, self.seed)
        runs = few._all_runs(player, lambda: None)
        best = best_arm(environment, self.stops, runs)
        mean: Floats = policy_runs(runs, best, self.stops, recipe).regret.mean(axis=0)
        return mean

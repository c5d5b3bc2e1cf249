"""Many runs of many policies, spread over the cores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna.environments import Chunk, Environment, ExpertEnvironment, as_environment
from bandanna.learners import Uniform
from bandanna.policy import Policy, Recipe, Segments
from bandanna.privacy import PlainRelease
from bandanna.simulation.arguments import (
    Policies,
    by_name,
    by_segment,
    check_fit,
    check_size,
    checkpoint_rounds,
    common_range,
    misfits,
    seconds_of,
)
from bandanna.simulation.comparators import Comparators, best_arm, best_of_segments, single_best
from bandanna.simulation.engine import ExpertRun, Run, play_run
from bandanna.simulation.online import (
    beyond,
    check_metrics_used,
    known_before,
    metric_worlds,
    play_online,
    plays_online,
)
from bandanna.simulation.progress import Progress
from bandanna.simulation.results import Results, SegmentResults, policy_runs

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
    arms, rounds = environment.arms, environment.rounds
    known = known_before(named, before, rounds)
    worlds = {
        name: metric_worlds(name, policy, metrics or {}, arms, rounds)
        for name, policy in named.items()
        if plays_online(policy)
    }
    check_metrics_used(metrics or {}, named.values())
    experts: Comparators | None = None
    chunks: Iterable[Chunk | None] = [None]
    if isinstance(environment, ExpertEnvironment):
        experts = Comparators(environment, stops)
        chunks = experts.through(environment)

    def player(name: str, run: int) -> ExpertRun | _WholeRun:
        if isinstance(environment, ExpertEnvironment):
            return ExpertRun(recipes[name], environment.experts, arms, stops, seed, run)
        if name not in worlds:
            return _WholeRun(partial(play_run, recipes[name], environment, stops, seed, run))
        told = environment, worlds[name], stops, seed, run, known
        return _WholeRun(partial(play_online, named[name], *told))

    numbers = range(first, first + runs)
    players = {name: [player(name, run) for run in numbers] for name in named}
    cost = {name: seconds_of([policy], rounds) for name, policy in named.items()}
    played = _play_all(players, chunks, cost, rounds, threads, progress)
    if isinstance(environment, ExpertEnvironment):
        assert experts is not None
        best = dict.fromkeys(named, np.array(experts.best_expert))
        uniform, followed = np.array(experts.mean_expert) - experts.best_expert, experts.followed
    else:
        best = {name: best_arm(environment, stops, one) for name, one in played.items()}
        uniform = _uniform_regret(environment, stops, seed, threads)
        followed = best_of_segments(environment, stops)
    span, edges, high = environment.span, environment.edges, environment.loss_range[1]
    fixed = next(iter(best.values()))
    return Results(
        runs={
            name: policy_runs(
                one,
                best[name],
                stops,
                recipes[name],
                span,
                high,
                beyond(named[name], worlds[name]) if named[name].spec.guardrails else None,
            )
            for name, one in played.items()
        },
        rounds=rounds,
        stops=stops,
        comparator=environment.comparator,
        uniform_regret=uniform * span,
        best_arm=single_best(environment),
        best_expert=None if experts is None else experts.best,
        best_reward=high - span * float(np.mean(fixed[..., -1])) / rounds,
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
    for policy in policies.values():
        if any(isinstance(name, str) for name in policy.expert_names):
            return tuple(map(str, policy.expert_names))
    return ()


class _WholeRun:
    """A run without experts, played in one go."""

    result: Run

    def __init__(self, run: Callable[[], Run]) -> None:
        self._run = run

    def play(self, chunk: object) -> None:
        """Play it."""
        self.result = self._run()


def _play_all(
    players: Mapping[str, Sequence[ExpertRun | _WholeRun]],
    chunks: Iterable[Any],
    seconds: Mapping[str, float],
    rounds: int,
    threads: int,
    progress: bool | None,
) -> dict[str, list[Run]]:
    """Play every run of every policy, through the same chunks; without advice there is but one.

    Compiled runs leave the interpreter, so threads use all cores.
    """
    first = [(group[0], seconds[name]) for name, group in players.items()]  # they compile
    waiting = [(run, seconds[name]) for name, group in players.items() for run in group[1:]]
    work = sum(cost for _, cost in first + waiting)
    with Progress(work, show=progress) as bar:
        for chunk in chunks:
            share = 1.0 if chunk is None else len(chunk.losses) / rounds
            for run, cost in first:
                run.play(chunk)
                bar.advance(cost * share)
            with ThreadPoolExecutor(threads) as pool:
                playing = {pool.submit(run.play, chunk): cost for run, cost in waiting}
                try:
                    for done in as_completed(playing):
                        done.result()
                        bar.advance(playing[done] * share)
                except BaseException:  # Ctrl-C or a failing learner: start nothing more
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
            first, waiting = [], first + waiting
    return {name: [run.result for run in group] for name, group in players.items()}


def _uniform_regret(
    environment: Environment, stops: NDArray[np.int64], seed: int, threads: int
) -> Floats:
    """Return the uniform player's expected regret; against an adaptive adversary, simulated."""
    if environment.comparator != "adaptive":
        totals = environment.arm_totals(stops)
        expected: Floats = totals.mean(axis=1) - totals.min(axis=1)
        return expected
    recipe = Recipe(Uniform(environment.arms), PlainRelease())
    play = partial(play_run, recipe, environment, stops, seed)
    players = {"uniform": [_WholeRun(partial(play, run)) for run in range(UNIFORM_RUNS)]}
    runs = _play_all(players, [None], {"uniform": 0.0}, 0, threads, progress=False)["uniform"]
    best = best_arm(environment, stops, runs)
    mean: Floats = policy_runs(runs, best, stops, recipe).regret.mean(axis=0)
    return mean

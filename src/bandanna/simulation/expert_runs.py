"""Many runs of policies with expert advice."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from bandanna.environments import ExpertEnvironment
from bandanna.environments.expert_base import Chunk, add_expert_losses
from bandanna.grid import UNITS
from bandanna.policies import BatchedExperts
from bandanna.simulation.expert_engine import ExpertRun
from bandanna.simulation.progress import Progress
from bandanna.simulation.results import Results, policy_runs
from bandanna.types import InputError

Floats = NDArray[np.float64]


class Comparators:
    """What every expert and every arm would have lost, before each checkpoint."""

    def __init__(self, environment: ExpertEnvironment, stops: NDArray[np.int64]) -> None:
        self._stops = stops
        self._experts, self._arms = np.zeros(environment.experts), np.zeros(environment.arms)
        self.best_expert: list[float] = []
        self.mean_arm: list[float] = []

    def add(self, chunk: Chunk) -> None:
        """Go on by a chunk."""
        low, end = 0, chunk.losses.shape[0]
        losses = np.ascontiguousarray(chunk.losses)
        inside = self._stops[(self._stops > chunk.start) & (self._stops <= chunk.start + end)]
        for stop in (int(stop) - chunk.start for stop in inside):
            add_expert_losses(losses, chunk.advice, low, stop, self._experts, self._arms)
            self.best_expert.append(float(self._experts.min()) / UNITS)
            self.mean_arm.append(float(self._arms.mean()) / UNITS)
            low = stop
        add_expert_losses(losses, chunk.advice, low, end, self._experts, self._arms)

    @property
    def best(self) -> int:
        """The expert with the smallest loss so far."""
        return int(self._experts.argmin())


def best_expert(environment: ExpertEnvironment) -> int:
    """Return the expert who is best in hindsight."""
    found = Comparators(environment, np.array([environment.rounds]))
    for chunk in environment.chunks():
        found.add(chunk)
    return found.best


def simulate_experts(
    named: Mapping[str, BatchedExperts],
    environment: ExpertEnvironment,
    stops: NDArray[np.int64],
    *,
    runs: int,
    seed: int,
    threads: int,
    progress: bool | None,
) -> Results:
    """Play every run of every policy through the same chunks."""
    for name, policy in named.items():
        sizes = (policy.experts, len(policy.arms))
        if sizes != (environment.experts, environment.arms):
            raise InputError(
                f"policy {name!r} has {sizes[0]} experts and {sizes[1]} arms; the problem has "
                f"{environment.experts} and {environment.arms}."
            )
    arms = environment.arms
    played = {
        name: [ExpertRun(policy.recipe, arms, stops, seed, run) for run in range(runs)]
        for name, policy in named.items()
    }
    every = [run for group in played.values() for run in group]
    comparators = Comparators(environment, stops)
    count = -(-environment.rounds // environment.chunk_rounds)
    with Progress(count * len(every), show=progress) as bar, ThreadPoolExecutor(threads) as pool:
        for number, chunk in enumerate(environment.chunks()):
            comparators.add(chunk)
            if number == 0:  # one of each first: it compiles
                for group in played.values():
                    group[0].play(chunk)
            rest = [run for group in played.values() for run in group[number == 0 :]]
            for _ in pool.map(lambda run, part=chunk: run.play(part), rest):
                bar.advance()
            for _ in range(len(every) - len(rest)):
                bar.advance()
    best = np.array(comparators.best_expert)
    return Results(
        runs={
            name: policy_runs([run.result for run in group], best, stops, named[name].batch)
            for name, group in played.items()
        },
        rounds=environment.rounds,
        stops=stops,
        comparator="experts",
        uniform_regret=np.array(comparators.mean_arm) - best,
    )

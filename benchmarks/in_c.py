"""Learners against the same loops in C, in one process: prints seconds a round as JSON.

EXP3's time depends on the process: for all of its life, it is up to a fifth slower in about one
process of three, by where its arrays and its compiled code happen to lie in memory. So the
benchmark asks several processes, and promises what the slowest of them keeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np

from bandanna._core.streams import new_stream
from bandanna.environments import LossTable
from bandanna.learners import CompiledLearner, Exp3, Htinf, TsallisInf
from bandanna.policy import Recipe
from bandanna.privacy import PlainRelease
from bandanna.simulation.engine import play_run
from benchmarks import alternatives, baseline
from benchmarks.timing import seconds

ARMS, ROUNDS = 10, 100_000
PROMISES = {"EXP3": 0.65, "Tsallis-INF": 0.7, "HTINF": 0.7}


def table(arms: int, rounds: int) -> LossTable:
    """Losses that are neither trivial nor hopeless."""
    means = np.where(np.arange(arms) == 0, 0.3, 0.6)
    return LossTable(np.random.default_rng(0).random((rounds, arms)) * 0.4 + means - 0.2)


def runner(learner: CompiledLearner, environment: LossTable) -> Callable[[], object]:
    """One run of the engine without privacy."""
    recipe = Recipe(learner, PlainRelease())
    stops = np.array([environment.rounds])
    return lambda: play_run(recipe, environment, stops, 0, 0)


def measure() -> dict[str, tuple[float, float]]:
    """Return seconds a round, in C and here, for each learner."""
    environments = [table(ARMS, ROUNDS) for _ in range(5)]
    library = baseline.compile_baseline(*baseline.FAST)
    rate, mixing = alternatives.exp3_parameters(ARMS, ROUNDS)
    contests = {
        "EXP3": (Exp3(ARMS, rate, mixing), "exp3", (rate, mixing)),
        "Tsallis-INF": (TsallisInf(ARMS), "tsallis_inf", ()),
        "HTINF": (Htinf(ARMS, sigma=1.0), "htinf", (1.0,)),
    }
    found = {}
    for name, (learner, function, numbers) in contests.items():
        pairs = []
        # Alternate, so that both see the same moods of the machine.
        for environment in environments * 3:
            prefix = environment.params().prefix
            in_c = partial(baseline.call, library, function, prefix, new_stream(0), *numbers)
            pairs.append((seconds(in_c, 3), seconds(runner(learner, environment), 3)))
        theirs, ours = (min(times) / ROUNDS for times in zip(*pairs, strict=True))
        found[name] = theirs, ours
    return found


if __name__ == "__main__":
    print(json.dumps(measure()))

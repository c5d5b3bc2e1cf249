"""The engine: one run of a policy against an environment, compiled.

It inlines the same steps that the online object calls, in the same order and on the same streams,
so both make the same decisions bit for bit. It visits batches, not rounds: an environment gives
the sum of an arm's losses over an interval in one step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.compiled import kernel, python_source
from bandanna.environments import Environment
from bandanna.environments.steps import realised, sum_losses
from bandanna.learners import CompiledLearner
from bandanna.learners.base import aligned_zeros
from bandanna.learners.steps import draw, update
from bandanna.policies import Recipe
from bandanna.privacy.release import FastRelease, noisy_value
from bandanna.streams import Stream

Integers = NDArray[np.int64]

ARMS, RELEASES, LOSSES = 0, 1, 2
"""Roles of a run's three streams."""


class Run(NamedTuple):
    """What one run leaves behind, in grid units where it is losses."""

    losses: Integers
    """The player's total loss before each checkpoint."""
    plays: Integers
    """How many rounds each arm was played."""
    realised: Integers
    """Every arm's total loss before each checkpoint; zeros unless the adversary adapts."""
    played: Integers
    """How many rounds each arm was played before each checkpoint."""


def run_streams(seed: int, run: int) -> tuple[Stream, Stream, Stream]:
    """Return the streams of one run: for arms, for releases and for losses.

    They depend on the seed and the run alone, not on who computes it or in what order. Policies
    share them run by run, so that random losses are the same for all: a paired comparison.
    """
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(run,))
    words = sequence.generate_state(12, np.uint64).astype(np.uint64)
    arms, releases, losses = (block.view(np.uint64) for block in aligned_zeros(4, 4, 4))
    arms[:], releases[:], losses[:] = words[0:4], words[4:8], words[8:12]
    return arms, releases, losses


def play_run(recipe: Recipe, environment: Environment, stops: Integers, seed: int, run: int) -> Run:
    """Play a policy once: compiled, or in Python when its learner is another library's."""
    streams = run_streams(seed, run)
    learner = recipe.learner
    loop: Any = play
    params: Any
    state: Any = None
    if isinstance(learner, CompiledLearner):
        params, state = learner.params(), learner.start()
    else:
        loop, params = python_source(play), learner.play(streams[ARMS])
    result = empty_run(environment.arms, stops)
    loop(
        params,
        state,
        recipe.release.fast(),
        environment.params(),
        environment.memory(),
        recipe.batch,
        streams,
        stops,
        result,
    )
    return result


def empty_run(arms: int, stops: Integers) -> Run:
    """Return room for the results of a run."""
    return Run(
        losses=np.zeros(stops.size, dtype=np.int64),
        plays=np.zeros(arms, dtype=np.int64),
        realised=np.zeros((stops.size, arms), dtype=np.int64),
        played=np.zeros((stops.size, arms), dtype=np.int64),
    )


@kernel
def play(
    params: Any,
    state: Any,
    release: FastRelease,
    environment: Any,
    memory: Integers,
    batch: int,
    streams: tuple[Stream, Stream, Stream],
    stops: Integers,
    result: Run,
) -> None:
    """Play until the last checkpoint; the paper's Algorithm 1.

    Checkpoints cut a batch's interval where they fall inside it. A last batch that is not full
    is played and not released.
    """
    rounds = stops[-1]
    total = 0
    start = 0
    checkpoint = 0
    while start < rounds:
        arm, importance = draw(params, state, streams[ARMS])
        stop = min(start + batch, rounds)
        before = total
        position = start
        while checkpoint < stops.size and stops[checkpoint] <= stop:
            total += sum_losses(
                environment, memory, arm, position, stops[checkpoint], streams[LOSSES]
            )
            position = stops[checkpoint]
            result.losses[checkpoint] = total
            realised(environment, memory, result.realised[checkpoint])
            for each in range(result.plays.size):
                result.played[checkpoint, each] = result.plays[each]
            result.played[checkpoint, arm] += position - start
            checkpoint += 1
        if position < stop:
            total += sum_losses(environment, memory, arm, position, stop, streams[LOSSES])
        result.plays[arm] += stop - start
        if stop - start == batch:
            value = noisy_value(release, total - before, streams[RELEASES])
            update(params, state, arm, importance, value)
        start = stop

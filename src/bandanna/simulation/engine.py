"""The engine: one run of a policy against an environment, compiled.

It inlines the same steps that the online object calls, in the same order and on the same streams,
so both make the same decisions bit for bit. There are three kernels. Where an arm is played through
a batch, ``play_batches`` visits batches, not rounds: an environment gives the sum of an arm's
losses over an interval in one step. Where experts advise, ``play_rounds`` goes round by round, and
so does ``play_phases`` for learners that play phases, with one release for each arm.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice
from bandanna._core.compiled import kernel, python_source, step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna.counted import HALF
from bandanna.environments import Chunk, Environment
from bandanna.environments.base import realised, sum_losses
from bandanna.learners import Compiled, PhaseLearner
from bandanna.learners.base import Report, aligned_zeros
from bandanna.learners.steps import draw_round, learn_phase, open_phase
from bandanna.policy.parts import Recipe
from bandanna.policy.runner import (
    NO_ADVICE,
    Credit,
    Play,
    choose,
    learn,
    open_batch,
    start_play,
)
from bandanna.privacy.release import Memory, clear, count, publish, publish_batch
from bandanna.privacy.sums import SumRelease

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Streams = tuple[Stream, Stream, Stream]

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
    published: NDArray[np.float64]
    """What was published of each arm's batches, times their rounds, and those rounds; shape
    (2, arms). Zeros with experts."""
    report: Report | None = None
    """What the learner says of itself at the end, where it says anything."""
    retired: Integers | None = None
    """After how many rounds a guardrail retired each arm, and -1 where none did; None where
    guardrails were not looked after."""

    @property
    def answer(self) -> tuple[int, int]:
        """The arm that a race named as the best, and after how many rounds.

        Both are -1 where it named none, and -2 where there was no race.
        """
        race = None if self.report is None else self.report.race
        if race is None:
            return -2, -2
        return (-1, -1) if race.winner is None else (race.winner, race.rounds)


def run_streams(seed: int, run: int) -> Streams:
    """Return the streams of one run: for arms, for releases and for losses.

    They depend on the seed and the run alone, not on who computes it or in what order. Policies
    share them run by run, so that random losses are the same for all: a paired comparison.
    """
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(run,))
    words = sequence.generate_state(12, np.uint64).astype(np.uint64)
    arms, releases, losses = (block.view(np.uint64) for block in aligned_zeros(4, 4, 4))
    arms[:], releases[:], losses[:] = words[0:4], words[4:8], words[8:12]
    return arms, releases, losses


def empty_run(arms: int, stops: Integers) -> Run:
    """Return empty arrays for the results of a run."""
    return Run(
        losses=np.zeros(stops.size, dtype=np.int64),
        plays=np.zeros(arms, dtype=np.int64),
        realised=np.zeros((stops.size, arms), dtype=np.int64),
        played=np.zeros((stops.size, arms), dtype=np.int64),
        published=np.zeros((2, arms)),
    )


def play_run(recipe: Recipe, environment: Environment, stops: Integers, seed: int, run: int) -> Run:
    """Play a policy once: compiled, or in Python when its learner is another library's."""
    streams = run_streams(seed, run)
    result = empty_run(environment.arms, stops)
    loop = play_batches if isinstance(recipe.learner, Compiled) else python_source(play_batches)
    play = start_play(recipe, None, streams[ARMS])
    around = recipe.release.fast(), environment.params(), environment.memory()
    squares = isinstance(recipe.release, SumRelease) and recipe.release.squares
    if isinstance(recipe.learner, PhaseLearner):
        learner, phase = recipe.learner, open_sums(environment.arms)
        state = cast(NamedTuple, play.state)
        play_phases(learner.params(), state, *around, streams, stops, result, phase, squares)
    else:
        loop(play, *around, recipe.batch, streams, stops, result, np.zeros(int(squares)))
    return note(recipe, play, result)


def note(recipe: Recipe, play: Play, result: Run) -> Run:
    """Add what the learner says of itself at the end of a run."""
    if isinstance(recipe.learner, Compiled) and play.state is not None:
        return result._replace(report=recipe.learner.report(play.state))
    return result


@step
def _played(
    environment: NamedTuple,
    memory: Integers,
    arm: int,
    start: int,
    stop: int,
    squares: bool,
    stream: Stream,
) -> tuple[int, int]:
    """Return what an arm's losses in an interval add up to, and their squares if asked for."""
    if not squares:
        return sum_losses(environment, memory, arm, start, stop, stream), 0
    total, squared = 0, 0
    for now in range(start, stop):
        loss = sum_losses(environment, memory, arm, now, now + 1, stream)
        total += loss
        squared += (loss - HALF) ** 2 // UNITS
    return total, squared


@kernel
def play_batches(
    play: Play,
    release: NamedTuple,
    environment: NamedTuple,
    memory: Integers,
    batch: int,
    streams: Streams,
    stops: Integers,
    result: Run,
    beside: NDArray[np.float64],
) -> None:
    """Play until the last checkpoint; the paper's Algorithm 1.

    Checkpoints cut a batch's interval where they fall inside it. A last batch that is not full
    is played and not released. Where squares are released too, there is room for them in
    ``beside``, and losses are met one by one.
    """
    rounds = stops[-1]
    total = 0
    squared = 0
    squares = beside.size > 0
    start = 0
    checkpoint = 0
    while start < rounds:
        arm, importance, size = open_batch(play, streams[ARMS])
        if size == 0:
            size = batch
        stop = min(start + size, rounds)
        before = total
        position = start
        squared = 0
        while position < stop:
            until = min(stop, stops[checkpoint])
            more, spread = _played(
                environment, memory, arm, position, until, squares, streams[LOSSES]
            )
            total += more
            squared += spread
            position = until
            if position == stops[checkpoint]:
                result.losses[checkpoint] = total
                realised(environment, memory, result.realised[checkpoint])
                for each in range(result.plays.size):
                    result.played[checkpoint, each] = result.plays[each]
                result.played[checkpoint, arm] += position - start
                checkpoint += 1
        result.plays[arm] += stop - start
        if stop - start == size:
            value = publish(release, total - before, size, streams[RELEASES])
            result.published[0, arm] += size * value
            result.published[1, arm] += size
            if squares:
                beside[0] = publish(release, squared, size, streams[RELEASES])
            learn(play, Credit(arm, importance, NO_ADVICE, arm, 1.0, value, beside, size))
        start = stop


POSITION, TOTAL, CHECKPOINT, CHOICE, SIZE = range(5)


@kernel
def play_rounds(
    play: Play,
    release: NamedTuple,
    memory: Memory,
    batch: int,
    losses: Integers,
    advice: Advice,
    streams: Streams,
    stops: Integers,
    result: Run,
    progress: Integers,
    drawn: NDArray[np.float64],
    start: int,
) -> None:
    """Play a chunk of rounds; ``progress`` and ``drawn`` hold where it stopped."""
    position, total, checkpoint = progress[POSITION], progress[TOTAL], progress[CHECKPOINT]
    choice, weight, size = progress[CHOICE], drawn[0], progress[SIZE]
    next_stop = stops[checkpoint] - start
    for t in range(losses.shape[0]):
        if position == 0:
            choice, weight, size = open_batch(play, streams[ARMS])
            if size == 0:
                size = batch
            clear(memory)
        said = advice[t]
        arm, importance = choose(play, choice, said, streams[ARMS])
        loss = losses[t, arm]
        total += loss
        result.plays[arm] += 1
        count(memory, release, said, arm, importance, loss)
        position += 1
        if position == size:
            value = publish_batch(memory, release, size, streams[RELEASES])
            told = memory.estimates
            learn(play, Credit(choice, weight, said, arm, importance, value, told, size))
            position = 0
        if t + 1 == next_stop:
            result.losses[checkpoint] = total
            for each in range(result.plays.size):
                result.played[checkpoint, each] = result.plays[each]
            checkpoint += 1
            next_stop = stops[min(checkpoint, stops.size - 1)] - start
    progress[POSITION], progress[TOTAL], progress[CHECKPOINT] = position, total, checkpoint
    progress[CHOICE], drawn[0], progress[SIZE] = choice, weight, size


class ExpertRun:
    """One run of one policy with experts, chunk by chunk.

    A run keeps its position between chunks, so a chunk of losses and advice is made once and played
    by every run of every policy.
    """

    def __init__(
        self, recipe: Recipe, experts: int, arms: int, stops: Integers, seed: int, run: int
    ) -> None:
        self._streams = run_streams(seed, run)
        self._play = start_play(recipe, experts, self._streams[ARMS])
        compiled = isinstance(recipe.learner, Compiled)
        self._loop = play_rounds if compiled else python_source(play_rounds)
        self._release = recipe.release.fast(), recipe.release.memory(), recipe.batch
        self._progress = np.zeros(5, dtype=np.int64), np.ones(1)
        self._stops = stops
        self._recipe = recipe
        self._result = empty_run(arms, stops)

    @property
    def result(self) -> Run:
        """What it leaves behind so far."""
        return note(self._recipe, self._play, self._result)

    def play(self, chunk: Chunk) -> None:
        """Go on by a chunk."""
        self._loop(
            self._play,
            *self._release,
            np.ascontiguousarray(chunk.losses),
            chunk.advice,
            self._streams,
            self._stops,
            self._result,
            *self._progress,
            chunk.start,
        )


class PhaseSums(NamedTuple):
    """The open phase: rounds and losses of each arm so far, and what is released in the end."""

    counts: Floats
    totals: Integers
    values: Floats
    squared: Integers
    squares: Floats


def open_sums(arms: int) -> PhaseSums:
    """Return empty arrays for a phase."""
    whole = np.zeros((2, arms), dtype=np.int64)
    return PhaseSums(np.zeros(arms), whole[0], np.zeros(arms), whole[1], np.full(arms, np.nan))


@kernel
def play_phases(
    params: NamedTuple,
    state: NamedTuple,
    release: NamedTuple,
    environment: NamedTuple,
    memory: Integers,
    streams: tuple[Stream, Stream, Stream],
    stops: Integers,
    result: Run,
    phase: PhaseSums,
    squares: bool,
) -> None:
    """Play until the last checkpoint. A last phase that is not full is not released."""
    counts, totals, values, squared, released = phase
    arms = counts.size
    rounds = stops[-1]
    total = 0
    t = 0
    checkpoint = 0
    while t < rounds:
        size, memo = open_phase(params, state, streams[ARMS])
        for i in range(arms):
            counts[i] = 0.0
            totals[i] = 0
            squared[i] = 0
        end = t + size
        while t < end and t < rounds:
            until = min(end, stops[checkpoint])
            for now in range(t, until):
                arm, _ = draw_round(params, state, streams[ARMS])
                loss = sum_losses(environment, memory, arm, now, now + 1, streams[LOSSES])
                totals[arm] += loss
                squared[arm] += (loss - HALF) ** 2 // UNITS
                counts[arm] += 1.0
                total += loss
            t = until
            if t == stops[checkpoint]:
                result.losses[checkpoint] = total
                realised(environment, memory, result.realised[checkpoint])
                for i in range(arms):
                    result.played[checkpoint, i] = result.plays[i] + int(counts[i])
                checkpoint += 1
        for i in range(arms):
            result.plays[i] += int(counts[i])
        if t == end:
            for i in range(arms):
                values[i] = 0.0
                if counts[i] > 0.0:
                    values[i] = publish(release, totals[i], int(counts[i]), streams[RELEASES])
                    result.published[0, i] += counts[i] * values[i]
                    result.published[1, i] += counts[i]
            for i in range(arms):
                if squares and counts[i] > 0.0:
                    released[i] = publish(release, squared[i], int(counts[i]), streams[RELEASES])
            learn_phase(params, state, memo, counts, values, released)

"""The engine for policies with expert advice: rounds go by in chunks, compiled.

The same steps as online, in the same order and on the same streams. A run keeps its place between
chunks, so a chunk of losses and advice is made once and played by every run of every policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.advice import Advice
from bandanna.compiled import dispatches, kernel, python_source, step
from bandanna.environments.expert_base import Chunk
from bandanna.learners import CompiledLearner, Exp4
from bandanna.learners.exp4 import advised_arm, exp4_choose, exp4_learn, exp4_learn_all
from bandanna.learners.steps import draw, update
from bandanna.policies import ExpertRecipe
from bandanna.privacy import Release, VectorRelease
from bandanna.privacy.release import FastRelease, noisy_value
from bandanna.privacy.vector import FastVector, add_round, noisy_vector
from bandanna.simulation.engine import ARMS, RELEASES, Run, empty_run, run_streams
from bandanna.streams import Stream

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Following(NamedTuple):
    """An expert is drawn for a batch and followed."""

    params: Any
    state: Any
    release: FastRelease
    drawn: Floats
    """The expert and the importance of its draw."""
    total: Integers
    """Sum of the batch's losses."""


class Weighing(NamedTuple):
    """EXP4 on single losses."""

    params: Any
    state: Any
    release: FastRelease


class WeighingBatches(NamedTuple):
    """EXP4 on batches."""

    params: Any
    state: Any
    release: FastVector
    sums: Integers
    scale: Floats
    estimates: Floats


class Steps(NamedTuple):
    """What happens when a batch opens, when an arm is chosen, after a round, after a batch."""

    open_batch: Callable[[Any, Stream], None]
    choose: Callable[[Any, Advice, Stream], tuple[int, float]]
    after_round: Callable[[Any, Advice, int, float, int, Stream], None]
    after_batch: Callable[[Any, Stream], None]


@step
def _nothing(play: Any, stream: Stream) -> None:
    """Do nothing."""


@step
def _draw_expert(play: Following, stream: Stream) -> None:
    expert, importance = draw(play.params, play.state, stream)
    play.drawn[0] = expert
    play.drawn[1] = importance
    play.total[0] = 0


@step
def _follow(play: Following, advice: Advice, stream: Stream) -> tuple[int, float]:
    return advised_arm(advice, int(play.drawn[0]), stream), 1.0


@step
def _sum_loss(
    play: Following, advice: Advice, arm: int, importance: float, loss: int, stream: Stream
) -> None:
    play.total[0] += loss


@step
def _credit_expert(play: Following, stream: Stream) -> None:
    value = noisy_value(play.release, play.total[0], stream)
    update(play.params, play.state, int(play.drawn[0]), play.drawn[1], value)


@step
def _weigh(play: Any, advice: Advice, stream: Stream) -> tuple[int, float]:
    return exp4_choose(play.params, play.state, advice, stream)


@step
def _credit_experts(
    play: Weighing, advice: Advice, arm: int, importance: float, loss: int, stream: Stream
) -> None:
    estimate = noisy_value(play.release, loss, stream) * importance
    exp4_learn(play.params, play.state, advice, arm, estimate)


@step
def _empty_sums(play: WeighingBatches, stream: Stream) -> None:
    for j in range(play.sums.size):
        play.sums[j] = 0
    play.scale[0] = 0.0


@step
def _add_to_sums(
    play: WeighingBatches, advice: Advice, arm: int, importance: float, loss: int, stream: Stream
) -> None:
    scale = add_round(play.release, play.sums, advice, arm, importance, loss)
    play.scale[0] = max(play.scale[0], scale)


@step
def _release_sums(play: WeighingBatches, stream: Stream) -> None:
    noisy_vector(play.release, play.sums, play.scale[0], stream, play.estimates)
    exp4_learn_all(play.params, play.state, play.estimates)


_STEPS = {
    Following: Steps(_draw_expert, _follow, _sum_loss, _credit_expert),
    Weighing: Steps(_nothing, _weigh, _credit_experts, _nothing),
    WeighingBatches: Steps(_empty_sums, _weigh, _add_to_sums, _release_sums),
}


def open_batch(play: Any, stream: Stream) -> None:
    """Begin a batch."""
    python_source(_STEPS[type(play)].open_batch)(play, stream)


def choose(play: Any, advice: Advice, stream: Stream) -> tuple[int, float]:
    """Choose an arm."""
    return python_source(_STEPS[type(play)].choose)(play, advice, stream)


def after_round(
    play: Any, advice: Advice, arm: int, importance: float, loss: int, stream: Stream
) -> None:
    """Take a loss into account."""
    steps = _STEPS[type(play)]
    python_source(steps.after_round)(play, advice, arm, importance, loss, stream)


def after_batch(play: Any, stream: Stream) -> None:
    """Release a full batch and learn."""
    python_source(_STEPS[type(play)].after_batch)(play, stream)


@dispatches(open_batch)
def _open_overload(play: Any, stream: Any) -> Any:
    return python_source(_STEPS[play.instance_class].open_batch)


@dispatches(choose)
def _choose_overload(play: Any, advice: Any, stream: Any) -> Any:
    return python_source(_STEPS[play.instance_class].choose)


@dispatches(after_round)
def _round_overload(
    play: Any, advice: Any, arm: Any, importance: Any, loss: Any, stream: Any
) -> Any:
    return python_source(_STEPS[play.instance_class].after_round)


@dispatches(after_batch)
def _batch_overload(play: Any, stream: Any) -> Any:
    return python_source(_STEPS[play.instance_class].after_batch)


PLACE, TOTAL, CHECKPOINT = 0, 1, 2


@kernel
def play_chunk(
    play: Any,
    batch: int,
    losses: Integers,
    advice: Advice,
    streams: tuple[Stream, Stream, Stream],
    stops: Integers,
    result: Run,
    progress: Integers,
    start: int,
) -> None:
    """Play a chunk of rounds; ``progress`` holds the place in the batch and sums so far."""
    place, total, checkpoint = progress[PLACE], progress[TOTAL], progress[CHECKPOINT]
    next_stop = stops[checkpoint] - start
    for t in range(losses.shape[0]):
        if place == 0:
            open_batch(play, streams[ARMS])
        said = advice[t]
        arm, importance = choose(play, said, streams[ARMS])
        loss = losses[t, arm]
        total += loss
        result.plays[arm] += 1
        after_round(play, said, arm, importance, loss, streams[RELEASES])
        place += 1
        if place == batch:
            after_batch(play, streams[RELEASES])
            place = 0
        if t + 1 == next_stop:
            result.losses[checkpoint] = total
            for each in range(result.plays.size):
                result.played[checkpoint, each] = result.plays[each]
            checkpoint += 1
            next_stop = stops[min(checkpoint, stops.size - 1)] - start
    progress[PLACE], progress[TOTAL], progress[CHECKPOINT] = place, total, checkpoint


class ExpertRun:
    """One run of one policy, chunk by chunk."""

    def __init__(
        self, recipe: ExpertRecipe, arms: int, stops: Integers, seed: int, run: int
    ) -> None:
        self._streams = run_streams(seed, run)
        self._loop: Any = play_chunk
        self._play = self._start(recipe)
        self._batch = recipe.batch
        self._stops = stops
        self._progress = np.zeros(3, dtype=np.int64)
        self.result = empty_run(arms, stops)

    def _start(self, recipe: ExpertRecipe) -> Any:
        learner, release = recipe
        if isinstance(release, VectorRelease):
            assert isinstance(learner, Exp4)
            sums = np.zeros(learner.experts, dtype=np.int64)
            scratch = np.zeros(1), np.zeros(learner.experts)
            play = learner.params(), learner.start(), release.fast()
            return WeighingBatches(*play, sums, *scratch)
        assert isinstance(release, Release)
        if isinstance(learner, Exp4):
            return Weighing(learner.params(), learner.start(), release.fast())
        memory = np.zeros(2), np.zeros(1, dtype=np.int64)
        if isinstance(learner, CompiledLearner):
            return Following(learner.params(), learner.start(), release.fast(), *memory)
        # Another library's learner plays in Python, through the same steps.
        self._loop = python_source(play_chunk)
        return Following(learner.play(self._streams[ARMS]), None, release.fast(), *memory)

    def play(self, chunk: Chunk) -> None:
        """Go on by a chunk."""
        losses = np.ascontiguousarray(chunk.losses)
        stops, progress = self._stops, self._progress
        where = stops, self.result, progress, chunk.start
        self._loop(self._play, self._batch, losses, chunk.advice, self._streams, *where)

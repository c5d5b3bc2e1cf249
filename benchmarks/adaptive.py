"""A batch of Adaptive against one of Tsallis-INF, by time."""

from __future__ import annotations

from functools import partial

import numpy as np

from bandanna.environments import LossTable
from bandanna.learners import Adaptive, TsallisInf
from bandanna.policy import Recipe
from bandanna.privacy import LaplaceRelease, PlainRelease
from bandanna.simulation.engine import play_run
from benchmarks.in_c import table
from benchmarks.timing import Row, seconds

CELLS, BATCH, MOST = 400_000, 4, 1.5


def against_tsallis_inf() -> list[Row]:
    """Two, ten and a hundred arms; both see the same losses, in the same noisy batches."""
    rows = []
    for arms in (2, 10, 100):
        losses = table(arms, CELLS // arms)
        batches = losses.rounds // BATCH
        learners = Adaptive(arms, batches), TsallisInf(arms)
        private, plain = LaplaceRelease(1.0, BATCH), PlainRelease(BATCH)
        with_noise = [time_a_batch(Recipe(learner, private), losses) for learner in learners]
        alone = [time_a_batch(Recipe(learner, plain), losses) for learner in learners]
        ratio = with_noise[0] / with_noise[1]
        measured = (
            f"{ratio:.2f} times ({with_noise[0]:.0f} against {with_noise[1]:.0f} ns; "
            f"without noise {alone[0]:.0f} against {alone[1]:.0f} ns)"
        )
        what = f"a Laplace batch of adaptive against Tsallis-INF, K = {arms}"
        rows.append(Row(what, measured, f"at most {MOST} times", ratio <= MOST))
    return rows


def time_a_batch(recipe: Recipe, losses: LossTable) -> float:
    """Return nanoseconds."""
    stops = np.array([losses.rounds])
    work = partial(play_run, recipe, losses, stops, 0, 0)
    return 1e9 * seconds(work) / (losses.rounds // BATCH)

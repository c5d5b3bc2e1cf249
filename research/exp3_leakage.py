"""How EXP3 without noise gives itself away (the paper's appendix "Privacy leakage in EXP3").

Fix a sequence of arms. Two neighbouring loss sequences drive EXP3 through different distributions
P_t and P'_t; how much more likely the next arm is under one than the other is the privacy loss of
that round. The importance weights feed the difference back into itself, so it grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import kernel
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import InputError
from bandanna.audits.attack import AuditResult, audit
from bandanna.learners.exp3 import (
    Exp3,
    Exp3Params,
    Exp3State,
    exp3_draw,
    exp3_importance,
    exp3_update,
)
from bandanna.learners.steps import Lesson

Floats = NDArray[np.float64]
Arms = NDArray[np.int64]


@dataclass(frozen=True)
class Leakage:
    """EXP3 along one sequence of arms, on two neighbouring loss sequences."""

    first: Floats
    second: Floats
    """Probability of the second arm before each round, on either sequence."""
    per_round: Floats
    """Privacy loss of each round: the largest log ratio of an arm's two probabilities."""
    along: Floats
    """Log ratio of the probabilities of the arms really played, summed up to each round."""


@kernel
def _follow(
    params: Exp3Params,
    first: Exp3State,
    second: Exp3State,
    losses: Floats,
    neighbour: Floats,
    arms: Arms,
    out: Floats,
) -> None:
    """Drive two copies of EXP3 along the same arms, each on its own losses.

    EXP3 can be chaotic, so the arithmetic must be that of the learner to the last bit: the same
    steps are called.
    """
    total = 0.0
    for t in range(arms.size):
        out[0, t] = 1.0 / exp3_importance(params, first, 1)
        out[1, t] = 1.0 / exp3_importance(params, second, 1)
        worst = 0.0
        for arm in range(losses.shape[1]):
            one = exp3_importance(params, first, arm)
            other = exp3_importance(params, second, arm)
            worst = max(worst, abs(math.log(other / one)))
        played = arms[t]
        one = exp3_importance(params, first, played)
        other = exp3_importance(params, second, played)
        total += math.log(other / one)
        out[2, t] = worst
        out[3, t] = total
        exp3_update(params, first, Lesson(played, one, losses[t, played], 1))
        exp3_update(params, second, Lesson(played, other, neighbour[t, played], 1))


def _plain(learner: Exp3) -> tuple[Exp3Params, Exp3State]:
    """Return the numbers and a fresh state of EXP3 as it is known; centred, it is another."""
    params, state = learner.params(), learner.start()
    if not isinstance(params, Exp3Params) or not isinstance(state, Exp3State):
        raise InputError("this is about EXP3's own estimates; leave out centred=True.")
    return params, state


def exp3_leakage(learner: Exp3, losses: Floats, neighbour: Floats, arms: Arms) -> Leakage:
    """Return EXP3's exact privacy loss along a sequence of arms, round by round.

    Parameters
    ----------
    learner
        EXP3 with its parameters.
    losses, neighbour
        (rounds, arms) tables that differ in one round.
    arms
        The arms played.
    """
    out = np.empty((4, len(arms)))
    _follow(
        *_plain(learner),
        _plain(learner)[1],
        np.ascontiguousarray(losses, dtype=np.float64),
        np.ascontiguousarray(neighbour, dtype=np.float64),
        np.ascontiguousarray(arms, dtype=np.int64),
        out,
    )
    return Leakage(*out)


def paper_construction(rounds: int) -> tuple[Floats, Floats, Arms]:
    """Return the paper's two loss sequences and its alternating arms, starting with the second."""
    neighbour = np.ones((rounds, 2))
    losses = neighbour.copy()
    losses[0, 1] = 0.0
    arms = (np.arange(rounds) + 1) % 2
    return losses, neighbour, arms


@kernel
def _play(params: Exp3Params, state: Exp3State, losses: Floats, stream: Stream, arms: Arms) -> None:
    for t in range(arms.size):
        arm, importance = exp3_draw(params, state, stream)
        arms[t] = arm
        exp3_update(params, state, Lesson(arm, importance, losses[t, arm], 1))


def sample_arms(learner: Exp3, losses: Floats, seed: int | list[int]) -> Arms:
    """Return the arms EXP3 plays in one run."""
    arms = np.empty(len(losses), dtype=np.int64)
    _play(*_plain(learner), losses, new_stream(seed), arms)
    return arms


def action_evidence(
    learner: Exp3, losses: Floats, neighbour: Floats, *, played_on: Floats, runs: int, seed: int
) -> Floats:
    """Return how strongly each run's arms speak for ``losses`` against ``neighbour``.

    The exact log likelihood ratio of the whole sequence of arms, which is the best evidence there
    is: give it to ``audit`` to attack a policy that adds no noise.
    """
    evidence = np.empty(runs)
    for run in range(runs):
        arms = sample_arms(learner, played_on, [seed, run])
        evidence[run] = exp3_leakage(learner, losses, neighbour, arms).along[-1]
    return evidence


def audit_actions(
    learner: Exp3,
    losses: Floats,
    neighbour: Floats,
    claimed_epsilon: float,
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> AuditResult:
    """Attack EXP3 without noise through nothing but the arms it plays.

    Runs on two neighbouring loss sequences and judges by the exact likelihood ratio of whole
    sequences of arms.
    """

    def evidence(played_on: Floats, role: int) -> Callable[[int], Floats]:
        return lambda runs: action_evidence(
            learner, losses, neighbour, played_on=played_on, runs=runs, seed=2 * seed + role
        )

    return audit(evidence(losses, 0), evidence(neighbour, 1), claimed_epsilon, draws=draws)


def search_worse(
    learner: Exp3, rounds: int, *, tries: int = 200, seed: int = 0
) -> tuple[float, Floats, Floats, Arms]:
    """Look for neighbours and arms with a larger total privacy loss than the paper's, two arms.

    Random local search from the paper's construction, in which the first round differs: change
    the arms or the losses of a stretch of later rounds, and keep what is worse for privacy.
    Returns the total loss along the arms and the three sequences.
    """
    checks.whole("rounds", rounds, at_least=2)
    rng = np.random.default_rng(seed)
    losses, neighbour, arms = paper_construction(rounds)
    best = abs(exp3_leakage(learner, losses, neighbour, arms).along[-1])
    for _ in range(tries):
        candidate = (losses.copy(), neighbour.copy(), arms.copy())
        start = int(rng.integers(rounds))
        stop = min(rounds, start + 1 + int(rng.geometric(min(1.0, 4.0 / rounds))))
        change = rng.integers(3)
        if change == 0:
            candidate[2][start:stop] = rng.integers(2)
        elif change == 1:
            candidate[2][start:stop] = rng.integers(0, 2, stop - start)
        else:
            same = rng.integers(0, 2, 2).astype(float)
            first = 1 + start if start + 1 < rounds else start
            candidate[0][first:stop] = candidate[1][first:stop] = same
        total = abs(exp3_leakage(learner, *candidate).along[-1])
        if total > best:
            best, (losses, neighbour, arms) = total, candidate
    return best, losses, neighbour, arms

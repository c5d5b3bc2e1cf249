"""Coverage of answers: how often anything that ``answer`` and ``compare`` say is wrong.

Every run is looked at after each release. A run is wrong if at any look an arm's mean is outside
its interval, a pair is put in the wrong order, its difference is outside its interval, or a wrong
arm is named as the best. Run it with: python -m benchmarks.answers [runs] [policies]

Statements from phases are for losses that are fixed in advance, so they are also tried where these
drift, and where an adversary has moved the best arm: what is true is computed from the table.

``python -m benchmarks.answers time`` measures instead what it takes to ask for the answer after
every release of a run, and to read the best arm from it.
"""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.inference import evidence_against, evidence_below, phase_difference
from bandanna.policy.methods import AnyTime, InPhases

Floats = NDArray[np.float64]

MEANS = (0.4, 0.5, 0.7)
ROUNDS, ALPHA = 600, 0.05
POLICIES: dict[str, dict[str, object]] = {
    "adaptive": {"algorithm": "adaptive"},
    "one-bit": {"algorithm": "one-bit", "batch": 10},
    "dp-klucb": {"algorithm": "dp-klucb"},
    "htinf": {"algorithm": "htinf"},
    "ldp-exp3": {"algorithm": "ldp-exp3"},
    "goal=answer": {"goal": "answer"},
    "uniform, one-bit": {"learner": "uniform", "release": "one-bit", "batch": 5},
}


PHASES = {"phased, steady": "steady", "phased, drifting": "drift", "phased, moved": "moved"}
"""Worlds of the policies that play phases."""


def mean_losses(world: str) -> Floats:
    """Return every arm's chance of a loss in every round."""
    means = np.tile(MEANS, (ROUNDS, 1))
    now = np.arange(ROUNDS)[:, None] / ROUNDS
    if world == "drift":  # all arms together, and each by itself
        return means + 0.2 * np.sin(9.0 * now) + 0.1 * np.sin(25.0 * now + np.arange(3))
    if world == "moved":
        return np.where(now < 0.4, means, np.where(now < 0.7, means[:, ::-1], means[:, [1, 2, 0]]))
    return means


def wrong_in_phases(policy: bd.Policy, losses: Floats) -> bool:
    """Whether anything is wrong that phases say of losses fixed in advance.

    The truth has the same weights: it is what the statements are about if each arm's mean in a
    phase were known.
    """
    _, totals, _, method = policy._known()
    assert isinstance(method, InPhases)
    ends = np.concatenate([[0], np.cumsum(method.counts.sum(axis=1))]).astype(int)
    means = np.array([losses[a:b].mean(axis=0) for a, b in pairwise(ends)])
    true = method.counts * means
    for arm, known in totals.items():
        low, high = method.mean(known, ALPHA)
        if not low <= true[:, arm].sum() / method.counts[:, arm].sum() <= high:
            return True
    for a, b in combinations(sorted(totals), 2):
        scale = method.law.scale
        told = phase_difference(method.counts, method.sums, a, b, scale=scale, alpha=ALPHA)
        fact = phase_difference(method.counts, true, a, b, scale=scale, alpha=ALPHA)
        if told is None or fact is None:
            continue
        if not told.low <= fact.difference <= told.high:
            return True
        for first, second, sign in ((a, b, 1.0), (b, a, -1.0)):
            better = method.better(totals[first], totals[second], ALPHA / len(MEANS))
            if better and sign * fact.difference <= 0.0:
                return True
    return False


def wrong_at(policy: bd.Policy) -> bool:
    """Whether anything that is said now is wrong: a mean, a difference, an order or the best arm.

    An interval holds a value if the evidence against it is below its level on both sides, so that
    is what is computed here, in place of the interval's ends.
    """
    _, totals, _, method = policy._known()
    assert isinstance(method, AnyTime)
    law, level, best = method.law, math.log(2.0 / ALPHA), math.log(len(MEANS) / ALPHA)
    for arm, known in totals.items():
        if max(evidence_against(law, known, MEANS[arm])) >= level:
            return True
    for a, b in combinations(sorted(totals), 2):
        apart = MEANS[b] - MEANS[a]
        if evidence_below(law, totals[a], totals[b], -apart) >= level:
            return True
        if evidence_below(law, totals[b], totals[a], apart) >= level:
            return True
        if evidence_below(law, totals[b], totals[a]) >= min(level, best):
            return True  # the worse arm is called better
    return False


def coverage(options: dict[str, object], runs: int, world: str = "steady") -> float:
    """Return the share of runs in which anything was wrong at any look."""
    made = bd.PrivateBandit(3, 1.0, ROUNDS, **options)  # type: ignore[arg-type]
    wrong, means = 0, mean_losses(world)
    for run in range(runs):
        policy = made.rehearse(new_stream(2 * run), new_stream(2 * run + 1))
        rng, released, bad = np.random.default_rng(run), 0, False
        losses = (rng.random((ROUNDS, 3)) < means).astype(float)
        for row in losses:
            decision = policy.decide()
            policy.observe(decision, loss=row[decision.index])
            if policy.released > released:
                released = policy.released
                phases = policy.plays_phases
                bad = bad or (wrong_in_phases(policy, losses) if phases else wrong_at(policy))
        wrong += bad
    return wrong / runs


def time_looks(rounds: int = 1_000_000) -> None:
    """Print how much longer a run takes with looks after every release.

    Batches and looks are timed in turns in one run, and compared by their lower quartiles: what
    else the machine does falls on both.
    """
    looked_at(2_000)  # compiled before it is timed
    batch, answer, best = (np.quantile(times, 0.25) for times in looked_at(rounds))
    for look, more in (("answer", answer), ("best", answer + best)):
        said = {"rounds": rounds, "look": look, "longer by": round(more / batch, 3)}
        print(json.dumps(said), flush=True)


def looked_at(rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Return the times of batches, of asking for the answer, and of reading the best arm."""
    made = bd.PrivateBandit(3, 0.5, rounds)
    policy, released = made.rehearse(new_stream(1), new_stream(2)), 0
    losses = (np.random.default_rng(0).random((rounds, 3)) < MEANS).astype(float)
    batches: list[float] = []
    answers: list[float] = []
    bests: list[float] = []
    begin = time.perf_counter()
    for row in losses:
        decision = policy.decide()
        policy.observe(decision, loss=row[decision.index])
        if policy.released > released:
            released, full = policy.released, time.perf_counter()
            answer = policy.answer()
            asked = time.perf_counter()
            _ = answer.best
            read = time.perf_counter()
            batches.append(full - begin)
            answers.append(asked - full)
            bests.append(read - asked)
            begin = time.perf_counter()
    return batches, answers, bests


if __name__ == "__main__":
    if sys.argv[1:2] == ["time"]:
        time_looks(*map(int, sys.argv[2:3]))
        sys.exit()
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    wanted = sys.argv[2:] or [*POLICIES, *PHASES]
    for name in wanted:
        begin = time.perf_counter()
        if name in PHASES:
            share = coverage({"algorithm": "phased"}, runs, PHASES[name])
        else:
            share = coverage(POLICIES[name], runs)
        took = round(time.perf_counter() - begin)
        print(
            json.dumps({"policy": name, "runs": runs, "wrong": share, "seconds": took}), flush=True
        )

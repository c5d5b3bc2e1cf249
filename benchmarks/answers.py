"""Coverage of answers: how often anything that ``answer`` and ``compare`` say is wrong.

Every run is looked at after each release. A run is wrong if at any look an arm's mean is outside
its interval, a pair is put in the wrong order, its difference is outside its interval, or a wrong
arm is named as the best. Run it with: python -m benchmarks.answers [runs] [policies]

``python -m benchmarks.answers time`` measures instead what it takes to ask for the answer after
every release of a run, and to read the best arm from it.
"""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import combinations

import numpy as np

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.inference import evidence_against, evidence_below
from bandanna.policy.methods import AnyTime

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


def coverage(options: dict[str, object], runs: int) -> float:
    """Return the share of runs in which anything was wrong at any look."""
    made = bd.PrivateBandit(3, 1.0, ROUNDS, **options)  # type: ignore[arg-type]
    wrong = 0
    for run in range(runs):
        policy = made.rehearse(new_stream(2 * run), new_stream(2 * run + 1))
        rng, released, bad = np.random.default_rng(run), 0, False
        losses = (rng.random((ROUNDS, 3)) < MEANS).astype(float)
        for row in losses:
            decision = policy.decide()
            policy.observe(decision, loss=row[decision.index])
            if policy.released > released:
                released = policy.released
                bad = bad or wrong_at(policy)
        wrong += bad
    return wrong / runs


def seconds(rounds: int, look: str) -> float:
    """Return the processor's time for a run that is looked at after every release."""
    made = bd.PrivateBandit(3, 0.5, rounds)
    policy, released = made.rehearse(new_stream(1), new_stream(2)), 0
    losses = (np.random.default_rng(0).random((rounds, 3)) < MEANS).astype(float)
    begin = time.process_time()
    for row in losses:
        decision = policy.decide()
        policy.observe(decision, loss=row[decision.index])
        if look and policy.released > released:
            released, answer = policy.released, policy.answer()
            _ = answer.best if look == "best" else None
    return time.process_time() - begin


def time_looks(rounds: int = 1_000_000) -> None:
    """Print how much longer a run takes with looks after every release."""
    for look in ("", "answer", "best"):
        seconds(2_000, look)  # compiled before it is timed
    alone = seconds(rounds, "")
    for look in ("answer", "best"):
        more = seconds(rounds, look) / alone - 1.0
        print(json.dumps({"rounds": rounds, "look": look, "longer by": round(more, 3)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["time"]:
        time_looks(*map(int, sys.argv[2:3]))
        sys.exit()
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    wanted = sys.argv[2:] or list(POLICIES)
    for name in wanted:
        begin = time.perf_counter()
        share = coverage(POLICIES[name], runs)
        took = round(time.perf_counter() - begin)
        print(
            json.dumps({"policy": name, "runs": runs, "wrong": share, "seconds": took}), flush=True
        )

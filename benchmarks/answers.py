"""Coverage of answers: how often anything that ``answer`` and ``compare`` say is wrong.

Every run is looked at after each release. A run is wrong if at any look an arm's mean is outside
its interval, a pair is put in the wrong order, its difference is outside its interval, or a wrong
arm is named as the best. Run it with: python -m benchmarks.answers [runs] [policies]; without
names it tries every private algorithm, and every release.

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
from typing import NamedTuple, cast

import numpy as np
import research.prior_work  # noqa: F401  # makes dp-exp3-lap known
from numpy.typing import NDArray

import bandanna as bd
from bandanna._core.compiled import kernel, step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, new_stream
from bandanna.algorithms import algorithms, names
from bandanna.device import check_release, draw_bit, make_release
from bandanna.error_budget import ErrorBudget
from bandanna.inference import (
    Law,
    Totals,
    _reaches,
    _single,
    scratch,
)
from bandanna.learners import PhaseLearner
from bandanna.learners.steps import draw_round, learn_phase, open_phase
from bandanna.phase_evidence import phase_evidence
from bandanna.policy.intervals import InPhases, Intervals
from bandanna.policy.outcomes import and_start, known_of
from bandanna.policy.runner import (
    NO_ADVICE,
    NO_ESTIMATES,
    Credit,
    Play,
    learn,
    open_batch,
    start_play,
)
from bandanna.privacy.release import ArmTotals, publish
from bandanna.privacy.sums import SumRelease

Floats = NDArray[np.float64]

MEANS = (0.4, 0.5, 0.7)
ROUNDS, ALPHA, DELTA = 600, 0.05, 1e-6
PARTS: dict[str, tuple[str, str, int]] = {
    "one-bit, batches of 10": ("tsallis-inf", "one-bit", 10),
    "uniform, one-bit": ("uniform", "one-bit", 5),
    "uniform, laplace": ("uniform", "laplace", 20),
    "thompson, laplace": ("thompson", "laplace", 5),
    "exp3, no privacy": ("exp3", "plain", 5),
}
"""Learner, release and batch of policies that are no algorithm of the catalogue."""
PHASES = {"phased, drifting": "drift", "phased, moved": "moved"}
"""Worlds that change, for policies that play phases."""
FROM_LOG = "phased, from a log"
"""Starts from a log of 300 rows, which is drawn and released anew for every run."""
FOLLOWING = ", over experts"
"""Follows one of three experts in each batch."""
DEVICE = "one-bit, on devices"
"""People's devices draw the bits."""


def policies() -> list[str]:
    """Return what is tried if nothing is named."""
    followed = [
        f"{row.name}{FOLLOWING}" for row in algorithms(with_experts=True) if row.over is not None
    ]
    alone = names(with_experts=False, private=True)
    return [*alone, *followed, *PARTS, *PHASES, FROM_LOG, DEVICE]


def made_of(name: str) -> bd.Policy:
    """Return a policy by the name under which it is tried."""
    if name in PARTS:
        learner, release, batch = PARTS[name]
        if release == "plain":
            return bd.Bandit(3, learner, ROUNDS, batch=batch)
        return bd.PrivateBandit(3, 1.0, ROUNDS, learner=learner, release=release, batch=batch)
    if name == "race":
        return bd.PrivateBandit(3, 1.0, ROUNDS, goal="answer")
    if name == DEVICE:
        return bd.PrivateBandit(3, 1.0, ROUNDS, "one-bit", release="device")
    if name.endswith(FOLLOWING):
        return bd.PrivateExperts(3, 3, 1.0, DELTA, ROUNDS, name.removesuffix(FOLLOWING))
    return bd.PrivateBandit(3, 1.0, ROUNDS, name.partition(",")[0])


def mean_losses(world: str) -> Floats:
    """Return every arm's chance of a loss in every round."""
    means = np.tile(MEANS, (ROUNDS, 1))
    now = np.arange(ROUNDS)[:, None] / ROUNDS
    if world == "drift":  # all arms together, and each by itself
        return means + 0.2 * np.sin(9.0 * now) + 0.1 * np.sin(25.0 * now + np.arange(3))
    if world == "moved":
        return np.where(now < 0.4, means, np.where(now < 0.7, means[:, ::-1], means[:, [1, 2, 0]]))
    return means


def wrong_in_phases(law: Law, counts: Floats, sums: Floats, losses: Floats, part: float) -> bool:
    """Whether anything is wrong that phases say of losses fixed in advance.

    Statements have this part of the error probability. The truth has the same weights: it is what
    the statements are about if each arm's mean in a phase were known.
    """
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(int)
    means = np.array([losses[a:b].mean(axis=0) for a, b in pairwise(ends)])
    true, budget = counts * means, ErrorBudget(ALPHA, len(MEANS), transitive=False, part=part)
    level, of_pairs = math.log(2.0 / budget.mean(0)), -math.log(budget.pair(0, 1))
    played = [arm for arm in range(len(MEANS)) if counts[:, arm].any()]
    for arm in played:
        rounds, times = counts[:, arm].sum(), np.count_nonzero(counts[:, arm])
        known = Totals(float(sums[:, arm].sum()), float(rounds), float(times))
        about = law, known, float(true[:, arm].sum() / rounds)
        if max(_single(*about, sign, scratch())[0] for sign in (1.0, -1.0)) >= level:
            return True
    for a, b in combinations(played, 2):
        told = phase_evidence(counts, sums, a, b, scale=law.scale)
        fact = phase_evidence(counts, true, a, b, scale=law.scale)
        if told is None or fact is None:
            continue
        if told.against(abs(told.difference - fact.difference)) >= of_pairs:
            return True  # so is the worse arm, if it is called better
    return False


@kernel
def play_in_phases(
    params: NamedTuple,
    state: NamedTuple,
    release: NamedTuple,
    losses: NDArray[np.int64],
    streams: tuple[Stream, Stream],
    counts: Floats,
    sums: Floats,
    work: tuple[NDArray[np.int64], Floats],
) -> int:
    """Play a run and note each phase: rounds and released sums. Returns how many there are.

    These are the steps of the simulator, and so those of the online policy.
    """
    totals, values = work
    start, phase = 0, 0
    while start < losses.shape[0]:
        size, memo = open_phase(params, state, streams[0])
        if start + size > losses.shape[0]:
            break
        totals[:] = 0
        values[:] = 0.0
        for t in range(start, start + size):
            arm, _ = draw_round(params, state, streams[0])
            totals[arm] += losses[t, arm]
            counts[phase, arm] += 1.0
        for arm in range(totals.size):
            count = int(counts[phase, arm])
            if count > 0:
                values[arm] = publish(release, totals[arm], count, streams[1])
                sums[phase, arm] = count * values[arm]
        learn_phase(params, state, memo, counts[phase], values, np.full(values.size, np.nan))
        start += size
        phase += 1
    return phase


def wrong_by_phase(made: bd.Policy, losses: Floats, streams: tuple[Stream, Stream]) -> bool:
    """Whether anything was wrong in one run of a policy that plays phases."""
    recipe, release = made.recipe, made.recipe.release
    assert isinstance(release, SumRelease)
    assert isinstance(recipe.learner, PhaseLearner)
    law, units = release.law(), (losses * UNITS).astype(np.int64)
    assert law is not None
    state = cast(NamedTuple, start_play(recipe, None, streams[0]).state)
    counts, sums = np.zeros((ROUNDS, 3)), np.zeros((ROUNDS, 3))
    run = recipe.learner.params(), state, release.fast(), units, streams, counts, sums
    phases = play_in_phases(*run, (np.zeros(3, dtype=np.int64), np.zeros(3)))
    return any(
        wrong_in_phases(law, counts[:look], sums[:look], losses, 1.0)
        for look in range(1, phases + 1)
    )


@kernel
def play_run(
    play: Play,
    release: NamedTuple,
    batch: int,
    losses: NDArray[np.int64],
    streams: tuple[Stream, Stream],
    trace: Floats,
) -> int:
    """Play a run and note each release: its arm, size and value. Returns how many there are.

    These are the steps of the simulator, and so those of the online policy.
    """
    start, count = 0, 0
    while start < losses.shape[0]:
        arm, importance, size = open_batch(play, streams[0])
        if size == 0:
            size = batch
        if start + size > losses.shape[0]:
            break
        total = 0
        for t in range(start, start + size):
            total += losses[t, arm]
        value = publish(release, total, size, streams[1])
        learn(play, Credit(arm, importance, NO_ADVICE, arm, 1.0, value, NO_ESTIMATES, size))
        trace[count, 0], trace[count, 1], trace[count, 2] = arm, size, value
        start += size
        count += 1
    return count


@step
def _totals(known: Floats, arm: int) -> Totals:
    return Totals(known[arm, 0], known[arm, 1], known[arm, 2], known[arm, 3], known[arm, 4])


@kernel
def wrong_in_run(
    law: Law,
    arms: Floats,
    values: Floats,
    means: Floats,
    known: Floats,
    levels: tuple[float, float, float],
    work: Floats,
) -> bool:
    """Whether anything that is said after any release is wrong.

    That is a mean, a difference, an order or the best arm. An interval holds a value if evidence
    against it is below its level on both sides, so that is what is computed, in place of the
    interval's ends. What was said before of other arms is not looked at again.

    ``arms`` and ``values`` have the arm of each release, and what is known of it from then on;
    ``levels`` are those of means, of pairs, and of the best arm.
    """
    of_means, level, of_best = levels
    better = min(level, of_best)
    for look in range(arms.size):
        new = int(arms[look])
        for k in range(5):
            known[new, k] = values[look, k]
        for sign in (1.0, -1.0):
            if _single(law, _totals(known, new), means[new], sign, work)[0] >= of_means:
                return True
        for other in range(means.size):
            if other == new or known[other, 1] <= 0.0:
                continue
            low, high = (new, other) if means[new] < means[other] else (other, new)
            a, b, apart = _totals(known, low), _totals(known, high), means[high] - means[low]
            if _reaches(law, a, b, apart, level, work) or _reaches(law, b, a, -apart, level, work):
                return True
            if _reaches(law, b, a, 0.0, better, work):
                return True
    return False


def wrong_in_batches(made: bd.Policy, losses: Floats, streams: tuple[Stream, Stream]) -> bool:
    """Whether anything was wrong in one run of a policy that plays batches of an arm."""
    recipe, release = made.recipe, made.recipe.release
    assert isinstance(release, SumRelease)
    trace = np.zeros((ROUNDS, 3))
    play, units = start_play(recipe, None, streams[0]), (losses * UNITS).astype(np.int64)
    count = play_run(play, release.fast(), recipe.batch, units, streams, trace)
    seen: dict[float, ArmTotals] = {}
    values = np.empty((count, 5))
    for look, (arm, size, value) in enumerate(trace[:count]):
        seen[arm] = seen.get(arm, ArmTotals()).and_also(value, int(size))
        values[look] = release.totals(seen[arm])
    return wrong_at_a_look(release, trace[:count, 0].copy(), values)


def wrong_at_a_look(release: SumRelease, arms: Floats, values: Floats) -> bool:
    """Whether anything that is said after any release is wrong: by ``wrong_in_run``."""
    law, known = release.law(), np.zeros((3, 5))
    assert law is not None
    budget = ErrorBudget(ALPHA, len(MEANS))
    levels = math.log(2.0 / budget.mean(0)), -math.log(budget.pair(0, 1)), -math.log(budget.best)
    return bool(wrong_in_run(law, arms, values, np.array(MEANS), known, levels, scratch()))


def wrong_online(made: bd.Policy, losses: Floats, streams: tuple[Stream, Stream]) -> bool:
    """Whether anything was wrong in one run of a policy as users play it.

    Expert j advises arm j, so experts have the arms' means. Devices draw bits as the release does.
    """
    release, rng = made.recipe.release, np.random.default_rng(streams[1][:2])
    assert isinstance(release, SumRelease)
    device = check_release(make_release(1.0), allowed=1.0)
    devices = made.spec.release == "device"
    policy = made_of(DEVICE) if devices else made.rehearse(*streams)
    policy.state.stream[:] = streams[0]
    advice = None if policy.spec.experts is None else np.arange(3)
    seen: dict[int, ArmTotals] = {}
    arms: list[int] = []
    values: list[Totals] = []
    for row in losses:
        decision = policy.decide() if advice is None else policy.decide(advice)
        loss = row[decision.index]
        if devices:
            bit = draw_bit(
                device, int(loss * UNITS), lambda n: rng.integers(2**32, size=n).tolist()
            )
            policy.observe_bit(decision, bit)
        else:
            policy.observe(decision, loss=loss)
        for arm, totals in policy.state.totals.items():
            if seen.get(arm) != totals:
                seen[arm] = totals
                arms.append(arm)
                values.append(release.totals(totals))
    return wrong_at_a_look(release, np.array(arms, dtype=float), np.array(values))


def wrong_from_log(made: bd.Policy, losses: Floats, streams: tuple[Stream, Stream]) -> bool:
    """Whether anything was wrong in one run that started from a log.

    Answers rest on the run alone or on run and log. Each has half of the error probability, and a
    run is wrong here if either is, whichever was shown.
    """
    rng = np.random.default_rng(streams[0][:2])
    arm = rng.integers(0, 3, 300)
    table = {"arm": arm.astype(str), "lost": rng.random(300) < np.array(MEANS)[arm]}
    log = bd.answer(table, arm="arm", outcome="lost", epsilon=0.5)
    started = bd.PrivateBandit(["0", "1", "2"], 1.0, ROUNDS, start_from=log)
    policy, released = started.rehearse(*streams), -1
    for row in losses:
        if policy.released > released:
            released = policy.released
            state, release = policy.state, policy.recipe.release
            assert isinstance(release, SumRelease)
            assert policy.spec.start is not None
            names = policy.arms, release, dict(state.totals)
            alone = known_of(*names, state.phases).intervals
            if wrong_of_means(and_start(known_of(*names), policy.spec.start).intervals):
                return True
            if isinstance(alone, InPhases):
                counts, sums = alone.counts, alone.sums
                if wrong_in_phases(alone.law, counts, sums, losses, 0.5):
                    return True
        decision = policy.decide()
        policy.observe(decision, loss=row[decision.index])
    return False


def wrong_of_means(intervals: Intervals | None) -> bool:
    """Whether run and log together say anything wrong, with half of the error probability."""
    assert intervals is not None
    budget = ErrorBudget(ALPHA, len(MEANS)).half
    for arm in intervals.known:
        low, high = intervals.mean(arm, budget.mean(arm))
        if not low <= MEANS[arm] <= high:
            return True
    for a, b in combinations(sorted(intervals.known), 2):
        low, high = intervals.difference(a, b, budget.pair(a, b))
        if not low <= MEANS[b] - MEANS[a] <= high:
            return True
        if intervals.better(b, a, max(budget.best, budget.pair(a, b))):
            return True
    return False


def coverage(name: str, runs: int) -> float:
    """Return the share of runs in which anything was wrong at any look."""
    made, wrong, means = made_of(name), 0, mean_losses(PHASES.get(name, "steady"))
    wrong_in = wrong_by_phase if made.plays_phases else wrong_in_batches
    if name == FROM_LOG:
        wrong_in = wrong_from_log
    elif name == DEVICE or name.endswith(FOLLOWING):
        wrong_in = wrong_online
    for run in range(runs):
        losses = (np.random.default_rng(run).random((ROUNDS, 3)) < means).astype(float)
        wrong += wrong_in(made, losses, (new_stream(2 * run), new_stream(2 * run + 1)))
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
    for name in sys.argv[2:] or policies():
        begin = time.perf_counter()
        share, took = coverage(name, runs), round(time.perf_counter() - begin)
        print(
            json.dumps({"policy": name, "runs": runs, "wrong": share, "seconds": took}), flush=True
        )

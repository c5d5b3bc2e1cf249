"""Truth: how often anything that ``answer``, ``compare`` and ``leader`` say is wrong.

A world makes a policy and plays it, with outcomes whose truth is known, and yields after every
release it looks at. At each look everything is read that a user can read: every arm's interval,
the interval and the sign of every pair, which arms may be best, the best arm, and the leader. A
run is wrong if anything is, at any look. A contradiction is something that ``compare`` and
``answer`` or ``leader`` say that cannot both be true. Add a world to ``WORLDS`` by its name.

Run it with: python -m benchmarks.truth [runs] [worlds]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna.phase_evidence import phase_evidence
from bandanna.policy.answers import Answer, Comparison
from bandanna.policy.intervals import InPhases

Floats = NDArray[np.float64]


class Look(NamedTuple):
    """A moment at which everything is read, and what is true then."""

    policy: bd.PrivateBandit
    means: Floats
    """True mean of each arm, as its interval is about it; NaN where it has none."""
    apart: Floats
    """True difference of arms, column minus row, as ``compare`` is about it; NaN for none."""
    ahead: int | None = None
    """The arm that ``leader`` must name, where that can be known."""


World = Callable[[int], Iterator[Look]]


def steady(policy: bd.PrivateBandit, means: Floats, ahead: int | None = None) -> Look:
    """Return a look at arms whose outcomes do not change."""
    return Look(policy, means, means[None, :] - means[:, None], ahead)


# --- worlds ---------------------------------------------------------------------------------------


def play(
    policy: bd.PrivateBandit,
    losses: Floats,
    rng: np.random.Generator,
    *,
    lost: Floats | None = None,
    among: Callable[[bd.PrivateBandit], None] | None = None,
) -> Iterator[None]:
    """Play a table of losses, of which a share ``lost`` is given up; yields after each release."""
    released = 0
    for row in losses:
        made = policy.decide()
        if lost is not None and rng.random() < lost[made.index]:
            policy.give_up(made)
        else:
            policy.observe(made, loss=float(row[made.index]))
        if policy.released > released:
            released = policy.released
            yield
            if among is not None:
                among(policy)


def in_phases(policy: bd.PrivateBandit, losses: Floats, ahead: int | None = None) -> Look:
    """Return a look at a run in phases, with the truth of its averages from the table of losses."""
    intervals = policy._shown(0.95)().known.intervals
    arms = len(policy.arms)
    if not isinstance(intervals, InPhases):
        return Look(policy, np.full(arms, np.nan), np.full((arms, arms), np.nan))
    counts = intervals.counts
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(int)
    of_phase = np.array([losses[a:b, :arms].mean(axis=0) for a, b in pairwise(ends)])
    sums = counts * of_phase
    with np.errstate(invalid="ignore"):
        means = sums.sum(axis=0) / counts.sum(axis=0)
    apart = np.full((arms, arms), np.nan)
    for a, b in combinations(range(arms), 2):
        fact = phase_evidence(counts, sums, a, b, scale=intervals.law.scale)
        if fact is not None:
            apart[a, b], apart[b, a] = fact.difference, -fact.difference
    return Look(policy, means, apart, ahead)


def drifting(algorithm: str, epsilon: float = 2.0, rounds: int = 2_000) -> World:
    """Make the world where A loses .1 and B .2 for a tenth of the run, and then .6 and .7."""

    def world(run: int) -> Iterator[Look]:
        rng = np.random.default_rng([run, 1])
        early = np.arange(rounds)[:, None] < rounds // 10
        chances = np.where(early, [0.1, 0.2], [0.6, 0.7])
        # Both arms meet the same people: A is better for one in ten, and never worse.
        losses = (rng.random((rounds, 1)) < chances).astype(float)
        policy = bd.PrivateBandit(["A", "B"], epsilon, rounds, algorithm, seed=run)
        for _ in play(policy, losses, rng):
            yield in_phases(policy, losses)
        yield in_phases(policy, losses, 0)

    return world


def opposed(algorithm: str) -> World:
    """Make a world of three arms whose order turns over, on top of a common season."""

    def world(run: int) -> Iterator[Look]:
        rng, rounds = np.random.default_rng([run, 2]), 1_000
        now = np.arange(rounds)[:, None] / rounds
        chances = np.array([0.3, 0.4, 0.5]) + 0.25 * np.sin(9.0 * now)
        chances = np.where(now > 0.5, chances[:, ::-1], chances)
        losses = (rng.random((rounds, 3)) < chances).astype(float)
        policy = bd.PrivateBandit(["A", "B", "C"], 1.0, rounds, algorithm, seed=run)
        for _ in play(policy, losses, rng):
            yield in_phases(policy, losses)

    return world


def equal(arms: int, **options: Any) -> World:
    """Make a world of arms that are all alike, with or without a goal."""

    def world(run: int) -> Iterator[Look]:
        rng, rounds = np.random.default_rng([run, 3]), 1_000
        losses = (rng.random((rounds, arms)) < 0.3).astype(float)
        policy = bd.PrivateBandit(arms, 2.0, seed=run, **options)
        for _ in play(policy, losses, rng):
            yield steady(policy, np.full(arms, 0.3))

    return world


def retiring(algorithm: str, arms: int, left: int, every: int) -> World:
    """Make a world that retires the arms that look worst, one at a time, until few are left."""

    def world(run: int) -> Iterator[Look]:
        rng, rounds = np.random.default_rng([run, 4]), 1_000
        losses = (rng.random((rounds, arms)) < 0.4).astype(float)
        policy = bd.PrivateBandit(arms, 4.0, rounds, algorithm, seed=run)
        since = [0]

        def retire(policy: bd.PrivateBandit) -> None:
            since[0] += 1
            if since[0] % every or len(policy.active) <= left:
                return
            known = {arm.name: arm.mean for arm in policy.answer().arms if arm.mean is not None}
            worst = max((arm for arm in policy.active if arm in known), key=lambda arm: known[arm])
            policy.retire_arm(worst)

        for _ in play(policy, losses, rng, among=retire):
            phases = policy.plays_phases
            yield in_phases(policy, losses) if phases else steady(policy, np.full(arms, 0.4))

    return world


def adding(algorithm: str, most: int) -> World:
    """Make a world that adds an arm after each few releases and retires the worst-looking one."""

    def world(run: int) -> Iterator[Look]:
        rng, rounds = np.random.default_rng([run, 5]), 1_000
        losses = (rng.random((rounds, most)) < 0.4).astype(float)
        policy = bd.PrivateBandit(2, 4.0, rounds, algorithm, seed=run)
        since = [0]

        def change(policy: bd.PrivateBandit) -> None:
            since[0] += 1
            if since[0] % 4 or len(policy.arms) >= most:
                return
            policy.add_arm(len(policy.arms))
            known = {arm.name: arm.mean for arm in policy.answer().arms if arm.mean is not None}
            worst = max((arm for arm in policy.active if arm in known), key=lambda arm: known[arm])
            policy.retire_arm(worst)

        for _ in play(policy, losses, rng, among=change):
            phases, now = policy.plays_phases, len(policy.arms)
            yield in_phases(policy, losses) if phases else steady(policy, np.full(now, 0.4))

    return world


def given_up(algorithm: str, **options: Any) -> World:
    """Make a world where A is better, and its feedback is given up much more often."""

    def world(run: int) -> Iterator[Look]:
        rng, means = np.random.default_rng([run, 6]), np.array([0.2, 0.3, 0.3])
        losses = (rng.random((1_000, 3)) < means).astype(float)
        policy = bd.PrivateBandit(
            ["A", "B", "C"], 2.0, 1_000, algorithm, default_loss=1.0, seed=run, **options
        )
        lost = np.array([0.5, 0.1, 0.0])
        if not policy.plays_phases:
            for _ in play(policy, losses, rng, lost=lost):
                yield steady(policy, means)
            return
        for _ in play(policy, losses, rng, lost=lost):
            # What came is a random part of what was lost: the truth is that of the law.
            yield in_phases(policy, np.tile(means, (2_000, 1)))

    return world


def clipped(algorithm: str) -> World:
    """Make a world of rewards with a heavy tail, counted up to 20: the answer is about these."""

    def world(run: int) -> Iterator[Look]:
        rng, rounds = np.random.default_rng([run, 7]), 1_000
        tail = np.where(rng.random(rounds) < 0.01, 1_000.0, 0.0)
        rewards = np.column_stack([tail, np.full(rounds, 5.0)])
        policy = bd.PrivateBandit(
            ["A", "B"], 2.0, rounds, algorithm, loss_range=(0, 20), clip=True, seed=run
        )
        losses, released = 1.0 - np.clip(rewards, 0.0, 20.0) / 20.0, 0
        for row in rewards:
            made = policy.decide()
            policy.observe(made, reward=float(row[made.index]))
            if policy.released > released:
                released = policy.released
                means = np.array([0.99, 0.75])
                phases = policy.plays_phases
                yield in_phases(policy, losses) if phases else steady(policy, means)
        said = (
            policy.answer(outcome="rev").sentence + policy.compare("A", "B", outcome="rev").sentence
        )
        assert said.count("rev, counted up to 20") >= 2, said

    return world


def race(arms: int, gap: float, **options: Any) -> World:
    """Make a race for the best arm."""

    def world(run: int) -> Iterator[Look]:
        rng, means = np.random.default_rng([run, 8]), np.full(arms, 0.4)
        means[0] -= gap
        policy = bd.PrivateBandit(arms, 1.0, goal="answer", seed=run, **options)
        losses = (rng.random((2_000, arms)) < means).astype(float)
        for _ in play(policy, losses, rng):
            yield steady(policy, means)

    return world


WORLDS: dict[str, World] = {
    "phased, common drift": drifting("phased"),
    "phased-net, common drift": drifting("phased-net"),
    "ab-test, common drift": drifting("ab-test"),
    "phased, order turns over": opposed("phased"),
    "ab-test, order turns over": opposed("ab-test"),
    "uniform, 10 equal arms": equal(
        10, rounds=1_000, learner="uniform", release="laplace", batch=30
    ),
    "phased, 10 equal arms": equal(10, rounds=1_000, algorithm="phased"),
    "race, 10 equal arms": equal(10, goal="answer"),
    "race, 3 equal arms, tolerance .2": equal(3, goal="answer", tolerance=0.2),
    "race, gap .05": race(3, 0.05),
    "adaptive, 10 arms retired to 2": retiring("adaptive", 10, 2, 4),
    "phased, 10 arms retired to 2": retiring("phased", 10, 2, 1),
    "adaptive, arms added and retired": adding("adaptive", 8),
    "phased, arms added and retired": adding("phased", 8),
    "adaptive, feedback given up": given_up("adaptive"),
    "one-bit, feedback given up": given_up("one-bit"),
    "phased, feedback given up": given_up("phased"),
    "ab-test, feedback given up": given_up("ab-test"),
    "adaptive, clipped tail": clipped("adaptive"),
    "phased, clipped tail": clipped("phased"),
}


# --- what is wrong ----------------------------------------------------------------------------


def wrongs(look: Look) -> tuple[set[str], set[str]]:
    """Return what is wrong at a look, and which statements contradict each other."""
    policy = look.policy
    answer, wrong = policy.answer(), set[str]()
    for arm, mean in zip(answer.arms, look.means, strict=True):
        if not np.isnan(mean) and not _within(arm.low, answer.units.value(float(mean)), arm.high):
            wrong.add("interval")
        if arm.mean is not None and not _within(arm.low, arm.mean, arm.high):
            wrong.add("estimate outside its interval")
    pairs = combinations(range(len(policy.arms)), 2)
    found = {(a, b): policy.compare(policy.arms[a], policy.arms[b]) for a, b in pairs}
    width = (policy.loss_range[1] - policy.loss_range[0]) * (-1.0 if answer.units.reward else 1.0)
    for pair, said in found.items():
        if said.difference is not None:
            wrong |= _wrong_pair(said, width * float(look.apart[pair]))
    if answer.best is not None:
        best = policy.arms.index(answer.best)
        gaps = [look.apart[best, arm] for arm in policy.active if arm != best]
        if any(gap <= 0.0 for gap in gaps if not np.isnan(gap)):
            wrong.add("best")
    if look.ahead is not None and policy.leader != policy.arms[look.ahead]:
        wrong.add("leader")
    return wrong, contradictions(policy, answer, list(found.values()))


def _wrong_pair(said: Comparison, true: float) -> set[str]:
    wrong = set[str]()
    if not _within(said.low, said.difference or 0.0, said.high):
        wrong.add("estimate outside its interval")
    if not np.isnan(true) and not _within(said.low, true, said.high):
        wrong.add("pair")
    if said.low > 0.0 > true or said.high < 0.0 < true:
        wrong.add("sign")
    return wrong


def _within(low: float, value: float, high: float) -> bool:
    return low - 1e-9 <= value <= high + 1e-9


def contradictions(policy: bd.PrivateBandit, answer: Answer, pairs: list[Comparison]) -> set[str]:
    """Return what ``compare`` says that ``answer`` and ``leader`` deny."""
    against, beaten = set[str](), set[Any]()
    running = {policy.arms[arm] for arm in policy.active}
    for said in pairs:
        both = said.first, said.second
        if said.difference is None or not set(both) <= running:
            continue
        ahead = (said.difference > 0.0) == answer.units.reward
        worse = both[0] if ahead else both[1]
        if said.difference != 0.0:
            beaten.add(worse)
        told = "is better than" in said.sentence
        if (said.low > 0.0 or said.high < 0.0) and not told:
            against.add("compare: sentence and interval")
        if told and (answer.best == worse or worse in answer.racing):
            against.add("compare: worse, answer: may be best")
        if not told and answer.best in both:
            against.add("compare: too close, answer: best")
    if policy.leader in beaten and (beaten < running or answer.best is not None):
        against.add("compare: another looks better than the leader")
    return against


class Counted(NamedTuple):
    """What was wrong in some runs of a world."""

    world: str
    runs: int
    wrong: int
    """Runs in which anything was."""
    contradictions: int
    leader: int
    """Runs in which the leader at the end is not the arm that is better throughout."""
    kinds: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return self._asdict() | {"wrong share": self.wrong / self.runs}


def count(world: str, runs: int) -> Counted:
    """Count runs in which anything is wrong after 1, 2, 4, 8, ... releases, or at the end."""
    kinds: dict[str, int] = {}
    wrong = against = leaders = 0
    for run in range(runs):
        found: set[str] = set()
        denied: set[str] = set()
        for number, look in enumerate(WORLDS[world](run), 1):
            if number & (number - 1) == 0 or look.ahead is not None:
                some, more = wrongs(look)
                found |= some
                denied |= more
        for kind in found | denied:
            kinds[kind] = kinds.get(kind, 0) + 1
        wrong += bool(found - {"leader"})
        leaders += "leader" in found
        against += bool(denied)
    return Counted(world, runs, wrong, against, leaders, kinds)


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    for name in sys.argv[2:] or WORLDS:
        begin = time.perf_counter()
        found = count(name, runs).to_dict()
        print(json.dumps(found | {"seconds": round(time.perf_counter() - begin)}), flush=True)

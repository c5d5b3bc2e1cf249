"""How much of its promise the default uses: ``python -m benchmarks.adversaries --runs 10``.

Plays the default in every world of the package, in worlds made against phases, nets and probes, and
in worlds of constant pieces that a random search makes worse, at sizes at which it promises
something. Prints the worlds in which mean regret is the largest share of what is promised, and
fails where it is more than that, or where something is promised that says nothing.

Losses are fixed in advance, as the promise asks. Some worlds are made from what the default plays
on the mean of some runs, and the worst are chosen by their means; what is printed is the mean of
other runs, ten times as many.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from research.worlds import CommonEffects, LeakageInstance, Narrow, Novelty, Waking

import bandanna as bd
from bandanna.environments import (
    Barrier,
    ConstrainedAdversary,
    Environment,
    PunishLeader,
    PunishRepeats,
    Segments,
    SinusoidalDrift,
    Switching,
)
from bandanna.policy import Policy
from bandanna.theory.centred import smallest_guarantee

Floats = NDArray[np.float64]

SIZES: list[tuple[int, int, float]] = [
    (2, 20_000, 0.5),
    (2, 200_000, 1.0),
    (2, 200_000, 0.2),
    (3, 100_000, 2.0),
    (4, 100_000, 0.5),
    (10, 200_000, 1.0),
    (10, 100_000, 0.5),
    (50, 100_000, 2.0),
]
"""Arms, rounds and epsilon where something is promised."""
VAGUE: list[tuple[int, int | None, float]] = [
    (2, 300, 0.5),
    (4, 1_000, 0.5),
    (4, 8_000, 0.1),
    (10, 20_000, 0.1),
    (50, 20_000, 0.5),
    (1_000, 100_000, 0.5),
    (4, None, 0.5),
]
"""The same where five times the smallest guarantee is more than choosing at random loses."""
ROWS, MORE = 15, 10
"""The worst so many worlds are played again, in so many times the runs."""
GRID = 200
"""Pieces of a world that is made from what the default plays."""
ROUNDS_MADE = 1_000_000
"""About so many rounds are played to make a world, or in one that the search tries."""
AHEAD = 1_000
"""Random numbers of the runs that judge begin so far from those of the runs before."""


class Setting(NamedTuple):
    """A size, and what is promised at it."""

    arms: int
    rounds: int
    epsilon: float
    promised: float

    @property
    def share(self) -> float:
        """What is promised, as a share of the rounds."""
        return self.promised / self.rounds

    @property
    def few(self) -> int:
        """In how many runs a world is tried."""
        return min(max(ROUNDS_MADE // self.rounds, 4), 20)

    def policy(self) -> Policy:
        """Return what runs when nothing is said."""
        return bd.PrivateBandit(self.arms, self.epsilon, self.rounds)

    def world(self, means: Floats, edges: Floats, *, bernoulli: bool = False) -> Segments:
        """Return pieces of constant means, with the shares of the run after which each ends."""
        ends = np.round(np.clip(edges, 0.0, 1.0) * self.rounds).astype(np.int64)
        ends[-1] = self.rounds
        lengths = np.diff(np.maximum.accumulate(ends), prepend=0)
        kept = lengths > 0
        return Segments(np.clip(means, 0.0, 1.0)[kept], lengths[kept], bernoulli)

    def even(self, means: Floats, *, bernoulli: bool = False) -> Segments:
        """Return pieces that are as long as each other."""
        ends = np.arange(1, len(means) + 1) / len(means)
        return self.world(means, ends, bernoulli=bernoulli)


class Used(NamedTuple):
    """What a world costs the default."""

    name: str
    setting: Setting
    world: Environment
    mean: float
    error: float
    switched: float

    @property
    def share(self) -> float:
        """Mean regret over what is promised."""
        return self.mean / self.setting.promised

    def row(self) -> str:
        """Return a row of the table."""
        size = self.setting
        cells = [self.name, str(size.arms), f"{size.rounds:,}", f"{size.epsilon:g}"]
        cells += [f"{size.promised:,.0f}", f"{self.mean:,.0f} ({self.error:,.0f})"]
        return f"| {' | '.join([*cells, f'{self.share:.0%}', f'{self.switched:.0%}'])} |"


Worlds = Iterator[tuple[str, Environment]]


# --- worlds ---------------------------------------------------------------------------------


def of_the_package(size: Setting) -> Worlds:
    """Yield every kind of losses in the package that are fixed in advance."""
    arms, rounds, least = size.arms, size.rounds, math.sqrt(size.arms / size.rounds)
    for gap in (4.0 * least / math.sqrt(min(size.epsilon, 1.0)), 0.05, 0.3):
        means = np.full((1, arms), 0.5)
        means[0, -1] -= min(gap, 0.5)
        yield f"steady, gap {min(gap, 0.5):.2g}", size.even(means, bernoulli=True)
    for changes, gap in itertools.product((1, 4, 20), (0.1, 0.8)):
        yield f"switching {changes} times by {gap:g}", Switching(arms, rounds, gap, changes)
    yield "switching at a third", Switching(arms, rounds, 0.4, first=0.33, bernoulli=True)
    yield "drift", SinusoidalDrift(arms, rounds)
    yield "constrained", ConstrainedAdversary(arms, rounds)
    yield "common effects", CommonEffects(arms, rounds)
    yield "novelty", Novelty(arms, rounds)
    yield "narrow", Narrow(arms, rounds)
    for wakes in (0.01, 0.1, 0.4):
        yield f"wakes at {wakes:.0%}", Waking(arms, rounds, wakes=wakes)
    if arms == 2:
        yield "leakage", LeakageInstance(rounds)
        for shift in (0.02, 0.1, 0.33):
            yield f"barrier turns at {shift:.0%}", Barrier(rounds, round(shift * rounds))


def against_phases(size: Setting) -> Worlds:
    """Yield worlds made against what phases, their pilot, their guard and their net rest on."""
    arms, share = size.arms, size.share
    levels = [multiple * share for multiple in (0.7, 1.0, 1.5, 3.0)]
    for level, early in itertools.product([*levels, 0.5], (0.002, 0.01, 0.05)):
        means = np.ones((2, arms))
        means[:, 0] = level
        means[1, -1] = 0.0
        name = (
            f"a dropped arm falls from 1 to 0 at {early:.1%}, the leader at {min(level, 1.0):.2g}"
        )
        yield name, size.world(means, np.array([early, 1.0]))
    for level in (share, 0.5, 1.0):
        means = np.full((400, arms), 0.5 * level)
        means[:, 0] = np.linspace(0.0, level, 400)
        yield f"the leader turns bad slowly, to {level:.2g}", size.even(means)
        means[:, 1:] = level
        means[:, -1] = np.linspace(level, 0.0, 400)
        yield f"one turns bad as another turns good, to {level:.2g}", size.even(means)
    for length in (0.0125, 0.025, 0.03, 0.05, 0.06):
        pieces = round(1.0 / length)
        means = np.ones((pieces, arms))
        means[::2, 0] = means[1::2, 1] = 0.0
        yield f"two take turns every {length:.2%}", size.even(means)
    for often, gap in ((0.02, 1.0), (0.1, 1.0), (0.1, 0.5)):
        means = np.full((400, arms), 0.5)
        rare = np.arange(400) % round(1.0 / often) == 0
        means[rare, :], means[rare, -1] = 0.5 + 0.5 * gap, 0.5 - 0.5 * gap
        means[~rare, 0] -= 0.3 * often * gap
        yield f"a gap of {gap:g} in {often:.0%} of the time", size.even(means)
    rng = np.random.default_rng(7)
    for pieces in (10, 40, 200):
        means = rng.integers(0, 2, (pieces, arms)).astype(float)
        yield f"0 or 1 at random in {pieces} pieces", size.even(means)
    for multiple, end in itertools.product((0.5, 1.0), (0.5, 0.8, 0.95)):
        means = np.ones((42, arms))
        means[:2, 0] = multiple * share / end
        means[1, -1] = 0.0
        means[2:] = rng.integers(0, 2, (40, arms))
        edges = np.concatenate(([0.005], np.linspace(end, 1.0, 41)))
        yield (
            f"a trap for {multiple:g} of the promise until {end:.0%}, then random",
            size.world(means, edges),
        )


def from_plays(size: Setting) -> Worlds:
    """Yield worlds made from the mean plays of the default in others."""
    base = np.ones(size.arms)
    for multiple in (0.5, 1.0, 3.0):
        base[0] = min(multiple * size.share, 0.9)
        played = _rounds_played(size, np.tile(base, (GRID, 1)))[:, -1]
        means = np.tile(base, (GRID, 1))
        means[_longest_wait(played) :, -1] = 0.0
        yield (
            f"wakes when it is not probed for longest, the leader at {base[0]:.2g}",
            size.even(means),
        )
    for multiple in (0.5, 1.0):
        base[0] = min(multiple * size.share, 0.9)
        means = np.tile(base, (GRID, 1))
        for _ in range(6):
            played = _rounds_played(size, means)[:, -1]
            means[:, -1] = played > np.quantile(played, 0.8)
        yield f"bad whenever it is probed, the leader at {base[0]:.2g}", size.even(means)
    means = np.random.default_rng(5).random((GRID, size.arms))
    for _ in range(6):
        played = _rounds_played(size, means)
        means = 0.5 * means + 0.5 * (played == played.max(axis=1, keepdims=True))
    yield "what is played most is bad", size.even(means)


def _rounds_played(size: Setting, means: Floats) -> Floats:
    """Return each arm's mean share of the rounds in every piece."""
    stops = np.round(np.arange(1, len(means) + 1) * size.rounds / len(means)).astype(np.int64)
    found = bd.simulate(
        size.policy(), size.even(means), replicates=size.few, checkpoints=stops, progress=False
    )
    totals = found.shares("policy") * stops[:, None]
    each: Floats = np.diff(totals, axis=0, prepend=0.0) / np.diff(stops, prepend=0)[:, None]
    return each


def _longest_wait(played: Floats) -> int:
    """Return the piece, in the first half, from which on an arm is left alone for longest."""
    waits, seen = np.zeros(len(played)), played > 0.2 * played.max()
    for piece in range(len(played) - 2, -1, -1):
        waits[piece] = 0.0 if seen[piece] else waits[piece + 1] + 1.0
    return int(waits[: len(played) // 2].argmax())


class Candidate(NamedTuple):
    """Pieces of constant means: shares of the run after which each ends, and means."""

    edges: Floats
    means: Floats


def searched(size: Setting, tries: int, seed: int) -> Segments:
    """Return the worst world that a random search finds: it keeps and changes the worst few."""
    rng = np.random.default_rng([seed, size.arms, size.rounds])
    kept: list[tuple[float, Candidate]] = []
    for trial in range(tries):
        if len(kept) < 8 or rng.random() < 0.15:
            tried = _drawn(size, rng)
        else:
            tried = _changed(kept[int(rng.integers(len(kept)) * rng.random())][1], size, rng)
        world = size.world(tried.means, tried.edges)
        first = AHEAD * (trial + 2)
        kept.append((measure("", size, world, size.few, first).share, tried))
        kept = sorted(kept, key=lambda pair: -pair[0])[:8]
    worst = kept[0][1]
    return size.world(worst.means, worst.edges)


def _drawn(size: Setting, rng: np.random.Generator) -> Candidate:
    """Draw a world: a few pieces, early ones short; means often at the ends or near the promise."""
    pieces = int(rng.integers(2, 9))
    edges = np.sort(np.exp(rng.uniform(math.log(1e-3), 0.0, pieces)))
    edges[-1] = 1.0
    means = np.array([[_level(size, rng) for _ in range(size.arms)] for _ in range(pieces)])
    if rng.random() < 0.5:  # one arm leads throughout, and one turns from bad to good
        means[:, 0] = rng.uniform(0.2, 2.0) * size.share
        means[:, 1:] = 1.0
        means[int(rng.integers(1, pieces)) :, -1] = 0.0
    return Candidate(edges, np.clip(means, 0.0, 1.0))


def _level(size: Setting, rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1.0, rng.random(), rng.uniform(0.2, 2.0) * size.share]))


def _changed(old: Candidate, size: Setting, rng: np.random.Generator) -> Candidate:
    """Return a world that differs in one thing, or a few."""
    edges, means = old.edges.copy(), old.means.copy()
    for _ in range(int(rng.integers(1, 4))):
        piece, arm, what = int(rng.integers(len(edges))), int(rng.integers(size.arms)), rng.random()
        if what < 0.3:
            means[piece, arm] = _level(size, rng)
        elif what < 0.5:
            means[:, arm] *= np.exp(0.3 * rng.normal())
        elif what < 0.8:
            edges[:-1] *= np.exp(0.3 * rng.normal(size=len(edges) - 1))
        elif what < 0.9 and len(edges) > 2 and piece < len(edges) - 1:
            edges, means = np.delete(edges, piece), np.delete(means, piece, axis=0)
        elif len(edges) < 30:
            edges = np.append(edges, rng.random())
            means = np.vstack([means, means[piece]])
            means[-1, arm] = _level(size, rng)
        order = np.argsort(edges)
        edges, means = edges[order], np.clip(means[order], 0.0, 1.0)
        edges[-1] = 1.0
    return Candidate(edges, means)


# --- what they cost -------------------------------------------------------------------------


def measure(name: str, size: Setting, world: Environment, runs: int, first: int = AHEAD) -> Used:
    """Play the default in a world; ``first`` is the number of its first run."""
    found = bd.simulate(
        size.policy(), world, replicates=runs, first_run=first, checkpoints=1, progress=False
    )
    regret = found.regret("policy")
    error = float(regret.std(ddof=1)) / math.sqrt(runs)
    return Used(name, size, world, float(regret.mean()), error, found.switched("policy") or 0.0)


def promised(arms: int, rounds: int | None, epsilon: float) -> float | None:
    """Return what the default promises; None where it prints nothing or only what says nothing."""
    policy = bd.PrivateBandit(arms, epsilon, rounds)
    own = None if rounds is None else policy.plan.own
    if own is None or own.bound is None:
        assert policy.net is None, f"a net without a promise at {arms}, {rounds}, {epsilon}"
        return None
    assert not own.vacuous, f"a promise that says nothing at {arms}, {rounds}, {epsilon}"
    assert policy.net is not None
    assert math.isclose(policy.net["budget"], own.regret)
    return own.regret


def settings() -> list[Setting]:
    """Return the sizes with their promises, checked against the smallest guarantee."""
    found = []
    for arms, rounds, epsilon in SIZES:
        promise = promised(arms, rounds, epsilon)
        assert promise is not None, f"nothing is promised at {arms}, {rounds}, {epsilon}"
        assert promise <= 5.0001 * smallest_guarantee(arms, rounds, epsilon)
        found.append(Setting(arms, rounds, epsilon, promise))
    for vague in VAGUE:
        assert promised(*vague) is None, f"something is promised at {vague}"
    return found


def reacting(sizes: list[Setting], runs: int) -> list[Used]:
    """Return what adversaries cost that see the arms played: no promise is made against them."""
    return [
        measure(kind.name, size, kind(size.arms, size.rounds), runs)
        for size in sizes
        for kind in (PunishLeader, PunishRepeats)
    ]


def main() -> int:
    """Print the largest shares, and whether the promise was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="of each world")
    parser.add_argument("--tries", type=int, default=60, help="worlds that the search plays")
    parser.add_argument("--searches", type=int, default=1, help="searches at each size")
    given = parser.parse_args()
    sizes, used = settings(), []
    for size in sizes:
        worlds = [*of_the_package(size), *against_phases(size), *from_plays(size)]
        for seed in range(given.searches):
            worlds.append((f"searched, {seed + 1}", searched(size, given.tries, seed)))
        used += [measure(name, size, world, given.runs) for name, world in worlds]
        told = f"{size.arms} arms, {size.rounds:,} rounds, epsilon {size.epsilon:g}"
        print(f"{told}: {len(worlds)} worlds", flush=True)
    used.sort(key=lambda one: -one.share)
    again = [measure(*one[:3], MORE * given.runs, first=AHEAD**2) for one in used[:ROWS]]
    again.sort(key=lambda one: -one.share)
    print("\n| world | K | T | epsilon | promised | mean regret (s.e.) | share | net took over |")
    print("|---" * 8 + "|")
    print("\n".join(one.row() for one in again))
    print(f"\n{len(used)} pairs of world and size use at most {again[0].share:.0%} of the promise;")
    print(f"at {len(VAGUE)} other sizes it would say nothing, and nothing is promised.")
    worst = max(reacting(sizes, min(given.runs, 20)), key=lambda one: one.share)
    print(f"Against what reacts to plays nothing is promised: {worst.name} has {worst.share:.0%}.")
    broken = [one for one in again if one.mean + 2.0 * one.error >= one.setting.promised]
    print("\n".join(f"BROKEN: {one.row()}" for one in broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

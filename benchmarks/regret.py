"""What the learners must show in regret, each with its number: ``python -m benchmarks.regret``.

Ratios of regrets are once against the best arm of each of 60 pieces of the run, which is never
negative, and once against the best fixed arm, where less than nothing counts as nothing. A tenth
of ``sqrt(K T / epsilon)`` is added to both sides, so that regrets near 0 do not decide.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna.environments import (
    Bernoulli,
    Environment,
    LossTable,
    OneGoodExpert,
    Segments,
    make_environment,
)
from bandanna.learners import Exp4
from bandanna.policy import Policy, Recipe
from bandanna.privacy import OneBitRelease
from bandanna.spec import Spec
from bandanna.theory.stationary import stationary_lower_bound
from benchmarks.timing import Row
from benchmarks.tune_adaptive import above_the_best_of_each_piece

ARMS, ROUNDS = 10, 200_000
WORLDS = ("bernoulli", "switching", "drift", "constrained", "barrier", "trial", "returning")
"""All environments by name that do not adapt to what is played, and have no experts."""
ONE_BIT, HTINF, ADAPTIVE = "one-bit", "htinf", "adaptive"
Floats = NDArray[np.float64]


def at_most(what: str, found: float, most: float, error: float = 0.0) -> Row:
    """A number that must not be above another, by more than its error."""
    return Row(what, f"{found:.4g}", f"at most {most:g}", found <= most + error)


# --- adaptive against the others ------------------------------------------------------------


class Case(NamedTuple):
    """A world, what is added to regrets in it, and the regrets of three algorithms."""

    name: str
    added: float
    above: float
    """How far the best fixed arm is above the best of each piece."""
    regrets: dict[str, Floats]

    def ratio(self, of: Callable[[Floats], float], other: str, pieces: bool = True) -> float:
        """Compare adaptive with another, against the best of each piece or the best fixed arm."""
        ours, theirs = of(self.regrets[ADAPTIVE]), of(self.regrets[other])
        if pieces:
            ours, theirs = ours + self.above, theirs + self.above
        return (max(ours, 0.0) + self.added) / (max(theirs, 0.0) + self.added)


def played(runs: int) -> Iterator[Case]:
    """Yield every case."""
    for epsilon in (0.1, 1.0):
        for name in WORLDS:
            own_arms = {} if name in ("barrier", "trial") else {"arms": ARMS}
            world = make_environment(name, rounds=ROUNDS, **own_arms)
            assert isinstance(world, Environment)
            policies = {
                row: bd.PrivateBandit(world.arms, epsilon, ROUNDS, row)
                for row in (ADAPTIVE, ONE_BIT, HTINF)
            }
            results = bd.simulate(policies, world, replicates=runs, checkpoints=1)
            found = {row: results.regret(row) for row in policies}
            added = 0.1 * math.sqrt(world.arms * ROUNDS / epsilon)
            above = above_the_best_of_each_piece(world)
            yield Case(f"{name}, epsilon {epsilon:g}", added, above, found)


def adaptive(runs: int) -> list[Row]:
    """Means and 90% quantiles over one-bit's and htinf's."""
    cases = list(played(runs))

    def mean(regrets: Floats) -> float:
        return float(regrets.mean())

    def upper(regrets: Floats) -> float:
        return float(np.quantile(regrets, 0.9))

    def typical(of: Callable[[Floats], float], other: str, pieces: bool = True) -> float:
        return float(np.exp(np.mean([np.log(case.ratio(of, other, pieces)) for case in cases])))

    worst = max(cases, key=lambda case: case.ratio(mean, ONE_BIT))
    errors = [worst.regrets[row].std() / math.sqrt(runs) for row in (ADAPTIVE, ONE_BIT)]
    size = worst.regrets[ONE_BIT].mean() + worst.above + worst.added
    above = [
        case.name for case in cases if upper(case.regrets[ADAPTIVE]) > upper(case.regrets[HTINF])
    ]
    what, fixed = "adaptive over one-bit", "against the best fixed arm"
    largest = f"{what}, largest mean ({worst.name})"
    return [
        at_most(f"{what}, mean", typical(mean, ONE_BIT), 0.65),
        at_most(f"{what}, 90% quantile", typical(upper, ONE_BIT), 0.6),
        at_most("adaptive over htinf, mean", typical(mean, HTINF), 0.55),
        at_most(f"{what}, mean, {fixed}", typical(mean, ONE_BIT, pieces=False), 0.65),
        at_most(f"{what}, 90% quantile, {fixed}", typical(upper, ONE_BIT, pieces=False), 0.6),
        at_most(largest, worst.ratio(mean, ONE_BIT), 1.05, 2.0 * math.hypot(*errors) / size),
        Row(
            "adaptive above htinf's 90% quantile",
            ", ".join(above) or "nowhere",
            "nowhere",
            not above,
        ),
    ]


# --- guarantees, steady and changing worlds -------------------------------------------------


def guarantees() -> list[Row]:
    """What is promised before the first round."""
    best = bd.plan(ARMS, 10**6, 0.1).best.bound
    assert best is not None
    what = "guaranteed regret of the best row, K = 10, T = 10^6, epsilon 0.1"
    return [at_most(what, best.regret / 10**6, 0.0305)]


def experts(runs: int) -> list[Row]:
    """One-bit EXP4 with centred estimates over the same with plain ones, bound and measured.

    Bits have second moment ``(1 + s)/2``, so that plain EXP4's best bound on them is
    ``sqrt((1 + s) T K ln N)/s``.
    """
    size, epsilon, rounds = (10, 5), 1.0, 10**6
    choices, s = math.log(size[0]), math.tanh(epsilon / 2.0)
    spread = (1.0 + s) * rounds * size[1]
    plain = Exp4(*size, learning_rate=2.0 * math.sqrt(choices / spread))
    asked = {"epsilon": epsilon, "rounds": rounds, "experts": size[0], "arms": size[1]}
    spec = Spec("PrivateExperts", algorithm="one-bit-exp4", **asked)  # type: ignore[arg-type]
    policies: dict[str, Policy] = {
        "plain": Policy(spec, Recipe(plain, OneBitRelease(epsilon, 1))),
        "centred": bd.PrivateExperts(*size, epsilon, 0.0, rounds, "one-bit-exp4"),
    }
    own = policies["centred"].plan.own
    assert own is not None
    assert own.bound is not None
    guaranteed = own.bound.regret / (math.sqrt(spread * choices) / s)
    world = OneGoodExpert(*size, rounds)
    results = bd.simulate(policies, world, replicates=runs, checkpoints=1)
    measured = results.regret("centred").mean() / results.regret("plain").mean()
    return [
        at_most("one-bit EXP4 centred over plain, guarantee", guaranteed, 0.7),
        at_most("one-bit EXP4 centred over plain, measured", float(measured), 0.7),
    ]


def steady(runs: int) -> list[Row]:
    """DP-KLUCB over the private lower bound, and false alarms of its guard."""
    rows, alarms, total = [], 0, 0
    for epsilon in (0.1, 1.0):
        for gap in (0.05, 0.1, 0.2, 0.3):
            means = np.where(np.arange(ARMS) == 0, 0.5 - gap / 2, 0.5 + gap / 2)
            policy = bd.PrivateBandit(ARMS, epsilon, 10**6, "dp-klucb")
            results = bd.simulate(policy, Bernoulli(means.tolist(), 10**6), replicates=runs)
            regret = results.plays("policy") @ (means - means.min())
            bound = stationary_lower_bound(means.tolist(), 10**6, epsilon)
            what = f"dp-klucb over the lower bound, gap {gap:g}, epsilon {epsilon:g}"
            rows.append(at_most(what, float(regret.mean()) / bound, 1.4))
            guard = results.guard("policy")
            assert guard is not None
            alarms += round(guard.alarms * runs)
            total += runs
    what = f"dp-klucb's false alarms at 10^-4 in {total} runs"
    return [*rows, Row(what, str(alarms), "none", alarms == 0)]


def below_fixed(what: str, policy: bd.PrivateBandit, world: object, least: int, runs: int) -> Row:
    """How far below the best fixed arm."""
    regret = bd.simulate(policy, world, replicates=runs, checkpoints=1).regret("policy")
    found = -float(regret.mean())
    return Row(f"{what}, below the best fixed arm", f"{found:,.0f}", f"{least:,}", found >= least)


def drifting(rounds: int = ROUNDS) -> LossTable:
    """Six arms whose losses are waves, the second lower by 0.05."""
    t, arm = np.arange(rounds)[:, None], np.arange(6)[None, :]
    waves = 0.5 + 0.3 * np.sin(2.0 * math.pi * (2.0 * t / rounds + arm / 6.0))
    return LossTable(waves - 0.05 * (arm == 1))


def moved(rounds: int = 10**6) -> Segments:
    """Ten Bernoulli arms; after a third another is best, and the first no longer is."""
    before, after = np.full(ARMS, 0.5), np.full(ARMS, 0.5)
    before[0], after[1] = 0.3, 0.25
    lengths = [rounds // 3, rounds - rounds // 3]
    return Segments([before.tolist(), after.tolist()], lengths, bernoulli=True)


def changing(runs: int) -> list[Row]:
    """Worlds in which no fixed arm is good."""
    rows = []
    for epsilon, least in ((1.0, 40_000), (0.1, 25_000)):
        policy = bd.PrivateBandit(6, epsilon, ROUNDS, losses="changing")
        what = f"losses='changing' on drifting losses, epsilon {epsilon:g}"
        rows.append(below_fixed(what, policy, drifting(), least, runs))
    for epsilon in (0.1, 1.0):
        policy = bd.PrivateBandit(ARMS, epsilon, 10**6, "dp-klucb")
        what = f"dp-klucb where the best arm changes at T/3, epsilon {epsilon:g}"
        rows.append(below_fixed(what, policy, moved(), 40_000, runs))
    return rows


def main() -> None:
    """Measure everything and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="of each case")
    runs = parser.parse_args().runs
    parts: tuple[Callable[[int], list[Row]], ...] = (adaptive, steady, changing)
    print("| what | measured | promised | holds |\n|---|---|---|---|")
    rows = [*guarantees(), *experts(max(runs // 10, 2))]
    for part in parts:
        rows += part(runs)
    for row in rows:
        print(f"| {row.what} | {row.measured} | {row.promised} | {'yes' if row.holds else 'NO'} |")
    sys.exit(not all(row.holds for row in rows))


if __name__ == "__main__":
    main()

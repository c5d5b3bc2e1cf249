"""Whether scorecards say what is true, and what others say.

python -m benchmarks.scorecards lifts     how often lifts cover the truth, 2,000 runs each
python -m benchmarks.scorecards division  how often the test of shares alarms
python -m benchmarks.scorecards others    the trial, beside gbstats and tea-tasting
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna.logs.effects import lift_of
from bandanna.one_look import Arm, OneLook, Term, statistic
from bandanna.policy.statements import Units
from bandanna.scorecard.health import ALARM, ratio_chance

RUNS, LIFT, ALPHA = 2_000, 0.1, 0.05
MEANS, EPSILONS, PEOPLE = (0.02, 0.1, 0.5), (0.2, 1.0, 2.0), (1_000, 10_000)
"""Means of the control, and people in each arm."""
TRIAL = Path(__file__).parents[1] / "examples" / "trial.csv"
KEPT = Path(__file__).parents[1] / "tests" / "scorecard" / "gbstats.json"
ARMS = "zidovudine", "zidovudine + didanosine"
OUTCOMES: dict[str, dict[str, object]] = {
    "cd4": {"loss_range": (0, 1200), "reward": True, "clip": True},
    "progressed": {"binary": True},
    "cd4/cd4_before": {"loss_range": (0, 1200), "over_range": (0, 1200), "reward": True},
}


# --- lifts ------------------------------------------------------------------------------------


class Coverage(NamedTuple):
    """How often a lift could be said, and how often what was said was true."""

    said: int
    covered: int


def coverage(mean: float, epsilon: float, people: int, runs: int, *, binary: bool) -> Coverage:
    """Return how often Fieller's interval has the true lift, of two arms of a finished log.

    Outcomes are 0 or 1, or else nine of ten are 0 and the others uniform. A lift that is not
    refuted is in the interval; the two are the same, and a few are looked at both ways.
    """
    rng = np.random.default_rng([round(1e4 * mean), round(1e4 * epsilon), people, binary])
    truths = [mean, (1.0 + LIFT) * mean]
    drawn = [outcomes(rng, truth, people, runs, binary=binary) for truth in truths]
    scale = 1.0 / epsilon
    sums = [
        [part + rng.laplace(0.0, scale, runs) for part in one[: 1 if binary else 2]]
        for one in drawn
    ]
    said = covered = 0
    for run in range(runs):
        arms = tuple(
            Arm(people, one[0][run], people / 4.0 if binary else one[1][run], scale) for one in sums
        )
        whole = statistic([Term(1.0, arms[0])])
        if arms[0].mean <= whole.radius(ALPHA):
            continue
        said += 1
        off = statistic([Term(1.0, arms[1]), Term(-1.0 - LIFT, arms[0])])
        inside = abs(off.value) <= off.radius(ALPHA)
        covered += inside
        if run < 20:
            look = OneLook(arms, "exact" if binary else "normal", binary)
            found = lift_of(look, Units(0.0, 1.0, False, "", "rows"), 1, 0, ALPHA)
            assert found is None or (found.low <= LIFT <= found.high) == inside
    return Coverage(said, covered)


def outcomes(
    rng: np.random.Generator, mean: float, people: int, runs: int, *, binary: bool
) -> list[NDArray[np.float64]]:
    """Return sums of outcomes, and of their squares around 1/2, for every run."""
    if binary:
        return [rng.binomial(people, mean, runs).astype(float)]
    busy = rng.binomial(people, 0.1, runs) if mean <= 0.1 else np.full(runs, people)
    most = 2.0 * mean * people / busy.mean()
    sums, squares = np.empty(runs), np.empty(runs)
    for run, size in enumerate(busy):
        values = rng.uniform(0.0, most, size)
        sums[run] = values.sum()
        squares[run] = ((values - 0.5) ** 2).sum() + (people - size) / 4.0
    return [sums, squares]


def lifts(runs: int) -> None:
    """Print a table of coverage."""
    print("| outcomes | control's mean | epsilon | people an arm | said | of these right |")
    print("|---|---|---|---|---|---|")
    for binary in (True, False):
        for mean in MEANS if binary else MEANS[:2]:
            for epsilon in EPSILONS:
                for people in PEOPLE:
                    found = coverage(mean, epsilon, people, runs, binary=binary)
                    kind = "0 or 1" if binary else "amounts"
                    share = f"{100 * found.covered / max(found.said, 1):.1f}%"
                    said = f"{100 * found.said / runs:.1f}%"
                    print(f"| {kind} | {mean} | {epsilon} | {people:,} | {said} | {share} |")


# --- shares -----------------------------------------------------------------------------------


def alarms(share: float, people: int) -> float:
    """Return the exact probability that the test of equal parts alarms, of two arms."""
    from scipy.stats import binom

    counts = np.arange(people // 2 - 2_000, people // 2 + 2_000)
    chances = binom.pmf(counts, people, share)
    likely = chances > 1e-14
    return float(
        sum(
            chance
            for count, chance in zip(counts[likely].tolist(), chances[likely], strict=True)
            if ratio_chance([count, people - count], [0.5, 0.5]) <= ALARM
        )
    )


def division(runs: int) -> None:
    """Print how often the test alarms."""
    print(f"two arms, fair, 20,000 people: {100 * alarms(0.5, 20_000):.3f}% (exact)")
    print(f"two arms at 48/52, 20,000 people: {100 * alarms(0.48, 20_000):.3f}% (exact)")
    for arms in (3, 10):
        rng = np.random.default_rng(arms)
        drawn = rng.multinomial(20_000, [1 / arms] * arms, size=runs).tolist()
        seen = sum(ratio_chance(row, [1 / arms] * arms) <= ALARM for row in drawn)
        print(f"{arms} arms, fair, 20,000 people: {100 * seen / runs:.2f}% ({runs:,} draws)")


# --- others -----------------------------------------------------------------------------------


class Said(NamedTuple):
    """A difference or a lift, and its ends."""

    value: float
    low: float
    high: float


def ours(metric: str, times: int, epsilon: float) -> tuple[list[float], Said, Said]:
    """Return both means, the difference and the lift of the trial, each row so many times."""
    card = bd.compare(
        trial(times),
        arm="treatment",
        control=ARMS[0],
        outcomes={metric: OUTCOMES[metric]},  # type: ignore[dict-item]
        epsilon=epsilon,
    )
    base, one = card.metrics[0].effects
    assert None not in (base.mean, one.mean, one.difference, one.lift)
    return (
        [base.mean or 0.0, one.mean or 0.0],
        Said(one.difference or 0.0, one.low, one.high),
        Said(one.lift or 0.0, one.lift_low, one.lift_high),
    )


def trial(times: int) -> dict[str, list[object]]:
    """Return the two arms of the trial that others were asked about."""
    with TRIAL.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["treatment"] in ARMS] * times
    found: dict[str, list[object]] = {"treatment": [row["treatment"] for row in rows]}
    for name in ("cd4", "cd4_before", "progressed"):
        found[name] = [int(row[name]) for row in rows]
    return found


def of_tea_tasting(metric: str, times: int) -> tuple[list[float], Said, Said]:
    """Return what tea-tasting says."""
    import polars as pl
    import tea_tasting as tt  # type: ignore[import-untyped]

    top, _, under = metric.partition("/")
    asked = tt.RatioOfMeans(top, under) if under else tt.Mean(metric)
    frame = pl.DataFrame(trial(times))
    one = tt.Experiment({metric: asked}, variant="treatment").analyze(frame, control=ARMS[0])[
        metric
    ]
    return (
        [one.control, one.treatment],
        Said(one.effect_size, one.effect_size_ci_lower, one.effect_size_ci_upper),
        Said(one.rel_effect_size, one.rel_effect_size_ci_lower, one.rel_effect_size_ci_upper),
    )


def of_gbstats(metric: str, times: int) -> tuple[list[float], Said, Said]:
    """Return what gbstats said, from what was kept of it: see ``gbstats_check.py``."""
    kept = json.loads(KEPT.read_text("utf-8"))[f"{metric} {times}"]
    return kept["means"], Said(*kept["absolute"]), Said(*kept["relative"])


def away(mine: Said, theirs: Said) -> float:
    """Return how far an estimate and both ends are from another's at most, in its width."""
    return max(abs(a - b) for a, b in zip(mine, theirs, strict=True)) / (theirs.high - theirs.low)


def others(_: int) -> None:
    """Print how far what is said here is from what others say, as epsilon grows."""
    print(
        "| rows | metric | epsilon | gbstats: difference | lift | tea-tasting: difference | lift |"
    )
    print("|---|---|---|---|---|---|---|")
    for times in (1, 25):
        for metric in OUTCOMES:
            theirs = of_gbstats(metric, times), of_tea_tasting(metric, times)
            for epsilon in (1.0, 10.0, 100.0):
                mine = ours(metric, times, epsilon)[1:]
                cells = [
                    f"{100 * away(one, other):.1f}%"
                    for said in theirs
                    for one, other in zip(mine, said[1:], strict=True)
                ]
                size = f"{len(trial(times)['cd4']):,}"
                print(f"| {size} | {metric} | {epsilon:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    asked = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else RUNS
    {"lifts": lifts, "division": division, "others": others}[asked](count)

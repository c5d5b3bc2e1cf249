"""What phased-net loses beside its rivals: ``python -m benchmarks.ordinary --runs 1000``.

These problems judge; the constants of phases were chosen on those of ``benchmarks.tune_phased``.
Rivals are dp-klucb, phased, adaptive and the plain A/B test that explores 10% or 20% of the rounds,
each with the same epsilon and the same random numbers. Prints a Markdown table, then what holds.

``--woken`` prints in how many runs an arm that wakes is found: most of the last tenth of the rounds
is played with it.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from research.worlds import CommonEffects, Narrow, Waking

import bandanna as bd
from bandanna.environments import (
    Barrier,
    Environment,
    PunishLeader,
    PunishRepeats,
    Segments,
    Switching,
)
from bandanna.simulation.engine import play_run

Floats = NDArray[np.float64]
Measured = dict[str, Floats]

RIVALS: dict[str, dict[str, object]] = {
    "dp-klucb": {"algorithm": "dp-klucb"},
    "phased": {"algorithm": "phased"},
    "adaptive": {"algorithm": "adaptive"},
    "explore 10%": {"algorithm": "ab-test", "explore": 0.1},
    "explore 20%": {"algorithm": "ab-test"},
}
NET = "phased-net"
ORDINARY, WAKING, CHANGING = "ordinary", "waking", "changing"


class Case(NamedTuple):
    """A problem that judges."""

    name: str
    kind: str
    world: Environment
    epsilon: float


def steady(means: list[float], rounds: int) -> Segments:
    """Return arms of which the losses, 0 or 1, do not change."""
    return Segments([means], [rounds], bernoulli=True)


def one_better(arms: int, gap: float, rounds: int, level: float = 0.5) -> Segments:
    """Return steady arms one of which, in the middle, is better."""
    means = [level] * arms
    means[arms // 2] -= gap
    return steady(means, rounds)


def jumping(arms: int, rounds: int) -> Segments:
    """Return arms that all jump together 200 times; one is better throughout."""
    means = np.full((200, arms), 0.3) + 0.35 * (np.arange(200) % 2)[:, None]
    means[:, 1] -= 0.1
    return Segments(means, np.full(200, rounds // 200), bernoulli=True)


def pieces(arms: int, rounds: int) -> Segments:
    """Return arms whose means are drawn anew 50 times."""
    means = np.random.default_rng(0).random((50, arms))
    return Segments(means, np.full(50, rounds // 50), bernoulli=True)


def cases() -> list[Case]:
    """Return all problems: written down before any was played."""
    far, many = [0.7, 0.3, 0.15, 0.17], [0.6, 0.5, 0.1, 0.1, 0.12, 0.4]
    ordinary: list[tuple[str, Environment, float]] = [
        ("2 arms, gap 0.5", one_better(2, 0.5, 3_000), 1.0),
        ("2 arms, gap 0.02", one_better(2, 0.02, 1_000_000), 0.05),
        ("2 arms, gap 0.1", one_better(2, 0.1, 5_000), 1.0),
        ("3 arms, gap 0.2", one_better(3, 0.2, 3_000), 0.5),
        ("5 arms, gap 0.1", one_better(5, 0.1, 20_000), 0.5),
        ("10 arms, gap 0.1", one_better(10, 0.1, 200_000), 0.1),
        ("10 arms, gap 0.02", one_better(10, 0.02, 200_000), 0.1),
        ("10 arms, gap 0.3", one_better(10, 0.3, 200_000), 0.1),
        ("4 arms, gap 0.05", one_better(4, 0.05, 10_000), 2.0),
        ("20 arms, gap 0.05", one_better(20, 0.05, 100_000), 1.0),
        ("50 arms, gap 0.1", one_better(50, 0.1, 500_000), 0.2),
        ("50 arms, gap 0.3", one_better(50, 0.3, 20_000), 2.0),
        ("8 arms, gap 0.05", one_better(8, 0.05, 1_000_000), 0.05),
        ("far apart", steady(far, 100_000), 0.1),
        ("far apart", steady(far, 100_000), 0.5),
        ("six far apart", steady(many, 50_000), 0.1),
        ("rare losses", steady([0.5, 0.02, 0.03], 30_000), 0.1),
        ("rates of 1%", one_better(2, 0.01, 200_000, 0.99), 1.0),
        ("rates of 1%", one_better(4, 0.005, 1_000_000, 0.99), 0.5),
        ("weekdays", CommonEffects(5, 20_000), 0.5),
        ("weekdays", CommonEffects(10, 200_000), 0.1),
        ("a trend", CommonEffects(10, 200_000, weekday=0.0, trend=0.3), 0.1),
        ("all jump", jumping(10, 200_000), 0.1),
        ("lab values", Narrow(5, 20_000), 0.5),
        ("lab values", Narrow(10, 200_000), 0.1),
        ("lab values", Narrow(4, 5_000), 2.0),
    ]
    waking: list[tuple[str, Environment, float]] = [
        ("wakes at 40%", Waking(10, 200_000, wakes=0.4), 0.1),
        ("wakes at 40%", Waking(5, 20_000, wakes=0.4), 0.5),
        ("wakes at 40%", Waking(4, 1_000_000, wakes=0.4), 0.1),
        ("wakes at 40%", Waking(20, 500_000, wakes=0.4), 0.5),
        ("barrier turn 0.33", Barrier(100_000, 33_000), 0.1),
        ("barrier turn 0.33", Barrier(20_000, 6_600), 0.5),
    ]
    changing: list[tuple[str, Environment, float]] = [
        ("moves", Switching(10, 200_000, gap=0.2, changes=4, first=0.2, bernoulli=True), 0.1),
        ("50 pieces", pieces(10, 200_000), 0.1),
        ("punish-leader", PunishLeader(5, 20_000), 0.5),
        ("punish-repeats", PunishRepeats(5, 20_000), 0.5),
    ]
    kinds = {ORDINARY: ordinary, WAKING: waking, CHANGING: changing}
    return [
        Case(name, kind, world, eps) for kind, rows in kinds.items() for name, world, eps in rows
    ]


def measure(case: Case, runs: int, only: list[str] | None = None, **options: object) -> Measured:
    """Return every algorithm's regret in every run."""
    world = case.world
    wanted = {NET: {"algorithm": "phased-net"} | options} | RIVALS
    size = world.arms, case.epsilon, world.rounds
    policies = {
        name: bd.PrivateBandit(*size, **given)  # type: ignore[arg-type]
        for name, given in wanted.items()
        if only is None or name in only
    }
    found = bd.simulate(policies, world, replicates=runs, checkpoints=1)
    return {name: found.regret(name) for name in policies}


def line(case: Case, found: Measured) -> tuple[str, float, float]:
    """Return a row of the table, and its mean and 90% quantile over the best rival's."""
    means = {name: float(regret.mean()) for name, regret in found.items()}
    highs = {name: float(np.quantile(regret, 0.9)) for name, regret in found.items()}
    best = min(means[name] for name in RIVALS)
    high = min(highs[name] for name in RIVALS)
    world = case.world
    ratio, tail = means[NET] / best, highs[NET] / high
    numbers = [f"{means[name]:,.0f} ({highs[name]:,.0f})" for name in (NET, *RIVALS)]
    cells = [case.name, str(world.arms), f"{world.rounds:,}", f"{case.epsilon:g}", *numbers]
    said = [f"{ratio:.2f}", f"{tail:.2f}"] if best > 0.0 and high > 0.0 else ["-", "-"]
    return f"| {' | '.join([*cells, *said])} |", ratio, tail


def compare(problems: list[Case], runs: int) -> None:
    """Print the table and what holds."""
    print(f"| problem | K | T | epsilon | {' | '.join([NET, *RIVALS])} | mean | 90% |")
    print("|---" * (6 + 1 + len(RIVALS)) + "|")
    ratios = []
    for case in problems:
        row, ratio, tail = line(case, measure(case, runs))
        if case.kind == ORDINARY:
            ratios.append((ratio, tail))
        print(row, flush=True)
    means, tails = np.array(ratios).T
    whole = math.exp(float(np.log(means).mean()))
    print(f"\nOrdinary problems, over the best rival of each: geometric mean {whole:.2f}, at most")
    print(f"{means.max():.2f}; above 1.15 in {int((means > 1.15).sum())} of {means.size}; 90%")
    print(f"quantiles at most {tails.max():.2f}, above 1.3 in {int((tails > 1.3).sum())}.")


def found_woken(world: Segments, policy: bd.Policy, runs: int) -> float:
    """Return in how many runs most of the last tenth is played with the arm that is best then."""
    best = int(world.params().means[-1].argmin())
    stops = np.array([round(0.9 * world.rounds), world.rounds])
    played = [play_run(policy.recipe, world, stops, 0, run).played for run in range(runs)]
    last = np.diff(np.array(played)[:, :, best], axis=1)[:, 0]
    return float((last > 0.5 * (stops[1] - stops[0])).mean())


def woken(problems: list[Case], runs: int) -> None:
    """Print in how many runs each algorithm finds an arm that wakes."""
    names = [NET, "phased", "adaptive", "dp-klucb"]
    print(f"| problem | K | T | epsilon | {' | '.join(names)} |")
    print("|---" * (4 + len(names)) + "|")
    for case in problems:
        if case.kind == WAKING and isinstance(case.world, Segments):
            size = case.world.arms, case.epsilon, case.world.rounds
            cells = [case.name, str(size[0]), f"{size[2]:,}", f"{case.epsilon:g}"]
            for name in names:
                share = found_woken(case.world, bd.PrivateBandit(*size, name), runs)
                cells.append(f"{share:.1%}")
            print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table and what holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--woken", action="store_true", help="how often an arm that wakes is found")
    given = parser.parse_args()
    (woken if given.woken else compare)(cases(), given.runs)


if __name__ == "__main__":
    main()

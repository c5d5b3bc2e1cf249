"""How wide private answers are, from logs and while experiments run, and how often they are right.

    python -m benchmarks.sharp trial     half-widths on a medical trial, beside the t-test
    python -m benchmarks.sharp coverage  how often each kind of interval covers, and its width
    python -m benchmarks.sharp found     the same where the range is found, or outcomes are adjusted
    python -m benchmarks.sharp arms      logs of equal arms in which anything false is said
    python -m benchmarks.sharp planned   how often planned people tell the gap they were planned for
    python -m benchmarks.sharp others    the same table as tea-tasting has it
    python -m benchmarks.sharp races     rounds until an answer, looking after every release
    python -m benchmarks.sharp equal     runs in which equal arms are told apart at any look
    python -m benchmarks.sharp regret    regret of phased and dp-klucb with squares and without

RUNS as a second argument (by default 200 for the trial, 2,000 otherwise); for ``coverage`` kinds of
intervals and rows after it. Constants were chosen on other worlds.
"""

from __future__ import annotations

import math
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna.counted import Counted
from bandanna.environments import LossTable
from bandanna.logs import answer_counted
from bandanna.one_look import HOW, Arm, OneLook
from bandanna.planner.time_to_answer import AnswerProblem, time_to_answer
from bandanna.simulation.engine import play_run

DATA = Path(__file__).parent / "data" / "actg175.csv"
Law = tuple[Any, Any]
RNG = np.random.default_rng(20)

BOUNDS: dict[str, Any] = {"loss_range": (0, 1000), "clip": True}
WAYS: dict[str, dict[str, Any]] = {
    "plain": BOUNDS,
    "range found": {"loss_range": "auto", "bounds": (0, 1000)},
    "adjusted by cd40, slope and range found": {**BOUNDS, "adjust": "cd40"},
    "adjusted by cd40, both given": {
        **BOUNDS,
        "adjust": "cd40",
        "slope": 0.65,
        "adjusted_range": (-150, 450),
    },
    "proved": {**BOUNDS, "interval": "proved"},
}


def trial_data() -> dict[str, Any]:
    """Return the trial's columns."""
    arms, before, after = np.loadtxt(DATA, delimiter=",", skiprows=1, unpack=True)
    return {"arms": arms.astype(np.int64), "cd40": before, "cd420": after}


def trial(runs: int) -> None:
    """Half-widths of arm 1 against arm 0."""
    log = trial_data()
    asked: dict[str, Any] = {"arm": "arms", "outcome": "cd420", "reward": True}
    print("| median half-width | epsilon 0.5 | 1 | 2 | 10 |\n|---|---|---|---|---|")
    for name, way in WAYS.items():
        cells = []
        for epsilon in (0.5, 1.0, 2.0, 10.0):
            found = [
                bd.answer(log, **asked, **way, epsilon=epsilon).compare("0", "1")
                for _ in range(runs)
            ]
            cells.append(f"{np.median([(one.high - one.low) / 2 for one in found]):.1f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    none, first = (log["arms"] == arm for arm in (0, 1))
    slope = 0.65
    for name, outcome in (("t-test", log["cd420"]), ("CUPED", log["cd420"] - slope * log["cd40"])):
        spread = outcome[none].var(ddof=1) / none.sum() + outcome[first].var(ddof=1) / first.sum()
        print(f"{name}, no privacy: {1.96 * math.sqrt(spread):.1f}")


# --- coverage ---------------------------------------------------------------------------------


def law(values: Any) -> Law:
    """Return values as atoms and chances."""
    atoms, counts = np.unique(np.round(np.clip(values, 0, 1) * 200) / 200, return_counts=True)
    return atoms, counts / counts.sum()


def rate(p: float) -> Law:
    """Return outcomes that are 0 or 1."""
    return np.array([0.0, 1.0]), np.array([1.0 - p, p])


def worlds() -> dict[str, Law]:
    """Return the laws that are judged on."""
    rng = np.random.default_rng(1)
    bought = np.where(rng.random(100_000) < 0.05, rng.lognormal(3.4, 0.9, 100_000), 0.0)
    return {
        "lab values": law(rng.gamma(6.5, 0.055, 100_000)),
        "visits": law(rng.negative_binomial(0.6, 0.175, 100_000) / 20),
        "revenue, 95% 0": law(bought / 200),
        "rate .3": rate(0.3),
        "rate .05": rate(0.05),
        "rate .005": rate(0.005),
        "constant": (np.array([0.25]), np.array([1.0])),
    }


CASES = (
    ((100, 100), 0.1),
    ((100, 100), 1.0),
    ((100, 100), 8.0),
    ((500, 500), 0.5),
    ((5_000, 500), 0.5),
    ((5_000, 5_000), 1.0),
    ((50_000, 50_000), 0.1),
    ((50_000, 50_000), 8.0),
    ((200, 20_000), 8.0),
    ((50, 20_000), 8.0),
)


def released(one: Law, size: int, epsilon: float, *, binary: bool) -> Arm:
    """Draw an arm and release it, with noise from a seed."""
    drawn = RNG.multinomial(size, one[1])
    first, second = RNG.laplace(0.0, 1.0 / epsilon, 2)
    square = size / 4 if binary else drawn @ (one[0] - 0.5) ** 2 + second
    return Arm(float(size), float(drawn @ one[0] + first), float(square), 1.0 / epsilon)


def coverage(runs: int) -> None:
    """How often an interval of a difference covers, of a mean covers, and the first's width."""
    known = worlds()
    pairs = [(name, name) for name in known]
    pairs += [("lab values", "constant"), ("rate .05", "rate .3"), ("revenue, 95% 0", "constant")]
    heads = " | ".join(f"{a:,} + {b:,}, eps {epsilon:g}" for (a, b), epsilon in CASES)
    kinds = [one for one in sys.argv[3:] if one in HOW] or HOW
    rows = [one for one in sys.argv[3:] if one not in HOW]
    for kind in kinds:
        print(f"\n{kind}: % of differences covered / of means, width over the t-test's\n")
        print(f"| outcomes | {heads} |\n|---|{'---|' * len(CASES)}")
        for pair in pairs:
            laws = [known[name] for name in pair]
            if kind == "exact" and not all(one[0].size == 2 for one in laws):
                continue
            name = pair[0] if pair[0] == pair[1] else f"{pair[0]}; {pair[1]}"
            if rows and name not in rows:
                continue
            cells = [_covered(laws, sizes, epsilon, kind, runs) for sizes, epsilon in CASES]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _covered(laws: list[Law], sizes: Any, epsilon: float, kind: Any, runs: int) -> str:
    binary = kind == "exact"
    means = [float(one[0] @ one[1]) for one in laws]
    spread = [float(one[0] ** 2 @ one[1]) - mean**2 for one, mean in zip(laws, means, strict=True)]
    both, single, width = 0, 0, 0.0
    for _ in range(runs):
        arms = [
            released(one, size, epsilon, binary=binary)
            for one, size in zip(laws, sizes, strict=True)
        ]
        look = OneLook(tuple(arms), kind, binary)
        low, high = look.difference(0, 1, 0.05)
        both += low <= means[1] - means[0] <= high
        width += (high - low) / 2
        low, high = look.mean(0, 0.05)
        single += low <= means[0] <= high
    ideal = 1.96 * math.sqrt(sum(v / n for v, n in zip(spread, sizes, strict=True)))
    wide = f"{width / runs / ideal:.2f}" if ideal > 1e-9 else "-"
    return f"{100 * both / runs:.1f} / {100 * single / runs:.1f}, {wide}"


# --- a range that is found, outcomes that are adjusted ----------------------------------------


def found(runs: int) -> None:
    """Coverage of what is counted within the range that is found; the truth is computed from it."""
    print("| way | people | epsilon | % covered |\n|---|---|---|---|")
    for size, epsilon in ((1_000, 0.5), (1_000, 2.0), (10_000, 0.5)):
        for name in ("range found", "adjusted"):
            hits = 0
            for _ in range(runs):
                before = RNG.gamma(6.5, 55.0, size)
                after = np.clip(0.6 * before + RNG.normal(150, 100, size), 0, 1000)
                log = {"arm": RNG.integers(0, 2, size), "after": after, "before": before}
                way: dict[str, Any] = {"loss_range": (0, 1000), "adjust": "before"}
                if name == "range found":
                    way = {"loss_range": "auto", "bounds": (0, 1000)}
                one = bd.answer(log, arm="arm", outcome="after", epsilon=epsilon, clip=True, **way)
                pair = one.compare("0", "1")
                hits += pair.low <= 0.0 <= pair.high
            print(f"| {name} | {size:,} | {epsilon:g} | {100 * hits / runs:.1f} |", flush=True)


# --- many equal arms --------------------------------------------------------------------------


def arms(runs: int) -> None:
    """Logs in which equal arms are told apart, a best one is named, or one is left out."""
    print("| arms | people each | epsilon | % of logs that say anything false |\n|---|---|---|---|")
    one = worlds()["visits"]
    for count in (2, 10, 50):
        false = 0
        for _ in range(runs):
            drawn = RNG.multinomial(400, one[1], size=count)
            units = np.rint(one[0] * UNITS).astype(np.int64)
            half = UNITS // 2
            counted = Counted(
                tuple(range(count)),
                np.full(count, 400),
                drawn @ units,
                drawn @ ((units - half) ** 2 // UNITS),
            )
            answer = answer_counted(counted, epsilon=1.0)
            told = any(pair.low > 0.0 or pair.high < 0.0 for pair in answer.differences)
            false += told or answer.best is not None or len(answer.racing) < count
        print(f"| {count} | 400 | 1 | {100 * false / runs:.1f} |", flush=True)


def planned(runs: int) -> None:
    """How often as many people as are planned tell the gap, and 5% fewer and more."""
    from bandanna.planner.finished import FinishedProblem

    print("| outcomes | epsilon | gap | people for 80% | told with 95% of them | 100% | 105% |")
    print("|---|---|---|---|---|---|---|")
    lab, coin = worlds()["lab values"], (0.05, 0.06)
    mean = float(lab[0] @ lab[1])
    sd = math.sqrt(float(lab[0] ** 2 @ lab[1]) - mean**2)
    for epsilon in (0.2, 0.5, 2.0):
        problem = FinishedProblem(epsilon, sd)
        moved = np.clip(lab[0] + 0.03, 0, 1)
        laws: Any = (lab, (moved, lab[1]))
        gap = float(moved @ lab[1]) - mean
        _planned("lab values", problem, gap, laws, runs)
        rates = FinishedProblem(epsilon, base_rate=coin[0])
        _planned("rate .05", rates, coin[1] - coin[0], (rate(coin[0]), rate(coin[1])), runs)


def _planned(name: str, problem: Any, gap: float, laws: Any, runs: int) -> None:
    from bandanna.planner.finished import PRIVATE

    people, binary = problem.people(gap, PRIVATE, 0.8), problem.base_rate is not None
    cells = []
    for share in (0.95, 1.0, 1.05):
        told, size = 0, round(people * share / 2)
        for _ in range(runs):
            arms = tuple(released(one, size, problem.epsilon, binary=binary) for one in laws)
            look = OneLook(arms, "exact" if binary else "normal", binary)
            told += look.difference(0, 1, 0.05).low > 0.0
        cells.append(f"{100 * told / runs:.1f}%")
    print(f"| {name} | {problem.epsilon:g} | {gap:.3g} | {people:,} | {' | '.join(cells)} |")


def others(runs: int) -> None:
    """The trial without any noise to speak of, beside tea-tasting."""
    import polars as pl
    import tea_tasting as tt  # type: ignore[import-untyped]

    log = trial_data()
    two = {name: column[log["arms"] < 2] for name, column in log.items()}
    frame = pl.DataFrame(two)
    metrics = {"plain": tt.Mean("cd420"), "adjusted": tt.Mean("cd420", covariate="cd40")}
    result = tt.Experiment(metrics, variant="arms").analyze(frame, control=0)
    spread = np.cov(two["cd40"], two["cd420"])
    slope = float(spread[0, 1] / spread[0, 0])
    given = {"adjust": "cd40", "slope": slope, "adjusted_range": (-1000, 1200)}
    ways: dict[str, Any] = {"plain": {}, "adjusted": given}
    for name, way in ways.items():
        theirs = result[name]
        half = (theirs.effect_size_ci_upper - theirs.effect_size_ci_lower) / 2
        ends: dict[str, Any] = {"loss_range": (0, 1200), "clip": True, "epsilon": 100.0, **way}
        ours = bd.answer(two, arm="arms", outcome="cd420", reward=True, **ends).compare("0", "1")
        print(
            f"{name}: tea-tasting {theirs.effect_size:.2f} +- {half:.3f}, here at epsilon 100 "
            f"{ours.difference:.2f} +- {(ours.high - ours.low) / 2:.3f}"
        )


# --- while experiments run --------------------------------------------------------------------


def table_of(laws: list[Law], rounds: int, seed: int) -> Any:
    """Return an environment with outcomes of these laws, one column for each arm."""
    rng = np.random.default_rng([seed, 36])
    return LossTable(
        np.stack([rng.choice(values, rounds, p=chances) for values, chances in laws], axis=1)
    )


def race_of(laws: list[Law], epsilon: float, rounds: int, runs: int, **options: Any) -> Any:
    """Return by run which arm a race named, -1 for none, and after how many rounds."""
    policy = bd.PrivateBandit(len(laws), epsilon=epsilon, goal="answer", **options)
    stops = np.array([rounds])
    return np.array(
        [
            play_run(policy.recipe, table_of(laws, rounds, run), stops, 36, run).answer
            for run in range(runs)
        ]
    )


PAIRS: dict[str, tuple[float, dict[str, Any]]] = {
    "lab values": (0.067, {}),
    "rate .3": (0.1, {"binary": True}),
}


def races(runs: int) -> None:
    """Mean rounds until the better of two arms is known, 95% sure, and as they are planned."""
    heads = "| outcomes | epsilon | planned | normal | wrong | proved | wrong |"
    print(f"{heads}\n|---|---|---|---|---|---|---|")
    for name, (gap, options) in PAIRS.items():
        first = worlds()[name]
        worse = rate(0.4) if options else (np.clip(first[0] + gap, 0, 1), first[1])
        for epsilon in (0.5, 2.0):
            sd = math.sqrt(float(first[0] ** 2 @ first[1]) - float(first[0] @ first[1]) ** 2)
            asked: dict[str, Any] = {"base_rate": 0.6} if options else {"sd": sd}
            problem = AnswerProblem(2, epsilon, gap, **asked)
            cells = [f"{time_to_answer(problem, runs=10 * runs).mean:,.0f}"]
            for kind in ("normal", "proved"):
                found = race_of([first, worse], epsilon, 12_000, runs, interval=kind, **options)
                took = np.where(found[:, 0] < 0, 12_000, found[:, 1])
                cells += [f"{took.mean():,.0f}", f"{np.sum(found[:, 0] == 1)} of {runs}"]
            print(f"| {name}, {gap:g} apart | {epsilon:g} | {' | '.join(cells)} |", flush=True)


def equal(runs: int) -> None:
    """How often one of two equal arms is named within 20 000 rounds."""
    print("| outcomes | epsilon .1 | .5 | 2 | 8 |\n|---|---|---|---|---|")
    for name, one in worlds().items():
        cells = []
        for epsilon in (0.1, 0.5, 2.0, 8.0):
            found = race_of([one, one], epsilon, 20_000, runs)
            cells.append(f"{100 * np.mean(found[:, 0] >= 0):.1f}%")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def regret(runs: int) -> None:
    """Regret on the trial's lab values, drawn again and again, in units of the range."""
    log = trial_data()
    laws: list[Law] = [law(log["cd420"][log["arms"] == arm] / 1000.0) for arm in range(4)]
    laws = [(1.0 - values, chances) for values, chances in laws]  # more is better
    means = np.array([float(values @ chances) for values, chances in laws])
    heads = "phased | phased, without squares | dp-klucb | dp-klucb, without squares"
    print(f"| rounds | epsilon | {heads} |\n|---|---|---|---|---|---|")
    for rounds, epsilon in ((20_000, 0.5), (5_000, 1.0), (200_000, 0.1), (20_000, 0.1)):
        cells = []
        for name, binary in product(("phased", "dp-klucb"), (False, True)):
            policy = bd.PrivateBandit(4, epsilon, rounds, name, binary=binary)
            lost = [
                play_run(
                    policy.recipe, table_of(laws, rounds, run), np.array([rounds]), 36, run
                ).plays
                @ (means - means.min())
                for run in range(runs)
            ]
            error = np.std(lost) / math.sqrt(runs)
            cells.append(f"{np.mean(lost):.0f} +- {error:.0f}")
        print(f"| {rounds:,} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "trial"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else (200 if asked == "trial" else 2_000)
    {
        "trial": trial,
        "coverage": coverage,
        "found": found,
        "arms": arms,
        "planned": planned,
        "others": others,
        "races": races,
        "equal": equal,
        "regret": regret,
    }[asked](runs)

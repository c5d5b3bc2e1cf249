"""``make bench``: every speed we promise, measured here and now, as ratios within this run."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from functools import partial

import numpy as np

import bandanna as bd
from bandanna.audits.releases import audit_release
from bandanna.environments import Bernoulli
from bandanna.learners import Exp3
from bandanna.privacy import LaplaceRelease, OneBitRelease
from benchmarks import (
    adaptive,
    alternatives,
    experts,
    in_c,
    people,
    service,
    service_beside,
    studies,
)
from benchmarks.in_c import ARMS, ROUNDS, runner, table
from benchmarks.timing import Row, seconds

PROCESSES = 5


def against_c() -> tuple[list[Row], float]:
    """EXP3, Tsallis-INF and HTINF against the same loops in C; also our seconds a round of EXP3."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(PROCESSES):
        command = [sys.executable, "-m", "benchmarks.in_c"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for name, pair in json.loads(done.stdout).items():
            found.setdefault(name, []).append(tuple(pair))
    rows = []
    for name, pairs in found.items():
        shares = sorted(theirs / ours for theirs, ours in pairs)
        theirs, ours = (1e9 * statistics.median(times) for times in zip(*pairs, strict=True))
        measured = (
            f"{shares[0]:.2f} to {shares[-1]:.2f} in {PROCESSES} processes, median "
            f"{statistics.median(shares):.2f} ({ours:.0f} against {theirs:.0f} ns)"
        )
        what = f"{name}, K = {in_c.ARMS}, T = 10^5, one core, share of C's speed"
        promise = in_c.PROMISES[name]
        rows.append(Row(what, measured, f"at least {promise} in each", shares[0] >= promise))
    return rows, statistics.median(ours for _, ours in found["EXP3"])


def against_libraries(ours: float) -> list[Row]:
    """The same EXP3 against river, MABWiser and NumPy, by time a round."""
    losses = np.random.default_rng(0).random((5_000, ARMS))
    rows = []
    river = min(alternatives.river_exp3(losses) for _ in range(3))
    name, mabwiser = alternatives.fastest_mabwiser(losses[:2_000], repeats=3)
    for who, theirs in (("river's Exp3", river), (f"MABWiser's {name}", mabwiser)):
        measured = f"{theirs / ours:,.0f} times ({theirs * 1e6:.1f} us a round)"
        rows.append(Row(f"EXP3 against {who}", measured, "reported", True))
    rate, mixing = alternatives.exp3_parameters(ARMS, ROUNDS)
    vectorised = alternatives.numpy_exp3(losses[:1_000], 1_000, rate, mixing)
    measured = f"{vectorised / ours:.1f} times ({vectorised * 1e9:.0f} ns a round and run)"
    rows.append(
        Row("EXP3 against NumPy, 1 000 runs", measured, "at least 5 times", vectorised >= 5 * ours)
    )
    return rows


def many_arms(ours: float) -> Row:
    """Cost of a round with a thousand arms."""
    rounds = 2_500  # a table that fits the cache: the arms are on trial, not the memory
    rate, mixing = alternatives.exp3_parameters(1_000, rounds)
    cost = seconds(runner(Exp3(1_000, rate, mixing), table(1_000, rounds))) / rounds
    measured = f"{cost / ours:.1f} times ({cost * 1e9:.0f} ns)"
    return Row("EXP3, K = 1000 against K = 10", measured, "under 12 times", cost < 12 * ours)


def two_cores() -> Row:
    """The same study on two cores and on one."""
    policy = bd.Bandit(ARMS, "exp3", ROUNDS)
    environment = Bernoulli(ARMS, ROUNDS)
    timings = {}
    for cores in (1, 2):
        work = partial(bd.simulate, policy, environment, replicates=200, cores=cores)
        timings[cores] = seconds(work, 5)
    ratio = timings[1] / timings[2]
    return Row("two cores against one", f"{ratio:.2f} times", "at least 1.8 times", ratio >= 1.8)


def a_billion_rounds() -> Row:
    """One long private run."""
    rounds = 10**9
    policy, environment = bd.PrivateBandit(ARMS, 1e-3, rounds), Bernoulli(ARMS, rounds)
    time_taken = seconds(lambda: bd.simulate(policy, environment, replicates=1), 3)
    what = "T = 10^9, epsilon = 10^-3, Bernoulli, one run"
    return Row(what, f"{time_taken:.2f} s", "under 1 s", time_taken < 1)


def online() -> list[Row]:
    """Deciding and observing, with the exact release."""
    rows = []
    for release in ("one-bit", "laplace"):
        policy = bd.PrivateBandit(ARMS, 0.5, batch=10, release=release)

        def thousand(policy: bd.PrivateBandit = policy) -> None:
            for _ in range(1_000):
                policy.observe(policy.decide(), loss=0.5)

        cost = seconds(thousand, 20) / 1_000 * 1e6
        what = f"decide + observe, K = 10, batch 10, exact {release} release"
        rows.append(Row(what, f"{cost:.1f} us a round", "under 20 us", cost < 20))
    return rows


def audits() -> list[Row]:
    """A million draws of either release, attacked."""
    rows = []
    for release in (OneBitRelease(1.0, 1), LaplaceRelease(1.0, 1)):
        time_taken = seconds(partial(audit_release, release, draws=1_000_000), 3)
        what = f"audit of 10^6 draws of the {release.name} release"
        rows.append(Row(what, f"{time_taken:.2f} s", "under 2 s", time_taken < 2))
    return rows


def start_up() -> list[Row]:
    """How long importing and asking for help take."""

    def timed(*arguments: str) -> float:
        times = []
        for _ in range(15):
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    extra = timed("-c", "import bandanna") - timed("-c", "pass")
    helping = timed("-m", "bandanna", "--help")
    planning = timed("-m", "bandanna", "plan", "--arms=10", "--rounds=1e6", "--epsilon=0.1")
    arithmetic = 1e3 * seconds(lambda: bd.plan(10, 10**6, 0.1))
    return [
        Row("import bandanna, beyond python -c pass", f"{extra:.3f} s", "under 0.1 s", extra < 0.1),
        Row("bandanna --help", f"{helping:.2f} s", "under 0.3 s", helping < 0.3),
        Row("bandanna plan", f"{planning:.2f} s", "under 0.5 s", planning < 0.5),
        Row("its arithmetic", f"{arithmetic:.1f} ms", "under 5 ms", arithmetic < 5),
    ]


def whole_studies() -> list[Row]:
    """Studies, a reproduction and the demo."""
    overhead, ratio = studies.scheduling()
    rates, demo = studies.reproduce_rates(), studies.demo()
    what = "scheduling a study of 10-second cells on two workers, beyond computing"
    return [
        Row(what, f"{overhead:.1%}", "under 5%", overhead < 0.05),
        Row("two workers against one", f"{ratio:.2f} times", "at least 1.8 times", ratio >= 1.8),
        Row("bandanna reproduce rates --quick", f"{rates:.0f} s", "under 60 s", rates < 60),
        Row("the commands of make demo", f"{demo:.0f} s", "under 120 s", demo < 120),
    ]


def machine() -> str:
    """Describe where this was measured."""
    model = platform.processor() or "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(line.split(":")[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    """Measure everything and print a Markdown table."""
    rows, ours = against_c()
    rows += against_libraries(ours)
    rows += [many_arms(ours), two_cores(), a_billion_rounds(), *online(), *audits(), *start_up()]
    rows += adaptive.against_tsallis_inf()
    rows += [*experts.against_c(), *experts.calibrating(), *experts.realised()]
    rows += [*people.rows(), *whole_studies()]
    rows += [*service.rates(), *service.a_month()]
    rows += service_beside.rows()
    print(f"{machine()}\n")
    print("| what | measured | promised | holds |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.measured} | {row.promised} | {'yes' if row.holds else 'NO'} |")
    broken = sum(not row.holds for row in rows)
    print(f"\n{broken} of {len(rows)} promises do not hold here." if broken else "\nAll hold.")


if __name__ == "__main__":
    main()

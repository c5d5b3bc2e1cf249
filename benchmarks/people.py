"""Persons: what knowing them costs in time, and in memory for a million of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import count, islice, repeat
from pathlib import Path

import bandanna as bd
from benchmarks.timing import Row

ARMS, BATCH, ROUNDS, PAIRS = 10, 10, 2_000, 15
MILLION = 10**6
MEGABYTE = 2.0**20


def rows() -> list[Row]:
    """Measure both."""
    return [*speed(), memory()]


def speed() -> list[Row]:
    """Decide and observe, with a new person each time and with ten visits each, and without."""
    shares: dict[str, list[float]] = {"new people": [], "ten visits each": []}
    plain = bd.PrivateBandit(ARMS, 0.5, batch=BATCH)
    new = bd.PrivateBandit(ARMS, 0.5, batch=BATCH, per_person=1, rounds_per_slot=1)
    ten = bd.PrivateBandit(ARMS, 0.5, batch=BATCH, per_person=1, rounds_per_slot=10)
    newcomers, visits = count(), count()
    for pair in range(PAIRS + 1):  # in turns: what else the machine does hits all alike
        alone = _seconds(plain, repeat(None))
        each = {
            "new people": _seconds(new, newcomers),
            "ten visits each": _seconds(ten, (visit // 10 for visit in visits)),
        }
        for who, taken in each.items():
            if pair:  # the first one warms up
                shares[who].append(taken / alone)
    found = []
    for who, ratios in shares.items():
        ratio = statistics.median(ratios)
        what = f"decide + observe with persons against without, {who}"
        found.append(Row(what, f"{ratio:.2f} times", "under 1.5 times", ratio < 1.5))
    return found


def _seconds(policy: bd.PrivateBandit, people: Iterable[int | None]) -> float:
    start = time.perf_counter()
    for person in islice(people, ROUNDS):
        policy.observe(policy.decide(person=person), loss=0.5)
    return time.perf_counter() - start


def memory() -> Row:
    """A policy that a million different people came to, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.people"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    used = float(done.stdout)
    what = "10^6 different people, memory beyond the first thousand"
    return Row(what, f"{used:.0f} MB", "under 300 MB", used < 300)


def _measure_memory() -> float:
    policy = bd.PrivateBandit(ARMS, 0.5, batch=BATCH, per_person=1, rounds_per_slot=1)
    before = 0.0
    for person in range(MILLION):
        policy.observe(policy.decide(person=f"user-{person}"), loss=0.5)
        if person == 1000:
            before = _resident()
    return _resident() - before


def _resident() -> float:
    """Return what the process holds now; the most it ever held is passed on by its parent."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


if __name__ == "__main__":
    print(_measure_memory())

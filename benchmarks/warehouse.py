"""Counting where the data is, and phases without a server, measured.

python -m benchmarks.warehouse answer 2e7        # one file: beside the bare query, and memory
python -m benchmarks.warehouse exposures 1e8 3e7 # exposures and facts
python -m benchmarks.warehouse regret 100        # phases counted by the clock, beside phased
python -m benchmarks.warehouse loop 3            # the same with GrowthBook's SDK and DuckDB
python -m benchmarks.warehouse edge 1e6          # assignments a second, and whether SDKs agree
python -m benchmarks.warehouse feedback 1e6      # rows a second into the service, and counting them
"""

from __future__ import annotations

import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import JSON
from bandanna.environments import Bernoulli
from bandanna.phases.course import ENOUGH, LONGEST
from bandanna.phases.payloads import PARTS, parts_of
from bandanna.policy.policy import Policy

Floats = NDArray[np.float64]
ARMS = ("control", "green", "blue")
RANGE = (0.0, 200.0)


def megabytes() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def timed(*command: str) -> dict[str, float]:
    """Run a part of this file in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.warehouse", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- counting -----------------------------------------------------------------------------------


def make_rows(folder: Path, rows: int) -> None:
    import duckdb

    revenue = "exp(3.4 + 0.9 * sqrt(-2 * ln(random())) * cos(6.28318 * random()))"
    with duckdb.connect() as base:
        base.execute(
            f"copy (select ['control', 'green', 'blue'][1 + (hash(i) % 3)::int] as arm, "
            f"(case when random() < 0.05 then {revenue} else 0 end)::double as value "
            f"from range({rows}) t(i)) to '{folder}/rows.parquet'"
        )


def make_exposures(folder: Path, exposures: int, facts: int) -> None:
    """Write exposures of nine tenths as many units, and facts of a third of them."""
    import duckdb

    units = max(int(0.9 * exposures), 1)
    with duckdb.connect() as base:
        base.execute("set preserve_insertion_order = false")
        base.execute(f"set temp_directory = '{folder}/tmp'")
        base.execute(
            f"copy (select (i % {units})::bigint as unit, ['control', 'green', 'blue'][1 + "
            f"(hash(i) % 3)::int] as arm, timestamp '2026-01-01' + interval (i % 86400) second as "
            f"time from range({exposures}) t(i)) to '{folder}/shown.parquet'"
        )
        base.execute(
            f"copy (select (hash(i) % {units})::bigint as unit, timestamp '2026-01-02' + interval "
            f"(i % 864000) second as time, round(random() * 60, 2)::double as value "
            f"from range({facts}) t(i)) to '{folder}/bought.parquet'"
        )


def source(folder: str) -> bd.Exposures:
    places = f"{folder}/shown.parquet", f"{folder}/bought.parquet"
    return bd.Exposures(*places, unit="unit", time="time", window="7d", arms=ARMS)


def ours(kind: str, folder: str) -> None:
    """Count with Bandanna, after a start that is not measured."""
    what = f"{folder}/rows.parquet" if kind == "rows" else source(folder)
    tiny = {"arm": ["a", "b"] * 4, "value": [0.0] * 8}
    import pyarrow as pa

    bd.answer(pa.table(tiny), arm="arm", outcome="value", epsilon=1.0)
    before, begun = megabytes(), time.perf_counter()
    asked = {"arm": "arm", "outcome": "value", "loss_range": RANGE, "epsilon": 0.5}
    bd.answer(what, **asked, clip=True, reward=True)  # type: ignore[arg-type]
    spent = time.perf_counter() - begun
    print(json.dumps({"seconds": spent, "MB": megabytes(), "MB before": before}))


def bare(kind: str, folder: str) -> None:
    """Ask DuckDB the same query by hand, and a plain one that adds up floats."""
    import duckdb

    from bandanna.warehouse import Table, sql_of

    what = Table(f"{folder}/rows.parquet") if kind == "rows" else source(folder)
    query = sql_of(what, arm="arm", outcome="value", loss_range=RANGE)
    names = iter(["rows"] if kind == "rows" else ["shown", "bought"])
    found: dict[str, str] = {}
    for name in re.findall(r'"(ibis_read_parquet_\w+)"', query):
        if name not in found:
            found[name] = next(names)
    for name, file in found.items():
        query = query.replace(f'"{name}"', f"'{folder}/{file}.parquet'")
    plain = (
        f"select arm, count(*), sum(value), sum(value * value) from '{folder}/rows.parquet' "
        f"group by 1"
    )
    with duckdb.connect() as base:
        base.execute(f"set temp_directory = '{folder}/tmp'")
        begun = time.perf_counter()
        base.execute(query).fetchall()
        spent = {"seconds": time.perf_counter() - begun}
        if kind == "rows":
            begun = time.perf_counter()
            base.execute(plain).fetchall()
            spent["plain sums of floats"] = time.perf_counter() - begun
    print(json.dumps({**spent, "MB": megabytes()}))


def beside(kind: str, folder: Path) -> None:
    for _ in range(2):
        for who in ("bare", "ours"):
            print(who, json.dumps(timed(who, kind, str(folder))), flush=True)


def answer(rows: float = 2e7) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_rows(Path(folder), int(rows))
        beside("rows", Path(folder))


def exposures(shown: float = 1e8, facts: float = 3e7) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_exposures(Path(folder), int(shown), int(facts))
        beside("exposures", Path(folder))


# --- phases -------------------------------------------------------------------------------------

PROBLEMS = {
    "three arms": ((0.50, 0.45, 0.40), 20_000, 0.5),
    "two arms, rare": ((0.06, 0.10), 30_000, 1.0),
    "five arms, one better": ((0.5, 0.5, 0.5, 0.5, 0.4), 50_000, 0.2),
}
PHASE = 0.03
"""Share of the rounds that come in a phase, by default."""


def by_the_clock(
    policy: Policy, means: Floats, rounds: int, share: float, rng: np.random.Generator
) -> float:
    """Return the regret of a run whose phases are counted elsewhere, with what was published."""
    regret, left, each = 0.0, rounds, int(share * rounds)
    while left > 0:
        batch = policy.plan_phase()
        assert batch.phase is not None
        parts = np.array(parts_of(batch.phase.planned)) / PARTS
        ticks = min(max(math.ceil(ENOUGH * batch.size / each), 1), LONGEST)
        counts = rng.multinomial(min(ticks * each, left), parts)
        lost = rng.binomial(counts, means)
        squares = [UNITS // 4 for _ in policy.columns]  # each loss is as far from the middle
        sums = {
            arm: (int(n), int(lost[arm]) * UNITS, *(int(n) * one for one in squares))
            for arm, n in enumerate(counts)
            if n
        }
        policy.observe_phase(batch.number, sums)
        regret += float(counts @ (means - means.min()))
        left -= int(counts.sum())
    return regret


def regret(runs: float = 100, share: float = PHASE) -> None:
    """Print mean regret with its standard error, beside phased that decides every round."""
    for name, (means, rounds, epsilon) in PROBLEMS.items():
        policy = bd.PrivateBandit(len(means), epsilon, rounds, "phased")
        # Regret of single runs has the noise of their losses in it: so more of them.
        alone = bd.simulate(
            {"phased": policy}, Bernoulli(means, rounds), replicates=20 * int(runs), progress=False
        ).regret("phased")
        rng, losses = np.random.default_rng(7), np.array(means)
        found = np.array(
            [
                by_the_clock(
                    policy.rehearse(new_stream((run, 1)), new_stream((run, 2))),
                    losses,
                    rounds,
                    share,
                    rng,
                )
                for run in range(int(runs))
            ]
        )
        said = {
            "problem": name,
            "phases of": share,
            "every round": _mean(alone),
            "by phases": _mean(found),
            "ratio": round(float(found.mean() / alone.mean()), 2),
        }
        print(json.dumps(said), flush=True)


def _mean(values: Floats) -> list[float]:
    """Return a mean and its standard error."""
    return [round(float(values.mean()), 1), round(float(values.std() / values.size**0.5), 1)]


def loop(runs: float = 3) -> None:
    """Run all of it: GrowthBook's SDK decides, DuckDB counts, a command goes on."""
    import duckdb
    import pyarrow as pa
    from growthbook import GrowthBook

    from bandanna.phases import Definition

    means, rounds, _ = PROBLEMS["three arms"]
    each, begin = int(PHASE * rounds), datetime(2026, 1, 1, tzinfo=UTC)
    tables: JSON = {name: name for name in ("unit", "arm", "time")}
    tables |= {"exposures": "shown", "facts": "bought"}
    for run in range(int(runs)):
        rng, lost, took = np.random.default_rng(run), 0.0, list[float]()
        with tempfile.TemporaryDirectory() as folder:
            base = f"{folder}/shop.duckdb"
            with duckdb.connect(base) as shop:
                shop.execute("create table shown (unit varchar, arm varchar, time timestamp)")
                shop.execute("create table bought (unit varchar, time timestamp, value double)")
            experiment = bd.PhasedExperiment(
                Definition(
                    **tables,
                    name="button",
                    arms=ARMS,
                    every="1d",
                    window="1s",
                    outcome="value",
                    epsilon=0.5,
                    rounds=rounds,
                    address=f"duckdb://{base}",
                    to=f"{folder}/shares.json",
                    state=f"{folder}/state.json",
                )
            )
            step, day, done = experiment.start(begin), 0, 0
            while done < rounds:
                features = json.loads(Path(folder, "shares.json").read_text())["features"]
                sdk, size = GrowthBook(features=features), min(each, rounds - done)
                units = [f"u{k}" for k in range(done, done + size)]
                arms = []
                for unit in units:
                    sdk.set_attributes({"id": unit})
                    arms.append(ARMS.index(sdk.get_feature_value("button", None)))
                hit = rng.random(size) < np.take(means, arms)
                lost += float(sum(means[arm] - min(means) for arm in arms))
                at = (begin + timedelta(days=day, hours=1)).replace(tzinfo=None)
                names = [ARMS[arm] for arm in arms]
                shown = pa.table({"unit": units, "arm": names, "time": [at] * size})
                buyers = [unit for unit, one in zip(units, hit, strict=True) if one]
                bought = pa.table(
                    {"unit": buyers, "time": [at] * len(buyers), "value": [1.0] * len(buyers)}
                )
                with duckdb.connect(base) as shop:
                    for name, frame in (("shown", shown), ("bought", bought)):
                        shop.register("new", frame)
                        shop.execute(f"insert into {name} select * from new")
                        shop.unregister("new")
                done, day = done + size, day + 1
                begun = time.perf_counter()
                experiment.next(begin + timedelta(days=day))
                step = experiment.next(begin + timedelta(days=day, seconds=2))
                took.append(time.perf_counter() - begun)
            released = sum(one["released"] is not None for one in experiment.phases)
        said: dict[str, object] = {"run": run, "regret": round(lost), "phases released": released}
        said["seconds a phase, median"] = round(float(np.median(took)), 2)
        print(json.dumps({**said, "over": step.waits is None}), flush=True)


# --- edges --------------------------------------------------------------------------------------


def edge(units: float = 1e6) -> None:
    """Print assignments a second of each client, and whether they agree."""
    from growthbook import GrowthBook
    from tests.warehouse import test_edge as theirs

    sdk = GrowthBook(features=json.loads(theirs.TEXTS["growthbook"])["features"])
    shares = theirs.edge().Shares.read(theirs.TEXTS["bandanna"], theirs.KEY.public)

    def by_growthbook(unit: str) -> str:
        sdk.set_attributes({"id": unit})
        return str(sdk.get_feature_value("button", None))

    clients: dict[str, Callable[[str], str] | None] = {
        "growthbook": by_growthbook,
        "flagd": None,
        "bandanna": shares.assign,
    }
    for kind, assign in clients.items():
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(theirs.TEXTS[kind])
            file.flush()
            command = ["node", "assign.mjs", kind, file.name, str(int(units))]
            done = subprocess.run(
                [*command, theirs.KEY.public.hex()],
                cwd=theirs.HERE,
                capture_output=True,
                check=True,
            )
        there = np.frombuffer(done.stdout, np.uint8) - 48
        counts = np.bincount(there, minlength=len(ARMS))
        expected = units * np.array(theirs.SHARES) / PARTS
        apart = (counts - expected) / np.sqrt(expected * (1.0 - expected / units))
        said: dict[str, object] = {"client": kind, "JavaScript, a second": int(done.stderr)}
        said["shares apart, standard deviations"] = np.round(apart, 2).tolist()
        if assign is not None:
            begun = time.perf_counter()
            here = [ARMS.index(assign(f"u{number}")) for number in range(int(units))]
            said["Python, a second"] = round(units / (time.perf_counter() - begun))
            said["all agree"] = there.tolist() == here
        print(json.dumps(said), flush=True)


def feedback(rows: float = 1e6, at_once: float = 10_000) -> None:
    """Report units to the service, a value each, as programs do: one request after the other."""
    from tests.service.running import process

    size = int(at_once)
    blocks = [
        "\n".join(
            json.dumps({"unit": f"u{k}", "value": float(k % 2)})
            for k in range(begin, min(begin + size, int(rows)))
        )
        for begin in range(0, int(rows), size)
    ]
    times: JSON = {"decides": "edge", "phase_seconds": 1e6, "deadline_seconds": 1.0}
    with (
        tempfile.TemporaryDirectory() as folder,
        process(Path(folder)) as here,
        bd.Client(here.url, here.key, patience=60) as client,
        httpx.Client(headers={"Authorization": f"Bearer {here.key}"}, timeout=60) as http,
    ):
        made = client.create("bulk", list(ARMS), 1.0, rounds=int(rows), reward=True, **times)
        path = f"{here.url}/v1/experiments/{made.id}/feedback"
        begun = time.perf_counter()
        taken = sum(int(http.post(path, content=one).json()["taken"]) for one in blocks)
        spent = time.perf_counter() - begun
        begun = time.perf_counter()
        made.stop()
        while made.decided < int(rows):
            time.sleep(0.1)
        counted = time.perf_counter() - begun
    said = {"rows": taken, "rows a second": round(taken / spent)}
    print(json.dumps({**said, "stopped, counted and released after": round(counted, 1)}))


if __name__ == "__main__":
    verb, *rest = sys.argv[1:] or ["answer"]
    if verb in ("ours", "bare"):
        {"ours": ours, "bare": bare}[verb](*rest)
    else:
        verbs: dict[str, Callable[..., None]] = {
            "answer": answer,
            "exposures": exposures,
            "regret": regret,
            "loop": loop,
            "edge": edge,
            "feedback": feedback,
        }
        verbs[verb](*map(float, rest))

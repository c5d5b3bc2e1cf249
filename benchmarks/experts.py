"""Speed with expert advice, and what the realised sensitivity saves."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.environments import Chunk, ExpertEnvironment, OneGoodExpert, make_environment
from bandanna.learners import Exp4
from bandanna.policy import Recipe
from bandanna.privacy import PlainRelease, VectorRelease, calibration
from bandanna.privacy.vector_sums import EstimateMemory
from bandanna.simulation.engine import ExpertRun
from benchmarks import baseline
from benchmarks.timing import Row, seconds

EXPERTS, ARMS, RATE = 100, 10, 2e-3
ROUNDS = {False: 5_000, True: 500}
"""Tables that fit the cache: the loops are on trial, not the memory. They are played again and
again."""
AGAIN = {False: 4, True: 20}


def against_c() -> list[Row]:
    """EXP4 against the same loop in C, and against NumPy."""
    library = baseline.compile_baseline(*baseline.FAST)
    rows = []
    for spread, promise in ((False, 0.8), (True, 0.6)):
        chunk = one_chunk(spread)
        rounds = ROUNDS[spread] * AGAIN[spread]
        theirs, ours = math.inf, math.inf
        for _ in range(10):  # alternate, so that both see the same moods of the machine
            theirs = min(theirs, seconds(partial(in_c, library, chunk), 3))
            ours = min(ours, seconds(partial(in_engine, chunk), 3))
        kind = "distributions" if spread else "one arm each"
        what = f"EXP4, N = {EXPERTS}, K = {ARMS}, experts advise {kind}, share of C's speed"
        timing = f"({ours / rounds * 1e9:.0f} against {theirs / rounds * 1e9:.0f} ns a round)"
        measured = f"{theirs / ours:.2f} {timing}"
        rows.append(Row(what, measured, f"at least {promise}", theirs / ours >= promise))
        numpy = min(in_numpy(chunk, 2_000) for _ in range(5)) / (ours / rounds)
        what = f"EXP4, experts advise {kind}, against NumPy"
        rows.append(Row(what, f"{numpy:,.0f} times", "at least 100 times", numpy >= 100))
    return rows


def one_chunk(spread: bool) -> Chunk:
    """Return a table of losses and advice."""
    return next(iter(OneGoodExpert(EXPERTS, ARMS, ROUNDS[spread], spread=spread).chunks()))


def in_c(library: object, chunk: Chunk) -> None:
    """Play in C."""
    for _ in range(AGAIN[chunk.advice.ndim == 3]):
        baseline.call_exp4(library, chunk.losses, chunk.advice, new_stream(0), RATE)


def in_engine(chunk: Chunk) -> None:
    """Play in the engine."""
    recipe = Recipe(Exp4(EXPERTS, ARMS, RATE), PlainRelease())
    run = ExpertRun(recipe, EXPERTS, ARMS, np.array([10**9]), 0, 0)
    for _ in range(AGAIN[chunk.advice.ndim == 3]):
        run.play(chunk)


def in_numpy(chunk: Chunk, rounds: int) -> float:
    """Seconds a round of EXP4 as one would write it in NumPy."""
    rng = np.random.default_rng(0)
    losses = chunk.losses / 2**20
    shares = chunk.advice
    if shares.ndim == 2:
        shares = np.eye(ARMS)[shares].transpose(0, 2, 1)
    estimates = np.zeros(EXPERTS)
    start = time.perf_counter()
    for t in (t % len(losses) for t in range(rounds)):
        weights = np.exp(-RATE * (estimates - estimates.min()))
        chances = shares[t] @ weights
        chances /= chances.sum()
        arm = rng.choice(ARMS, p=chances)
        estimates += losses[t, arm] / chances[arm] * shares[t, arm]
    return (time.perf_counter() - start) / rounds


def calibrating() -> list[Row]:
    """How long it takes to find the smallest noise, the first time and again."""
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401  # its import is not ours

    def timed(clear: bool) -> float:
        if clear:
            for function in (
                calibration.calibrate,
                calibration.gaussian_multiplier,
                calibration.laplace_multiplier,
            ):
                function.cache_clear()
        start = time.perf_counter()
        for experts in (5, 100, 1000):  # with five, all three laws are compared
            calibration.calibrate(1.0, 1e-4, experts)
        return time.perf_counter() - start

    first, again = min(timed(True) for _ in range(3)), timed(False)
    what = "noise for N = 5, 100 and 1 000, calibrated"
    return [
        Row(what, f"{first:.2f} s", "under 2 s", first < 2),
        Row("the same again", f"{again * 1e6:.0f} us", "cached", again < 1e-3),
    ]


def realised() -> list[Row]:
    """How much smaller noise is by the actions really played than in the worst case: medians."""
    rows = []
    for name in ("one-good", "clustered", "digits", "trial-rules"):
        for spread in (False, True) if name != "trial-rules" else (False,):
            options = {"spread": True} if spread else {}
            environment = make_environment(name, rounds=10**6, **options)
            kind = "distributions" if spread else "one arm each"
            what = f"noise in the worst case over realised: {name}, {environment.experts} experts, "
            assert isinstance(environment, ExpertEnvironment)
            measured = f"{gain(environment):.1f} times"
            rows.append(Row(f"{what}{kind}", measured, "reported", True))
    return rows


def gain(environment: ExpertEnvironment, batches: int = 200) -> float:
    """Median over batches of worst-case scale over realised scale; eps 1, delta 1e-6."""
    size = environment.experts, environment.arms
    policy = bd.PrivateExperts(
        *size, 1.0, 1e-6, environment.rounds, "batched-exp4", constants="ours"
    )
    release = policy.recipe.release
    assert isinstance(release, VectorRelease)
    run = ExpertRun(
        policy.recipe, environment.experts, environment.arms, np.array([environment.rounds]), 0, 0
    )
    memory = run._release[1]
    assert isinstance(memory, EstimateMemory)
    scales: list[float] = []
    left = policy.batch
    for chunk in environment.chunks():
        low, end = 0, len(chunk.losses)
        while low < end and len(scales) < batches:
            high = min(low + left, end)
            run.play(Chunk(chunk.start + low, chunk.losses[low:high], chunk.advice[low:high]))
            left -= high - low
            low = high
            if left == 0:
                scales.append(float(memory.scale[0]))
                left = policy.batch
    law = 1.0 if release.noise.law == "gaussian" else math.sqrt(2.0)
    worst = release.noise.deviation / law * calibration.GRID
    return float(np.median(worst / np.array(scales)))

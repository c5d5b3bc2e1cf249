"""The C loops of the benchmark are the same loops: they make the same decisions."""

from __future__ import annotations

import numpy as np
import pytest

from bandanna.environments import LossTable, OneGoodExpert
from bandanna.learners import CompiledLearner, Exp3, Exp4, Htinf, TsallisInf
from bandanna.policy import Recipe
from bandanna.privacy import PlainRelease
from bandanna.simulation.engine import ARMS, ExpertRun, play_run, run_streams
from benchmarks import baseline

CASES: dict[str, tuple[CompiledLearner, tuple[float, ...]]] = {
    "exp3": (Exp3(10, 0.02, 0.05), (0.02, 0.05)),
    "tsallis_inf": (TsallisInf(10), ()),
    "htinf": (Htinf(10, sigma=1.0), (1.0,)),
}


@pytest.mark.skipif(baseline.compiler() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("name", CASES)
def test_same_total_loss_in_c(name: str) -> None:
    learner, numbers = CASES[name]
    rng = np.random.default_rng(5)
    environment = LossTable(np.clip(rng.normal(0.5, 0.2, (5_000, 10)) - 0.1 * np.eye(10)[3], 0, 1))
    library = baseline.compile_baseline("-O2", "-ffp-contract=off")
    stream = run_streams(7, 0)[ARMS]
    in_c = baseline.call(library, name, environment.params().prefix, stream, *numbers)
    recipe = Recipe(learner, PlainRelease())
    ours = play_run(recipe, environment, np.array([5_000]), 7, 0)
    assert ours.losses[-1] == in_c


@pytest.mark.skipif(baseline.compiler() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("spread", [False, True])
def test_same_total_loss_of_exp4_in_c(spread: bool) -> None:
    rounds = 1_000
    chunk = next(iter(OneGoodExpert(21, 10, rounds, spread=spread).chunks()))
    library = baseline.compile_baseline("-O2", "-ffp-contract=off")
    stream = run_streams(7, 0)[ARMS]
    in_c = baseline.call_exp4(library, chunk.losses, chunk.advice, stream, 0.01)
    recipe = Recipe(Exp4(21, 10, 0.01), PlainRelease())
    ours = ExpertRun(recipe, 21, 10, np.array([rounds]), 7, 0)
    ours.play(chunk)
    assert ours.result.losses[-1] == in_c

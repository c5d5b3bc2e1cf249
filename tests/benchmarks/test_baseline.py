"""The C loops of the benchmark are the same loops: they make the same decisions."""

from __future__ import annotations

import numpy as np
import pytest

from bandanna.environments import LossTable
from bandanna.learners import CompiledLearner, Exp3, Htinf, TsallisInf
from bandanna.policies import Recipe
from bandanna.privacy import PlainRelease
from bandanna.simulation.engine import ARMS, play_run, run_streams
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

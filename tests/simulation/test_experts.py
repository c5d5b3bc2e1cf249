"""Simulation with expert advice: what the issue must show, memory, and errors."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import bandanna as bd
from bandanna.environments import OneGoodExpert
from bandanna.learners import Exp4


@pytest.mark.slow
def test_one_bit_against_the_paper_on_one_good_expert() -> None:
    """N = 10, K = 5, T = 10^6, eps = 1. Standard errors are below 3% of each mean here."""
    rounds = 1_000_000
    names = ("one-bit-exp4", "local-exp4", "one-bit", "htinf")
    policies = {name: bd.PrivateExperts(10, 5, 1.0, 0.0, rounds, name) for name in names}
    # EXP4 without centred estimates, at the rate of its own bound: what ran before.
    rate = math.sqrt(4.0 * math.log(10) / (rounds * 5 * (1.0 + math.tanh(0.5))))
    policies["plain"] = before = bd.PrivateExperts(10, 5, 1.0, 0.0, rounds, "one-bit-exp4")
    before.recipe = before.recipe._replace(learner=Exp4(10, 5, rate))
    results = bd.simulate(policies, OneGoodExpert(10, 5, rounds), replicates=6)
    mean = {name: results.regret(name).mean() for name in policies}
    assert mean["local-exp4"] >= 30 * mean["one-bit-exp4"]
    assert mean["one-bit"] <= mean["htinf"] / 2
    assert mean["one-bit-exp4"] <= 0.7 * mean["plain"]


STREAM = """
import bandanna as bd
from bandanna.environments import OneGoodExpert
policy = bd.PrivateExperts(1000, 10, 1.0, rounds=10**6, algorithm="one-bit-exp4")
bd.simulate(policy, OneGoodExpert(1000, 10, 10**6), replicates=1, progress=False)
# Not getrusage: its largest size may be that of the process which started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(int(peak.split()[1]) / 2**20)
"""


@pytest.mark.soak
def test_a_thousand_experts_for_a_million_rounds_fit_in_a_gibibyte() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STREAM], capture_output=True, text=True, check=True, timeout=300
    )
    assert float(done.stdout) < 1.0


def test_results_do_not_depend_on_cores_or_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = np.random.default_rng(1).random((3000, 3))
    advice = np.random.default_rng(2).integers(0, 3, (3000, 4))
    policies = {
        "a": bd.PrivateExperts(4, 3, 0.5, 1e-2, 3000, "batched-exp4", constants="ours"),
        "b": bd.PrivateExperts(4, 3, 0.5, rounds=3000, algorithm="one-bit"),
    }
    first = bd.simulate(policies, losses, advice=advice, replicates=3, seed=5, cores=1)
    monkeypatch.setattr("bandanna.environments.experts.CHUNK_BYTES", 5000)
    second = bd.simulate(policies, losses, advice=advice, replicates=3, seed=5, cores=2)
    for name in policies:
        np.testing.assert_array_equal(first.curves(name), second.curves(name))
        np.testing.assert_array_equal(first.plays(name), second.plays(name))
    np.testing.assert_allclose(first.uniform_regret, second.uniform_regret)
    assert "best single expert" in first.against


def test_what_does_not_fit_together_is_refused() -> None:
    losses, advice = np.full((50, 2), 0.5), np.zeros((50, 3), dtype=int)
    with pytest.raises(bd.InputError, match="has 4 experts and 2 arms"):
        bd.simulate(bd.Experts(4, 2, 50), losses, advice=advice)
    with pytest.raises(bd.InputError, match="since there is advice"):
        bd.simulate(bd.Bandit(2), losses, advice=advice)
    with pytest.raises(bd.InputError, match="needs advice="):
        bd.simulate(bd.Experts(3, 2, 50), losses)
    with pytest.raises(bd.InputError, match="advice must have shape"):
        bd.simulate(bd.Experts(3, 2, 50), losses, advice=advice[:40])

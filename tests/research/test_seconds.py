"""How long reproductions say they take: as long as their simulations are guessed to."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from bandanna.cli import app
from bandanna.environments import as_environment
from bandanna.simulation.arguments import by_name, checkpoint_rounds, seconds_of
from bandanna.simulation.results import PolicyRuns, Results
from research import REPRODUCTIONS, Reproduction, expected_seconds, limits, rates

SIMULATED = [name for name in REPRODUCTIONS if name not in ("regimes", "leakage", "context")]


class Dry:
    """Takes the place of ``simulate``: plays nothing, and counts what it would cost."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._rng = np.random.default_rng(0)

    def __call__(
        self,
        policies: Any,
        losses: object,
        *,
        replicates: int,
        seed: int = 0,
        checkpoints: int | Sequence[int] = 50,
    ) -> Results:
        named, environment = by_name(policies), as_environment(losses)
        self.seconds += replicates * seconds_of(named.values(), environment.rounds)
        stops = checkpoint_rounds(environment.rounds, checkpoints)
        runs = {}
        for name, policy in named.items():
            shape = replicates, stops.size
            regret = np.sqrt(stops) * self._rng.uniform(1.0, 2.0, shape)
            plays = np.zeros((replicates, environment.arms), dtype=np.int64)
            shares = np.zeros((stops.size, environment.arms))
            leaders = np.zeros(shape, dtype=np.int64)
            runs[name] = PolicyRuns(regret, plays, shares, leaders, shares, policy.batch)
        return Results(runs, environment.rounds, stops, "expected", np.sqrt(stops))


@pytest.mark.slow
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", SIMULATED)
def test_the_guess_written_down_is_that_of_the_simulations(
    name: str, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module(f"research.{name.replace('-', '_')}")
    dry = Dry()
    modules: list[Any] = [
        module,
        rates,
        limits,
        import_module("research.algorithms"),
    ]
    for patched in modules:
        if hasattr(patched, "simulate"):
            monkeypatch.setattr(patched, "simulate", dry)
    module.reproduce(quick)
    said = expected_seconds(name, quick=quick)
    # A guess: write "seconds" into the settings anew only when it is far off.
    assert 0.2 * dry.seconds <= said <= 5.0 * dry.seconds, f"seconds = {dry.seconds:.2g}"


@pytest.mark.parametrize(
    "command", [["reproduce", "rates"], ["audit", "--exact", "--draws", "1e7", "--epsilon", "1"]]
)
def test_what_takes_long_says_so_first_unless_quiet(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDANNA_QUIET", "")
    done = Reproduction("rates", "a claim", ["a"], [["1"]], [], {})
    monkeypatch.setattr("research.reproduce", lambda name, quick: done)
    row = {"release": "one-bit", "claimed": 1.0, "audited": 0.5, "audited_policy": 0.5}
    row |= {"audited_experts": 0.5, "sampler_p_value": 0.5, "draws": 9, "significance": 1e-4}
    monkeypatch.setattr("bandanna.cli.audit._attack", lambda *_: row | {"passed": True})
    assert "this may take about" in CliRunner().invoke(app, command).stderr
    assert CliRunner().invoke(app, ["--quiet", *command]).stderr == ""

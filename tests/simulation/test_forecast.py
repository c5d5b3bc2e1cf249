"""What to expect: honest where nothing can be learned, and from when on it can."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna.cli import app
from bandanna.environments import Bernoulli, Logged
from bandanna.simulation.forecast import forecast


@pytest.mark.slow
def test_an_easy_problem_is_learned_and_the_best_arm_found() -> None:
    found = forecast(bd.Problem(2, 20_000, 2.0), lambda rounds: Bernoulli([0.1, 0.9], rounds))
    assert found.beats
    best = next(row for row in found.rows if row.algorithm == found.best)
    assert best.learned > 0.9
    assert "per 1,000 rounds against the best arm" in found.words
    assert "without privacy: " in found.words
    assert "the strongest, " in found.words
    assert found.words.endswith("In 100% of the runs it plays the best arm most.")
    assert found.same
    assert found.same_regret is not None
    assert found.same_regret < best.regret


def test_a_hopeless_problem_says_so_and_from_when_on_it_is_not() -> None:
    found = forecast(
        bd.Problem(4, 300, 0.3), lambda rounds: Bernoulli([0.4, *[0.5] * 3], rounds), unit="clicks"
    )
    assert not found.beats
    assert found.words.startswith(
        "In 300 rounds no private algorithm here beats choosing at random; from about "
    )
    assert found.beats_from is not None
    assert 500 <= found.beats_from <= 300_000


def test_experts_are_refused() -> None:
    with pytest.raises(bd.InputError, match="without experts"):
        forecast(bd.Problem(2, 100, 1.0, 3), lambda rounds: Bernoulli(2, rounds))


@pytest.mark.slow
def test_a_plan_in_their_units(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("log") / "visits.csv"
    rng = np.random.default_rng(0)
    plan = rng.integers(0, 2, 4000)
    visits = np.minimum(rng.poisson(np.where(plan == 0, 1.0, 3.0)), 100)
    rows = [f"{'ab'[arm]},{count}" for arm, count in zip(plan, visits, strict=True)]
    path.write_text("\n".join(["plan,visits", *rows]))
    columns = ["--set", "arm=plan", "--set", "outcome=visits", "--set", "loss_range=0,100"]
    asked = ["plan", str(path), *columns, "--epsilon", "4", "--json"]
    done = CliRunner().invoke(app, asked)
    data = json.loads(done.output)
    assert (data["arms"], data["rounds"]) == (2, 4000)
    assert data["forecast"]["unit"] == "visits"
    assert "price of a wide --range" in data["forecast"]["range_advice"]
    log = Logged(path, arm="plan", outcome="visits", loss_range=(0, 100))
    gap = abs(float(np.diff(log.means)[0]))
    assert data["forecast"]["uniform"] == pytest.approx(1000 * gap / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--gap", "0.1"], "go together"),
        (["--gap", "0.1", "--base-rate", "0.95"], "together at most 1"),
        (["--set", "outcome=visits"], "--set knows no 'outcome'"),
        (["nowhere.csv"], "needs --arm and --outcome"),
    ],
)
def test_what_is_asked_for_must_make_sense(arguments: list[str], reason: str) -> None:
    problem = ["--arms", "3", "--rounds", "100", "--epsilon", "1"]
    done = CliRunner().invoke(app, ["plan", *problem, *arguments])
    assert reason in str(done.exception)

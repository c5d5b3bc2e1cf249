"""What to expect: honest where nothing can be learned, and from when on it can."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna.cli import app
from bandanna.environments import Bernoulli, Logged
from bandanna.simulation.forecast import QUICK, forecast
from bandanna.spec import Losses


@pytest.mark.slow
def test_an_easy_problem_is_learned_and_the_best_arm_found() -> None:
    found = forecast(bd.Problem(2, 20_000, 2.0), lambda rounds: Bernoulli([0.1, 0.9], rounds))
    assert found.beats
    best = next(row for row in found.rows if row.algorithm == found.best)
    assert best.learned > 0.9
    assert found.advice.startswith("Run bd.PrivateBandit(arms, epsilon, rounds): expect it to lose")
    assert best.algorithm == "phased-net"
    assert "a learner without privacy loses " in found.advice
    assert "a plain A/B test loses " in found.advice


def test_a_hopeless_problem_says_so_and_from_when_on_it_is_not() -> None:
    found = forecast(
        bd.Problem(4, 300, 0.3), lambda rounds: Bernoulli([0.4, *[0.5] * 3], rounds), unit="clicks"
    )
    assert not found.beats
    assert found.advice.startswith(
        "In 300 rounds no private algorithm here beats choosing at random: at epsilon 0.3 this "
        "needs about "
    )
    assert found.beats_from is not None
    assert 500 <= found.beats_from <= 300_000


@pytest.mark.parametrize("losses", [None, "any", "steady", "changing"])
def test_the_sentence_never_contradicts_the_table(losses: Losses | None) -> None:
    """What is recommended has the least regret of all private rows, or runs and is as good."""
    found = forecast(
        bd.Problem(3, 3_000, 0.5),
        lambda rounds: Bernoulli([0.3, 0.5, 0.5], rounds),
        losses=losses,
        everything=losses == "any",
    )
    private = [row for row in found.rows if row.algorithm != "no-privacy"]
    best = next(row for row in private if row.algorithm == found.best)
    least = min(private, key=lambda row: row.regret)
    near = 1.1 * least.regret, least.regret + 2.0 * math.hypot(best.error, least.error)
    assert best.regret <= max(near)
    assert {"ab-test", "no-privacy", found.runs} <= {row.algorithm for row in found.rows}
    if losses == "any":
        assert "dp-klucb" in {row.algorithm for row in found.rows}
    if found.best != found.runs:
        assert f'algorithm="{found.best}"' in found.advice
    elif losses is not None:
        assert f'losses="{losses}"' in found.advice


def test_what_takes_long_is_simulated_only_when_it_is_asked_for() -> None:
    """A run of a thousand arms takes 0.2 s: it is played three times, and not 200."""
    with pytest.raises(bd.InputError, match="too long"):
        forecast(
            bd.Problem(4, 10**8, 0.1),
            lambda rounds: Bernoulli(4, rounds),
            most_seconds=QUICK,
        )
    found = forecast(bd.Problem(1000, 2_000, 2.0), lambda rounds: Bernoulli(1000, rounds))
    assert found.uniform > 0.0
    assert all(row.found in (0.0, 1 / 3, 2 / 3, 1.0) for row in found.rows)


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

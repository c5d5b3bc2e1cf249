from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.environments import Bernoulli, PunishLeader, PunishRepeats
from bandanna.simulation import progress
from bandanna.simulation.progress import Progress
from tests.laws import assert_mean

POLICIES = {
    "one-bit": bd.PrivateBandit(4, 0.5, 2000),
    "paper": bd.PrivateBandit(4, 0.5, 2000, "htinf"),
    "no privacy": bd.Bandit(4),
}


def test_the_result_does_not_depend_on_the_cores() -> None:
    one = bd.simulate(POLICIES, Bernoulli(4, 2000), replicates=40, seed=3, cores=1)
    many = bd.simulate(POLICIES, Bernoulli(4, 2000), replicates=40, seed=3, cores=4)
    for name in POLICIES:
        np.testing.assert_array_equal(one.curves(name), many.curves(name))
        np.testing.assert_array_equal(one.plays(name), many.plays(name))


def test_runs_do_not_depend_on_how_many_there_are_and_seeds_matter() -> None:
    few = bd.simulate(POLICIES, Bernoulli(4, 500), replicates=5, seed=3)
    more = bd.simulate(POLICIES, Bernoulli(4, 500), replicates=9, seed=3)
    other = bd.simulate(POLICIES, Bernoulli(4, 500), replicates=5, seed=4)
    np.testing.assert_array_equal(few.regret("paper"), more.regret("paper")[:5])
    assert (few.regret("paper") != other.regret("paper")).any()


def test_the_table_is_what_people_read() -> None:
    results = bd.simulate(POLICIES, Bernoulli(4, 2000), replicates=30)
    table = results.to_frame()
    assert table["policy"].to_list() == list(POLICIES)
    regret = results.regret("paper")
    row = table.row(1, named=True)
    assert regret.shape == (30,)
    assert row["mean"] == pytest.approx(regret.mean())
    assert row["standard_error"] == pytest.approx(regret.std(ddof=1) / np.sqrt(30))
    assert row["q50"] == pytest.approx(np.median(regret))
    assert results.uniform_regret[-1] == pytest.approx(2000 * 0.2 * 3 / 4)
    assert row["share_of_uniform"] == pytest.approx(regret.mean() / 300)
    assert results.against == "the best fixed arm in expectation"


def test_the_uniform_player_has_the_uniform_regret() -> None:
    for environment in (Bernoulli(4, 1000), PunishRepeats(4, 1000), PunishLeader(4, 1000)):
        results = bd.simulate(bd.Bandit(4, "uniform"), environment, replicates=300, seed=7)
        regret = results.regret("policy")
        if environment.name == "bernoulli":
            assert_mean(regret, results.uniform_regret[-1])
            assert results.comparator == "expected"
        else:
            assert abs(regret.mean() - results.uniform_regret[-1]) < 0.05 * 1000
            assert "adversary adapts" in results.against


def test_regret_against_an_adaptive_adversary_is_on_the_realised_losses() -> None:
    environment = PunishRepeats(2, 400)
    batched = bd.simulate(bd.Bandit(2, batch=40), environment, replicates=10)
    # 39 or 40 of every 40 rounds cost 1; an arm's own total is how often it was repeated.
    plays = batched.plays("policy")
    assert (batched.regret("policy") > 400 - 11 - plays.min(axis=1) - 1).all()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (({}, np.zeros((5, 4))), "at least one policy"),
        (({"x": "htinf"}, np.zeros((5, 4))), "must be a PrivateBandit"),
        ((POLICIES, np.zeros((5, 3))), "'one-bit' has 4 arms; the losses have 3"),
        ((POLICIES, np.full((5, 4), np.nan)), "from 0 to 1"),
        ((POLICIES, np.full((5, 4), 2.0)), "from 0 to 1"),
        ((POLICIES, np.zeros(5)), "shape"),
        ((POLICIES, np.ma.array(np.zeros((5, 4)), mask=True)), "masked"),
        (([POLICIES["paper"]], np.zeros((5, 4))), "a policy or a dict"),
        ((np.zeros((5, 4)), POLICIES), "a policy or a dict"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[Any, Any], reason: str) -> None:
    with pytest.raises(bd.InputError, match=reason):
        bd.simulate(*arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"replicates": 0},
        {"replicates": 10**12},
        {"seed": -1},
        {"cores": -2},
        {"cores": 0},
        {"checkpoints": [0]},
    ],
)
def test_bad_settings_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(bd.InputError, match=next(iter(change))):
        bd.simulate(POLICIES, np.zeros((5, 4)), **change)  # type: ignore[arg-type]


def test_what_would_take_forever_is_refused_at_once() -> None:
    with pytest.raises(bd.InputError, match="learning steps"):
        bd.simulate(bd.Bandit(2), Bernoulli(2, 10**12), replicates=100)


def test_results_print_as_text() -> None:
    results = bd.simulate(POLICIES, Bernoulli(4, 500), replicates=5)
    lines = repr(results).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("Regret after 500 rounds, 5 runs")
    assert "of uniform" in lines[1]


def test_checkpoints_can_be_chosen() -> None:
    results = bd.simulate(POLICIES, Bernoulli(4, 500), replicates=2, checkpoints=[10, 77])
    assert results.stops.tolist() == [10, 77, 500]


def test_unknown_policies_are_named() -> None:
    results = bd.simulate(POLICIES, np.zeros((5, 4)), replicates=1)
    with pytest.raises(bd.InputError, match="there are one-bit, paper, no privacy"):
        results.regret("other")


def test_a_simulation_leaves_its_policies_alone() -> None:
    policy = bd.PrivateBandit(4, 0.5, seed=1)
    policy.observe(policy.decide(), loss=0.5)
    bd.simulate(policy, np.zeros((50, 4)), replicates=2)
    assert policy.decided == 1


def test_no_bar_where_nobody_looks(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress(3) as bar:
        bar.advance()
        time.sleep(0.1)
        assert bar._bar is None
    assert capfd.readouterr() == ("", "")


def test_a_bar_for_whoever_waits(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "PATIENCE", 0.3)
    with Progress(4) as bar:
        bar.advance()
        assert bar._bar is None
        time.sleep(1.0)
        assert bar._bar is not None
        bar.advance()
    assert capfd.readouterr().out == ""


def test_a_bar_around_others_counts_their_work() -> None:
    with Progress(2.0, gathers=True) as bar:
        bd.simulate(bd.Bandit(2), np.zeros((50, 2)), replicates=4)
        once = bar.done
        assert once > 0.0
        bd.simulate(bd.Bandit(2), np.zeros((50, 2)), replicates=4, progress=False)
        assert bar.done == once  # it has nothing to show
        with Progress(3) as inner:
            inner.advance(2.0)
            assert not inner._show
        assert bar.done == once + 2.0
    with Progress(1) as alone:
        alone.advance()
    assert bar.done == once + 2.0

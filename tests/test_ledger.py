"""The ledger: composed soundly, refused before anything is read, whatever is killed."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.types import InputError, StateFileError
from bandanna.ledger import BudgetError, Expense, Ledger, _Book
from bandanna.phases import PhasedExperiment
from tests.command import bandanna
from tests.warehouse.test_phases import BEGIN, DAY, KILLS, definition, ended, in_child, visit

Choose = Callable[[float, int], float]


def test_what_is_spent_adds_up_and_more_is_refused(tmp_path: Path) -> None:
    ledger = Ledger.start(tmp_path / "people", budget=1.0)
    for _ in range(10):
        ledger.spend(0.1, what="a question", who="ann")
    assert ledger.spent == pytest.approx(1.0, abs=1e-15)
    assert len(ledger.entries) == 10
    with pytest.raises(BudgetError, match="nothing was read"):
        ledger.spend(1e-6, what="one more")
    assert len(Ledger(tmp_path / "people").entries) == 10
    with pytest.raises(StateFileError, match="already"):
        Ledger.start(tmp_path / "people", budget=9.0)
    with pytest.raises(StateFileError, match="no ledger"):
        Ledger(tmp_path / "others").spend(0.1, what="x")
    with pytest.raises(InputError):
        Ledger(tmp_path / "people").spend(-1.0, what="x")


def test_what_is_left_fits_and_hardly_more_does(tmp_path: Path) -> None:
    for delta in (0.0, 1e-6):
        ledger = Ledger.start(tmp_path / f"{delta}", budget=2.0, delta=delta)
        ledger.spend(0.3, what="first")
        left = ledger.left
        with pytest.raises(BudgetError):
            ledger.check(left + 1e-6)
        ledger.spend(left, what="the rest")
        assert ledger.spent <= 2.0
        assert ledger.left < 1e-5


def test_populations_add_up_unless_nobody_is_in_two(tmp_path: Path) -> None:
    ledger = Ledger.start(tmp_path / "people", 2.0, partitions={"country": ["DE", "FR"]})
    ledger.spend(1.0, what="q", population="DE")
    ledger.spend(1.0, what="q", population="FR")
    assert ledger.spent == 1.0
    assert ledger.left_for("FR") == pytest.approx(1.0)
    ledger.spend(0.5, what="q", population="buyers")
    ledger.spend(0.25, what="q", population="visitors")
    assert ledger.spent == 1.75
    assert ledger.left == 0.25
    with pytest.raises(BudgetError):
        ledger.spend(0.5, what="q", population="DE")
    with pytest.raises(InputError, match="one partition"):
        Ledger.start(tmp_path / "x", 1.0, partitions={"a": ["DE", "FR"], "b": ["FR", "IT"]})


# --- never below what an exact computation spends -------------------------------------------------


def spent_exactly(epsilons: list[float], delta: float) -> float:
    """Return the smallest epsilon at a delta of pure mechanisms, each the worst there is."""
    losses = []
    for signs in itertools.product((1.0, -1.0), repeat=len(epsilons)):
        loss = sum(sign * one for sign, one in zip(signs, epsilons, strict=True))
        chance = math.prod(
            1.0 / (1.0 + math.exp(-sign * one)) for sign, one in zip(signs, epsilons, strict=True)
        )
        losses.append((loss, chance))
    return smallest(losses, delta)


def smallest(losses: list[tuple[float, float]], delta: float) -> float:
    def at(epsilon: float) -> float:
        return sum(chance * -math.expm1(min(epsilon - loss, 0.0)) for loss, chance in losses)

    low, high = 0.0, max(loss for loss, _ in losses)
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if at(middle) <= delta else (middle, high)
    return high


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6, 1e-3, 0.05])
def test_the_ledger_is_never_below_what_was_spent(tmp_path: Path, delta: float) -> None:
    rng = np.random.default_rng(3)
    for number in range(12):
        ledger = Ledger.start(tmp_path / f"{number}", budget=100.0, delta=delta)
        epsilons = [float(e) for e in rng.gamma(0.7, 0.5, int(rng.integers(1, 9))) + 1e-3]
        for epsilon in epsilons:
            ledger.spend(epsilon, what="q")
        assert ledger.spent >= spent_exactly(epsilons, delta) * (1.0 - 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_epsilons_that_are_chosen_after_looking_stay_within_the_budget(delta: float) -> None:
    """The worst of some strategies: each looks at the losses so far and asks what still fits."""
    budget = 1.0
    empty = {"budget": budget, "delta": delta, "parts": {}}

    def walk(choose: Choose, spent: list[float], loss: float) -> list[tuple[float, float]]:
        entries = [Expense("", "", "", "", "everyone", one).to_dict() for one in spent]
        left = _Book({**empty, "entries": entries}).left("everyone")
        epsilon = min(choose(loss, len(spent)), left)
        if epsilon < 1e-3 or len(spent) == 5:
            return [(loss, 1.0)]
        found = []
        for sign in (1.0, -1.0):
            chance = 1.0 / (1.0 + math.exp(-sign * epsilon))
            below = walk(choose, [*spent, epsilon], loss + sign * epsilon)
            found += [(total, chance * more) for total, more in below]
        return found

    strategies: list[Choose] = [
        lambda loss, k: 0.4 if loss > 0 else 0.1,
        lambda loss, k: 0.1 if loss > 0 else 0.6,
        lambda loss, k: 0.9 - 0.1 * k,
        lambda loss, k: abs(loss) + 0.15,
    ]
    for choose in strategies:
        losses = walk(choose, [], 0.0)
        assert sum(chance for _, chance in losses) == pytest.approx(1.0)
        assert smallest(losses, delta) <= budget * (1.0 + 1e-9)


# --- answers, phases, kills -----------------------------------------------------------------------


def log() -> dict[str, list[object]]:
    return {"arm": ["A", "B"] * 300, "y": [0.0, 1.0, 1.0] * 200}


def test_twenty_answers_write_what_they_cost_and_the_next_reads_nothing(tmp_path: Path) -> None:
    ledger = Ledger.start(tmp_path / "people", budget=2.0)
    epsilon = 0.05
    for number in range(20):  # chosen after looking
        found = bd.answer(log(), arm="arm", outcome="y", epsilon=epsilon, ledger=ledger)
        epsilon = 0.02 + 0.1 * (number % 2 if found.best else 0.5) * 0.9
    assert len(ledger.entries) == 20
    assert ledger.spent <= 2.0
    left = ledger.left
    for what in (tmp_path / "not-there.parquet", bd.Table("duckdb:///nowhere.duckdb", "t")):
        with pytest.raises(BudgetError, match="nothing was read"):
            bd.answer(what, arm="arm", outcome="y", epsilon=left + 0.1, ledger=ledger)
    assert not Path("nowhere.duckdb").exists()
    assert ledger.left == left


def test_a_question_that_cannot_be_asked_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger.start(tmp_path / "people", budget=1.0)
    with pytest.raises(InputError):
        bd.answer(tmp_path / "none.csv", arm="arm", outcome="y", epsilon=0.5, ledger=ledger)
    path = tmp_path / "log.csv"
    path.write_text("arm,y\nA,1\nB,0\n")
    with pytest.raises(InputError, match="no column"):
        bd.answer(path, arm="group", outcome="y", epsilon=0.5, ledger=ledger)
    assert ledger.spent == 0.0
    with pytest.raises(InputError, match="not from 0 to"):  # its rows were read
        bd.answer(path, arm="arm", outcome="y", epsilon=0.5, loss_range=(0, 0.5), ledger=ledger)
    assert ledger.spent == 0.5


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_nothing_is_spent_unseen_when_a_run_is_killed(tmp_path: Path) -> None:
    """Each that answered is in the ledger; one that was killed may be, and costs no more."""
    ledger = Ledger.start(tmp_path / "people", budget=1e6)
    rng, answered = np.random.default_rng(2), 0
    for number in range(KILLS):

        def ask(number: int) -> None:
            bd.answer(log(), arm="arm", outcome="y", epsilon=1.0, ledger=ledger)
            (tmp_path / f"answered-{number}").touch()

        ended(in_child(partial(ask, number), dies=int(rng.integers(1, 3_000))))
        answered += (tmp_path / f"answered-{number}").exists()
        assert answered <= ledger.spent <= number + 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_many_at_once_stay_within_the_budget(tmp_path: Path) -> None:
    for place in (str(tmp_path / "people"), f"sqlite:///{tmp_path}/people.sqlite"):
        Ledger.start(place, budget=3.0)

        def spend(place: str = place) -> None:
            Ledger(place).spend(1.0, what="q")

        codes = [ended(child) for child in [in_child(spend) for _ in range(6)]]
        assert codes.count(0) == 3
        assert Ledger(place).spent == 3.0


def test_the_command_keeps_and_shows_it(tmp_path: Path) -> None:
    place, path = str(tmp_path / "people"), tmp_path / "log.csv"
    path.write_text("arm,y\n" + "A,1\nB,0\n" * 200)
    assert bandanna("ledger", "start", place, "--budget", "1").returncode == 0
    asked = ("answer", str(path), "--arm", "arm", "--outcome", "y", "--epsilon", "0.75")
    alone = bandanna(*asked)
    assert "asking again costs epsilon again" in alone.stdout
    done = bandanna(*asked, "--set", f"ledger={place}")
    assert done.returncode == 0, done.stderr
    assert "0.25 is left" in done.stdout
    refused = bandanna(*asked, "--set", f"ledger={place}")
    assert refused.returncode == 2
    assert "nothing was read" in refused.stderr
    shown = json.loads(bandanna("ledger", "show", place, "--json").stdout)
    assert (shown["spent"], shown["left"]) == (0.75, {"everyone": 0.25})
    assert "log.csv" in shown["entries"][0]["what"]
    assert "What was spent" in bandanna("ledger", "show", place).stdout
    assert os.stat(place).st_mode & 0o077 == 0


def test_three_experiments_write_what_they_cost_before_they_count(tmp_path: Path) -> None:
    place = str(tmp_path / "people")
    ledger = Ledger.start(place, budget=4.0)
    for number, more in enumerate(({"per_person": 1}, {"per_person": 2}, {})):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        experiment = PhasedExperiment(definition(folder, ledger=place, **more))
        experiment.start(BEGIN)
        visit(folder, 0, range(60))
        experiment.next(BEGIN + DAY)
    whats = [one.what for one in ledger.entries]
    assert whats == ["button, all phases"] * 2
    assert ledger.spent == 2.0
    visit(folder, 1, range(60, 120))
    experiment.next(BEGIN + 2 * DAY)
    assert ledger.entries[-1].what == "button, phase 0"
    visit(folder, 2, range(120, 180))
    experiment.next(BEGIN + 3 * DAY)
    assert ledger.spent == 4.0
    before = (folder / "state.json").read_bytes()
    (folder / "bought").rename(folder / "gone")  # so that reading it would fail
    with pytest.raises(BudgetError, match="nothing was read"):
        experiment.next(BEGIN + 4 * DAY)
    assert (folder / "state.json").read_bytes() == before


def test_an_experiment_that_gets_a_ledger_later_is_charged(tmp_path: Path) -> None:
    place = str(tmp_path / "people")
    ledger = Ledger.start(place, budget=1.5)
    PhasedExperiment(definition(tmp_path, per_person=1)).start(BEGIN)
    experiment = PhasedExperiment(definition(tmp_path, per_person=1, ledger=place))
    for day in range(4):
        visit(tmp_path, day, range(60 * day, 60 * day + 60))
        experiment.next(BEGIN + (day + 1) * DAY)
    assert experiment.phases[0]["released"]
    assert [one.what for one in ledger.entries] == ["button, all phases"]
    assert ledger.spent == 1.0


@pytest.mark.parametrize("content", [b"\xff", b"{", b"[" * 10_000])
def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "customers.ledger").write_bytes(content)
    with pytest.raises(StateFileError, match="is damaged: not valid JSON"):
        Ledger(tmp_path / "customers.ledger").spend(0.5, what="a survey")

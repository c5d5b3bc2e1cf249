"""People come back as they do in the data: their rows are one slot, which counts the mean."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna.cli import app
from bandanna.environments import Logged
from bandanna.environments.returning import mean_units, slots_of
from bandanna.environments.tables import read_losses
from bandanna.studies.environments import read_source

VISITS = {
    "who": ["b", "a", "b", "c", "a", "b", "a"],
    "plan": ["x", "x", "x", "y", "y", "y", "x"],
    "cost": [1, 0, 0, 4, 2, 3, 2],
}


def test_slots_are_in_the_order_in_which_they_began() -> None:
    slot, first = slots_of(np.array([7, 3, 7, 9, 3]))
    assert slot.tolist() == [0, 1, 0, 2, 1]
    assert first.tolist() == [0, 1, 3]


@pytest.mark.parametrize("seed", range(5))
def test_means_are_rounded_as_policies_round_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units, slot = rng.integers(0, UNITS + 1, 60), np.sort(rng.integers(0, 9, 60))
    _, slot = np.unique(slot, return_inverse=True)
    found = mean_units(units, slot, slot.max() + 1)
    for number, mean in enumerate(found):
        own = units[slot == number]
        assert mean == round(Fraction(int(own.sum()), own.size))


def test_what_a_person_met_of_an_arm_is_one_slot() -> None:
    log = Logged(VISITS, arm="plan", outcome="cost", loss_range=(0, 4), person="who")
    slots = [*zip(log.log.people.tolist(), log.log.arms.tolist(), strict=True)]  # type: ignore[union-attr]
    assert slots == [(1, 0), (0, 0), (2, 1), (0, 1), (1, 1)]
    assert (log.log.units * 4 / UNITS).tolist() == [0.5, 1.0, 4.0, 2.0, 3.0]
    assert log.rounds == 5
    np.testing.assert_allclose(log.means, [0.75, 3.0])  # by people: 0.75, by rows 0.75, too
    assert "5 slots of 3 people who came 7 times" in log.about
    plain = Logged(VISITS, arm="plan", outcome="cost", loss_range=(0, 4))
    assert log.content != plain.content


def test_the_first_row_says_when_where_and_how_likely() -> None:
    table = VISITS | {"when": [7, 6, 5, 4, 3, 2, 1], "chance": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]}
    columns = {"arm": "plan", "outcome": "cost", "person": "who", "time": "when"}
    log = Logged(table, **columns, propensity="chance", loss_range=(0, 4), blocks=1).log  # type: ignore[arg-type]
    assert log.people is not None
    assert log.people.tolist() == [0, 1, 0, 2, 1]  # a x, b y, a y, c y, b x
    assert log.propensity is not None
    assert log.propensity.tolist() == [0.7, 0.6, 0.5, 0.4, 0.3]


def test_people_who_come_often_have_slots_with_less_spread() -> None:
    """Ten visits of each: the same means, and a policy for persons to play them with."""
    rng = np.random.default_rng(1)
    who, arm = np.repeat(np.arange(2000), 10), np.repeat(rng.integers(0, 2, 2000), 10)
    cost = (rng.random(20_000) < np.where(arm == 0, 0.3, 0.6)).astype(float)
    table = {"who": who, "plan": arm, "cost": cost}
    by_row = Logged(table, arm="plan", outcome="cost")
    by_person = Logged(table, arm="plan", outcome="cost", person="who")
    assert (by_row.rounds, by_person.rounds) == (20_000, 2000)
    np.testing.assert_allclose(by_row.means, by_person.means, atol=1e-5)
    assert by_person.log.units.std() < 0.5 * by_row.log.units.std()
    policy = bd.PrivateBandit(2, 1.0, 2000, per_person=1)
    assert bd.simulate(policy, by_person, replicates=3).regret("policy").shape == (3,)


def write(folder: Path) -> Path:
    lines = ["who,plan,cost"]
    rng = np.random.default_rng(0)
    for row in range(600):
        plan = "ab"[row % 150 // 3 % 2]
        lines.append(f"u{row % 150},{plan},{int(rng.random() < (0.3 if plan == 'a' else 0.7))}")
    path = folder / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tables_of_losses_take_persons(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("a,b,who\n0,1,x\n0.5,0,y\n1,1,x\n")
    found = read_losses(path, person="who")
    assert found.arms == ("a", "b")
    assert found.losses.tolist() == [[0.5, 1.0], [0.5, 0.0]]
    source = read_source({"name": "losses.csv", "person": "who"}, tmp_path)
    assert source.make(None, None, None).rounds == 2
    with pytest.raises(bd.InputError, match="no column 'whom'; there are 'a', 'b', 'who'"):
        read_losses(path, person="whom")
    (tmp_path / "gaps.csv").write_text("a,b,who\n0,1,x\n0.5,0,\n")
    with pytest.raises(bd.InputError, match="every round needs a person"):
        read_losses(tmp_path / "gaps.csv", person="who")
    with pytest.raises(bd.InputError, match="without advice"):
        read_losses(path, advice=path, person="who")
    with pytest.raises(bd.InputError, match="person is the name of a column"):
        read_source({"name": "losses.csv", "person": 3}, tmp_path)


COLUMNS = ["--arm", "plan", "--outcome", "cost", "--set", "person=who"]


@pytest.mark.slow
def test_a_forecast_takes_a_column_of_persons(tmp_path: Path) -> None:
    """Every algorithm is simulated."""
    of_log = ("arm=plan", "outcome=cost", "person=who")
    asked = ["plan", str(write(tmp_path)), *(w for text in of_log for w in ("--set", text))]
    asked += ["--epsilon", "1"]
    planned = CliRunner().invoke(app, asked)
    assert planned.exit_code == 0, planned.output


def test_commands_take_a_column_of_persons(tmp_path: Path) -> None:
    path = write(tmp_path)
    run = CliRunner()
    asked = ["simulate", str(path), *COLUMNS, "--epsilon", "1", "--set", "per_person=1"]
    told = run.invoke(app, [*asked, "--algorithms", "one-bit", "--replicates", "3", "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout[told.stdout.index("{") :])["rounds"] == 150
    study = tmp_path / "study.toml"
    made = run.invoke(app, ["study", "new", str(path), *COLUMNS, "-o", str(study)])
    assert made.exit_code == 0, made.output
    assert 'person = "who"' in study.read_text()
    wrong = run.invoke(app, ["simulate", "--set", "person=who"])
    assert wrong.exit_code != 0

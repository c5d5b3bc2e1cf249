"""Private answers from logs that exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.types import JSON
from bandanna.cli import app
from bandanna.counted import Counted
from bandanna.environments.log import read_log
from bandanna.logs import _told, answer_counted, few_rows
from bandanna.logs.needed import rows_needed
from bandanna.logs.rows import once_each
from bandanna.logs.rules import gain_interval
from bandanna.one_look import Arm, OneLook
from bandanna.privacy.certificate import verify

Columns = dict[str, NDArray[Any]]


def visits(rows: int = 12_000, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    plan = rng.choice(["A", "B", "C"], rows)
    age = rng.integers(18, 90, rows)
    chance = np.select([plan == "A", plan == "B"], [0.15, 0.30], 0.2)
    who = rng.integers(0, rows // 3, rows)
    return {"plan": plan, "visits": rng.binomial(20, chance), "age": age, "who": who}


ASKED: JSON = {"arm": "plan", "outcome": "visits", "loss_range": (0, 20), "reward": True}


def test_the_best_arm_of_a_log_is_found_with_a_certificate() -> None:
    found = bd.answer(visits(), epsilon=0.5, **ASKED)
    assert found.best == "B"
    assert [arm.name for arm in found.arms] == ["A", "B", "C"]
    for arm, mean in zip(found.arms, (3.0, 6.0, 4.0), strict=True):
        assert arm.low <= mean <= arm.high
        assert arm.mean is not None
    assert found.sentence.startswith("B is the best of 3 arms, better than C, the nearest, by ")
    assert "visits per row" in found.sentence
    assert [one.second for one in found.differences] == ["C", "A"]
    assert all(one.high < 0 for one in found.differences)
    assert found.guarantee.epsilon == 0.5
    assert all(finding.holds for finding in verify(to_text(found.certificate)))
    assert json.loads(json.dumps(found.to_dict()))["best"] == "B"
    assert "Against A (control)" in found.html()
    assert found.bare(found.sentence) in str(found)
    assert str(found).count("provided") == 1


def test_releases_are_noisy_and_fresh() -> None:
    means = {bd.answer(visits(300), epsilon=0.5, **ASKED).arms[0].mean for _ in range(5)}
    assert len(means) == 5


@pytest.mark.slow
def test_arms_that_do_not_differ_are_too_close_to_tell() -> None:
    """200 logs; at 5% more than 27 winners are rarer than one in a million."""
    told = 0
    for run in range(200):
        rng = np.random.default_rng(run)
        log = {"arm": rng.choice(["A", "B"], 2_000), "click": rng.random(2_000) < 0.1}
        found = bd.answer(log, arm="arm", outcome="click", epsilon=0.5)
        told += found.best is not None
    assert told <= 27
    assert found.sentence.startswith("Too close to tell: A and B may be the best, 95% sure")
    assert "settle it with 80% probability" in found.sentence
    assert "(there are 2,000)" in found.sentence


def test_how_many_rows_would_settle_it_is_about_right() -> None:
    rng = np.random.default_rng(1)
    log: Columns = {"arm": np.repeat(["A", "B"], 2_000), "click": np.zeros(4_000)}
    log["click"][:200] = 1
    log["click"][2_000:2_228] = 1  # 10% and 11.4%
    found = bd.answer(log, arm="arm", outcome="click", epsilon=5.0, reward=True)
    assert found.best is None
    assert found.needed is not None
    assert found.needed.about is not None
    assert 8_000 < found.needed.about < 40_000
    more: Columns = {"arm": rng.choice(["A", "B"], 80_000)}
    more["click"] = rng.random(80_000) < np.where(more["arm"] == "A", 0.10, 0.12)
    assert bd.answer(more, arm="arm", outcome="click", epsilon=5.0, reward=True).best == "B"


def test_people_count_once() -> None:
    log = visits(9_000)
    found = bd.answer(log, epsilon=0.5, person="who", **ASKED)
    people = np.unique(log["who"]).size
    assert sum(arm.rounds for arm in found.arms) == people
    arms_met = np.unique(np.stack([log["who"], log["plan"]]).astype(str), axis=1)[0]
    assert found.mixed == people - (np.unique(arms_met, return_counts=True)[1] == 1).sum()
    assert found.guarantee.protects.startswith("all feedback of one person")
    assert all(finding.holds for finding in verify(to_text(found.certificate)))
    rows = read_log(log, **ASKED, person="who")
    kept, first = once_each(rows)
    assert kept.people is not None
    assert np.unique(kept.people).size == kept.size == first.size
    one = int(kept.people[5])
    theirs = (rows.people == one) & (rows.arms == kept.arms[5])
    assert rows.arms[np.flatnonzero(rows.people == one)[0]] == kept.arms[5]
    assert kept.units[5] == pytest.approx(rows.units[theirs].mean(), abs=1)


def test_changing_one_person_changes_one_sum_by_at_most_one() -> None:
    """The sensitivity behind the promise, by trying: any person's rows replaced by any values."""
    log = visits(600)
    rng = np.random.default_rng(2)

    def sums(columns: Columns) -> NDArray[np.float64]:
        kept, _ = once_each(read_log(columns, **ASKED, person="who"))
        found: NDArray[np.float64] = np.bincount(
            kept.arms, weights=kept.units / 2**20, minlength=3
        ).astype(float)
        return found

    before = sums(log)
    for person in rng.choice(np.unique(log["who"]), 40, replace=False):
        other = dict(log)
        theirs = log["who"] == person
        other["visits"] = np.where(theirs, rng.integers(0, 21, 600), log["visits"])
        moved = np.abs(sums(other) - before)
        assert np.count_nonzero(moved) <= 1
        assert moved.sum() <= 1.0


def test_deciding_by_a_column_pays_where_it_does() -> None:
    rng = np.random.default_rng(3)
    rows = 20_000
    arm, group = rng.choice(["A", "B"], rows), rng.choice(["x", "y"], rows)
    useless = rng.integers(0, 100, rows)
    good = np.where((arm == "A") == (group == "x"), 0.6, 0.3)
    log = {"arm": arm, "group": group, "number": useless, "click": rng.random(rows) < good}
    by: JSON = {"group": ["x", "y"], "number": [0, 50, 100]}
    found = bd.answer(log, arm="arm", outcome="click", epsilon=1.0, reward=True, by=by)
    group_gain, number_gain = found.gains
    assert group_gain.low > 0.05
    assert group_gain.low <= 0.15 <= group_gain.high
    assert group_gain.rule["x"] == "A"
    assert group_gain.rule["y"] == "B"
    assert "would gain" in group_gain.sentence
    assert number_gain.low == 0.0
    assert "nothing that can be told from chance" in number_gain.sentence
    assert found.guarantee.epsilon == 1.0
    unknown = bd.answer(log, arm="arm", outcome="click", epsilon=1.0, by={"group": ["x", "z"]})
    assert set(unknown.gains[0].rule) == {"x", "other"}


def test_gains_are_bounded_as_often_as_they_say() -> None:
    """300 worlds of two arms and three categories without any gain; 5% may be wrong."""
    rng = np.random.default_rng(4)
    means, shares = np.array([[0.3, 0.3, 0.3], [0.35, 0.35, 0.35]]), np.array([0.5, 0.3, 0.2])
    spread, wrong = np.full((2, 3), 0.02**2), 0
    for _ in range(300):
        seen = means + 0.02 * rng.normal(size=means.shape)
        size, low, high = gain_interval(seen, spread, shares, 0.05)
        assert low <= size <= high
        wrong += low > 0.0
    assert wrong <= 15


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"confidence": 2.0}, "confidence must be from"),
        ({"arm": "nothing"}, "no column 'nothing'"),
        ({"by": ["age"]}, "by must say the categories"),
        ({"by": {"age": ["18"]}}, "at least two categories"),
        ({"by": {"age": [40, 18, 90]}}, "must grow"),
        ({"by": {"age": list(range(4_000))}}, "sums would be released"),
        ({"loss_range": (0, 3)}, "clip=True"),
    ],
)
def test_mistakes_are_explained(asked: JSON, said: str) -> None:
    with pytest.raises(bd.InputError, match=said):
        bd.answer(visits(200), **{"epsilon": 0.5, **ASKED, **asked})


def test_two_arms_need_as_many_rows_whichever_is_the_control() -> None:
    arms = Arm(10_000.0, 3_000.0, 2_500.0, 2.0), Arm(10_000.0, 2_900.0, 2_500.0, 2.0)
    look = OneLook(arms, "normal")
    told = [_told(look, 0.05, control) for control in (None, 0, 1)]
    needed = [rows_needed(look, one.leader, one.base, one.apart, one.level) for one in told]
    assert needed[0].about is not None
    assert needed[1:] == needed[:1] * 2


def test_arms_with_few_rows_are_named() -> None:
    log = visits(3_000)
    log["plan"] = np.where(np.arange(3_000) < 9, "typo", log["plan"])
    found = bd.answer(log, epsilon=0.5, **ASKED)
    assert found.best != "typo"
    assert f"typo has fewer than {few_rows(0.5)} rows" in found.warning


def test_frames_files_and_the_command_say_the_same(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(visits(3_000))
    assert bd.answer(frame, epsilon=2.0, **ASKED).best == "B"
    assert bd.answer(frame.lazy(), epsilon=2.0, **ASKED).best == "B"
    path, page, proof = tmp_path / "visits.csv", tmp_path / "a.html", tmp_path / "c.json"
    frame.write_csv(path)
    options = ["--arm", "plan", "--outcome", "visits", "--range", "0,20", "--clip", "--reward"]
    more = ["--epsilon", "2", "--set", "by.age=18,40,65,90"]
    files = ["--html", str(page), "--certificate", str(proof)]
    ran = CliRunner().invoke(app, ["answer", str(path), *options, *more, *files])
    assert ran.exit_code == 0, ran.output
    assert "B is the best of 3 arms" in ran.output
    assert "Deciding by age" in ran.output
    assert "protects the outcome" in " ".join(ran.output.split())
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert all(finding.holds for finding in verify(proof.read_text("utf-8")))
    ran = CliRunner().invoke(app, ["answer", str(path), *options, "--epsilon", "2", "--json"])
    assert json.loads(ran.output)["best"] == "B"
    wrong = ["--epsilon", "2", "--set", "bye=age"]
    ran = CliRunner().invoke(app, ["answer", str(path), *options, *wrong])
    assert isinstance(ran.exception, bd.InputError)
    assert "--set knows no 'bye'; did you mean by?" in str(ran.exception)


def test_a_clipped_outcome_is_said_to_be_clipped() -> None:
    """One in a hundred is 1,000 and the rest 0, against always 5: clipped, the 5 looks better."""
    rare = np.where(np.arange(4_000) % 100 == 0, 1_000.0, 0.0)
    log = {"arm": np.repeat(["A", "B"], 4_000), "rev": np.append(rare, np.full(4_000, 5.0))}
    asked: JSON = {"arm": "arm", "outcome": "rev", "epsilon": 1.0, "reward": True, "clip": True}
    found = bd.answer(log, **asked, loss_range=(0, 20))
    assert found.best == "B"
    assert "), rev, counted up to 20, 95% sure" in found.sentence
    assert found.to_dict()["outcome"] == "rev, counted up to 20"
    for one in found.differences:
        assert "counted up to 20" in one.sentence
    for line in str(found).splitlines()[1:3]:
        assert "mean rev, counted up to 20" in line
    assert "counted from -5 to 20" in bd.answer(log, **asked, loss_range=(-5, 20)).sentence
    log["rev"] = np.append(rare, rare[::-1])
    close = bd.answer(log, **asked, loss_range=(0, 20)).sentence
    assert close.startswith("Too close to tell: A and B may be the best in rev, counted up to 20,")


@pytest.mark.slow
@pytest.mark.parametrize("arms", [2, 10])
def test_what_is_said_of_equal_arms_holds_together(arms: int) -> None:
    """200 logs; more than 27 with a false statement are rarer than one in a million at 5%."""
    rng, false = np.random.default_rng(arms), 0
    for _ in range(200):
        units = rng.integers(0, 2**20 + 1, 200 * arms)
        counted = Counted.of_rows(tuple(range(arms)), np.arange(200 * arms) % arms, units)
        found = answer_counted(counted, epsilon=1.0)
        apart = any(one.low > 0.0 or one.high < 0.0 for one in found.differences)
        assert apart == (len(found.racing) < arms)
        false += apart
    assert false <= 27


def test_arms_of_one_row_say_nothing() -> None:
    log = {"arm": ["A", "B"], "click": [0.0, 1.0]}
    for asked in ({}, {"interval": "proved"}, {"binary": True}):
        found = bd.answer(log, arm="arm", outcome="click", epsilon=50.0, **asked)
        assert found.best is None
        assert found.differences[0].low < 0.0 < found.differences[0].high


def test_a_control_is_compared_with_all_others() -> None:
    found = bd.answer(visits(), epsilon=1.0, control="A", **ASKED)
    assert {one.first for one in found.differences} == {"A"}
    assert found.best == "B"
    assert "better than A, the control" in found.sentence
    every = bd.answer(visits(), epsilon=1.0, **ASKED)
    wide = {(one.first, one.second): one.high - one.low for one in every.differences}
    one = found.compare("A", "B")
    narrow = {(pair.first, pair.second): pair.high - pair.low for pair in found.differences}
    assert one.high - one.low < narrow["A", "B"] < wide["B", "A"]
    with pytest.raises(bd.InputError, match="no arm 'Z'"):
        bd.answer(visits(), epsilon=1.0, control="Z", **ASKED)


def revenue(rows: int = 20_000) -> Columns:
    rng = np.random.default_rng(8)
    plan, before = rng.choice(["A", "B"], rows), rng.gamma(4.0, 20.0, rows)
    after = 0.8 * before + rng.gamma(2.0, 10.0, rows) + np.where(plan == "B", 5.0, 0.0)
    return {"plan": plan, "after": after, "before": before}


def test_a_range_is_found_and_what_it_cuts_is_said() -> None:
    asked: JSON = {"arm": "plan", "outcome": "after", "epsilon": 1.0, "reward": True}
    wide = bd.answer(revenue(), **asked, loss_range=(0, 2_000), clip=True)
    found = bd.answer(revenue(), **asked, loss_range="auto", bounds=(0, 2_000))
    assert found.units.high < 500
    assert found.compare("A", "B").high - found.compare("A", "B").low < 0.8 * (
        wide.compare("A", "B").high - wide.compare("A", "B").low
    )
    assert "was found with 0.19 of epsilon" in found.notes[0]
    assert "in a hundred rows are cut by it, 95% sure at most" in found.notes[0]
    few = {name: column[:60] for name, column in revenue().items()}
    kept = bd.answer(few, **asked, loss_range="auto", bounds=(0, 2_000))
    assert (kept.units.low, kept.units.high) == (0, 2_000)
    assert kept.notes[0].startswith("Too few rows are not 0 to find a range")


def test_what_was_known_before_makes_it_narrower() -> None:
    asked: JSON = {"arm": "plan", "outcome": "after", "epsilon": 1.0, "reward": True}
    asked |= {"loss_range": (0, 400), "clip": True}
    wide, found = bd.answer(revenue(), **asked), bd.answer(revenue(), **asked, adjust="before")
    given = bd.answer(revenue(), **asked, adjust="before", slope=0.8, adjusted_range=(0, 100))
    sizes = [one.compare("A", "B").high - one.compare("A", "B").low for one in (wide, found, given)]
    assert sizes[1] < 0.7 * sizes[0]
    assert sizes[2] < 0.6 * sizes[0]
    assert found.compare("A", "B").low < 5.0 < found.compare("A", "B").high
    assert "times before is subtracted from after; that makes intervals about" in found.notes[0]
    assert "after adjusted by before" in found.sentence
    assert found.start is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"loss_range": "auto"}, "needs bounds"),
        ({"bounds": (0, 9)}, "bounds are for a range that is found"),
        ({"slope": 0.5}, "name it, adjust="),
        ({"adjust": "age", "adjusted_range": (0, 1)}, "give slope= too"),
        ({"adjust": "age", "slope": 1e9}, "slope must be a number"),
        ({"binary": True}, "neither 0 nor 20"),
        ({"binary": True, "adjust": "age"}, "has a range already"),
        ({"interval": "wide"}, "normal or proved"),
        ({"loss_range": "wide"}, 'or "auto"'),
    ],
)
def test_what_does_not_go_together_is_refused(asked: JSON, said: str) -> None:
    with pytest.raises(bd.InputError, match=said):
        bd.answer(visits(200), **{"epsilon": 0.5, **ASKED, **asked})

"""Files and options as people really have them: each mistake gets a sentence that helps."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import bandanna as bd
from bandanna.cli import app
from bandanna.environments.log import moments
from bandanna.environments.tables import read_losses
from bandanna.simulation.results import share_text

dates = st.lists(
    st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2029, 12, 31)).map(
        lambda when: when.replace(microsecond=0)
    ),
    min_size=1,
    max_size=20,
)


def order(texts: list[str]) -> list[int]:
    found = np.argsort(moments("when", np.array(texts, dtype=object)), kind="stable")
    return [int(index) for index in found]


@given(dates, st.sampled_from(["/", ".", "-"]), st.booleans())
def test_dates_sort_as_time_does(
    when: list[datetime.datetime], separator: str, days_first: bool
) -> None:
    days = [one.replace(hour=0, minute=0, second=0) for one in when]
    real = np.argsort(np.array(days), kind="stable").tolist()
    style = separator.join(("%d", "%m", "%Y") if days_first else ("%m", "%d", "%Y"))
    texts = [day.strftime(style) for day in days]
    if any(day.day > 12 for day in days):
        assert order(texts) == real
    else:
        with pytest.raises(bd.InputError, match="nothing tells days from months"):
            order(texts)
    assert order([day.strftime(separator.join(("%Y", "%m", "%d"))) for day in days]) == real
    unpadded = [f"{day.year}{separator}{day.month}{separator}{day.day}" for day in days]
    assert order(unpadded) == real


@given(dates)
def test_times_of_day_count(when: list[datetime.datetime]) -> None:
    when.append(datetime.datetime(2024, 1, 31, 9, 5))
    real = np.argsort(np.array(when), kind="stable").tolist()
    assert order([one.isoformat() for one in when]) == real
    padded = [f"{one:%d/%m/%Y} {one.hour}:{one:%M:%S}" for one in when]
    assert order(padded) == real


def test_numbers_and_other_texts() -> None:
    assert order(["10", "9", "8.5"]) == [2, 1, 0]
    assert order(["2024-W10", "2024-W09"]) == [1, 0]
    with pytest.raises(bd.InputError, match=r"row 2 has neither a number nor a date"):
        order(["01/31/2024", "Monday"])
    own = np.array([datetime.date(2024, 2, 1), datetime.date(2024, 1, 31)], dtype=object)
    assert moments("when", own) is own


def write(folder: Path, text: str, encoding: str = "utf-8") -> str:
    path = folder / "log.csv"
    path.write_bytes(text.encode(encoding))
    return str(path)


def read(path: str, **options: object) -> bd.environments.Logged:
    return bd.environments.Logged(path, arm="arm", outcome="outcome", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("separator", "encoding", "said"),
    [
        (";", "utf-8", "separates its columns by semicolons; save it with commas"),
        ("\t", "utf-8", "separates its columns by tabs"),
        (",", "utf-16", "looks like UTF-16"),
        (",", "utf-16-le", "looks like UTF-16"),
    ],
)
def test_other_kinds_of_tables_get_a_hint(
    tmp_path: Path, separator: str, encoding: str, said: str
) -> None:
    rows = "\n".join(["arm,outcome", *["a,1", "b,0"] * 100]).replace(",", separator)
    with pytest.raises(bd.InputError, match=said):
        read(write(tmp_path, rows, encoding))
    losses = "\n".join(["a,b", *["0.1,0.9"] * 10]).replace(",", separator)
    with pytest.raises(bd.InputError, match=said):
        read_losses(Path(write(tmp_path, losses, encoding)))


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    rows = "\n".join(["arm,outcome", *["a,1", "b,0"] * 100])
    assert read(write(tmp_path, rows, "utf-8-sig")).arm_names == ("a", "b")


def test_the_range_that_was_typed_is_not_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDANNA_QUIET", "1")
    path = write(tmp_path, "\n".join(["arm,outcome", *["a,25", "b,0"] * 100]))
    with pytest.raises(bd.InputError, match=r"some outcomes .* 0 to 20\.") as caught:
        read(path, loss_range=(0, 20))
    assert "--clip or clip=True" in str(caught.value)
    assert "100" not in str(caught.value)  # how many they are is private
    assert "--range 0,20" not in str(caught.value)
    asked = ["simulate", path, "--arm", "arm", "--outcome", "outcome", "--range", "0,20"]
    asked += ["--replicates", "2", "--algorithms", "uniform"]
    assert CliRunner().invoke(app, asked).exit_code != 0
    done = CliRunner().invoke(app, [*asked, "--set", "clip=true"])
    assert done.exit_code == 0, done.output


def test_a_study_is_written_into_a_new_folder(tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join(["arm,outcome", *["a,25", "b,0"] * 100]))
    asked = ["study", "new", path, "--arm", "arm", "--outcome", "outcome", "--range", "0,20"]
    target = tmp_path / "sub" / "folder" / "x.toml"
    done = CliRunner().invoke(app, [*asked, "--clip", "-o", str(target)])
    assert done.exit_code == 0, done.output
    text = target.read_text("utf-8")
    assert "clip = true" in text
    assert 'log = "../../log.csv"' in text


def test_a_negative_share_says_only_that() -> None:
    assert [share_text(share) for share in (0.5, -9.6, float("nan"), None)] == [
        *("50.0%", "below 0%", "-", "-")
    ]
    table = np.array([[0.0, 1.0]] * 50 + [[1.0, 0.0]] * 50)  # uniform play has no regret here
    results = bd.simulate(bd.PrivateBandit(2, 1.0), table, replicates=2)
    assert " - of uniform" in repr(results)
    assert np.isnan(results.summary()[0]["share_of_uniform"])


def test_a_weak_epsilon_is_said_to_be_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BANDANNA_QUIET", raising=False)
    for command in (["plan"], ["simulate", "--replicates", "2", "--algorithms", "uniform"]):
        asked = [*command, "--arms", "2", "--rounds", "1000", "--epsilon"]
        weak = CliRunner().invoke(app, [*asked, "10"])
        assert "note: epsilon 10 is weak" in weak.output
        assert "99.996% of the time" in weak.output
        assert "is weak" not in CliRunner().invoke(app, [*asked, "1"]).output


def test_an_algorithm_that_does_not_fit_is_left_out_and_the_others_play(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bandanna.simulation import baselines

    make = baselines.make_contestant

    def refuses(name: str, *given: Any, **options: Any) -> bd.Policy:
        if name == "phased-net":
            raise bd.InputError("it needs more rounds.")
        return make(name, *given, **options)

    monkeypatch.setattr(baselines, "make_contestant", refuses)
    asked = ["simulate", "--arms", "2", "--rounds", "60", "--epsilon", "1", "--replicates", "2"]
    done = CliRunner().invoke(app, [*asked, "--algorithms", "uniform,one-bit,phased-net"])
    assert done.exit_code == 0, done.output
    assert "uniform" in done.output
    assert "Left out: phased-net: it needs more rounds." in done.output
    alone = CliRunner().invoke(app, [*asked, "--algorithms", "phased-net"])
    assert isinstance(alone.exception, bd.InputError)
    mistyped = CliRunner().invoke(app, [*asked, "--algorithms", "uniform,unifrom"])
    assert "unifrom" in str(mistyped.exception)


def test_a_replay_says_of_how_many_rows_and_why() -> None:
    rng = np.random.default_rng(0)
    played = rng.random(20_190) < 0.05
    log = {"arm": np.where(played, "A", "B"), "outcome": np.zeros(20_190)}
    log |= {"chance": np.where(played, 0.05, 0.95)}
    found = bd.environments.Logged(
        log, arm="arm", outcome="outcome", propensity="chance", how="replay"
    )
    assert "of 20,190 rows, as the smallest propensity is 0.05; resampling uses all" in found.about


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"arm": ["a", "b"], "outcome": [0.5]}, "'arm' has 2, 'outcome' has 1"),
        ({"arm": ["a", 1.5, None], "outcome": [0, 1, 1]}, "have no arm in column 'arm'"),
        ({"arm": [["a"], ["b", "c"]], "outcome": [0, 1]}, "must be a list of values"),
        ({"arm": ["a", "b"], "outcome": ["yes", "no"]}, "must hold numbers"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, object], said: str) -> None:
    with pytest.raises(bd.InputError, match=said):
        bd.answer(columns, arm="arm", outcome="outcome", epsilon=1.0)


def test_mixed_kinds_of_arms_and_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    mixed = pd.DataFrame({"arm": ["a", 1, "b"], "outcome": [0, 1, 1]})
    with pytest.raises(bd.InputError, match="mixes texts, numbers"):
        bd.answer(mixed, arm="arm", outcome="outcome", epsilon=1.0)
    twice = pd.DataFrame([["a", "b", 1]], columns=["arm", "arm", "outcome"])
    with pytest.raises(bd.InputError, match="several columns named 'arm'"):
        bd.answer(twice, arm="arm", outcome="outcome", epsilon=1.0)
    path = write(tmp_path, "arm,arm,outcome\na,b,1\nb,a,0\n")
    with pytest.raises(bd.InputError, match="several columns named 'arm'"):
        read(path)


def test_compressed_files_and_other_encodings_get_a_hint(tmp_path: Path) -> None:
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(b"")
    with pytest.raises(bd.InputError, match="is compressed: unpack it first"):
        read(str(packed))
    rows = "\n".join(["arm,outcome,name", *["a,1,Jos\xe9", "b,0,Ann"] * 100])
    path = write(tmp_path, rows, "latin-1")
    with pytest.raises(bd.InputError, match=r"line 2 is not in UTF-8.*encoding='latin-1'"):
        bd.environments.Logged(path, arm="arm", outcome="outcome", segment="name")

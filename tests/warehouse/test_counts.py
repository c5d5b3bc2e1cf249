"""Counting where the data is: the same integers everywhere, and what counts as documented."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

import bandanna as bd
from bandanna._core.types import InputError
from bandanna.counted import Counted
from bandanna.environments.log import read_log
from bandanna.logs.rows import mixed_in, once_each
from bandanna.warehouse import Exposures, Found, Table, count, sql_of
from bandanna.warehouse.source import duration
from tests.browser import missing
from tests.command import bandanna
from tests.postgres import Postgres, needs_postgres, open_postgres
from tests.warehouse.shop import ARMS, RANGE, expected, source, tables


def asked(place: Exposures) -> Found:
    return count(place, arm="arm", outcome="value", loss_range=RANGE)


def found(what: Found) -> dict[str, tuple[int, int, int]]:
    counted = what.counted
    assert counted.squares is not None
    columns = (one[:, 0].tolist() for one in (counted.counts, counted.sums, counted.squares))
    return dict(zip(map(str, counted.names), zip(*columns, strict=True), strict=True))


def test_exposures_and_facts_in_memory_are_counted_as_by_hand() -> None:
    shown, facts = tables()
    counts = asked(source(shown, facts))
    assert found(counts) == expected(shown, facts)
    assert counts.counted.mixed > 5
    assert counts.other > 10
    assert str(counts.counted.sums[0, 0]) not in repr(counts)


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "folder", "pattern", "duckdb"])
def test_files_and_duckdb_give_the_same_integers(tmp_path: Path, kind: str) -> None:
    shown, facts = tables()
    places: dict[str, Any] = {}
    for name, table in (("shown", shown), ("facts", facts)):
        if kind in ("parquet", "csv", "csv.gz"):
            places[name] = tmp_path / f"{name}.{kind}"
            write(table, places[name])
        elif kind == "duckdb":
            import duckdb

            with duckdb.connect(tmp_path / "shop.duckdb") as database:
                database.register("given", table)
                database.execute(f"create table {name} as from given")
            places[name] = name
        else:
            (tmp_path / name).mkdir()
            for part in range(3):
                write(table.slice(part * 300, 300), tmp_path / name / f"{part}.parquet")
            write(table.slice(900), tmp_path / name / "rest.parquet")
            places[name] = tmp_path / name if kind == "folder" else f"{tmp_path / name}/*.parquet"
    address = f"duckdb://{tmp_path}/shop.duckdb" if kind == "duckdb" else None
    counts = asked(source(places["shown"], places["facts"], address=address))
    assert found(counts) == expected(shown, facts)
    if kind == "duckdb":
        chosen = source(
            "select * from shown",
            "WITH f AS (SELECT * FROM facts) SELECT * FROM f",
            address=address,
        )
        assert found(asked(chosen)) == expected(shown, facts)
        assert found(asked(source("main.shown", "facts", address=address))) == found(counts)


def write(table: pa.Table, path: Path) -> None:
    if path.name.endswith("parquet"):
        pyarrow.parquet.write_table(table, path)
        return
    with (
        pa.CompressedOutputStream(path, "gzip")
        if path.name.endswith("gz")
        else path.open("wb") as file
    ):
        pyarrow.csv.write_csv(table, file)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with open_postgres() as server:
        yield server


@needs_postgres
def test_postgres_gives_the_same_integers(postgres: Postgres) -> None:
    import psycopg

    shown, facts = tables()
    with psycopg.connect(
        host="127.0.0.1", port=postgres.port, user="bandanna", dbname="postgres"
    ) as base:
        base.execute("create table shown (unit text, arm text, time timestamp)")
        base.execute("create table facts (unit text, time timestamp, value double precision)")
        for name, table in (("shown", shown), ("facts", facts)):
            with base.cursor().copy(f"copy {name} from stdin") as copy:
                for row in table.to_pylist():
                    copy.write_row(row.values())
        base.execute("create table numbers as select value, arm from facts join shown using (unit)")
    address = f"postgres://bandanna@127.0.0.1:{postgres.port}/postgres"
    counts = asked(source("shown", "facts", address=address))
    assert found(counts) == expected(shown, facts)
    chosen = asked(source("select * from shown", "SELECT * FROM facts", address=address))
    assert found(chosen) == expected(shown, facts)
    rows = count(
        Table(address, "select * from numbers where arm is not null"),
        arm="arm",
        outcome="value",
        loss_range=RANGE,
        clip=True,
    )
    joined = shown.drop("time").join(facts, "unit", join_type="inner")
    here = count(
        Table(joined.filter(joined["arm"].is_valid())),
        arm="arm",
        outcome="value",
        loss_range=RANGE,
        clip=True,
    )
    assert found(rows) == found(here)


ODD_TEXTS = [
    "abc",
    "",
    "1e400",
    "-1e400",
    "1e-400",
    " 7 ",
    "NaN",
    "inf",
    "0x10",
    "12.5",
    "-.5",
    None,
]


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    address = "postgres://me:secret@127.0.0.1:1/shop"
    with pytest.raises(InputError, match=r"^the database \(postgres\) does not answer"):
        count(Table(address, "t"), arm="arm", outcome="y")


@needs_postgres
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double precision", ["1e308", "-1e308", "5e-324", "1e-310", "Infinity", "NaN", "12.5"]),
        ("real", ["1e38", "1e-45", "7"]),
        ("numeric", ["1" + "0" * 400, "1e-400", "7." + "1" * 300, "NaN", "-Infinity", "12.5"]),
        ("text", ODD_TEXTS),
    ],
)
def test_no_fact_makes_postgres_fail(postgres: Postgres, kind: str, values: list[str]) -> None:
    """It counts what DuckDB counts: an error would tell of a fact."""
    import psycopg

    numbers = [float(v) if kind != "text" and v else v for v in values]
    units = [f"u{k}" for k in range(len(values))]
    days = [datetime(2026, 1, 2)] * len(values)
    shown = pa.table(
        {"unit": units, "arm": ["green"] * len(units), "time": [datetime(2026, 1, 1)] * len(units)}
    )
    here = asked(source(shown, pa.table({"unit": units, "time": days, "value": numbers})))
    with psycopg.connect(
        host="127.0.0.1", port=postgres.port, user="bandanna", dbname="postgres"
    ) as base:
        for name in ("met", "did", "dated"):
            base.execute(f"drop table if exists {name}")
        base.execute("create table met (unit text, arm text, time timestamp)")
        base.execute(f"create table did (unit text, time timestamp, value {kind})")
        for unit, value in zip(units, values, strict=True):
            base.execute("insert into met values (%s, 'green', '2026-01-01')", (unit,))
            base.execute(
                f"insert into did values (%s, '2026-01-02', %s::text::{kind})", (unit, value)
            )
        base.execute("create table dated as select unit, time::date as time, value from did")
        base.execute(
            "insert into dated values ('u0', 'infinity', '7'), ('u0', '5874897-12-31', '7')"
        )
    address = f"postgres://bandanna@127.0.0.1:{postgres.port}/postgres"
    assert found(asked(source("met", "did", address=address))) == found(here)
    assert found(asked(source("met", "dated", address=address))) == found(here)
    table = pa.table({"arm": ["green"] * len(units), "value": numbers})
    rows: dict[str, Any] = {"arm": "arm", "outcome": "value", "loss_range": RANGE, "clip": True}
    there = count(Table(address, "select 'green' as arm, value from did"), arms=ARMS, **rows)
    assert found(there) == found(count(Table(table), arms=ARMS, **rows))


def test_a_fact_whose_time_is_none_counts_nothing(tmp_path: Path) -> None:
    shown, facts = tables()
    more = facts.set_column(1, "time", facts["time"].cast(pa.string()))
    row = pa.table([["u3"], ["never"], [7.0]], schema=more.schema)
    pyarrow.csv.write_csv(pa.concat_tables([more, row]), tmp_path / "facts.csv")
    assert found(asked(source(shown, str(tmp_path / "facts.csv")))) == expected(shown, facts)
    assert found(asked(source(shown, pa.concat_tables([more, row])))) == expected(shown, facts)


def test_one_fact_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    """DuckDB finds out kinds, formats of times and separators from rows: one would change them."""
    shown = pa.table(
        {
            "unit": [f"u{k}" for k in range(40_000)],
            "arm": ["green"] * 40_000,
            "time": ["2026-01-01T10:00:00+02:00"] * 40_000,
        }
    )
    rows = [f'u{k},2026-01-01T08:00:00Z,2,7,"x"' for k in range(40_000)]
    head = "unit,time,value,other,note"
    (tmp_path / "f.csv").write_text("\n".join([head, *rows]) + "\n")
    whole = found(asked(source(shown, str(tmp_path / "f.csv"))))
    (one,) = {total for _, total, _ in whole.values() if total > 0}
    each = one // 40_000
    assert each == round(0.01 * 2**20)
    for odd in (
        "13/02/2026,2,7,x",
        "never,2,7,x",
        "2026-01-01T08:00:00Z,none,none,'x;y|z'",
        '2026-01-01T07:59:59Z,2,7,"x""y"',
        "2026-01-01 09:00:00 Europe/Berlin,-1e400,7.5,x",
    ):
        for at in (0, 39_999):
            changed = [*rows[:at], f"u{at},{odd}", *rows[at + 1 :]]
            (tmp_path / "f.csv").write_text("\n".join([head, *changed]) + "\n")
            now = found(asked(source(shown, str(tmp_path / "f.csv"))))
            assert now["green"][:2] == (40_000, one - each), odd


@pytest.mark.parametrize(
    ("begin", "end"), [("", "\n"), ("\ufeff", "\n"), ("", "\r\n"), ("\ufeff", "\r\n")]
)
def test_files_of_other_programs_are_read(tmp_path: Path, begin: str, end: str) -> None:
    rows = ["arm,y,note,note,", 'A,1,"a,""b\nc",2,3', "B,0,,,", "B,NaN,,,"]
    (tmp_path / "x.csv").write_text(begin + end.join(rows) + end, newline="")
    counted = count(Table(tmp_path / "x.csv"), arm="arm", outcome="y", clip=True).counted
    assert counted.counts.tolist() == [[1], [2]]
    (tmp_path / "x.csv").rename(tmp_path / "1.csv")
    (tmp_path / "2.csv").write_text("y,arm\n1,A\n")
    with pytest.raises(InputError, match="other columns"):
        count(Table(tmp_path), arm="arm", outcome="y")


@pytest.mark.slow
@pytest.mark.skipif(missing("java"), reason="no Java on this machine, which Spark needs")
@pytest.mark.skipif(
    find_spec("pyspark") is None and "BANDANNA_NO_SKIPS" not in os.environ,
    reason="no pyspark: pip install pyspark",
)
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_integers() -> None:
    import ibis
    from pyspark.sql import SparkSession

    shown, facts = tables()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    try:
        for name, table in (("shown", shown), ("facts", facts)):
            session.createDataFrame(table.to_pandas()).createOrReplaceTempView(name)
        connection = ibis.pyspark.connect(session)
        counts = asked(source("shown", "facts", address=connection))
    finally:
        session.stop()
    assert found(counts) == expected(shown, facts)


# --- one table --------------------------------------------------------------------------------


def log(rows: int = 3_000, seed: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "plan": rng.choice(["A", "B", "C"], rows),
        "visits": rng.normal(9.0, 8.0, rows),
        "who": rng.integers(0, rows // 3, rows),
        "age": rng.integers(10, 99, rows),
        "sex": rng.choice(["f", "m", "x"], rows),
    }


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz"])
@pytest.mark.parametrize("person", [None, "who"])
def test_a_file_gives_the_integers_that_its_columns_give_in_memory(
    tmp_path: Path, kind: str, person: str | None
) -> None:
    columns = log()
    write(pa.table(columns), tmp_path / f"log.{kind}")
    asked = {"arm": "plan", "outcome": "visits", "loss_range": (0, 20), "clip": True}
    there = count(Table(tmp_path / f"log.{kind}"), person=person, **asked).counted  # type: ignore[arg-type]
    rows = read_log(columns, person=person, **asked)  # type: ignore[arg-type]
    data = rows if person is None else once_each(rows)[0]
    here = Counted.of_rows(data.arm_names, data.arms, data.units)
    assert there.names == here.names
    assert there.squares is not None
    assert here.squares is not None
    pairs = (there.counts, here.counts), (there.sums, here.sums), (there.squares, here.squares)
    assert all(one.tolist() == other.tolist() for one, other in pairs)
    assert there.mixed == (0 if person is None else mixed_in(rows))


def test_cells_are_the_same_in_a_file_and_in_memory(tmp_path: Path) -> None:
    columns = log()
    write(pa.table(columns), tmp_path / "log.csv")
    by = {"age": [18, 40, 65, 90], "sex": ["f", "m"]}
    asked: Any = {"arm": "plan", "outcome": "visits", "loss_range": (0, 20), "clip": True, "by": by}
    there = bd.answer(tmp_path / "log.csv", epsilon=100.0, **asked)
    here = bd.answer(columns, epsilon=100.0, **asked)
    assert [arm.rounds for arm in there.arms] == [arm.rounds for arm in here.arms]
    for one, other in zip(there.gains, here.gains, strict=True):
        assert one.rule.keys() == other.rule.keys()
        assert one.gain == pytest.approx(other.gain, abs=0.3)


def test_arms_are_named_as_in_memory(tmp_path: Path) -> None:
    for arms in ([10, 9, 2], [1.0, 2.0, 3.0], [True, False, True], ["b", "a", "c"]):
        columns = {"arm": np.array(arms * 4), "y": np.linspace(0.0, 1.0, 12)}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / "log.parquet")
        there = count(Table(tmp_path / "log.parquet"), arm="arm", outcome="y").counted
        assert there.names == read_log(columns, arm="arm", outcome="y", loss_range=(0, 1)).arm_names


def test_what_is_missing_or_outside_is_refused_or_counted_and_never_shown(tmp_path: Path) -> None:
    columns = {"arm": ["A", "B"] * 4, "y": [0.5, 0.25, None, float("nan"), 1.0, 0.0, 0.5, 77.125]}
    table = pa.table(columns)
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(InputError, match="no outcome in column 'y'") as refused:
        bd.answer(tmp_path / "log.parquet", arm="arm", outcome="y", epsilon=1.0)
    pyarrow.parquet.write_table(table.filter(table["y"].is_valid()), tmp_path / "log.parquet")
    with pytest.raises(InputError, match="are not from 0 to 1") as outside:
        bd.answer(tmp_path / "log.parquet", arm="arm", outcome="y", epsilon=1.0)
    assert "77" not in str(refused.value) + str(outside.value)
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    found = count(Table(tmp_path / "log.parquet"), arm="arm", outcome="y", clip=True).counted
    assert found.sums[:, 0].tolist() == [2**20 * 2, 2**18 + 2**20]


def test_texts_among_the_numbers_of_a_file_count_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm,y\n" + "A,1\nB,0\n" * 30_000 + "A,secret-4711\n")
    with pytest.raises(InputError) as refused:
        bd.answer(path, arm="arm", outcome="y", epsilon=1.0)
    assert "4711" not in str(refused.value)
    assert (
        count(Table(path), arm="arm", outcome="y", clip=True).counted.sums[0, 0] == 30_000 * 2**20
    )


def test_errors_of_engines_are_not_repeated(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "shop.duckdb") as database:
        database.execute("create table t as select 'A' as arm, 'secret-4711' as y")
    select = "select arm, cast(y as integer) as y from t"
    with pytest.raises(InputError, match="could not be counted") as refused:
        count(Table(f"duckdb://{tmp_path}/shop.duckdb", select), arm="arm", outcome="y")
    assert "4711" not in str(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_the_query_is_shown_and_not_asked(tmp_path: Path) -> None:
    write(pa.table(log()), tmp_path / "log.parquet")
    source = Table(str(tmp_path / "log.parquet"))
    shown = sql_of(source, arm="plan", outcome="visits", loss_range=(0.0, 20.0))
    assert "GROUP BY" in shown


def test_a_file_of_duckdbs_is_where_the_address_says_and_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    monkeypatch.chdir(tmp_path)
    asked: dict[str, Any] = {"arm": "arm", "outcome": "y"}
    with duckdb.connect("shop.duckdb") as base:
        base.execute("create table t as select arm, 1.0 as y from (values ('A'), ('B')) v(arm)")
        first = count(Table("duckdb:///shop.duckdb", "t"), **asked)  # while it is open to write
    assert first.counted.counts.tolist() == [[1], [1]]
    for place in ("duckdb:///shop.duckdb", f"duckdb:///{tmp_path}/shop.duckdb"):
        assert count(Table(place, "t"), **asked).counted.counts.tolist() == [[1], [1]]
    with pytest.raises(InputError, match=r"no file of DuckDB's at none\.duckdb"):
        count(Table("duckdb:///none.duckdb", "t"), **asked)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.duckdb"]


def test_exposures_are_answered_from_a_database(tmp_path: Path) -> None:
    import duckdb

    shown, facts = tables(units=2_000)
    with duckdb.connect(tmp_path / "shop.duckdb") as database:
        for name, table in (("shown", shown), ("bought", facts)):
            database.register("given", table)
            database.execute(f"create table {name} as from given")
    done = bandanna(
        *("answer", f"duckdb://{tmp_path}/shop.duckdb", "--set", "exposures=shown"),
        *("--set", "facts=bought", "--set", "unit=unit", "--arm", "arm", "--set", "time=time"),
        *("--outcome", "value", "--set", "window=7d", "--set", f"arms={','.join(ARMS)}"),
        *("--range", "0,200", "--epsilon", "1", "--reward", "--json"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    counts = {arm: n for arm, (n, *_) in expected(shown, facts).items()}
    assert {arm["name"]: arm["rounds"] for arm in found["arms"]} == counts
    assert found["protects"].startswith("all outcomes of any one person")


# --- two worlds that differ in the facts of one person ------------------------------------------


def moves(shown: pa.Table, facts: pa.Table, unit: str, values: list[tuple[float, Any]]) -> int:
    """Return by how much all that is counted moves when one person's facts are others."""
    others = facts.filter(pa.compute.not_equal(facts["unit"], unit))
    begun = min(
        row["time"] for row in shown.to_pylist() if row["unit"] == unit and row["arm"] in ARMS
    )
    theirs = pa.table(
        {
            "unit": [unit] * len(values),
            "time": [begun + timedelta(days=days) for days, _ in values],
            "value": pa.array([value for _, value in values], pa.float64()),
        },
        others.schema,
    )
    one, two = (
        asked(source(shown, others)),
        asked(source(shown, pa.concat_tables([others, theirs]))),
    )
    assert one[1:] == two[1:]
    assert one.counted.counts.tolist() == two.counted.counts.tolist()
    assert one.counted.squares is not None
    assert two.counted.squares is not None
    apart = np.abs(one.counted.sums - two.counted.sums).sum()
    return int(apart + np.abs(one.counted.squares - two.counted.squares).sum())


@pytest.mark.parametrize(
    "values",
    [
        [(0.0, 1e300)],
        [(0.0, 1e300), (1.0, -1e300), (2.0, 150.0)],
        [(1.0, None), (2.0, float("nan")), (3.0, float("inf"))],
        [(-1.0, 100.0), (8.0, 100.0)],
        [(0.5 * day, 40.0) for day in range(14)],
    ],
)
def test_one_person_moves_the_sum_and_its_squares_by_one_unit_together(
    values: list[tuple[float, Any]],
) -> None:
    shown, facts = tables(units=60)
    for unit in ("u1", "u7", "u12"):
        assert moves(shown, facts, unit, values) <= 2**20
    if values[0][0] < 0.0:  # before the exposure, and after the window
        assert moves(shown, facts.slice(0, 0), "u1", values) == 0


def test_facts_of_strangers_count_nothing() -> None:
    shown, facts = tables(units=60)
    stranger = pa.table({"unit": ["new"], "time": facts["time"][:1], "value": [9.0]}, facts.schema)
    one, two = (
        asked(source(shown, facts)),
        asked(source(shown, pa.concat_tables([facts, stranger]))),
    )
    assert found(one) == found(two)


@pytest.mark.parametrize("window", ["0d", "7", "9999999999999w", "101000d"])
def test_lengths_of_time_that_cannot_be_are_refused(window: str) -> None:
    with pytest.raises(InputError, match="at most 100 years"):
        duration(window)

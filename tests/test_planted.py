"""A recognisable value in every input of every public entry point comes out of none.

It is looked for in results, errors with all they came from, the variables of their frames in
Bandanna, warnings, logs, both outputs of commands, and bodies of HTTP answers. Where it may be:
columns of people's values of any kind of table, feedback, metrics, contexts. Names of arms are
public, and so are columns' names: they are looked for in errors alone.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.cli import main
from bandanna.contextual import ContextTable
from bandanna.contextual.simulation import replay
from bandanna.environments import Logged
from bandanna.environments.tables import LossTable, read_losses
from tests.planted import MARK, NUMBER, UNITS, WHOLE, WORD, came_out, shown, told_by
from tests.service.running import Here, service_here

pa = pytest.importorskip("pyarrow")

quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# --- tables of people -------------------------------------------------------------------------

ROWS = 60
COLUMNS = ("plan", "visits", "who", "when", "place", "age", "odds")


def table() -> dict[str, list[object]]:
    rows = range(ROWS)
    return {
        "plan": ["A" if row % 2 else "B" for row in rows],
        "visits": [float(row % 3 == 0) for row in rows],
        "who": [f"p{row * 7 % 40}" for row in rows],
        "when": [f"2024-01-{row % 28 + 1:02}" for row in rows],
        "place": ["de" if row % 2 else "fr" for row in rows],
        "age": [20.0 + row for row in rows],
        "odds": [0.5 for _ in rows],
    }


def arrow(columns: dict[str, list[object]]) -> Any:
    return pa.table(
        {
            name: values if _alike(values) else list(map(str, values))
            for name, values in columns.items()
        }
    )


def _alike(values: list[object]) -> bool:
    return len({type(value) for value in values if value is not None}) == 1


def relation(columns: dict[str, list[object]]) -> object:
    duckdb = pytest.importorskip("duckdb")
    held = arrow(columns)
    return duckdb.connect().from_arrow(held)


def csv(
    folder: Path,
    columns: dict[str, list[object]],
    *,
    named: bool = True,
    encoding: str = "utf-8",
    separator: str = ",",
) -> Path:
    lines = [separator.join(columns)] if named else []
    for row in range(max(map(len, columns.values()))):
        cells = [values[row] if row < len(values) else "" for values in columns.values()]
        lines.append(separator.join("" if one is None else str(one) for one in cells))
    path = folder / "people.csv"
    path.write_bytes("\n".join(lines).encode(encoding))
    return path


Table = Callable[[dict[str, list[object]], Path], object]
TABLES: dict[str, Table] = {
    "a dict": lambda columns, _: columns,
    "arrays": lambda columns, _: {
        name: np.array(values, dtype=object) for name, values in columns.items()
    },
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "polars": lambda columns, _: pl.DataFrame(columns, strict=False),
    "lazy": lambda columns, _: pl.DataFrame(columns, strict=False).lazy(),
    "arrow": lambda columns, _: arrow(columns),
    "a batch": lambda columns, _: arrow(columns).combine_chunks().to_batches()[0],
    "a reader": lambda columns, _: arrow(columns).to_reader(),
    "a relation": lambda columns, _: relation(columns),
    "csv": lambda columns, folder: csv(folder, columns),
    "csv without names": lambda columns, folder: csv(folder, columns, named=False),
    "csv in Latin-1": lambda columns, folder: csv(
        folder, columns | {"name": ["Jos\xe9"] * ROWS}, encoding="latin-1"
    ),
    "csv with semicolons": lambda columns, folder: csv(folder, columns, separator=";"),
    "a string": lambda columns, _: ",".join(map(str, columns["visits"])) + ".csv",
    "rows": lambda columns, _: [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ],
    "NumPy": lambda columns, _: np.array(list(columns.values()), dtype=object),
}
del TABLES["a string"]  # a name of a file is no person's value

Change = Callable[[list[object], int], list[object]]


def _put(*values: object) -> Change:
    def change(column: list[object], row: int) -> list[object]:
        return [*column[:row], *values, *column[row + len(values) :]]

    return change


WRONG: dict[str, Change] = {
    "nothing": lambda column, _: column,
    "a number": _put(NUMBER),
    "a large number": _put(WHOLE),
    "a word": _put(WORD),
    "words": lambda column, _: [WORD] * len(column),
    "a date": _put(f"31/31/{MARK}"),
    "the same number": lambda column, _: [NUMBER] * len(column),
    "some missing": _put(WORD, None),
    "a list": _put([NUMBER]),
}

ASKED = ("right", "no arm", "no outcome", "the other way round")


def asked(which: str) -> dict[str, Any]:
    return {
        "right": {"arm": "plan", "outcome": "visits"},
        "no arm": {"arm": "plann", "outcome": "visits"},
        "no outcome": {"arm": "plan", "outcome": "visit"},
        "the other way round": {"arm": "visits", "outcome": "plan"},
    }[which]


def entry_points(log: object, how: dict[str, Any]) -> dict[str, Callable[[], object]]:
    features = {"age": (18, 90), "place": ["de", "fr"]}
    arms = {"arm": how["arm"], "reward": how["outcome"]}
    return {
        "answer": lambda: bd.answer(log, epsilon=1.0, **how),
        "answer, clipped": lambda: bd.answer(log, epsilon=1.0, clip=True, reward=True, **how),
        "answer by person": lambda: bd.answer(log, epsilon=1.0, person="who", **how),
        "answer by group": lambda: bd.answer(
            log, epsilon=1.0, by={"place": ["de", "fr"], "age": [18, 40, 90]}, **how
        ),
        "rehearse": lambda: Logged(log, **how),
        "rehearse in time": lambda: Logged(log, time="when", segment="place", **how),
        "rehearse by odds": lambda: Logged(log, propensity="odds", person="who", **how),
        "rehearse with experts": lambda: Logged(log, advice=["place"], **how),
        "context": lambda: ContextTable.from_log(log, features, **arms),
        "replay": lambda: type(replay(log, features, 1.0, **arms)),
        "losses": lambda: bd.simulate(bd.PrivateBandit(2, 1.0), log, replicates=1),
    }


NAMES = tuple(entry_points(None, asked("right")))


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(sorted(TABLES)),
    st.sampled_from(COLUMNS),
    st.sampled_from(sorted(WRONG)),
    st.sampled_from(ASKED),
    st.integers(0, ROWS - 1),
)
def test_no_value_of_a_table_comes_out(
    tmp_path: Path, name: str, kind: str, column: str, wrong: str, which: str, row: int
) -> None:
    columns = table()
    columns[column] = WRONG[wrong](columns[column], row)
    try:
        log = TABLES[kind](columns, tmp_path)
    except Exception:  # other libraries have no such table
        return
    how = asked(which)
    said, failed = came_out(entry_points(log, how)[name], frames=name != "losses")
    public = column == how["arm"] or (column == "place" and name == "rehearse with experts")
    if failed or not public:
        assert MARK not in said
        assert UNITS not in said or wrong == "nothing"


@pytest.mark.parametrize(
    "kind",
    sorted(
        set(TABLES)
        - {"rows", "NumPy", "csv without names", "csv with semicolons", "csv in Latin-1"}
    ),
)
def test_every_kind_of_table_is_taken(kind: str, tmp_path: Path) -> None:
    """Arrow tables were refused, in an error that printed the values of all columns."""
    log = TABLES[kind](table(), tmp_path)
    found = bd.answer(
        log, epsilon=100.0, person="who", by={"place": ["de", "fr"]}, **asked("right")
    )
    assert sorted(arm.name for arm in found.arms) == ["A", "B"]
    if kind == "a reader":
        return  # it can be read once
    assert Logged(log, **asked("right")).arm_names == ("A", "B")
    with pytest.raises(bd.InputError, match=r"no column 'visit'; it has 'plan', 'visits', 'who'"):
        bd.answer(log, epsilon=1.0, **asked("no outcome"))


@settings(quick, max_examples=15)
@given(st.sampled_from([NUMBER, WHOLE, WORD, [NUMBER], None, float("nan")]), st.integers(0, 3))
def test_no_value_of_a_range_or_a_table_of_losses_comes_out(wrong: Any, where: int) -> None:
    values: list[Any] = [0.1, 0.2, 0.3, 0.4]
    values[where] = wrong
    losses = [values[:2], values[2:]]
    for call in (
        lambda: bd.private_range(values, 1.0, bounds=(0, 1)),
        lambda: bd.private_range(values * 3000, 1.0, bounds=(0, 1)),
        lambda: LossTable(losses),
        lambda: LossTable([*losses, values]),
        lambda: bd.simulate(bd.PrivateBandit(2, 1.0), losses, replicates=1),
        lambda: ContextTable.from_rewards({"age": values[:2]}, {"age": (0, 1)}, losses),
        lambda: ContextTable.from_labels({"age": values}, {"age": (0, 1)}, values),
    ):
        said, _ = came_out(call, frames=False)
        assert MARK not in said


@quick
@given(st.sampled_from([NUMBER, WHOLE, WORD]), st.integers(0, 3), st.booleans())
def test_no_value_of_a_file_of_losses_comes_out(
    tmp_path: Path, wrong: object, where: int, named: bool
) -> None:
    cells = ["0.1", "0.2", "0.3", "0.4"]
    cells[where] = str(wrong)
    path = tmp_path / "losses.csv"
    head = "a,b\n" if named else ""
    path.write_text(head + f"{cells[0]},{cells[1]}\n{cells[2]},{cells[3]}\n")
    for call in (
        lambda: read_losses(path),
        lambda: read_losses(path, (0.0, 0.5)),
        lambda: bd.simulate(bd.PrivateBandit(2, 1.0), path, replicates=1),
    ):
        said, failed = came_out(call, frames=False)
        assert MARK not in said or (not failed and not named)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text(f"a,b\n{cells[0]}\n{cells[1]},{cells[2]},{cells[3]}\n")
    assert MARK not in came_out(lambda: read_losses(ragged), frames=False)[0]
    array = tmp_path / "losses.npy"
    array.write_bytes(f"not NumPy {wrong}".encode())
    assert MARK not in came_out(lambda: read_losses(array), frames=False)[0]


# --- feedback ---------------------------------------------------------------------------------


class Odd:
    """A number that fails when it is used, and says what it is."""

    def __float__(self) -> float:
        raise ValueError(WORD)

    def __repr__(self) -> str:
        return WORD


FEEDBACK: dict[str, Any] = {
    "in range": NUMBER,
    "too large": WHOLE,
    "negative": -NUMBER,
    "a word": WORD,
    "a list": [NUMBER],
    "complex": complex(NUMBER),
    "odd": Odd(),
    "a record": {"value": NUMBER},
}


def trees(**changes: Any) -> Any:
    return bd.PrivateContextual(
        ["A", "B"], {"age": (0.0, 10.0**12)}, 1.0, rounds=1000, algorithm="trees", **changes
    )


def linear(**changes: Any) -> Any:
    return bd.PrivateContextual(["A", "B"], {"age": (0.0, 10.0**12)}, 1.0, 1e-6, 1000, **changes)


POLICIES: dict[str, Callable[[], Any]] = {
    "default": lambda: bd.PrivateBandit(["A", "B"], 1.0, rounds=1000),
    "local": lambda: bd.PrivateBandit(["A", "B"], 1.0, batch=1),
    "phased": lambda: bd.PrivateBandit(["A", "B"], 1.0, rounds=100, algorithm="phased"),
    "race": lambda: bd.PrivateBandit(["A", "B"], 1.0, rounds=100, goal="answer"),
    "metrics": lambda: bd.PrivateBandit(["A", "B"], 1.0, batch=2, metrics={"cost": (0, 1)}),
    "people": lambda: bd.PrivateBandit(["A", "B"], 1.0, batch=2, per_person=3),
    "not private": lambda: bd.Bandit(["A", "B"], batch=2),
    "experts": lambda: bd.PrivateExperts(2, ["A", "B"], 1.0, rounds=100),
    "segments": lambda: bd.Segments(lambda _: bd.PrivateBandit(2, 1.0), ["de"]),
    "around": lambda: bd.privatize("uniform", 2, 1.0, release="laplace"),
    "trees": trees,
    "linear": linear,
    "both": lambda: linear(protects="context and feedback"),
}
READ = (
    *("hint", "guarantee", "leader", "answer", "summary", "certificate", "regret_bound", "net"),
    *("plan", "stationarity", "state", "chances", "report", "happened"),
)


def decide(name: str, policy: Any, context: object = None) -> Any:
    if name == "people":
        return policy.decide(person="someone")
    if name == "experts":
        return policy.decide([0, 1])
    if name == "segments":
        return policy.decide(segment="de")
    if name in ("trees", "linear", "both"):
        return policy.decide({"age": 3.0} if context is None else context)
    return policy.decide()


@quick
@given(
    st.sampled_from(sorted(POLICIES)),
    st.lists(
        st.tuples(
            st.sampled_from(sorted(FEEDBACK)),
            st.sampled_from(["loss", "reward", "both"]),
            st.sampled_from(["its own", "the same again", "none"]),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_no_feedback_comes_out(name: str, steps: list[tuple[str, str, str]]) -> None:
    policy = POLICIES[name]()
    decision = decide(name, policy)
    for kind, way, which in steps:
        value = FEEDBACK[kind]
        given = {"loss": value, "reward": value} if way == "both" else {way: value}
        if name == "metrics":
            given["metrics"] = {"cost": value}
        if which == "its own":
            decision = decide(name, policy)
        what = f"not a decision {len(steps)}" if which == "none" else decision
        said, _ = came_out(lambda: policy.observe(what, **given))  # noqa: B023
        assert MARK not in said
        assert UNITS not in said
    for attribute in READ:

        def read(attribute: str = attribute) -> object:
            value = getattr(policy, attribute, None)
            return value() if callable(value) else value

        said, failed = came_out(read)
        assert MARK not in said, attribute
        if failed or attribute in ("hint", "state", "happened"):  # others have numbers of their own
            assert UNITS not in said, attribute
    assert MARK not in repr(policy)
    if name != "not private":
        assert UNITS not in repr(policy)


CONTEXTS: tuple[Any, ...] = (
    {"age": WORD}, {"age": [NUMBER]}, {"age": Odd()}, {"size": NUMBER}, {"age": NUMBER, "x": 1},
    WORD, [NUMBER], {"age": 1.0 * WHOLE}, {"age": complex(NUMBER)},
)  # fmt: skip


@pytest.mark.parametrize("name", ["trees", "linear", "both"])
@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_no_context_comes_out(name: str, context: Any) -> None:
    policy = POLICIES[name]()
    said, failed = came_out(lambda: decide(name, policy, context).arm)
    assert MARK not in said
    if not failed:
        waiting = came_out(lambda: policy.state if hasattr(policy, "state") else None)[0]
        assert MARK not in waiting + repr(policy) + shown(policy.answer())


def test_an_error_of_an_encoder_is_not_repeated() -> None:
    """What scikit-learn says of a context repeats it."""
    from sklearn.preprocessing import StandardScaler

    from bandanna.contextual.features import Fitted

    public = np.random.default_rng(0).random((50, 2))
    encoder = Fitted(StandardScaler().fit(public), public, columns=["age", "size"])
    policy = bd.PrivateContextual(2, encoder, 1.0, 1e-6, 1000)
    said, failed = came_out(lambda: policy.decide({"age": WORD, "size": 1.0}))
    assert failed
    assert MARK not in said
    assert "What it says is left out" in said


# --- commands ---------------------------------------------------------------------------------

COMMANDS: dict[str, list[str]] = {
    "answer": ["answer", "LOG", "--arm", "ARM", "--outcome", "OUT", "--epsilon", "1"],
    "answer json": ["answer", "LOG", "--arm", "ARM", "--outcome", "OUT", "--epsilon", "1",
                    "--json", "--clip", "--person", "who"],
    "simulate": ["simulate", "LOG", "--arm", "ARM", "--outcome", "OUT", "--replicates",
                 "1", "--algorithms", "uniform", "--epsilon", "1"],
    "losses": ["simulate", "--environment", "LOG", "--replicates", "1", "--algorithms", "uniform"],
    "like": ["plan", "LOG", "--set", "arm=ARM", "--set", "outcome=OUT", "--epsilon", "1"],
    "study": ["study", "new", "LOG", "--arm", "ARM", "--outcome", "OUT", "-o", "STUDY"],
    "verify": ["verify", "LOG"],
    "card": ["card", "LOG"],
}  # fmt: skip


def _said(word: str, words: dict[str, str]) -> str:
    name, equals, value = word.rpartition("=")
    return f"{name}{equals}{words.get(value, value)}"


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("csv", "a word"),
        ("csv without names", "a large number"),
        ("csv in Latin-1", "some missing"),
    ],
)
@pytest.mark.parametrize("which", ["right", "no outcome"])
def test_no_command_prints_a_value(
    name: str,
    kind: str,
    wrong: str,
    which: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    columns = table()
    columns["visits"] = WRONG[wrong](columns["visits"], 0)
    path, how = TABLES[kind](columns, tmp_path), asked(which)
    words = {"LOG": str(path), "ARM": how["arm"], "OUT": how["outcome"],
             "STUDY": str(tmp_path / "study.toml")}  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["bandanna", *(_said(word, words) for word in COMMANDS[name])])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capfd.readouterr()
    assert MARK not in printed.out + printed.err
    assert MARK not in told_by(ended.value, frames=False)
    if name in ("answer", "simulate"):
        assert ended.value.code == 2
        assert "Traceback" not in printed.err


# --- the service ------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Here]:
    caplog.set_level(logging.DEBUG)
    logger = logging.getLogger("bandanna.service")
    before = logger.level, logger.propagate
    logger.setLevel(logging.DEBUG)
    logger.propagate = True
    with service_here(tmp_path) as running:
        yield running
    logger.setLevel(before[0])
    logger.propagate = before[1]


BODIES: tuple[Any, ...] = (
    {"loss": NUMBER}, {"reward": NUMBER}, {"loss": WHOLE}, {"loss": WORD}, {"loss": [NUMBER]},
    {"loss": NUMBER, "reward": NUMBER}, {"loss": {"value": NUMBER}}, {"loss": None, "x": WORD},
    {"reward": WORD, "metrics": {"cost": NUMBER}}, {"loss": NUMBER, "metrics": {"cost": WORD}},
    {"loss": NUMBER, "metrics": {"cost": WHOLE}}, {"loss": NUMBER, "metrics": [WORD]}, [WORD], WORD,
)  # fmt: skip


def test_no_answer_or_log_of_the_service_repeats_feedback(
    here: Here, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    features = {"age": [0, 10**12]}
    experiments = {
        "plain": here.create(),
        "metrics": here.create(metrics={"cost": [0, 1]}),
        "people": here.create(per_person=3, rounds_per_slot=1),
        "context": here.create(features=features, delta=1e-6),
        "both": here.create(features=features, delta=1e-6, protects="context and feedback"),
    }
    said = []
    for name, experiment in experiments.items():
        base = f"/v1/experiments/{experiment}"
        extra: dict[str, Any] = {"context": {"age": 3}} if name in ("context", "both") else {}
        extra |= {"person": "someone"} if name == "people" else {}
        for number, body in enumerate(BODIES):
            event = f"{name}-{number}"
            here.decide(experiment, event_id=event, **extra)
            for _ in range(2):
                answered = here.http.post(f"/v1/events/{event}/reward", json=body)
                assert answered.status_code != 500, (name, body)
                said.append(answered.text)
            raw = json.dumps(body)[:-1]  # not JSON
            path = f"/v1/events/{event}/reward"
            said.append(here.http.post(path, content=raw).text)
            said.append(here.http.post(path, json={"loss": 0.25}).text)  # another value
        for context in (WORD, [NUMBER], {"age": WORD}, {"age": [NUMBER]}, {"size": NUMBER}):
            answered = here.http.post(f"{base}/decisions", json={"context": context})
            assert answered.status_code != 500, (name, context)
            said.append(answered.text)
        said += [here.http.get(f"{base}{end}").text
                 for end in ("", "/results", "/privacy", "/export", "/audit")]  # fmt: skip
    said += [here.http.get(path).text for path in ("/v1/experiments", "/metrics", "/readyz")]
    printed = capfd.readouterr()
    said += [printed.out, printed.err, caplog.text]
    said += [str(vars(record)) for record in caplog.records]
    for text in said:
        assert MARK not in text

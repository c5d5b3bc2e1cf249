"""Experiments in phases: released once, whatever happens, and counted as documented."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.types import JSON, BandannaError, InputError, StateFileError
from bandanna.phases import Definition, PhasedExperiment
from bandanna.phases.definition import written
from bandanna.phases.payloads import PARTS, assigned, parts_of
from bandanna.privacy.certificate import verify
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.signatures import public_from_pem
from bandanna.signatures import verify as verify_signature
from bandanna.store import Secret, SqlStore
from tests.command import bandanna
from tests.pages import ROOT
from tests.postgres import needs_postgres, open_postgres

ARMS = ("control", "green", "blue")
RATES = [0.3, 0.5, 0.7]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
KILLS = int(os.environ.get("BANDANNA_KILLS", "20"))


def definition(folder: Path, **more: Any) -> Definition:
    given: JSON = {
        "name": "button",
        "arms": ARMS,
        "epsilon": 1.0,
        "every": "1d",
        "window": "1d",
        "exposures": str(folder / "shown"),
        "facts": str(folder / "bought"),
        "unit": "unit",
        "arm": "arm",
        "time": "time",
        "outcome": "value",
        "rounds": 1_500,
        "reward": True,
        "publish": "bandanna",
        "to": str(folder / "shares.json"),
        "state": str(folder / "state.json"),
    }
    return Definition(**{**given, **more})


def payload(folder: Path) -> JSON:
    found: JSON = json.loads(json.loads((folder / "shares.json").read_text())["payload"])
    return found


def visit(folder: Path, day: int, people: range, seed: int = 0) -> None:
    """Let people come on a day: they meet what is published, and some of them buy."""
    said, rng = payload(folder), np.random.default_rng((seed, day))
    units = [f"u{k}" for k in people]
    arms = [assigned(said["salt"], unit, said["parts"]) for unit in units]
    bought = rng.random(len(units)) < np.take(RATES, arms)
    at = (BEGIN + day * DAY + timedelta(hours=2)).replace(tzinfo=None)
    times = pa.array([at] * len(units), pa.timestamp("us"))
    some = pa.array([at + timedelta(hours=3)] * int(bought.sum()), pa.timestamp("us"))
    write(folder / "shown", day, {"unit": units, "arm": [ARMS[arm] for arm in arms], "time": times})
    values = np.ones(int(bought.sum()))
    write(folder / "bought", day, {"unit": np.array(units)[bought], "value": values, "time": some})


def write(folder: Path, day: int, columns: JSON) -> None:
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pa.table(columns), folder / f"{day}.parquet")


def play(folder: Path, days: int, each: int = 150, **more: Any) -> PhasedExperiment:
    experiment = PhasedExperiment(definition(folder, **more))
    experiment.start(BEGIN)
    for day in range(days):
        visit(folder, day, range(each * day, each * (day + 1)))
        experiment.next(BEGIN + (day + 1) * DAY)
    return experiment


def test_phases_learn_and_answer_and_promise(tmp_path: Path) -> None:
    experiment = play(tmp_path, 10)
    assert experiment.next(BEGIN + 12 * DAY).waits == BEGIN + 13 * DAY
    assert experiment.next(BEGIN + 13 * DAY).waits is None
    assert "over" in experiment.next(BEGIN + 20 * DAY).sentence
    phases = experiment.phases
    assert [one["number"] for one in phases] == list(range(len(phases)))
    for one in phases[:10]:
        assert sum(one["parts"]) == PARTS
        assert sum(one["released"]["counts"].values()) == 150
        assert one["released"]["sample_ratio"] > 1e-6
    assert phases[9]["parts"][2] > 5_000, "the best arm has most of it"
    answer = experiment.answer()
    assert sum(arm.rounds for arm in answer.arms) >= 1_350
    assert answer.arms[2].low <= 0.7 <= answer.arms[2].high
    assert "value" in answer.sentence or answer.best is None
    assert experiment.guarantee.epsilon == 1.0
    assert all(finding.holds for finding in verify(to_text(experiment.certificate())))
    card = experiment.scorecard()
    assert [effect.people for effect in card.metrics[0].effects] == [
        arm.rounds for arm in answer.arms
    ]
    assert card.epsilon == 1.0
    assert [check.name for check in card.health] == ["division", "change"]
    assert card.control == "control"


def test_nothing_happens_before_the_time_and_everything_after_it(tmp_path: Path) -> None:
    experiment = PhasedExperiment(definition(tmp_path))
    with pytest.raises(StateFileError, match="has not begun"):
        experiment.next(BEGIN)
    experiment.start(BEGIN)
    with pytest.raises(StateFileError, match="has begun"):
        experiment.start(BEGIN)
    visit(tmp_path, 0, range(60))
    first = (tmp_path / "state.json").read_bytes()
    step = experiment.next(BEGIN + DAY - timedelta(seconds=1))
    assert (step.released, step.opened, step.waits) == ((), None, BEGIN + DAY)
    assert (tmp_path / "state.json").read_bytes() == first
    (tmp_path / "shares.json").unlink()  # as if the run had died before it published
    experiment.next(BEGIN + timedelta(hours=1))
    assert payload(tmp_path)["phase"] == 0
    assert experiment.next(BEGIN + DAY).opened == 1
    assert experiment.phases[0]["released"] is None, "its window is not over"
    step = experiment.next(BEGIN + 2 * DAY)
    assert (step.released, step.opened) == ((0,), None), "nobody came: phase 1 goes on"
    assert step.waits == BEGIN + 3 * DAY
    late = BEGIN + 30 * DAY
    assert experiment.next(late).opened == 2, "but not for ever"
    assert experiment.next(late + DAY).released == (1,)


def test_a_definition_that_changed_is_refused(tmp_path: Path) -> None:
    PhasedExperiment(definition(tmp_path)).start(BEGIN)
    for change in ({"epsilon": 2.0}, {"arms": ("a", "b")}, {"window": "2d"}):
        with pytest.raises(StateFileError, match="has changed since it began"):
            PhasedExperiment(definition(tmp_path, **change)).next(BEGIN + DAY)
    PhasedExperiment(definition(tmp_path, rounds=9_000)).next(BEGIN)


def test_payloads_are_signed_and_chained(tmp_path: Path) -> None:
    experiment = PhasedExperiment(definition(tmp_path))
    experiment.start(BEGIN)
    key = public_from_pem((tmp_path / "shares.json.key.public.pem").read_bytes())
    texts = [(tmp_path / "shares.json").read_text()]
    for day in range(2):
        visit(tmp_path, day, range(60 * day, 60 * day + 60))
        experiment.next(BEGIN + (day + 1) * DAY)
        texts.append((tmp_path / "shares.json").read_text())
    import base64
    import hashlib

    previous, salts = "", set()
    for text in texts:
        document = json.loads(text)
        mark = base64.b64decode(document["signature"])
        assert verify_signature(key, document["payload"].encode(), mark)
        said = json.loads(document["payload"])
        assert said["previous"] == previous
        previous = hashlib.sha256(text.encode()).hexdigest()
        salts.add(said["salt"])
    assert len(salts) == 3, "each phase has a seed of its own"


def test_people_keep_their_seed_only_where_they_count_once(tmp_path: Path) -> None:
    play(tmp_path, 1, per_person=1)
    salts = {payload(tmp_path)["salt"], json.loads((tmp_path / "state.json").read_text())["salt"]}
    assert len(salts) == 1


@pytest.mark.parametrize("slots", [None, 2])
def test_metrics_are_released_with_their_share_of_epsilon(
    tmp_path: Path, slots: int | None
) -> None:
    """Each purchase is of 0 to 20 items: 5 a buyer, and their mean is in the metric's interval."""
    more: JSON = {"metrics": {"items": (0, 20)}, "per_person": slots, "epsilon": 4.0}
    experiment = PhasedExperiment(definition(tmp_path, **more))
    experiment.start(BEGIN)
    for day in range(10):
        visit(tmp_path, day, range(150 * day, 150 * (day + 1)))
        path = tmp_path / "bought" / f"{day}.parquet"
        table = pyarrow.parquet.read_table(path)
        items = pa.array([5.0] * len(table))
        pyarrow.parquet.write_table(table.append_column("items", items), path)
        experiment.next(BEGIN + (day + 1) * DAY)
    experiment.next(BEGIN + 12 * DAY)
    found = experiment.answer(0.9999999, metric="items")
    assert all(arm.low <= 5 * rate <= arm.high for arm, rate in zip(found.arms, RATES, strict=True))
    promise = experiment.guarantee
    assert promise.epsilon == 4.0
    facts = promise.facts
    parts = facts["outcome_epsilon"], *(one["epsilon"] for one in facts["metrics"])
    assert parts == ((2.0, 2.0) if slots is None else (1.0, 1.0))
    assert all(finding.holds for finding in verify(to_text(experiment.certificate())))
    card = experiment.scorecard()
    assert [metric.name for metric in card.metrics] == ["value", "items"]
    assert experiment.compare("control", "blue", metric="items").difference is not None


@pytest.mark.parametrize("slots", [1, 2])
def test_a_person_counts_in_as_many_phases_as_allowed(tmp_path: Path, slots: int) -> None:
    """The same people come every day; then the table of exposures is pruned."""
    experiment = PhasedExperiment(definition(tmp_path, per_person=slots))
    experiment.start(BEGIN)
    for day in range(4):
        visit(tmp_path, day, range(80))
        if day == 3:
            (tmp_path / "shown" / "0.parquet").unlink()
            (tmp_path / "shown" / "1.parquet").unlink()
        experiment.next(BEGIN + (day + 1) * DAY)
    experiment.next(BEGIN + 6 * DAY)
    counts = [sum(one["released"]["counts"].values()) for one in experiment.phases[:4]]
    assert counts == [80] * slots + [0] * (4 - slots)
    assert experiment.guarantee.epsilon == 1.0
    assert "of one person" in experiment.guarantee.protects
    assert all(finding.holds for finding in verify(to_text(experiment.certificate())))


def test_worlds_that_differ_in_one_person_are_counted_alike_but_for_a_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int | None]] = []

    def noted(self: LaplaceRelease, total: int, size: int | None = None) -> float:
        seen.append((total, size))
        return total / ((size or 1) * 2**20)

    monkeypatch.setattr(LaplaceRelease, "release", noted)
    shares = ""
    worlds: list[tuple[list[tuple[int, int | None]], JSON]] = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        experiment = PhasedExperiment(definition(folder, per_person=1))
        experiment.start(BEGIN)
        shares = shares or (folder / "shares.json").read_text()
        (folder / "shares.json").write_text(shares)  # so that both worlds meet the same arms
        visit(folder, 0, range(90))
        facts = pyarrow.parquet.read_table(folder / "bought" / "0.parquet")
        facts = facts.filter(pa.compute.not_equal(facts["unit"], "u5"))
        if worlds:
            shown = pyarrow.parquet.read_table(folder / "shown" / "0.parquet").to_pylist()
            when = shown[5]["time"]
            theirs = [("u5", 1e300, when), ("u5", None, when), ("u5", 9.0, when - DAY)]
            columns = dict(zip(facts.schema.names, zip(*theirs, strict=True), strict=True))
            facts = pa.concat_tables([facts, pa.table(columns, facts.schema)])
        pyarrow.parquet.write_table(facts, folder / "bought" / "0.parquet")
        seen.clear()
        experiment.next(BEGIN + DAY)
        experiment.next(BEGIN + 2 * DAY)
        worlds.append((list(seen), experiment.phases[0]["released"]["counts"]))
    (one, counts), (two, others) = worlds
    assert counts == others
    assert [size for _, size in one] == [size for _, size in two]
    assert sum(abs(a - b) for (a, _), (b, _) in zip(one, two, strict=True)) == 2**20


def test_worlds_that_differ_in_someone_who_comes_every_day_differ_in_as_many_sums_as_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exposures are pruned before the last day, and exposures to no arm are among them."""
    seen: list[tuple[int, int | None]] = []

    def noted(self: LaplaceRelease, total: int, size: int | None = None) -> float:
        seen.append((total, size))
        return 0.5

    monkeypatch.setattr(LaplaceRelease, "release", noted)
    monkeypatch.setattr("bandanna.phases.course.seed_of", lambda *_: "salt")
    monkeypatch.setattr("bandanna.phases.course.parts_of", lambda _: [3_334, 3_333, 3_333])
    worlds: list[tuple[list[tuple[int, int | None]], list[JSON]]] = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        seen.clear()
        experiment = PhasedExperiment(definition(folder, per_person=2))
        experiment.start(BEGIN)
        for day in range(4):
            visit(folder, day, range(80))
            path = folder / "bought" / f"{day}.parquet"
            facts = pyarrow.parquet.read_table(path)
            facts = facts.filter(pa.compute.not_equal(facts["unit"], "u5"))
            shown = pyarrow.parquet.read_table(folder / "shown" / f"{day}.parquet")
            when = shown["time"][0].as_py()
            if worlds:
                theirs = pa.table({"unit": ["u5"], "value": [1e300], "time": [when]}, facts.schema)
                facts = pa.concat_tables([facts, theirs])
            pyarrow.parquet.write_table(facts, path)
            odd = {"unit": ["u5", "u6"], "arm": ["pink", "pink"], "time": [when - DAY, when]}
            shown = pa.concat_tables([shown, pa.table(odd, shown.schema)])
            pyarrow.parquet.write_table(shown, folder / "shown" / f"{day}.parquet")
            if day == 3:
                (folder / "shown" / "0.parquet").unlink()
                (folder / "shown" / "1.parquet").unlink()
            experiment.next(BEGIN + (day + 1) * DAY)
        experiment.next(BEGIN + 6 * DAY)
        worlds.append((list(seen), [one["released"] for one in experiment.phases[:4]]))
    (one, first), (two, second) = worlds
    assert [phase["counts"] for phase in first] == [phase["counts"] for phase in second]
    assert [sum(phase["counts"].values()) for phase in first] == [80, 80, 0, 0]
    assert [size for _, size in one] == [size for _, size in two]
    assert sum(abs(a - b) for (a, _), (b, _) in zip(one, two, strict=True)) == 2 * 2**20


def test_counts_that_do_not_fit_shares_are_pointed_out(tmp_path: Path) -> None:
    experiment = PhasedExperiment(definition(tmp_path))
    experiment.start(BEGIN)
    visit(tmp_path, 0, range(300))
    table = pyarrow.parquet.read_table(tmp_path / "shown" / "0.parquet")
    lost = table.filter(pa.compute.not_equal(table["arm"], "green"))
    pyarrow.parquet.write_table(lost, tmp_path / "shown" / "0.parquet")
    experiment.next(BEGIN + DAY)
    assert "do not fit its shares" in experiment.next(BEGIN + 2 * DAY).sentence
    assert not experiment.scorecard().health[0].good


def test_a_phase_column_says_to_which_phase_an_exposure_belongs(tmp_path: Path) -> None:
    experiment = PhasedExperiment(definition(tmp_path, phase_column="experiment"))
    experiment.start(BEGIN)
    visit(tmp_path, 0, range(100))
    table = pyarrow.parquet.read_table(tmp_path / "shown" / "0.parquet")
    keys = pa.array(["button-0"] * 60 + ["button-7"] * 40)
    pyarrow.parquet.write_table(
        table.append_column("experiment", keys), tmp_path / "shown" / "0.parquet"
    )
    experiment.next(BEGIN + DAY)
    experiment.next(BEGIN + 2 * DAY)
    assert sum(experiment.phases[0]["released"]["counts"].values()) == 60


# --- once, whatever happens ---------------------------------------------------------------------


class Dies:
    """Ends the process at a certain line of Bandanna's."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if (
            "bandanna" not in frame.f_code.co_filename
            or "site-packages" in frame.f_code.co_filename
        ):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                os._exit(9)
        return self


def in_child(work: Callable[[], object], *, dies: int | None = None) -> int:
    """Do something in a process of its own, which may die; returns its number."""
    child = os.fork()
    if child == 0:
        try:
            if dies is not None:
                sys.settrace(Dies(dies))
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


Seen = dict[int, JSON]


def released(experiment: PhasedExperiment) -> Seen:
    return {one["number"]: one["released"] for one in experiment.phases if one["released"]}


def agree(seen: Seen, now: Seen) -> None:
    """What was released stays as it was, and is only added to."""
    assert {number: now[number] for number in seen} == seen
    seen.update(now)


SLOW = pytest.mark.slow


@pytest.fixture(
    params=[
        "file",
        pytest.param("sqlite", marks=SLOW),
        pytest.param("postgres", marks=[SLOW, needs_postgres]),
    ]
)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A file, or a database that the service has made."""
    if request.param == "file":
        yield str(tmp_path / "state.json")
        return
    with open_postgres() if request.param == "postgres" else nullcontext() as server:
        address = f"sqlite:///{tmp_path}/service.db" if server is None else server.new_database()
        SqlStore(address, Secret.new()).close()
        yield address


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_run_that_is_killed_at_any_line_releases_each_phase_once(
    tmp_path: Path, state: str
) -> None:
    rng, died, done, most = np.random.default_rng(4), 0, 0, 6_000
    while done < KILLS:
        folder, experiment = another(tmp_path, state, done, per_person=2)
        seen: Seen = {}
        day = 0
        while day < DAYS and done < KILLS:
            visit(folder, day, range(60 * day, 60 * day + 60))
            now = BEGIN + (day + 1) * DAY
            work = partial(experiment.next, now)
            code = ended(in_child(work, dies=int(rng.integers(1, most))))
            assert code in (0, 9)
            died, done = died + (code == 9), done + 1
            agree(seen, released(experiment))
            assert payload(folder)["phase"] <= experiment.phases[-1]["number"]
            if rng.random() < 0.7 or code == 0:
                experiment.next(now)
                assert payload(folder)["phase"] == experiment.phases[-1]["number"]
                agree(seen, released(experiment))
                day += 1
        assert all(sum(one["counts"].values()) == 60 for one in seen.values())
        assert experiment.guarantee.epsilon == 1.0
    assert died >= KILLS // 3


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_two_runs_at_once_release_each_phase_once(tmp_path: Path, state: str) -> None:
    done, pairs = 0, max(KILLS // 4, 3)
    while done < pairs:
        folder, experiment = another(tmp_path, state, done)
        seen: Seen = {}
        for day in range(min(pairs - done, DAYS)):
            visit(folder, day, range(60 * day, 60 * day + 60))
            now = BEGIN + (day + 1) * DAY
            pair = [in_child(partial(experiment.next, now)) for _ in range(2)]
            assert [ended(child) for child in pair] == [0, 0]
            agree(seen, released(experiment))
            assert sorted(seen) == list(range(day))
            assert payload(folder)["phase"] == experiment.phases[-1]["number"] == day + 1
            done += 1


DAYS = 20
"""For which an experiment of 1,500 people goes on, 60 a day."""


def another(tmp_path: Path, state: str, number: int, **more: Any) -> tuple[Path, PhasedExperiment]:
    """Begin an experiment, and return its folder."""
    folder = tmp_path / f"{number}"
    folder.mkdir()
    where = state if "://" in state else str(folder / "state.json")
    found = PhasedExperiment(definition(folder, name=f"button-{number}", state=where, **more))
    found.start(BEGIN)
    return folder, found


# --- the file and the command -------------------------------------------------------------------

POSTGRES = "postgres://me@host/shop"
FILE = """
[experiment]
name = "button"
arms = ["control", "green"]
epsilon = 0.5
rounds = 1000
reward = true

[phases]
every = "1d"
window = "2d"

[source]
exposures = "shown"
facts = "bought"
unit = "unit"
arm = "arm"
time = "time"
outcome = "value"
range = [0, 1]

[publish]
format = "{format}"
to = "shares.json"
"""


def test_the_command_starts_goes_on_and_shows(tmp_path: Path) -> None:
    path = tmp_path / "button.toml"
    path.write_text(FILE.replace("{format}", "growthbook"))
    write(tmp_path / "shown", 0, {"unit": ["a"], "arm": ["green"], "time": ["2026-01-01T09:00"]})
    for verb, now, said in (
        ("start", "2026-01-01", "Opened phase 0"),
        ("next", "2026-01-01T10:00", "Nothing to do yet. Next at 2026-01-02T00:00"),
        ("next", "2026-01-02", "Nothing to do yet. Next at 2026-01-03T00:00"),
        ("next", "2026-01-08", "Opened phase 1"),
    ):
        done = bandanna("phases", verb, str(path), "--now", now)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
    features = json.loads((tmp_path / "shares.json").read_text())["features"]
    assert features["button"]["rules"][0]["weights"] == [0.5, 0.5]
    shown = bandanna("phases", "show", str(path), "--json")
    assert json.loads(shown.stdout)["epsilon"] == 0.5
    assert "phase" in bandanna("phases", "show", str(path)).stdout
    certificate = tmp_path / "certificate.json"
    bandanna("phases", "show", str(path), "--certificate", str(certificate))
    assert bandanna("verify", str(certificate)).returncode == 0
    before = (tmp_path / "button.state.json").read_bytes()
    told = bandanna("answer", str(path), "--html", str(tmp_path / "card.html"))
    assert "Go on: no arm" in told.stdout
    assert "it cost nothing" in told.stdout
    assert (tmp_path / "button.state.json").read_bytes() == before
    again = bandanna("answer", str(path), "--epsilon", "1")
    assert again.returncode == 2
    assert "leave out --epsilon" in again.stderr


def test_the_page_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file, with a database of DuckDB's beside it, from another folder as cron does."""
    import duckdb

    page = (ROOT / "docs/warehouse.md").read_text()
    (text,) = [one.split("```")[0] for one in page.split("```toml\n")[1:]]
    assert text.count(POSTGRES) == 1
    (tmp_path / "button.toml").write_text(text.replace(POSTGRES, "duckdb:///shop.duckdb"))
    monkeypatch.chdir("/")
    experiment = PhasedExperiment(tmp_path / "button.toml")
    (warning,) = experiment.start(BEGIN).warnings
    assert "no file of DuckDB's" in warning
    with duckdb.connect(tmp_path / "shop.duckdb") as base:
        base.execute("create table exposures (unit text, arm text, time timestamp)")
        base.execute(
            "create table orders as select 'u1' as customer, timestamp '2026-01-01 10:00' as "
            "paid_at, 20.0 as revenue, 2 as items"
        )
        base.execute("insert into exposures values ('u1', 'green', '2026-01-01 09:00')")
    assert not experiment._unready()
    for day in (1, 7, 8, 9):
        step = experiment.next(BEGIN + day * DAY)
    assert step.released == (0,)
    assert sum(experiment.phases[0]["released"]["counts"].values()) == 1
    assert json.loads((tmp_path / "shares.json").read_text())["features"].keys() == {"button"}


def test_a_column_that_is_missing_is_named_at_the_start(tmp_path: Path) -> None:
    for name in ("shown", "bought"):
        write(tmp_path / name, 0, {"unit": ["u"], "arm": ["a"], "value": [1.0], "time": ["2026"]})
    step = PhasedExperiment(definition(tmp_path, outcome="sales")).start(BEGIN)
    assert "no column 'sales'" in step.sentence


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("epsilon = 0.5\nrouns = 3", "did you mean rounds"),
        ("epsilon = -1", "epsilon must be"),
        ("", "lacks epsilon"),
        ("epsilon = 1\nmetrics = { items = 3 }", "metric 'items' must have a range"),
        ("epsilon = 1\nguardrails = { items = 0.1 }", "guardrail 'items' is not about a metric"),
    ],
)
def test_mistakes_in_the_file_are_explained(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "button.toml"
    path.write_text(FILE.replace("epsilon = 0.5", line).replace("{format}", "flagd"))
    with pytest.raises(InputError, match=said):
        bd.PhasedExperiment(path)


def test_tables_that_are_missing_change_nothing(tmp_path: Path) -> None:
    experiment = PhasedExperiment(definition(tmp_path))
    experiment.start(BEGIN)
    before = (tmp_path / "state.json").read_bytes()
    with pytest.raises(BandannaError, match="shown"):
        experiment.next(BEGIN + DAY)
    assert (tmp_path / "state.json").read_bytes() == before


def test_shares_are_rounded_to_parts_that_add_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        planned = np.floor(rng.gamma(0.3, 1_000.0, int(rng.integers(2, 40))))
        planned[0] += 1.0
        parts = np.array(parts_of(planned))
        assert parts.sum() == PARTS
        assert ((parts == 0) == (planned == 0)).all()
        assert np.abs(parts / PARTS - planned / planned.sum()).max() < 0.005
    assert written(BEGIN) == "2026-01-01T00:00:00.000000Z"

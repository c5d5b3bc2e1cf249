"""A study's report: what it says, that it works offline, and that a real browser likes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import bandanna as bd
from bandanna.algorithms import find
from bandanna.planner.plan import row_of
from bandanna.report.headline import answer, winners
from bandanna.report.study_charts import study_charts
from bandanna.report.study_report import guaranteed, numbers_table, write_report
from bandanna.studies.results import StudyResults
from bandanna.studies.schema import AXES
from tests.browser import needs_browser, open_browser
from tests.soak import mostly_slow

EVIL = "Is </script><script>alert('x')</script> & \"one-bit\" <b>better</b>?"
AUDIT = {
    "note": "Passing proves nothing.",
    "rows": [
        {
            "release": "one-bit",
            "claimed": 1.0,
            "audited": 0.98,
            "audited_policy": 0.9,
            "passed": True,
        }
    ],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    grid: dict[str, Any] = {
        "algorithm": ["one-bit", "htinf", "ldp-exp3", "no-privacy"],
        "environment": ["trial", "switching"],
        "epsilon": [0.5, 1.0, 2.0],
        "rounds": [500, 2000],
        "arms": [4, 12],
    }
    study = bd.Study(grid, replicates=10, question=EVIL)
    return study.run(tmp_path_factory.mktemp("study") / "results", workers=1)


@pytest.fixture(scope="module")
def report(results: StudyResults) -> Path:
    folder = results.folder.path.parent
    (folder / "audit.json").write_text(json.dumps(AUDIT))
    return write_report(results, folder / "report.html", audit=folder / "audit.json")[0]


def test_every_private_row_shows_what_plan_guarantees(results: StudyResults) -> None:
    columns, rows = numbers_table(results.table(), results.environments)
    headings = [column["heading"] for column in columns]
    assert headings[-1] == "guaranteed at most"
    for row in rows:
        said = dict(zip(headings, row["cells"], strict=True))
        if said["epsilon"] == "-":
            assert said["guaranteed at most"] == "-"
            continue
        size = int(said["arms"]), int(said["rounds"].replace(",", ""))
        entry = find(said["algorithm"], with_experts=False)
        planned = row_of(entry, bd.Problem(*size, float(said["epsilon"])))
        shown = "says nothing" if planned.vacuous else f"{planned.regret:,.0f}"
        shown = "-" if planned.bound is None else shown
        assert said["guaranteed at most"] == shown


@pytest.mark.parametrize(
    ("arms", "rounds", "epsilon"),
    [
        (4, 10**5, 0.1),
        (10, 10**6, 0.1),
        (10, 2 * 10**5, 1),
        (50, 5 * 10**5, 0.5),
        (2, 2 * 10**4, 0.5),
    ],
)
def test_adaptive_guarantees_at_most_three_times_the_best(
    arms: int, rounds: int, epsilon: float
) -> None:
    plan = bd.plan(arms, rounds, epsilon)
    row = next(one for one in plan.rows if one.algorithm == "adaptive")
    own = bd.PrivateBandit(arms, epsilon, rounds, "adaptive").plan.own
    assert own is not None
    assert row.regret <= 3.0 * plan.best.regret
    assert own.regret <= 3.0 * plan.best.regret
    cell = {"ran": "adaptive", "arms": arms, "rounds": rounds, "epsilon": epsilon, "batch": None}
    shown = guaranteed(cell | {"experts": None, "delta": None}, {})
    assert float(shown.replace(",", "")) <= 3.0 * plan.best.regret + 0.5  # it is rounded


def test_it_says_everything_and_escapes_what_people_wrote(report: Path) -> None:
    text = report.read_text()
    assert "<script>alert" not in text
    assert "Is &lt;/script&gt;" in text
    for part in (
        "has the smallest mean regret in",
        "The setting",
        "total loss minus that of",
        "What is guaranteed",
        "epsilon = 0.5, delta = 0 (local)",
        "We attacked 1 claims",
        "24 times: environment &#39;trial&#39; has 4 arms; got 12.",
        "bandanna study run study.toml",
        "algorithm = [&#34;one-bit&#34;",
    ):
        assert part in text
    assert 'src="http' not in text
    assert 'href="http' not in text


def test_charts_are_those_the_study_allows(results: StudyResults, tmp_path: Path) -> None:
    with pytest.raises(bd.InputError, match="svg, png, pdf"):
        write_report(results, tmp_path / "r.html", charts="gif")
    assert list(study_charts(results)) == [
        "regret over time",
        "regret against arms",
        "regret against epsilon",
        "regret against rounds",
        "price of privacy",
        "arm shares",
    ]


STARTS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", mostly_slow(STARTS, ["svg"]))
def test_charts_are_written_beside_the_report(
    kind: str, results: StudyResults, tmp_path: Path
) -> None:
    written = write_report(results, tmp_path / "r.html", charts=kind)
    assert len(written) == 7
    assert all(path.read_bytes().startswith(STARTS[kind]) for path in written[1:])


def test_a_study_of_one_cell_has_a_report_too(tmp_path: Path) -> None:
    grid: dict[str, Any] = {"algorithm": ["uniform"], "environment": ["trial"], "rounds": [30]}
    results = bd.Study(grid, replicates=1).run(tmp_path / "r", workers=1)
    page = write_report(results, tmp_path / "r.html")[0].read_text()
    assert "nothing private was compared" in page
    assert list(study_charts(results)) == ["regret over time", "arm shares"]


def test_an_unfinished_study_says_so(results: StudyResults, tmp_path: Path) -> None:
    copy = tmp_path / "results"
    shutil.copytree(results.folder.path, copy)
    files = sorted(copy.glob("*.parquet"))
    files[0].unlink()
    page = write_report(StudyResults.read(copy), tmp_path / "r.html")[0].read_text()
    assert f"1 of {len(files)} cells have not been run yet" in page
    for file in files[1:]:
        file.unlink()
    with pytest.raises(bd.InputError, match="no finished cell yet"):
        write_report(StudyResults.read(copy), tmp_path / "r.html")


def test_the_answer_names_the_winner_and_how_clear_it_is() -> None:
    base: dict[str, Any] = dict.fromkeys(AXES)
    base |= {"environment": "e", "epsilon": 1.0, "rounds": 100, "arms": 2, "batch": 1}
    rows = [
        base | {"cell": "a", "algorithm": "one-bit", "mean": 10.0, "standard_error": 1.0},
        base | {"cell": "b", "algorithm": "htinf", "mean": 20.0, "standard_error": 1.0},
    ]
    said = answer(pl.DataFrame(rows))
    assert said.startswith("Among private algorithms, one-bit has the smallest mean regret in the")
    assert said.endswith("clearly beyond error.")
    rows[1]["mean"] = 12.0
    assert "not clearly beyond" in answer(pl.DataFrame(rows))
    free = {"cell": "c", "algorithm": "no-privacy", "epsilon": None, "mean": 2.0}
    said = answer(pl.DataFrame([*rows, base | free | {"standard_error": 1.0}]))
    assert said.endswith(
        "its regret is 5 times at epsilon 1 that of the strongest learner without privacy."
    )


def test_what_may_spend_more_delta_is_no_rival() -> None:
    base: dict[str, Any] = dict.fromkeys(AXES)
    base |= {"environment": "e", "epsilon": 1.0, "rounds": 100, "arms": 2, "experts": 3, "batch": 1}
    rows = [
        base | {"cell": "a", "algorithm": "one-bit-exp4", "delta": 0.0, "mean": 20.0},
        base | {"cell": "b", "algorithm": "another-exp4", "delta": 1e-6, "mean": 10.0},
        base | {"cell": "c", "algorithm": "batched-exp4", "delta": 1e-6, "mean": 30.0},
    ]
    found = winners(pl.DataFrame(rows).with_columns(standard_error=pl.lit(1.0)))
    assert dict(found.select("cell", "rivals").iter_rows()) == {"a": 0, "b": 1}


def test_guarantees_are_those_of_the_policies_that_were_run(tmp_path: Path) -> None:
    grid: dict[str, Any] = {
        "algorithm": ["htinf", "one-bit-exp4", "no-privacy"],
        "environment": ["one-good"],
        "epsilon": [0.5],
        "delta": [0, 1e-6, 1e-3],
        "rounds": [300],
        "experts": [3],
    }
    grids = [grid, grid | {"algorithm": ["htinf"], "batch": [16]}]
    pages = []
    for number, asked in enumerate(grids):
        results = bd.Study(asked, replicates=2).run(tmp_path / f"r{number}", workers=1)
        pages.append(write_report(results, tmp_path / f"r{number}.html")[0].read_text())
    policy = bd.PrivateExperts(3, 10, 0.5, 0.0, 300, "htinf", batch=16)
    assert results.guarantees()[results.table()["cell"][0]] == replace(policy.guarantee, facts={})
    assert policy.guarantee.mechanism in pages[1]
    assert policy.guarantee.mechanism not in pages[0]
    assert "batches of 16" in policy.guarantee.mechanism
    assert "pick_delta" in pages[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [("{}", "audit --json prints"), ("no", "audit --json prints"), (None, "cannot read")],
)
def test_audits_that_are_none(
    content: str | None, reason: str, results: StudyResults, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "audit.json").write_text(content)
    with pytest.raises(bd.InputError, match=reason):
        write_report(results, tmp_path / "r.html", audit=tmp_path / "audit.json")
    assert not (tmp_path / "r.html").exists()


@pytest.fixture
def browser() -> Iterator[Any]:
    with open_browser() as driver:
        driver.set_network_conditions(offline=True, latency=0, throughput=0)
        yield driver


@pytest.mark.slow
@needs_browser
def test_a_real_browser_draws_every_chart_without_a_complaint(report: Path, browser: Any) -> None:
    browser.set_script_timeout(60)
    browser.get(report.as_uri())
    drawn = browser.execute_async_script(
        "const done = arguments[0];"
        "window.charts.then(all => done(all.length), error => done(String(error)))"
    )
    assert drawn == 7
    assert len(browser.find_elements("css selector", "figure svg.marks")) == 7
    marks = browser.find_elements("css selector", "#chart-1 svg.marks g.mark-line path")
    assert len(marks) == 4  # one for each algorithm in the setting that is shown first
    # Another epsilon is another picture.
    picture = browser.find_element("css selector", "#chart-1 svg.marks")
    before = picture.get_attribute("innerHTML")
    menu = browser.find_element("css selector", "#chart-1 select[name='pick_epsilon']")
    menu.find_elements("tag name", "option")[0].click()
    assert picture.get_attribute("innerHTML") != before
    assert browser.get_log("browser") == []


@pytest.mark.slow
@needs_browser
def test_a_narrow_screen_needs_no_sideways_scrolling(report: Path, browser: Any) -> None:
    browser.set_script_timeout(60)
    screen = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(report.as_uri())
    browser.execute_async_script("const done = arguments[0]; window.charts.then(() => done(1))")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    widths = browser.execute_script(
        "return [...document.querySelectorAll('figure svg.marks')]"
        ".map(one => one.getBoundingClientRect().right)"
    )
    assert max(widths) <= 400

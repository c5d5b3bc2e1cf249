"""Studies on this machine: what a file may say, what is kept, and what is computed again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import bandanna as bd
from bandanna.studies.cell import RESULTS_VERSION, Shard
from bandanna.studies.play import play
from bandanna.studies.results import INDEX, ResultsFolder, StudyResults
from bandanna.studies.run import waiting_parts
from bandanna.studies.study import Study

GRID: dict[str, Any] = {
    "algorithm": ["one-bit", "exp3", "no-privacy"],
    "environment": ["bernoulli", "trial"],
    "epsilon": [1.0, 0.1],
    "rounds": [40, "2e3"],
    "arms": [4],
}


def small(**changes: Any) -> Study:
    return Study(GRID | changes, replicates=5, seed=3)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    return small().run(tmp_path_factory.mktemp("study") / "results", workers=1)


def times(results: StudyResults) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in results.folder.path.glob("*.parquet")}


def test_cells_that_cannot_apply_are_listed_with_their_reason() -> None:
    study = small()
    # 2 environments x 2 horizons x (2 one-bit + 2 exp3 + 1 without privacy), less exp3 at 40.
    assert len(study.cells) == 18
    assert {item.values["algorithm"] for item in study.skipped} == {"exp3"}
    assert all("smallest rounds that works" in item.reason for item in study.skipped)
    assert len(small(environment=["trial"], arms=[3]).cells) == 0


def test_the_frames_say_everything(results: StudyResults) -> None:
    curves, table, shares = results.curves(), results.table(), results.shares()
    assert table.height == 18
    assert results.missing == 0
    row = table.filter(algorithm="one-bit", environment="trial", epsilon=0.1, rounds=2000)
    assert row["releases"].item() == 2000 // row["batch"].item()
    assert table.filter(algorithm="no-privacy")["releases"].to_list() == [0, 0, 0, 0]
    assert table.filter(algorithm="no-privacy")["epsilon"].null_count() == 4
    one = curves.filter(pl.col("cell") == row["cell"].item())
    assert one["round"].to_list()[-1] == 2000
    assert one["round"].is_sorted()
    sums = shares.group_by("cell", "round").agg(pl.col("share").sum())["share"]
    np.testing.assert_allclose(sums, 1.0)
    played = bd.simulate(
        bd.PrivateBandit(4, 0.1, 2000, "one-bit"),
        bd.environments.ClinicalTrial(2000),
        replicates=5,
        seed=3,
    )
    assert row["mean"].item() == played.regret("policy").mean()
    final = shares.filter((pl.col("cell") == row["cell"].item()) & (pl.col("round") == 2000))
    np.testing.assert_allclose(final["share"], played.plays("policy").mean(axis=0) / 2000)


@pytest.mark.slow
def test_processes_give_the_same_numbers(results: StudyResults, tmp_path: Path) -> None:
    other = small().run(tmp_path / "other", workers=2)
    assert other.frame.equals(results.frame)


def test_a_stopped_study_goes_on_and_a_changed_one_runs_what_changed(tmp_path: Path) -> None:
    grid = {**GRID, "environment": ["trial"], "algorithm": ["one-bit"]}
    first = Study(grid, replicates=5).run(tmp_path / "r", workers=1)
    before, frame = times(first), first.frame
    lost = sorted(before)[1]
    (tmp_path / "r" / lost).unlink()
    assert StudyResults.read(tmp_path / "r").missing == 1
    again = Study(grid, replicates=5).run(tmp_path / "r", workers=1)
    after = times(again)
    assert {name for name in after if after[name] != before[name]} == {lost}
    assert again.frame.equals(frame)
    changed = Study({**grid, "epsilon": [0.1, 0.5]}, replicates=5).run(tmp_path / "r", workers=1)
    assert {name: after[name] for name in after}.items() <= times(changed).items()
    assert set(changed.table()["epsilon"]) == {0.1, 0.5}  # what is no longer asked is not shown


def test_a_cell_that_was_stopped_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid: dict[str, Any] = {
        "algorithm": ["one-bit"],
        "environment": ["trial", "punish-leader", "one-good"],
        "epsilon": [0.5],
        "rounds": [300],
    }
    algorithms = {"one-good": "one-bit-exp4"}
    for environment in grid["environment"]:
        asked = grid | {
            "environment": [environment],
            "algorithm": [algorithms.get(environment, "one-bit")],
        }
        study = Study(asked, replicates=450)
        whole = study.run(tmp_path / f"whole {environment}", workers=1)
        monkeypatch.setattr("bandanna.studies.cell.PART_SECONDS", 100 * study.cells[0].run_seconds)
        parts = study.cells[0].parts()
        assert [(part.first, part.runs) for part in parts][-1] in [(400, 50)]
        folder = ResultsFolder(tmp_path / environment)
        folder.write_index(study.index())
        folder.write_part(parts[1], play(parts[1], None)[1])
        assert waiting_parts(study.cells, folder) == [parts[0], *parts[2:]]
        again = study.run(folder.path, workers=1)
        assert again.frame.equals(whole.frame)
        assert not (folder.path / "parts").exists()
        monkeypatch.undo()


def test_folders_of_something_else_are_refused(results: StudyResults, tmp_path: Path) -> None:
    folder = results.folder.path
    before = (folder / INDEX).read_bytes()
    with pytest.raises(bd.InputError, match="another study"):
        Study(GRID, replicates=6).run(folder)
    assert (folder / INDEX).read_bytes() == before
    (tmp_path / "letter.txt").write_text("dear reader")
    with pytest.raises(bd.InputError, match="not empty"):
        small().run(tmp_path)
    with pytest.raises(bd.InputError, match="is a file"):
        small().run(tmp_path / "letter.txt")
    with pytest.raises(bd.InputError, match="holds no results"):
        StudyResults.read(tmp_path)
    (tmp_path / INDEX).write_text("{}")
    with pytest.raises(bd.InputError, match="damaged"):
        StudyResults.read(tmp_path)


def test_a_damaged_cell_is_named(tmp_path: Path) -> None:
    grid: dict[str, Any] = {"algorithm": ["uniform"], "environment": ["trial"], "rounds": [50]}
    results = Study(grid, replicates=2).run(tmp_path / "r", workers=1)
    file = next(results.folder.path.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(bd.InputError, match=f"{file.name} is damaged"):
        _ = StudyResults.read(tmp_path / "r").frame


def test_losses_of_ones_own_from_every_kind_of_file(tmp_path: Path) -> None:
    losses = np.random.default_rng(0).integers(0, 100, (300, 3)) / 100
    np.save(tmp_path / "a.npy", losses)
    frame = pl.DataFrame(losses, schema=["red", "green", "blue"])
    frame.write_parquet(tmp_path / "b.parquet")
    frame.write_csv(tmp_path / "c.csv")
    frame.write_csv(tmp_path / "d.csv", include_header=False)
    files = ["a.npy", "b.parquet", "c.csv", "d.csv"]
    (tmp_path / "study.toml").write_text(
        f'[study]\nreplicates = 3\n[grid]\nalgorithm = ["one-bit"]\nepsilon = [1]\n'
        f"environment = {files}\nrounds = [100, 300, 301]\n"
    )
    study = Study.read(tmp_path / "study.toml")
    assert len(study.cells) == 2  # the same losses are the same cells
    assert {item.reason for item in study.skipped} == {
        f"{name} has 300 rounds; got rounds 301." for name in files
    }
    regret = study.run(tmp_path / "r", workers=1).table().filter(rounds=300)["mean"].item()
    played = bd.simulate(bd.PrivateBandit(3, 1.0, 300, "one-bit"), losses, replicates=3)
    assert regret == played.regret("policy").mean()
    names = ResultsFolder(tmp_path / "r").read_index()["places"]
    assert names["c.csv"]["arms"] == ["red", "green", "blue"]
    (tmp_path / "a.npy").write_bytes(b"nothing")
    with pytest.raises(bd.InputError, match=r"a\.npy"):
        Study.read(tmp_path / "study.toml")


def test_the_same_settings_give_the_same_numbers_as_ever() -> None:
    """When this fails, results people kept are no longer ours: raise RESULTS_VERSION in cell.py."""
    digest = hashlib.sha256()
    for cell in small(environment=["switching"], rounds=[500]).cells:
        digest.update(play(Shard(cell, 0, cell.replicates), None)[1].runs["regret"].T.tobytes())
    assert (RESULTS_VERSION, digest.hexdigest()[:16]) == (12, "65995a2aa1b616ec")


def test_a_study_survives_being_written_down(tmp_path: Path) -> None:
    grid = GRID | {"environment": ["trial", {"name": "bernoulli", "gap": 0.05}]}
    study = Study(grid, replicates=7, question='Is "one-bit" good?\nReally?')
    (tmp_path / "study.toml").write_text(study.to_toml())
    again = Study.read(tmp_path / "study.toml")
    assert [cell.key for cell in again.cells] == [cell.key for cell in study.cells]
    assert again.question == study.question


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[grid", "not a TOML file"),
        ("", "the grid needs algorithm and environment"),
        ("[gird]\n", "unknown tables: gird"),
        ("grid = 3", "must be a table"),
        ("[study]\nreplicate = 3\n", "unknown keys in [study]: replicate; there are title"),
        ("[study]\nreplicates = 0\n[grid]\nalgorithm=['uniform']\nenvironment=['trial']", "replic"),
        ("[study]\nseed = -1\n[grid]\nalgorithm=['uniform']\nenvironment=['trial']", "seed"),
        ("[study]\ntitle = 1\n[grid]\nalgorithm=['uniform']\nenvironment=['trial']", "title"),
        ("[grid]\nalgorithms = ['one-bit']", "unknown keys in [grid]: algorithms"),
        ("[grid]\nalgorithm = []\nenvironment = ['trial']", "algorithm is empty"),
        ("[grid]\nalgorithm = 'uniform'\nenvironment = ['trial']", "must be a list"),
        ("[grid]\nalgorithm = ['one-bit']\nenvironment = ['trial']", "needs epsilon for one-bit"),
        ("[grid]\nalgorithm = ['magic']\nenvironment = ['trial']", "unknown algorithm 'magic'"),
        ("[grid]\nalgorithm = ['uniform']\nenvironment = ['mars']", "unknown environment 'mars'"),
        ("[grid]\nalgorithm = ['uniform']\nenvironment = [3]", "is a name, a file"),
        ("[grid]\nalgorithm = ['uniform']\nenvironment = ['no.csv']", "cannot read"),
        (
            "[grid]\nalgorithm = ['uniform']\nenvironment = [{name = 'trial', gap = 1}]",
            "has no option 'gap'",
        ),
        (
            "[grid]\nalgorithm = ['uniform']\nenvironment = [{name = 'drift', arms = 1}]",
            "belong into the grid",
        ),
        ("[grid]\nalgorithm=['uniform']\nenvironment=['trial']\nrounds=['many']", "'many'"),
        ("[grid]\nalgorithm=['uniform']\nenvironment=['trial']\nrounds=[1000, '1e3']", "twice"),
        ("[grid]\nalgorithm=['exp3']\nenvironment=['trial']\nepsilon=[-1]", "epsilon"),
        ("[grid]\nalgorithm=['exp3']\nenvironment=['trial']\nepsilon=['x']", "epsilon"),
    ],
)
def test_mistakes_in_a_file(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(text.replace("'", '"'))
    with pytest.raises(bd.InputError) as caught:
        Study.read(file)
    assert str(file) in str(caught.value)
    assert reason in str(caught.value)


def test_a_study_without_cells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(bd.InputError, match="no cell of the study can be run; for one: env"):
        small(environment=["trial"], arms=[3]).run(tmp_path / "r")
    assert not (tmp_path / "r").exists()
    with pytest.raises(bd.InputError, match="workers"):
        small().run(tmp_path / "r", workers=0)
    with pytest.raises(bd.InputError, match="more than 100,000"):
        small(rounds=list(range(100, 20_000)))


def test_experts_are_an_axis_like_any_other(tmp_path: Path) -> None:
    study = Study(
        {
            "algorithm": ["one-bit-exp4", "batched-exp4", "random-expert", "phased"],
            "constants": ["ours"],
            "environment": ["one-good", "bernoulli"],
            "epsilon": ["0.5"],
            "delta": ["1e-2"],
            "rounds": [400],
            "arms": [3],
            "experts": [2, 12],
        },
        replicates=2,
    )
    reasons = " ".join(item.reason for item in study.skipped)
    assert "unknown algorithm 'phased'; with experts" in reasons
    assert "'bernoulli' has no experts" in reasons
    results = study.run(tmp_path / "results", workers=1, progress=False)
    table, promises = results.table(), results.guarantees()
    assert sorted(table["experts"].unique()) == [2, 12]
    allowed = dict(zip(table["algorithm"], table["delta"], strict=True))
    assert allowed == {"one-bit-exp4": 0.01, "batched-exp4": 0.01, "random-expert": None}
    spent = {row["algorithm"]: promises[row["cell"]].delta for row in table.iter_rows(named=True)}
    assert spent == {"one-bit-exp4": 0.0, "batched-exp4": 0.01, "random-expert": 0.0}
    for row in table.filter(table["algorithm"] == "one-bit-exp4").iter_rows(named=True):
        policy = bd.PrivateExperts(row["experts"], 3, 0.5, 0.01, 400, "one-bit-exp4")
        environment = bd.environments.OneGoodExpert(row["experts"], 3, 400)
        again = bd.simulate(policy, environment, replicates=2, seed=study.seed)
        assert row["mean"] == again.regret("policy").mean()


def test_a_table_without_a_first_line_of_names_keeps_all_its_rounds(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "plain.csv", np.ones((50, 3)), delimiter=",")
    grid = {"algorithm": ["uniform"], "environment": ["plain.csv"]}
    study = Study(grid, replicates=1, folder=tmp_path)
    assert [(cell.rounds, cell.arms) for cell in study.cells] == [(50, 3)]


def test_a_folder_without_results_is_free_for_another_study(tmp_path: Path) -> None:
    ResultsFolder(tmp_path).write_index(small().index())
    other = Study({"algorithm": ["uniform"], "environment": ["trial"]}, replicates=1)
    assert other.run(tmp_path, workers=1, progress=False).table().height == 1

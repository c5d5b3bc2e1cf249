"""Logs as environments: both ways to use them are right, and say what they use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna.environments import Logged
from bandanna.environments.base import sum_losses_once
from tests.laws import assert_mean

COLUMNS: dict[str, Any] = {"arm": "plan", "outcome": "visits", "loss_range": (0, 16)}


def made(rows: int = 4000, seed: int = 3, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    plan = rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2])
    mean = np.select([plan == "a", plan == "b"], [2.0, 6.0], 4.0)
    return {"plan": plan, "visits": np.minimum(rng.poisson(mean), 16), **more}


def total(log: Logged, arm: int, start: int, stop: int, seed: int) -> float:
    stream = new_stream(seed)
    return sum_losses_once(log.params(), log.memory(), arm, start, stop, stream) / UNITS


@pytest.mark.parametrize("span", [(0, 1), (0, 200), (100, 103)])
def test_resampled_sums_have_the_means_of_the_log(span: tuple[int, int]) -> None:
    log = Logged(made(), **COLUMNS)
    start, stop = span
    for arm in range(3):
        draws = [total(log, arm, start, stop, seed) for seed in range(300)]
        assert_mean(draws, (stop - start) * log.means[arm] / 16)


def test_a_replay_meets_rows_in_order_and_each_arm_as_it_was() -> None:
    table = made()
    log = Logged(table, **COLUMNS, how="replay")
    # The rarest arm's rows are all taken: nothing is left to chance.
    rare = table["visits"][table["plan"] == "c"]
    assert total(log, 2, 0, 100, 0) * 16 == pytest.approx(rare[:100].sum(), abs=0.01)
    common = table["visits"][table["plan"] == "a"]
    draws = [total(log, 0, 0, 400, seed) * 16 / 400 for seed in range(100)]
    assert abs(np.mean(draws) - common[:1000].mean()) < 0.1  # two fifths of the first thousand


def test_files_and_frames_are_the_same_log(tmp_path: Path) -> None:
    table = made(500)
    frame = pl.DataFrame(table)
    frame.write_csv(tmp_path / "visits.csv")
    frame.write_parquet(tmp_path / "visits.parquet")

    class Pandas:  # what is used of pandas: names of columns, and columns by name
        columns = tuple(table)

        def __getitem__(self, name: str) -> Any:
            return table[name]

    sources = [table, frame, frame.lazy(), Pandas(), tmp_path / "visits.csv"]
    sources += [str(tmp_path / "visits.parquet")]
    logs = [Logged(source, **COLUMNS) for source in sources]
    assert len({log.content for log in logs}) == 1
    assert logs[0].arm_names == ("a", "b", "c")


def test_a_replay_uses_each_row_once_and_says_how_many() -> None:
    log = Logged(made(), **COLUMNS, how="replay")
    rare = int((made()["plan"] == "c").sum())
    used = f"replay by rejection: a run uses {log.rounds:,} of 4,000 rows, as the smallest"
    assert log.about.startswith(used)
    assert log.about.endswith("resampling uses all")
    assert 0.7 * rare < log.rounds < rare
    memory, stream = log.memory(), new_stream(0)
    for arm in (0, 2, 1):
        before = memory[0]
        sum_losses_once(log.params(), memory, arm, 0, log.rounds // 3, stream)
        assert memory[0] > before
    assert memory[0] <= 4000
    with pytest.raises(bd.InputError, match="enough for"):
        log.environment(rare + 1)
    assert Logged(made(), **COLUMNS).environment(10**6).rounds == 10**6


def confounded(rows: int = 40_000) -> dict[str, Any]:
    """The sick get plan b more often, and come more often whatever they get."""
    rng = np.random.default_rng(0)
    sick = rng.random(rows) < 0.5
    chance = np.where(sick, 0.8, 0.2)
    plan = rng.random(rows) < chance
    visits = np.minimum(rng.poisson(np.where(sick, 6.0, 2.0) - plan), 16)
    shown = np.where(plan, "b", "a")
    given = np.where(plan, chance, 1 - chance)
    return {"plan": shown, "visits": visits, "sick": sick, "chance": given}


@pytest.mark.parametrize("column", [{"propensity": "chance"}, {"segment": "sick"}])
@pytest.mark.parametrize("how", ["resample", "replay"])
def test_who_got_what_more_often_does_not_matter(column: Any, how: Any) -> None:
    naive = Logged(confounded(), **COLUMNS)
    assert naive.means[1] > naive.means[0] + 0.5
    log = Logged(confounded(), **COLUMNS, **column, how=how)
    np.testing.assert_allclose(log.means, [4, 3], atol=0.15)
    rounds = log.rounds
    draws = np.array([total(log, 1, 0, rounds, seed) * 16 / rounds for seed in range(20)])
    assert abs(draws.mean() - 3) < 0.15


def test_what_changed_in_the_log_changes_in_the_rehearsal() -> None:
    rows = 10_000
    rng = np.random.default_rng(1)
    when = rng.permutation(rows)
    plan = rng.integers(0, 2, rows)
    good = np.where(when < rows // 2, plan == 0, plan == 1)
    log = {"plan": plan, "visits": np.where(good, 0, 16), "when": when}
    ordered = Logged(log, **COLUMNS, time="when", blocks=4, rounds=1000)
    np.testing.assert_allclose(ordered.arm_totals(np.array([500, 1000])), [[0, 500], [500, 500]])
    assert total(ordered, 0, 0, 500, 0) == 0
    assert total(ordered, 0, 400, 600, 0) == 100
    assert "in 4 blocks of time" in ordered.about
    assert "in 20 blocks of time" in Logged(log, **COLUMNS, time="when").about
    replayed = Logged(log, **COLUMNS, time="when", how="replay")
    assert total(replayed, 0, 0, replayed.rounds // 3, 0) == 0


def test_rewards_are_mirrored() -> None:
    table = made(100)
    log = Logged(table, **COLUMNS, reward=True)
    plain = Logged(table, **COLUMNS)
    np.testing.assert_allclose(log.means, plain.means, atol=1e-5)
    totals, others = (env.arm_totals(np.array([10]))[0] for env in (log, plain))
    np.testing.assert_allclose(totals + others, 10)


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, {"arm": "paln"}, "no column 'paln'; it has 'plan', 'visits'"),
        ({}, {"loss_range": (0, 5)}, "outcomes in column 'visits' are not from 0 to 5"),
        ({"visits": ["x"] * 100}, {}, "must hold numbers"),
        ({"visits": [np.nan] * 100}, {}, "100 rows have no outcome"),
        ({"plan": ["a"] * 100}, {}, "at least 2 arms"),
        ({"plan": [None] * 100}, {}, "have no arm"),
        ({"p": [1.5] * 100}, {"propensity": "p"}, "above 0 and at most 1"),
        ({"p": [0.01] * 100}, {"propensity": "p", "how": "replay"}, "do not fit the log"),
        ({}, {"blocks": 3}, "blocks are about time"),
        ({}, {"how": "guess"}, "resample or replay"),
        ({"t": range(100)}, {"time": "t", "blocks": 90}, "use fewer blocks"),
    ],
)
def test_what_is_wrong_with_a_log(change: Any, options: Any, said: str) -> None:
    table = made(100) | {name: np.array(values) for name, values in change.items()}
    with pytest.raises(bd.InputError) as caught:
        Logged(table, **{**COLUMNS, **options})
    assert said in str(caught.value)


def test_a_policy_reads_tables_in_its_own_units(tmp_path: Path) -> None:
    losses = np.random.default_rng(0).integers(0, 5, (300, 2)) / 4
    np.savetxt(tmp_path / "t.csv", losses * 16, delimiter=",", header="a,b", comments="")
    plain = bd.simulate(bd.PrivateBandit(2, 1.0, 300), losses, replicates=3)
    policy = bd.PrivateBandit(2, 1.0, 300, loss_range=(0, 16))
    scaled = bd.simulate(policy, losses * 16, replicates=3)
    read = bd.simulate(policy, str(tmp_path / "t.csv"), replicates=3)
    np.testing.assert_array_equal(scaled.regret("policy"), 16 * plain.regret("policy"))
    np.testing.assert_array_equal(scaled.regret("policy"), read.regret("policy"))
    assert read.arm_names == ("a", "b")
    with pytest.raises(bd.InputError, match="same loss_range"):
        bd.simulate({"a": policy, "b": bd.Bandit(2)}, losses)
    with pytest.raises(bd.InputError, match="from 0 to 1"):
        bd.simulate(bd.Bandit(2), losses * 16)


def test_experts_advise_in_a_file(tmp_path: Path) -> None:
    losses = np.random.default_rng(0).random((200, 2))
    np.savetxt(tmp_path / "t.csv", losses, delimiter=",", header="a,b", comments="")
    said = np.random.default_rng(1).integers(0, 2, (200, 3))
    lines = [",".join("ab"[arm] for arm in row) for row in said]
    (tmp_path / "advice.csv").write_text("\n".join(["ann,bob,cy", *lines]))
    policy = bd.PrivateExperts(3, 2, 1.0, rounds=200)
    files = [str(tmp_path / name) for name in ("t.csv", "advice.csv")]
    read = bd.simulate(policy, files[0], advice=files[1], replicates=2)
    given = bd.simulate(policy, losses, advice=said, replicates=2)
    np.testing.assert_array_equal(read.regret("policy"), given.regret("policy"))
    (tmp_path / "advice.csv").write_text("\n".join(["ann", *(["c"] * 200)]))
    with pytest.raises(bd.InputError, match="expert 'ann' names an unknown arm in row"):
        bd.simulate(policy, files[0], advice=files[1])


def test_released_means_are_the_losses_means() -> None:
    policy = bd.PrivateBandit(2, 20.0, 3000, learner="uniform")
    found = bd.simulate(policy, np.tile([0.25, 0.75], (3000, 1)), replicates=40)
    released = found.runs["policy"].released
    for arm, mean in enumerate((0.25, 0.75)):
        assert_mean(list(released[:, arm]), mean)
    assert found.best_arm == 0
    assert 0 <= found.found("policy")[-1] <= 1

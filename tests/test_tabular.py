"""Scorecards, answers and simulations as data frames, and through Arrow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

import bandanna as bd
from bandanna._core.tabular import Library
from tests.scorecard.cards import CARD


def test_a_scorecard_has_a_row_for_each_arm_metric_and_group() -> None:
    frame = CARD.to_frame()
    assert frame.height == sum(
        len(m.effects) for m in (*CARD.metrics, *(g for _, g in CARD.groups))
    )
    red = frame.filter(pl.col("arm") == "<b>red", pl.col("metric") == "refunds")
    assert red.select("difference", "lift", "limit").row(0) == (0.003, None, 0.003)
    control = frame.filter(pl.col("verdict") == "control")
    assert control["low"].null_count() == control.height
    assert frame["group"].drop_nulls().unique().to_list() == ["basic"]


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("pyarrow", pa.Table)])
def test_any_library_is_given_the_same_rows(library: Library, kind: type[Any]) -> None:
    made: Any = CARD.to_frame(library)
    assert isinstance(made, kind)
    assert (
        nw.from_native(made, eager_only=True).to_polars().equals(CARD.to_frame(), null_equal=True)
    )
    assert pa.table(CARD).num_rows == pl.DataFrame(CARD).height == CARD.to_frame().height
    with pytest.raises(bd.InputError, match=r'"pandas" or "pyarrow".*excel'):
        CARD.to_frame("excel")  # type: ignore[call-overload]


def test_arms_that_are_numbers_and_nothing_known_keep_their_columns() -> None:
    empty = [replace(effect, arm=k, mean=None) for k, effect in enumerate(CARD.metrics[0].effects)]
    card = replace(CARD, metrics=(CARD.metrics[0].with_effects(empty),), groups=())
    frame = card.to_frame()
    assert frame.schema == CARD.to_frame().schema | {"group": pl.Float64, "limit": pl.Float64}
    assert frame["arm"].to_list() == ["0", "1", "2"]


def test_answers_and_simulations() -> None:
    log = {"arm": ["a", "b"] * 500, "y": [0, 1, 1, 1] * 250}
    answer = bd.answer(log, arm="arm", outcome="y", epsilon=1.0)
    assert answer.to_frame()["name"].to_list() == ["a", "b"]
    assert answer.to_frame()["rounds"].to_list() == [500, 500]
    policies = {"one": bd.Bandit(2), "race": bd.PrivateBandit(2, 1.0, goal="answer")}
    results = bd.simulate(policies, np.tile([0.1, 0.9], (1000, 1)), replicates=2)
    frame = results.to_frame()
    assert frame["policy"].to_list() == ["one", "race"]
    assert frame["mean"].to_list() == [results.regret(name).mean() for name in policies]
    assert frame["answered"].null_count() == 1

"""Tables of losses from people's files: what is taken, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import bandanna as bd
from bandanna.environments.tables import read_losses


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("red,green\n0.5,1\n0.5,1.5\n", "row 2 (line 3), column 'green' is the first of 1"),
        ("red,green\n0.5,1\n0.5,1.5\n", "below 0 or above 1. Rescale"),
        ("red,green\n0.5,1\n-1,\n0.5,nan\n", "row 2 (line 3), column 'green' is the first of 2"),
        ("red,green\n0.5,1\n-1,\n0.5,nan\n", "missing (empty or NaN)"),
        ("0.5,1\n0.5,2\n", "row 2 (line 2), column 'arm 2'"),
        ("0.5,nan\n0.5,1\n", "row 1 (line 1), column 'arm 2'"),
        ("red,green\n0.5,many\n", "not numbers: green"),
        ("red,green\n", "there are names of arms but no losses; give one row for each round"),
        ("", "cannot be read as a table"),
        ("red\n1\n", "at least 1 round and 2 arms"),
    ],
)
def test_what_is_wrong_with_a_table(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text(text)
    with pytest.raises(bd.InputError) as caught:
        read_losses(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize("header", ["red,green\n", ""])
def test_yes_and_no_are_losses(header: str, tmp_path: Path) -> None:
    (tmp_path / "losses.csv").write_text(header + "True,0.5\nFalse,0.25\n")
    found = read_losses(tmp_path / "losses.csv")
    np.testing.assert_array_equal(found.losses, [[1, 0.5], [0, 0.25]])
    frame = pl.DataFrame({"red": [True, False], "green": [0.5, 0.25]})
    frame.write_parquet(tmp_path / "losses.parquet")
    assert read_losses(tmp_path / "losses.parquet").content == found.content


def test_slots_in_arrays_are_counted_as_people_do(tmp_path: Path) -> None:
    losses = np.full((3, 2), 0.5)
    losses[1, 0] = np.nan
    np.save(tmp_path / "losses.npy", losses)
    with pytest.raises(bd.InputError, match="row 2, column 'arm 1' is the first of 1 that are mis"):
        read_losses(tmp_path / "losses.npy")
    with pytest.raises(bd.InputError, match=r"round 2, arm 1 \(counted from 1\) .* missing"):
        bd.simulate(bd.PrivateBandit(2, 1.0), losses)

"""Encodings of contexts: defined for every value, of length at most 1, the same in tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.contextual import Declared, Fitted
from bandanna.contextual.features import encoder_from_dict

FEATURES = {"age": (18, 90), "plan": ["bronze", "silver", "gold"], "member": [False, True]}
ROOT = 1.0 / math.sqrt(4.0)


def encoded(**context: object) -> list[float]:
    made: list[float] = (Declared(FEATURES).encode(context) / ROOT).round(12).tolist()
    return made


def test_encodings() -> None:
    assert encoded(age=18, plan="gold", member=True) == [1, -1, 0, 0, 1, 1]
    assert encoded(age=54.0, plan="bronze", member=False) == [1, 0, 1, 0, 0, -1]


def test_unseen_outside_and_missing() -> None:
    assert encoded(age=17, plan="platinum", member=True) == [1, -1, 0, 0, 0, 1]
    assert encoded(age=10**9, plan=None, member=None) == [1, 1, 0, 0, 0, 0]
    assert encoded() == [1, 0, 0, 0, 0, 0]
    assert encoded(age=float("nan"), plan=["a list"]) == [1, 0, 0, 0, 0, 0]


def test_refusals_name_features_and_never_values() -> None:
    with pytest.raises(bd.InputError, match="unknown features: Age"):
        encoded(Age=40)
    with pytest.raises(bd.InputError, match="'age' must be a number") as error:
        encoded(age="forty-two")
    assert "forty" not in str(error.value)
    for wrong in ({}, {"x": 3}, {"x": (2, 1)}, {"x": ["one"]}, {"x": ["a", "a"]}, [1]):
        with pytest.raises(bd.InputError):
            Declared(wrong)  # type: ignore[arg-type]


value = st.one_of(st.none(), st.floats(), st.integers(), st.sampled_from(["bronze", "gold", "?"]))


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.none(), st.floats(), st.integers(-(10**30), 10**30)), value, value)
def test_length_and_tables_agree(age: object, plan: object, member: object) -> None:
    context = {"age": age, "plan": plan, "member": member}
    encoder = Declared(FEATURES)
    phi = encoder.encode(context)
    assert phi @ phi <= 1.0 + 1e-15
    columns = {name: np.array([one, None], dtype=object) for name, one in context.items()}
    assert (encoder.encode_table(columns)[0] == phi).all()
    assert (encoder.encode({**context, "plan": None}) == encoder.encode(
        {name: one for name, one in context.items() if name != "plan"}
    )).all()  # fmt: skip


def test_frames() -> None:
    pl = pytest.importorskip("polars")
    columns = {
        "age": [20.5, None, 95.0],
        "plan": ["gold", "x", None],
        "member": [True, None, False],
    }
    encoder = Declared(FEATURES)
    rows = [
        encoder.encode(dict(zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]
    assert (encoder.encode_table(pl.DataFrame(columns)) == np.stack(rows)).all()
    pd = pytest.importorskip("pandas")
    assert (encoder.encode_table(pd.DataFrame(columns)) == np.stack(rows)).all()


def test_a_fitted_pipeline_encodes() -> None:
    pytest.importorskip("sklearn")
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    public, people = rng.normal(size=(100, 6)), rng.normal(size=(20, 6)) * 10
    encoder = Fitted(make_pipeline(StandardScaler(), PCA(3)).fit(public), public)
    table = encoder.encode_table(people)
    assert table.shape == (20, 4) == (20, encoder.size)
    assert ((table**2).sum(axis=1) <= 1 + 1e-12).all()
    assert np.allclose(encoder.encode({"x": people[3]}), table[3], rtol=1e-12)
    assert encoder_from_dict(encoder.to_dict(), encoder) is encoder
    with pytest.raises(bd.StateFileError, match="encoder="):
        encoder_from_dict(encoder.to_dict())


def test_a_declaration_survives_a_file() -> None:
    encoder = Declared(FEATURES)
    assert encoder_from_dict(encoder.to_dict()).to_dict() == encoder.to_dict()

"""Features of a context, declared beforehand, and their encoding as a vector of length at most 1.

What is declared is public: names, ranges and categories. Nothing is learned from people's data.

- A range ``(low, high)``: scaled to -1 ... 1. Values outside count as the nearer end; a missing
  value (None or NaN) counts as the middle, 0.
- A list of two categories: one number, -1 or 1.
- A list of three or more categories: one number for each, 1 for the one that it is.
- A category that was not declared, or a missing one, is encoded as zeros.

The first number is constant. The vector is divided by the square root of one plus the number of
features, so that its length is at most 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import kernel
from bandanna._core.types import JSON, InputError, StateFileError
from bandanna.environments.frames import read_columns
from bandanna.privacy.epochs import MAX_FEATURES

Vector = NDArray[np.float64]
Category = str | int | bool
Context = Mapping[str, Any]

MAX_CATEGORIES = 200


class Encoder(ABC):
    """Turns contexts into vectors whose first number is constant and whose length is at most 1."""

    size: int
    """Numbers in a vector, the constant included."""
    constant: float
    """The first number."""
    names: tuple[str, ...]
    """What each number of a vector stands for."""
    asked: tuple[str, ...]
    """The features that a context may have."""

    @abstractmethod
    def encode(self, context: Context) -> Vector:
        """Encode one context."""

    @abstractmethod
    def encode_table(self, table: object) -> Vector:
        """Encode every row of a data frame, a file or a dict of columns; shape (rows, size)."""

    @abstractmethod
    def to_dict(self) -> JSON:
        """Return what is needed to make it again."""


@dataclass(frozen=True)
class Number:
    """A feature with a range."""

    low: float
    high: float

    size = 1

    def raw(self, value: object) -> float:
        """Return a value as a number; NaN if it is missing."""
        if value is None:
            return math.nan
        if not isinstance(value, (float, int, Real)):
            raise TypeError
        return float(value)

    def raw_column(self, column: NDArray[Any]) -> Vector:
        """Return every value as a number."""
        if column.dtype == object:
            column = np.array([math.nan if v is None else v for v in column], dtype=object)
        return column.astype(np.float64)

    def bin(self, raw: float, bins: int) -> int:
        """Return which of some bins of equal width a value falls in; the middle if missing."""
        scaled = 0.0
        if not math.isnan(raw):
            within = min(max(raw, self.low), self.high)
            scaled = 2.0 * (within - self.low) / (self.high - self.low) - 1.0
        return min(int((scaled + 1.0) / 2.0 * bins), bins - 1)


@dataclass(frozen=True)
class Categories:
    """A feature with categories."""

    categories: tuple[Category, ...]
    known: dict[object, int] = field(init=False, repr=False, compare=False)
    """Which category a value is."""

    def __post_init__(self) -> None:
        known = {name: i for i, name in enumerate(self.categories)}
        object.__setattr__(self, "known", known)

    @property
    def size(self) -> int:
        """Numbers that encode it."""
        return 1 if len(self.categories) == 2 else len(self.categories)

    def raw(self, value: object) -> float:
        """Return which category a value is, or -1 if it is missing or was not declared."""
        try:
            return self.known.get(value, -1)
        except TypeError:  # not hashable, such as a list
            return -1

    def raw_column(self, column: NDArray[Any]) -> Vector:
        """Return the same of every value."""
        return np.array([self.raw(value) for value in column.tolist()], dtype=np.float64)


class Declared(Encoder):
    """Features by name, each with a range or categories.

    Examples
    --------
    >>> encoder = Declared({"age": (18, 90), "plan": ["bronze", "silver", "gold"]})
    >>> encoder.names
    ('constant', 'age', 'plan=bronze', 'plan=silver', 'plan=gold')
    >>> encoder.encode({"age": 54, "plan": "gold"}).round(3).tolist()
    [0.577, 0.0, 0.0, 0.0, 0.577]
    >>> encoder.encode({"plan": "platinum"}).round(3).tolist()
    [0.577, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, features: Mapping[str, object]) -> None:
        if not isinstance(features, Mapping) or not features:
            raise InputError(
                "features must be a dict such as {'age': (18, 90), 'plan': ['bronze', 'gold']}; "
                f"got {type(features).__name__}."
            )
        self.features = {_name(name): _feature(name, spec) for name, spec in features.items()}
        self.asked = tuple(self.features)
        self.constant = 1.0 / math.sqrt(1.0 + len(self.features))
        named = ["constant"]
        for name, feature in self.features.items():
            if isinstance(feature, Categories) and feature.size > 1:
                named += [f"{name}={category}" for category in feature.categories]
            else:
                named.append(name)
        self.names = tuple(named)
        self.size = len(named)
        self._prepare()
        if self.size > MAX_FEATURES:
            raise InputError(
                f"features take {self.size} numbers; at most {MAX_FEATURES} work. Use fewer "
                f"categories, or a scikit-learn pipeline fitted on public data."
            )

    def _prepare(self) -> None:
        """Lay out what the compiled encoding of one context needs."""
        listed = list(self.features.values())
        self._raw = [(name, one.raw) for name, one in self.features.items()]
        self._ranges = np.array(
            [(one.low, one.high) if isinstance(one, Number) else (0.0, 0.0) for one in listed]
        )
        starts = np.cumsum([1, *(one.size for one in listed)])
        self._columns = np.stack([starts[:-1], starts[1:] - starts[:-1]], axis=1).astype(np.int64)

    def encode(self, context: Context) -> Vector:
        """Encode one context; features that it leaves out are missing."""
        made = np.zeros(self.size)
        _scale(self.raw(context), self._ranges, self._columns, self.constant, made)
        return made

    def raw(self, context: Context) -> Vector:
        """Return numbers and indices of categories, in one array; refuse what is wrong."""
        if not isinstance(context, Mapping):
            raise InputError(
                f"context must be a dict of features; got {type(context).__name__}. "
                f"There are {', '.join(self.features)}."
            )
        numbers = []
        for name, raw in self._raw:
            value = context.get(name)
            try:
                numbers.append(raw(value))
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"feature {name!r} must be a number; got something of type "
                    f"{type(value).__name__}. The value is not repeated here: it may be private."
                ) from None
        if not context.keys() <= self.features.keys():
            unknown = [str(name) for name in context if name not in self.features]
            raise InputError(
                f"unknown features: {', '.join(unknown)}. There are {', '.join(self.features)}."
            )
        return np.array(numbers, dtype=np.float64)

    def encode_table(self, table: object) -> Vector:
        """Encode every row of a data frame, a file or a dict of columns."""
        raw = self.raw_table(table)
        made = np.zeros((len(raw), self.size))
        _scale_rows(raw, self._ranges, self._columns, self.constant, made)
        return made

    def raw_table(self, table: object) -> Vector:
        """Return what ``raw`` does for every row."""
        columns = read_columns(table, list(self.features))
        parts = []
        for name, feature in self.features.items():
            try:
                parts.append(feature.raw_column(np.asarray(columns[name])))
            except (TypeError, ValueError):
                raise InputError(f"column {name!r} must be numbers.") from None
        return np.stack(parts, axis=1)

    def to_dict(self) -> JSON:
        """Return the declaration."""
        return {
            "kind": "declared",
            "features": [
                [name, "range", [feature.low, feature.high]]
                if isinstance(feature, Number)
                else [name, "categories", list(feature.categories)]
                for name, feature in self.features.items()
            ],
        }


@kernel
def _scale(
    raw: Vector, ranges: Vector, columns: NDArray[np.int64], constant: float, out: Vector
) -> None:
    """Encode numbers by their ranges, and indices of categories: the only place that does."""
    out[0] = constant
    for i in range(raw.size):
        column, size = columns[i, 0], columns[i, 1]
        low, high = ranges[i, 0], ranges[i, 1]
        value = raw[i]
        if high > low:
            if not math.isnan(value):
                value = min(max(value, low), high)
                out[column] = (2.0 * (value - low) / (high - low) - 1.0) * constant
        elif value >= 0.0:
            if size == 1:
                out[column] = (2.0 * value - 1.0) * constant
            else:
                out[column + int(value)] = constant


@kernel
def _scale_rows(
    raw: Vector, ranges: Vector, columns: NDArray[np.int64], constant: float, out: Vector
) -> None:
    """Encode every row."""
    for row in range(raw.shape[0]):
        _scale(raw[row], ranges, columns, constant, out[row])


class Fitted(Encoder):
    """A fitted scikit-learn transformer or pipeline as encoder.

    It must have been fitted on public data: what it learned from people would not be protected.

    Parameters
    ----------
    transformer
        Anything with ``transform``, which turns a table into numbers.
    public
        Public rows, as ``transform`` takes them. Vectors are scaled so that nearly all of these
        have length at most 1; longer ones are shortened to 1.
    columns
        The features that a context must have, in the order of the columns of ``public``. Without
        them a context is given as ``{"x": [...]}``, the row itself.
    """

    def __init__(
        self, transformer: Any, public: object, columns: Sequence[str] | None = None
    ) -> None:
        if not hasattr(transformer, "transform"):
            raise InputError(
                f"an encoder needs a method transform; got {type(transformer).__name__}."
            )
        self.transformer = transformer
        self.columns = None if columns is None else tuple(columns)
        self.asked = self.columns or ("x",)
        made = self._transform(public)
        self.width = made.shape[1]
        lengths = np.sqrt((made * made).sum(axis=1))
        scale = float(np.quantile(lengths, 0.95)) if lengths.size else 1.0
        self.scale = checks.positive("the length of encoded public rows", scale)
        self.constant = math.sqrt(0.5)
        self.size = 1 + self.width
        if self.size > MAX_FEATURES:
            raise InputError(
                f"the encoder makes {self.width} numbers; at most {MAX_FEATURES - 1} work. Add a "
                f"step such as PCA(n_components=20), fitted on public data."
            )
        self.names = ("constant", *(f"component {i + 1}" for i in range(self.width)))

    def encode(self, context: Context) -> Vector:
        """Encode one context."""
        if not isinstance(context, Mapping):
            raise InputError(f"context must be a dict; got {type(context).__name__}.")
        if self.columns is None:
            if set(context) != {"x"}:
                raise InputError("context must be {'x': row}, as the encoder has no columns.")
            row: object = np.asarray(context["x"]).reshape(1, -1)
        else:
            missing = [name for name in self.columns if name not in context]
            if missing or len(context) != len(self.columns):
                raise InputError(f"context must have the features {', '.join(self.columns)}.")
            row = self._rows({name: [context[name]] for name in self.columns})
        return np.ascontiguousarray(self._finish(self._transform(row))[0])

    def encode_table(self, table: object) -> Vector:
        """Encode every row."""
        if self.columns is None:
            return self._finish(self._transform(table))
        return self._finish(self._transform(self._rows(read_columns(table, list(self.columns)))))

    def _rows(self, columns: Mapping[str, object]) -> object:
        assert self.columns is not None
        if hasattr(self.transformer, "feature_names_in_"):
            import pandas as pd  # type: ignore[import-untyped]  # what scikit-learn was fitted on

            return pd.DataFrame(columns)
        return np.column_stack([np.asarray(columns[name]) for name in self.columns])

    def _transform(self, rows: object) -> Vector:
        made = self.transformer.transform(rows)
        dense = made.toarray() if hasattr(made, "toarray") else made
        table = np.asarray(dense, dtype=np.float64)
        if table.ndim != 2:
            raise InputError(f"the encoder must give a table of numbers; got shape {table.shape}.")
        return table

    def _finish(self, made: Vector) -> Vector:
        """Scale, shorten what is longer than 1, replace what is not finite by 0."""
        if made.shape[1] != self.width:
            raise InputError(f"the encoder gave {made.shape[1]} numbers instead of {self.width}.")
        scaled = np.where(np.isfinite(made), made, 0.0) / self.scale
        lengths = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
        scaled = scaled / np.maximum(lengths, 1.0) * self.constant
        return np.hstack([np.full((len(scaled), 1), self.constant), scaled])

    def to_dict(self) -> JSON:
        """Return its size: the transformer itself is not written to files."""
        columns = None if self.columns is None else list(self.columns)
        return {"kind": "fitted", "width": self.width, "scale": self.scale, "columns": columns}


def as_encoder(features: object) -> Encoder:
    """Take declared features, or an encoder as it is."""
    if isinstance(features, Encoder):
        return features
    if hasattr(features, "transform"):
        raise InputError(
            "give a fitted transformer with public rows: "
            "bd.contextual.Fitted(pipeline, public=rows)."
        )
    return Declared(features)  # type: ignore[arg-type]


def encoder_from_dict(data: JSON, given: object = None) -> Encoder:
    """Make an encoder from what ``to_dict`` returned; a fitted one has to be given."""
    if data["kind"] == "declared":
        if given is not None:
            raise StateFileError("its features are in the file; leave out encoder=.")
        ranges = {"range": tuple, "categories": list}
        return Declared({name: ranges[kind](spec) for name, kind, spec in data["features"]})
    if not isinstance(given, Encoder) or given.to_dict() != data:
        raise StateFileError("its encoder is not in the file: pass the same one as encoder=.")
    return given


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"features have texts as names; got {name!r}.")
    return name


def _feature(name: object, spec: object) -> Number | Categories:
    if isinstance(spec, tuple) and len(spec) == 2 and all(map(checks.is_number, spec)):
        low, high = float(spec[0]), float(spec[1])
        if not (low < high and math.isfinite(high - low)):
            raise InputError(f"feature {name!r}: its range must be (low, high), low below high.")
        return Number(low, high)
    if isinstance(spec, list | tuple) and not isinstance(spec, str):
        return _categories(name, spec)
    raise InputError(
        f"feature {name!r} must be a range such as (0, 100) or a list of categories; got {spec!r}."
    )


def _categories(name: object, spec: Iterable[object]) -> Categories:
    listed = list(spec)
    if not 2 <= len(listed) <= MAX_CATEGORIES:
        raise InputError(
            f"feature {name!r} must have 2 to {MAX_CATEGORIES} categories; got {len(listed)}."
        )
    for category in listed:
        if not isinstance(category, str | int):
            raise InputError(
                f"feature {name!r}: categories are texts, whole numbers or True and False; got "
                f"{category!r}."
            )
    if len(set(listed)) != len(listed):
        raise InputError(f"feature {name!r}: categories must differ.")
    return Categories(tuple(listed))  # type: ignore[arg-type]

"""A shop whose tables have everything that goes wrong, and what must be counted of them."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from bandanna._core.grid import UNITS
from bandanna.warehouse import Exposures
from bandanna.warehouse.grid import LARGEST, parts_of

ARMS = ("control", "green", "blue")
START = datetime(2026, 1, 1)
WINDOW = timedelta(days=7)
RANGE = (0.0, 200.0)
ODD = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, 0.1, -3.0, 12.345678, 199.99995]


def tables(seed: int = 1, units: int = 400) -> tuple[pa.Table, pa.Table]:
    """Return exposures and facts: units in two arms, unknown arms, late facts, odd values."""
    rng = np.random.default_rng(seed)
    shown: list[tuple[str | None, str | None, datetime | None]] = []
    facts: list[tuple[str | None, datetime, float | None]] = []
    for number in range(units):
        unit = f"u{number}"
        begun = START + timedelta(seconds=int(rng.integers(0, 86_400)), microseconds=7)
        arm = ARMS[rng.integers(3)]
        shown.append((unit, arm, begun))
        if rng.random() < 0.1:  # again, elsewhere; sometimes at the very same time
            later = timedelta(seconds=int(rng.integers(0, 3)))
            shown.append((unit, ARMS[rng.integers(3)], begun + later))
        if rng.random() < 0.1:
            shown.append((unit, "pink" if rng.random() < 0.5 else None, begun - WINDOW))
        for _ in range(int(rng.integers(0, 4))):
            after = timedelta(seconds=float(rng.integers(-2, 9)) * 86_400.0)
            value = float(rng.gamma(1.0, 60.0))
            facts.append((unit, begun + after, value))
        if rng.random() < 0.15:
            facts.append((unit, begun, ODD[rng.integers(len(ODD))]))
    shown.extend([(None, "green", START), ("lost", "green", None), ("odd", "pink", START)])
    facts.append(("stranger", START, 5.0))
    facts.append(("u0", START + timedelta(days=400), None))
    schema = pa.schema([("unit", pa.string()), ("arm", pa.string()), ("time", pa.timestamp("us"))])
    exposures = pa.table(dict(zip(schema.names, zip(*shown, strict=True), strict=True)), schema)
    schema = pa.schema(
        [("unit", pa.string()), ("time", pa.timestamp("us")), ("value", pa.float64())]
    )
    return exposures, pa.table(
        dict(zip(schema.names, zip(*facts, strict=True), strict=True)), schema
    )


def source(exposures: object, facts: object, **more: Any) -> Exposures:
    return Exposures(exposures, facts, unit="unit", time="time", window="7d", arms=ARMS, **more)


def expected(exposures: pa.Table, facts: pa.Table) -> dict[str, tuple[int, int, int]]:
    """Count by hand, in exact arithmetic where it can be."""
    first: dict[str, tuple[datetime, int]] = {}
    for row in exposures.to_pylist():
        if row["unit"] is None or row["time"] is None or row["arm"] not in ARMS:
            continue
        met = row["time"], ARMS.index(row["arm"])
        first[row["unit"]] = min(first.get(row["unit"], met), met)
    parts = parts_of(RANGE)
    totals = dict.fromkeys(first, 0)
    for row in facts.to_pylist():
        if row["unit"] not in first:
            continue
        begun = first[row["unit"]][0]
        if begun <= row["time"] < begun + WINDOW:
            totals[row["unit"]] += _parts(row["value"], parts)
    found = dict.fromkeys(ARMS, (0, 0, 0))
    for unit, (_, arm) in first.items():
        value = min(max(totals[unit] / parts, RANGE[0]), RANGE[1])
        units = round((value - RANGE[0]) / (RANGE[1] - RANGE[0]) * UNITS)
        square = math.floor(Fraction((units - UNITS // 2) ** 2, UNITS))
        n, total, squares = found[ARMS[arm]]
        found[ARMS[arm]] = n + 1, total + units, squares + square
    return found


def _parts(value: float | None, parts: float) -> int:
    if value is None or math.isnan(value):
        return 0
    return math.floor(min(max(value * parts, -LARGEST), LARGEST) + 0.5)

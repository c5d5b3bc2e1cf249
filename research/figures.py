"""Measured points for a chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Point(NamedTuple):
    """One measurement with its interval."""

    panel: str
    series: str
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """Points to be drawn on logarithmic axes, a line for each series."""

    title: str
    x: str
    """What is across; empty where the panels' names say it."""
    y: str
    points: list[Point]

"""The compiled engine and many runs of it."""

from __future__ import annotations

from bandanna.simulation.results import Results
from bandanna.simulation.runs import simulate

__all__ = ["Results", "simulate"]

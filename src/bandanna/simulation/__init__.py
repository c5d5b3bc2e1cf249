"""The compiled engine and many runs of it."""

from __future__ import annotations

from bandanna.simulation.results import Results, SegmentResults
from bandanna.simulation.runs import simulate, simulate_segments

__all__ = ["Results", "SegmentResults", "simulate", "simulate_segments"]

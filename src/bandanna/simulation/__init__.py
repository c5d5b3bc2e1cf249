"""The compiled engine, many runs of it, and studies: grids of runs."""

from __future__ import annotations

from bandanna.simulation.results import Results
from bandanna.simulation.runs import simulate
from bandanna.simulation.study import Study
from bandanna.simulation.study_results import StudyResults

__all__ = ["Results", "Study", "StudyResults", "simulate"]

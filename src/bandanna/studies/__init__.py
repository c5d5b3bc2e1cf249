"""Grids of runs, here or on a cluster."""

from __future__ import annotations

from bandanna.studies.results import StudyResults
from bandanna.studies.study import Study

__all__ = ["Study", "StudyResults"]

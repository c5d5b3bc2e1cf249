"""Experiments in phases without a server: others decide by published shares, a table is counted.

``definition`` says what an experiment is; ``experiment`` starts it, counts its phases in tables,
and goes on to the next one; ``payloads`` writes shares as SDKs read them.
"""

from bandanna.phases.definition import Definition
from bandanna.phases.experiment import PhasedExperiment

__all__ = ["Definition", "PhasedExperiment"]

"""An algorithm: the toy learner behind the toy release."""

from __future__ import annotations

import tests.toys.learner
import tests.toys.release  # noqa: F401  # both are registered when they are imported
from bandanna.algorithms import Algorithm, register
from bandanna.spec import Problem
from bandanna.theory.tuning import Tuning


def _tune(problem: Problem, batch: int | None) -> Tuning:
    release = {"name": "toy-cautious", "epsilon": problem.epsilon, "batch": batch or 2}
    return Tuning({"name": "toy-stay", "arms": problem.arms}, release)


register(Algorithm("toy", "stay with an arm while it is good", "prior work", tune=_tune))

"""Bandit algorithms as the textbooks have them: no privacy, no input or output, one file each."""

from __future__ import annotations

from bandanna._core.types import InputError
from bandanna.learners.ab_test import AbTest
from bandanna.learners.adaptive import Adaptive
from bandanna.learners.base import (
    Compiled,
    CompiledLearner,
    ExpertLearner,
    Learner,
    PhaseLearner,
)
from bandanna.learners.dp_klucb import DpKlucb
from bandanna.learners.exp3 import Exp3
from bandanna.learners.exp4 import Exp4
from bandanna.learners.fixed import FixedArm
from bandanna.learners.ftpl import Ftpl
from bandanna.learners.htinf import Htinf
from bandanna.learners.kl_ucb import KlUcb
from bandanna.learners.phased import Phased
from bandanna.learners.race import Race
from bandanna.learners.thompson import Thompson
from bandanna.learners.tsallis_inf import TsallisInf
from bandanna.learners.uniform import Uniform

LEARNERS: dict[str, type[CompiledLearner]] = {
    learner.name: learner
    for learner in (
        Exp3,
        Htinf,
        TsallisInf,
        Ftpl,
        Adaptive,
        KlUcb,
        Thompson,
        DpKlucb,
        Phased,
        AbTest,
        Race,
        Uniform,
        FixedArm,
    )
}
"""Every learner by the name under which it is saved."""


def add(learner: type[CompiledLearner]) -> None:
    """Let a learner of yours be asked for by name, saved and loaded.

    Its steps are registered by ``bandanna.learners.steps.register``.
    """
    if LEARNERS.get(learner.name, learner) is not learner:
        raise InputError(f"there is a learner {learner.name!r} already.")
    LEARNERS[learner.name] = learner


__all__ = [
    "LEARNERS",
    "AbTest",
    "Adaptive",
    "Compiled",
    "CompiledLearner",
    "DpKlucb",
    "Exp3",
    "Exp4",
    "ExpertLearner",
    "FixedArm",
    "Ftpl",
    "Htinf",
    "KlUcb",
    "Learner",
    "PhaseLearner",
    "Phased",
    "Race",
    "Thompson",
    "TsallisInf",
    "Uniform",
    "add",
]

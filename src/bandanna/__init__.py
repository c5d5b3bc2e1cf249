"""Differentially private adversarial bandits.

The public names are loaded when first used: importing bandanna imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bandanna.version import __version__

if TYPE_CHECKING:
    from bandanna import contextual, environments, learners, privacy
    from bandanna._core.types import (
        BandannaError,
        Decision,
        DecisionError,
        Guarantee,
        InaccurateWarning,
        InputError,
        StateFileError,
    )
    from bandanna.audits.attack import audit
    from bandanna.client import AsyncClient, Client
    from bandanna.contextual import PrivateContextual
    from bandanna.ledger import BudgetError, Ledger
    from bandanna.loading import load
    from bandanna.logs import answer
    from bandanna.logs.compare import compare
    from bandanna.phases import PhasedExperiment
    from bandanna.planner.plan import plan
    from bandanna.policy import (
        Bandit,
        Experts,
        Policy,
        PrivateBandit,
        PrivateExperts,
        Segments,
        privatize,
    )
    from bandanna.privacy.range import private_range
    from bandanna.simulation import Results, simulate
    from bandanna.spec import Problem
    from bandanna.studies import Study, StudyResults
    from bandanna.warehouse import Exposures, Table

_HOMES = {
    "AsyncClient": "bandanna.client",
    "Bandit": "bandanna.policy",
    "Client": "bandanna.client",
    "BudgetError": "bandanna.ledger",
    "Experts": "bandanna.policy",
    "Exposures": "bandanna.warehouse",
    "Ledger": "bandanna.ledger",
    "PhasedExperiment": "bandanna.phases",
    "Policy": "bandanna.policy",
    "PrivateBandit": "bandanna.policy",
    "PrivateContextual": "bandanna.contextual",
    "PrivateExperts": "bandanna.policy",
    "Segments": "bandanna.policy",
    "answer": "bandanna.logs",
    "compare": "bandanna.logs.compare",
    "audit": "bandanna.audits.attack",
    "load": "bandanna.loading",
    "private_range": "bandanna.privacy.range",
    "privatize": "bandanna.policy",
    "Problem": "bandanna.spec",
    "plan": "bandanna.planner.plan",
    "Results": "bandanna.simulation",
    "Study": "bandanna.studies",
    "StudyResults": "bandanna.studies",
    "Table": "bandanna.warehouse",
    "simulate": "bandanna.simulation",
    "BandannaError": "bandanna._core.types",
    "Decision": "bandanna._core.types",
    "DecisionError": "bandanna._core.types",
    "Guarantee": "bandanna._core.types",
    "InaccurateWarning": "bandanna._core.types",
    "InputError": "bandanna._core.types",
    "StateFileError": "bandanna._core.types",
}
_SUBPACKAGES = ("contextual", "environments", "learners", "privacy")

__all__ = [
    "AsyncClient",
    "BandannaError",
    "Bandit",
    "BudgetError",
    "Client",
    "Decision",
    "DecisionError",
    "Experts",
    "Exposures",
    "Guarantee",
    "InaccurateWarning",
    "InputError",
    "Ledger",
    "PhasedExperiment",
    "Policy",
    "PrivateBandit",
    "PrivateContextual",
    "PrivateExperts",
    "Problem",
    "Results",
    "Segments",
    "StateFileError",
    "Study",
    "StudyResults",
    "Table",
    "__version__",
    "answer",
    "audit",
    "compare",
    "contextual",
    "environments",
    "learners",
    "load",
    "plan",
    "privacy",
    "private_range",
    "privatize",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _SUBPACKAGES:
        value = import_module(f"bandanna.{name}")
    else:
        raise AttributeError(f"module 'bandanna' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

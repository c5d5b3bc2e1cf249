"""Differentially private adversarial bandits.

The public names are loaded when first used: importing bandanna imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandanna._core.lazy import loads
from bandanna.version import __version__ as __version__

if TYPE_CHECKING:
    from bandanna import contextual as contextual
    from bandanna import environments as environments
    from bandanna import learners as learners
    from bandanna import privacy as privacy
    from bandanna._core.types import BandannaError as BandannaError
    from bandanna._core.types import Decision as Decision
    from bandanna._core.types import DecisionError as DecisionError
    from bandanna._core.types import Guarantee as Guarantee
    from bandanna._core.types import InaccurateWarning as InaccurateWarning
    from bandanna._core.types import InputError as InputError
    from bandanna._core.types import StateFileError as StateFileError
    from bandanna.audits.attack import audit as audit
    from bandanna.client import AsyncClient as AsyncClient
    from bandanna.client import Client as Client
    from bandanna.contextual import PrivateContextual as PrivateContextual
    from bandanna.ledger import BudgetError as BudgetError
    from bandanna.ledger import Ledger as Ledger
    from bandanna.loading import load as load
    from bandanna.logs import answer as answer
    from bandanna.logs.compare import compare as compare
    from bandanna.phases import PhasedExperiment as PhasedExperiment
    from bandanna.planner.plan import plan as plan
    from bandanna.policy import Bandit as Bandit
    from bandanna.policy import Experts as Experts
    from bandanna.policy import Policy as Policy
    from bandanna.policy import PrivateBandit as PrivateBandit
    from bandanna.policy import PrivateExperts as PrivateExperts
    from bandanna.policy import Segments as Segments
    from bandanna.policy import privatize as privatize
    from bandanna.privacy.range import private_range as private_range
    from bandanna.simulation import Results as Results
    from bandanna.simulation import simulate as simulate
    from bandanna.spec import Problem as Problem
    from bandanna.studies import Study as Study
    from bandanna.studies import StudyResults as StudyResults
    from bandanna.warehouse import Exposures as Exposures
    from bandanna.warehouse import Table as Table

_HOMES = {
    "bandanna": ("contextual", "environments", "learners", "privacy"),
    "bandanna._core.types": (
        "BandannaError",
        "Decision",
        "DecisionError",
        "Guarantee",
        "InaccurateWarning",
        "InputError",
        "StateFileError",
    ),
    "bandanna.audits.attack": ("audit",),
    "bandanna.client": ("AsyncClient", "Client"),
    "bandanna.contextual": ("PrivateContextual",),
    "bandanna.ledger": ("BudgetError", "Ledger"),
    "bandanna.loading": ("load",),
    "bandanna.logs": ("answer",),
    "bandanna.logs.compare": ("compare",),
    "bandanna.phases": ("PhasedExperiment",),
    "bandanna.planner.plan": ("plan",),
    "bandanna.policy": (
        "Bandit",
        "Experts",
        "Policy",
        "PrivateBandit",
        "PrivateExperts",
        "Segments",
        "privatize",
    ),
    "bandanna.privacy.range": ("private_range",),
    "bandanna.simulation": ("Results", "simulate"),
    "bandanna.spec": ("Problem",),
    "bandanna.studies": ("Study", "StudyResults"),
    "bandanna.warehouse": ("Exposures", "Table"),
}

__all__ = ["__version__"]
__all__ += [name for names in _HOMES.values() for name in names]
__getattr__ = loads(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)

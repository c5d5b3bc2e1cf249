"""What the paper claims, measured: one module for each name, its settings frozen in a file.

Each gives back a table, a figure, and verdicts with their tolerance. It stands beside the package
and is no part of what is installed; ``bandanna reproduce`` runs it from a clone.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import research.worlds  # noqa: F401  # they are known by name
from bandanna._core.types import JSON, InputError
from bandanna.simulation.progress import Progress
from research.exp3_leakage import Leakage
from research.figures import Figure
from research.regime_map import RegimeMap

REPRODUCTIONS: dict[str, str] = {
    "rates": "regret grows as T^1/2, eps^-1/2 and K^1/2",
    "separation": "below eps = T^-1/2 central privacy still learns and local privacy does not",
    "bounds": "the table of upper bounds, as numbers, and no measured regret above them",
    "regimes": "which algorithm with expert advice is best where (the paper's table)",
    "conversion": "the best batch is near 1/eps",
    "one-bit": "our release has less regret than the paper's",
    "leakage": "EXP3 without noise leaks more and more (the paper's figure)",
    "people": "protecting persons who come back costs no more than protecting rounds (ours)",
    "algorithms": "which algorithm has the least regret in which world (ours)",
    "experts": "which algorithm with experts has the least regret in which world (ours)",
    "phases": "what phases lose, and against the plain A/B test (ours)",
    "local": "what privacy on the device costs, and which algorithm suits it (ours)",
    "context": "deciding by context learns, with feedback or both protected (ours)",
    "limits": "no private algorithm of a certain kind has small regret",
}
"""Names and claims; each name is a module here with a function ``reproduce(quick)``."""

WITHOUT_FIGURE = ("bounds", "limits")


class Verdict(NamedTuple):
    """One claim, what was measured, what was allowed for, and whether it holds."""

    claim: str
    measured: str
    tolerance: str
    holds: bool


@dataclass(frozen=True)
class Reproduction:
    """A result of the paper, measured."""

    name: str
    claim: str
    headings: list[str]
    rows: list[list[str]]
    verdicts: list[Verdict]
    settings: JSON
    figure: Figure | Leakage | RegimeMap | None = field(default=None, repr=False)

    @property
    def holds(self) -> bool:
        """Whether every verdict is that the claim holds."""
        return all(verdict.holds for verdict in self.verdicts)

    def to_dict(self) -> JSON:
        """Return everything but the figure, as plain values."""
        return {
            "name": self.name,
            "claim": self.claim,
            "settings": self.settings,
            "rows": [dict(zip(self.headings, row, strict=True)) for row in self.rows],
            "verdicts": [verdict._asdict() for verdict in self.verdicts],
            "holds": self.holds,
        }


def frozen_settings(name: str, quick: bool) -> JSON:
    """Read a reproduction's settings: the whole file, with ``[quick]`` on top where asked."""
    file = Path(__file__).with_name("settings") / f"{name}.toml"
    settings = tomllib.loads(file.read_text(encoding="utf-8"))
    smaller = settings.pop("quick", {})
    return settings | smaller if quick else settings


def reproduce(name: str, *, quick: bool = False) -> Reproduction:
    """Measure one of the paper's claims.

    Parameters
    ----------
    name
        One of ``REPRODUCTIONS``.
    quick
        Run a smaller version that takes seconds instead of minutes.
    """
    seconds = expected_seconds(name, quick=quick)
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    with Progress(seconds or None, label=f"measuring {name}", gathers=True):
        result: Reproduction = module.reproduce(quick)
    return result


def expected_seconds(name: str, *, quick: bool = False) -> float:
    """Guess how long a reproduction's simulations take on one core; 0 where there are none."""
    if name not in REPRODUCTIONS:
        raise InputError(f"reproduce what? There are {', '.join(REPRODUCTIONS)}; got {name!r}.")
    return float(frozen_settings(name, quick).get("seconds", 0.0))


__all__ = [
    "REPRODUCTIONS",
    "WITHOUT_FIGURE",
    "Reproduction",
    "Verdict",
    "expected_seconds",
    "frozen_settings",
    "reproduce",
]

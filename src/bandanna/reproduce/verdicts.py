"""What a reproduction gives back: a table, a figure, and verdicts with their tolerance."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import NamedTuple

from bandanna._core.types import JSON
from bandanna.audits.leakage import Leakage
from bandanna.planner.regimes import RegimeMap
from bandanna.studies.figures import Figure


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
    file = resources.files(__package__) / "settings" / f"{name}.toml"
    settings = tomllib.loads(file.read_text(encoding="utf-8"))
    smaller = settings.pop("quick", {})
    return settings | smaller if quick else settings

"""What a scorecard is made of, as plain values; ``page`` and ``text`` draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bandanna._core.tabular import Cell
from bandanna._core.types import ArmName

Goal = Literal["more", "less", "neither"]
Verdict = Literal["control", "better", "worse", "open", "kept", "broken"]


@dataclass(frozen=True)
class Effect:
    """One arm in one metric, and how it differs from the control, in the user's units."""

    arm: ArmName
    people: int
    mean: float | None = None
    """None where nothing was released of it."""
    difference: float | None = None
    """The arm's mean minus the control's; None for the control itself."""
    low: float = 0.0
    high: float = 0.0
    lift: float | None = None
    """The difference as a share of the control's mean; None where the data cannot say it."""
    lift_low: float = 0.0
    lift_high: float = 0.0
    verdict: Verdict = "open"
    """``kept`` and ``broken`` are for guardrails."""

    def to_row(self) -> dict[str, Cell]:
        """Return it as a row of a table; nothing stands where nothing is known."""
        apart, lift = self.difference is not None, self.lift is not None
        return {
            "arm": str(self.arm),
            "people": self.people,
            "mean": self.mean,
            "difference": self.difference,
            "low": self.low if apart else None,
            "high": self.high if apart else None,
            "lift": self.lift,
            "lift_low": self.lift_low if lift else None,
            "lift_high": self.lift_high if lift else None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Metric:
    """One outcome, for every arm: the control is first."""

    name: str
    effects: tuple[Effect, ...]
    per: str = "people"
    """What there is one value of."""
    times: int = 1
    """Means are shown for so many people: 100 for rates."""
    goal: Goal = "more"
    limit: float | None = None
    """For a guardrail: how much more, or less if negative, than with the control is allowed."""
    note: str = ""
    """What must be known to read it: up to what it was counted, what it was adjusted for."""
    ratio: bool = False
    """Whether it is one sum over another, and not a mean."""

    @property
    def heading(self) -> str:
        """The metric and what it is counted per."""
        one = {"people": "person"}.get(self.per, self.per.removesuffix("s"))
        each = f"of {self.times} {self.per}" if self.times > 1 else f"mean per {one}"
        each = f"ratio of sums over {self.per}" if self.ratio else each
        parts = [f"{self.name}, {each}"]
        if self.limit is not None:
            side = "more" if self.limit > 0.0 else "less"
            allowed = f"{abs(self.limit) * self.times:.4g}"
            control = self.effects[0].arm
            parts.append(f"guardrail: at most {allowed} {side} than {control}")
        return " · ".join([*parts, *filter(None, [self.note])])

    def with_effects(self, effects: Sequence[Effect]) -> Metric:
        """Return it with these arms."""
        return replace(self, effects=tuple(effects))


@dataclass(frozen=True)
class Check:
    """One line of the health check."""

    name: str
    good: bool | None
    """None for what is neither good nor bad, and must be known."""
    text: str


@dataclass(frozen=True)
class Recommendation:
    """What to do, and the rule that says so."""

    action: Literal["ship", "keep", "go on", "stop"]
    arm: ArmName | None
    headline: str
    rule: str


@dataclass(frozen=True)
class Moment:
    """How one arm stood against the control after a phase, and who met what in it."""

    rounds: int
    lift: float | None
    low: float
    high: float
    shares: tuple[float, ...]

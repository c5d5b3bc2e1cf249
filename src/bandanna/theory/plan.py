"""A plan: what every algorithm guarantees for a problem, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bandanna._core.html import paragraph, table
from bandanna._core.types import JSON
from bandanna.problem import Problem
from bandanna.theory.catalogue import DEFAULT
from bandanna.theory.guaranteed import Row, any_arm, percent
from bandanna.theory.measured import EXPECTED, expected
from bandanna.theory.worlds import ANY

ARMS_CHANGED = (
    "no number: arms were added or retired. For exponential weights and Tsallis-INF an added arm "
    "costs at most what the start did, and a retired one nothing (docs/theory/arms.md)."
)
ELIGIBLE = (
    "Not all arms were eligible in every round: the bound holds against each arm over the rounds "
    "in which it was, with batches one after the other (docs/theory/arms.md)."
)


@dataclass(frozen=True, repr=False)
class Plan:
    """What each algorithm guarantees for a problem, the smallest regret first."""

    problem: Problem
    rows: list[Row]
    own: Row | None = None
    """What a policy guarantees that was asked for its plan."""
    per_person: int | None = None
    """Places a person may have, where epsilon and delta are a person's and rounds are places."""
    losses: str = ANY
    """What losses are like; regret to expect is for those."""
    local: bool = False
    """Whether it compares what never sees more than one randomised loss at a time."""
    note: str = ""
    """What else is to be said of a policy's guarantee."""

    def after(self, *, changed: bool, restricted: bool) -> Plan:
        """Return what is left of a policy's plan after arms changed, or were not all eligible."""
        own = self.own
        if changed and own is not None:
            own = replace(own, bound=None, reason=ARMS_CHANGED)
        return replace(self, own=own, note=ELIGIBLE if restricted else "")

    @property
    def best(self) -> Row:
        """The private algorithm with the smallest guaranteed regret."""
        return min((row for row in self.rows if row.entry.private), key=lambda row: row.regret)

    @property
    def why(self) -> str:
        """The choice in one sentence."""
        best = self.best
        assert best.bound is not None
        if best.vacuous:
            return (
                f"Nothing is guaranteed at this size: the smallest bound, {best.algorithm}'s, "
                f"is {best.share:.2f} times the rounds, and choosing at random guarantees "
                f"{any_arm(best.problem):.2f}. More rounds, fewer arms or more epsilon help."
            )
        return (
            f"{best.algorithm} has the smallest guaranteed regret, {percent(best.share)} of the "
            f"rounds, with batches of {best.bound.batch:,}{self._each()}."
        )

    @property
    def condition(self) -> str:
        """What the bounds assume of feedback, in one sentence."""
        return self.problem.assumed_of_feedback

    def _each(self) -> str:
        """Say what a place may cost, where persons are protected."""
        if self.per_person is None:
            return ""
        place = self.best.problem
        more = f" and delta {place.delta:.3g}" if place.delta else ""
        return f" and epsilon {place.epsilon:.4g}{more} for each of a person's {self.per_person:,}"

    @property
    def default(self) -> str:
        """Why the default is another than the best, in one sentence; empty where it is not."""
        found = [row for row in self.rows if row.algorithm == DEFAULT != self.best.algorithm]
        if not found:
            return ""
        row = found[0]
        said = "nothing here" if row.vacuous else percent(row.share)
        return (
            f"The default, {DEFAULT}, guarantees {said}; it is the default because the least "
            f"regret is to be expected of it, whatever losses are like."
        )

    @property
    def worlds(self) -> str:
        """Which algorithm to expect the least regret of, by what losses are like; in a sentence."""
        if self.problem.advised:
            return ""
        if self.local:
            return (
                "Devices can feed one-bit algorithms (release='device'). Little regret is to be "
                "expected of one-bit while one arm stays the best, and of tracking where the best "
                "changes; --simulate shows it."
            )
        return EXPECTED[self.losses]

    @property
    def measured(self) -> bool:
        """Whether it was measured what to expect: not with experts, nor on people's devices."""
        return not (self.problem.advised or self.local)

    def expected(self, row: Row) -> float | None:
        """Return the regret to expect of an algorithm, times the least; None if not measured."""
        return expected(row.algorithm, self.losses) if self.measured else None

    def to_dict(self) -> JSON:
        """Return the plan with stable keys."""
        own: JSON = {} if self.own is None else {"own": self.own.to_dict(), "note": self.note}
        if self.per_person is not None:
            place = self.best.problem
            own |= {"per_person": self.per_person, "place_epsilon": place.epsilon}
        return {
            **self.problem.to_dict(),
            "best": self.best.algorithm,
            "why": self.why,
            "default": self.default,
            "condition": self.condition,
            "losses": self.losses,
            "worlds": self.worlds,
            **own,
            "rows": [row.to_dict() | {"expected": self.expected(row)} for row in self.rows],
        }

    def __repr__(self) -> str:
        people = "" if self.per_person is None else f" for a person's {self.per_person:,} places"
        lines = [f"Guaranteed regret after {self.problem}{people}:"]
        width = max(len(row.algorithm) for row in self.rows)
        for row in self.rows:
            if row.bound is not None:
                share = "says nothing" if row.vacuous else percent(row.share)
                lines.append(f"  {row.algorithm:{width}}  {row.regret:>14,.0f}  {share}")
        if self.own is not None:
            known = self.own.reason or f"at most {self.own.regret:,.0f}, {percent(self.own.share)}"
            lines.append(f"This policy, {self.own.algorithm}: {known}")
        lines += [self.why, *filter(None, (self.default, self.worlds)), self.condition]
        lines += [self.note] if self.note else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = ["algorithm", "privacy", "batch", "regret at most", "of the rounds"]
        rows = [
            [
                row.algorithm,
                row.model,
                f"{row.bound.batch:,}",
                f"{row.regret:,.0f}",
                "says nothing" if row.vacuous else percent(row.share),
            ]
            for row in self.rows
            if row.bound is not None
        ]
        caption = f"Guaranteed regret after {self.problem}"
        said = "".join(paragraph(line) for line in (self.why, self.default, self.condition))
        return said + table(caption, headings, rows)

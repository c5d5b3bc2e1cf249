"""Before the first decision: which algorithm, what batch, what is guaranteed, what is possible."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from bandanna import checks
from bandanna.html import paragraph, table
from bandanna.privacy.composition import check_places, place_for
from bandanna.problem import Problem
from bandanna.theory.algorithm import Algorithm, Bound
from bandanna.theory.catalogue import DEFAULT, algorithms
from bandanna.types import JSON, InputError, Model

VECTOR = "vector"
"""Name of the release that spends delta by itself; its file loads NumPy, which a plan does not."""


@dataclass(frozen=True)
class Row:
    """One algorithm for one problem: its guarantee, or why there is none."""

    algorithm: str
    entry: Algorithm
    """Its row in the catalogue."""
    problem: Problem
    bound: Bound | None
    reason: str = ""

    @property
    def model(self) -> Model:
        """Who sees feedback."""
        return self.entry.model(None if self.bound is None else self.bound.batch)

    @cached_property
    def delta(self) -> float:
        """What it spends of the problem's delta."""
        if self.bound is None:
            return self.problem.delta if self.entry.needs_delta else 0.0
        return self.entry.delta(self.problem)

    @property
    def regret(self) -> float:
        """The guarantee; infinite where there is none."""
        return float("inf") if self.bound is None else self.bound.regret

    @property
    def share(self) -> float:
        """The guarantee as a share of the rounds."""
        return self.regret / (self.problem.rounds or 1)

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says nothing: playing any arm, every one as often, keeps it too."""
        return self.share >= any_arm(self.problem)

    def to_dict(self) -> JSON:
        """Return stable keys for JSON."""
        shown: JSON = {"algorithm": self.algorithm, "model": self.model, "delta": self.delta}
        if self.bound is None:
            empty = dict.fromkeys(("batch", "bound", "share", "vacuous"))
            return {**shown, **empty, "reason": self.reason}
        numbers = {"batch": self.bound.batch, "bound": self.regret, "share": self.share}
        why = {"source": self.bound.source, "settings": self.bound.settings}
        return {**shown, **numbers, "vacuous": self.vacuous, **why}


def any_arm(problem: Problem) -> float:
    """Return the share of the rounds that choosing at random loses at most, ``1 - 1/K``."""
    return 1.0 - 1.0 / problem.arms


def row_of(entry: Algorithm, problem: Problem, batch: int | None = None) -> Row:
    """Return what an algorithm guarantees for a problem, or why nothing."""
    try:
        return Row(entry.name, entry, problem, entry.bounded(problem, batch))
    except InputError as error:
        return Row(entry.name, entry, problem, None, f"has no bound here: {error}")


def percent(share: float) -> str:
    """Write a share of the rounds as a percentage, small ones with two digits.

    Examples
    --------
    >>> percent(0.0321), percent(0.000004)
    ('3.2%', '0.00040%')
    """
    if share >= 0.0005 or share <= 0.0:
        return f"{share:.1%}"
    digits = -math.floor(math.log10(share)) - 1
    return f"{share:.{digits}%}"


@dataclass(frozen=True, repr=False)
class Plan:
    """What each algorithm guarantees for a problem, the smallest regret first."""

    problem: Problem
    rows: list[Row]
    own: Row | None = None
    """What a policy guarantees that was asked for its plan."""
    per_person: int | None = None
    """Places a person may have, where epsilon and delta are a person's and rounds are places."""

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
        if self.problem.delay:
            return f"Bounds hold for feedback that is at most {self.problem.delay:,} rounds late."
        return "Bounds hold for feedback in order; a delay says how late it may be."

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
        if not found or found[0].vacuous:
            return ""
        return (
            f"The default, {DEFAULT}, guarantees {percent(found[0].share)}; it is the default "
            f"because it gains where losses are easy, as {self.best.algorithm} does not."
        )

    @property
    def worlds(self) -> str:
        """Which algorithm to expect the least regret of, by what losses are like; in a sentence."""
        if self.problem.advised:
            return ""
        return (
            "Guarantees are for the worst losses. Least regret is to be expected of adaptive "
            "(losses='any'), and of dp-klucb if each arm's losses are drawn from one law "
            "(losses='steady'); --simulate shows it."
        )

    def to_dict(self) -> JSON:
        """Return the plan with stable keys."""
        own: JSON = {} if self.own is None else {"own": self.own.to_dict()}
        if self.per_person is not None:
            place = self.best.problem
            own |= {"per_person": self.per_person, "place_epsilon": place.epsilon}
        return {
            **self.problem.to_dict(),
            "best": self.best.algorithm,
            "why": self.why,
            "default": self.default,
            "condition": self.condition,
            "worlds": self.worlds,
            **own,
            "rows": [row.to_dict() for row in self.rows],
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


def plan(
    arms: int | Problem,
    rounds: int | None = None,
    epsilon: float | None = None,
    *,
    experts: int | None = None,
    delta: float = 0.0,
    delay: int = 0,
    per_person: int | None = None,
) -> Plan:
    """Compare what every algorithm guarantees.

    Parameters
    ----------
    arms, rounds, epsilon
        The problem; or a ``Problem`` alone.
    experts
        Number of experts, for bandits with expert advice.
    delta
        What may be spent; algorithms that need none use none.
    delay
        How many further decisions may be made before the feedback of one has come; 0 is feedback in
        order. Bounds with it are larger, and for most algorithms none is proved.
    per_person
        Protect persons who may have so many places: epsilon and delta are then theirs, and rounds
        are places. A problem is given besides it.

    Examples
    --------
    >>> plan(arms=10, rounds=1_000_000, epsilon=0.1).best.algorithm
    'one-bit-exp3'
    """
    if isinstance(arms, Problem):
        if (rounds, epsilon, experts, delta, delay) != (None, None, None, 0.0, 0):
            raise InputError("a Problem says everything; give it alone, or change it by .but().")
        problem = arms
    else:
        if rounds is None or epsilon is None:
            raise InputError("a plan needs rounds= and epsilon=, such as bd.plan(4, 1e5, 0.5).")
        problem = Problem(arms, rounds, epsilon, experts, delta, delay)
    checks.epsilon(problem.epsilon)
    problem.horizon("a plan")
    if problem.advised:
        problem = replace(problem, experts=problem.advisers)
    rows = [
        row_of(entry, problem if per_person is None else place_problem(problem, per_person, entry))
        for entry in algorithms(advised=problem.advised)
        if _is_planned(entry)
    ]
    rows.sort(key=lambda row: row.regret)
    return Plan(problem, rows, per_person=per_person)


def place_problem(problem: Problem, per_person: int, entry: Algorithm) -> Problem:
    """Return the problem of one place, with what it may cost of a person's epsilon and delta."""
    places, spends = check_places(per_person), entry.release == VECTOR
    each = place_for(problem.epsilon, problem.delta, places, spend_delta=spends)
    return problem.but(epsilon=each.epsilon, delta=each.delta)


def _is_planned(entry: Algorithm) -> bool:
    """Whether an algorithm belongs into a plan: all do but those that do not try to learn."""
    return entry.private or entry.bound is not None

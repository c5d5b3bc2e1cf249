"""Plans: what every algorithm guarantees for a problem, and which guarantee is the smallest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.html import paragraph, table
from bandanna._core.types import JSON, InputError, Model
from bandanna.algorithms import (
    ALGORITHMS,
    CHANGING,
    DEFAULT,
    STEADY,
    Algorithm,
    algorithms,
)
from bandanna.privacy.composition import check_slots, slot_for
from bandanna.spec import Constants, Losses, Problem, parameters
from bandanna.theory.exp3 import CHANGES as USUAL_CHANGES
from bandanna.theory.tuning import Bound


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

    def after(self, happened: Happened) -> Row:
        """Return what is left of the guarantee after what happened in a run.

        Each round that was not learned from adds one loss range.
        """
        wrong = {
            ARMS_CHANGED: happened.changed,
            MIXED: happened.mixed,
            PHASES_RESTRICTED: happened.restricted and self.entry.grows,
            OVERLAPPED: happened.overlapped,
            CONTROLLED: happened.controlled,
            FINDING: happened.finding,
        }
        reason = next((text for text, holds in wrong.items() if holds), "")
        if reason and (self.bound is not None or happened.changed):
            return replace(self, bound=None, reason=reason)
        if self.bound is None or not happened.missed:
            return self
        terms = self.bound.terms | {"not learned from": float(happened.missed)}
        return replace(self, bound=replace(self.bound, terms=terms))

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says nothing: playing any arm, every one as often, keeps it too."""
        return self.share >= any_arm(self.problem)

    @property
    def verdict(self) -> str:
        """The guarantee as a share of the rounds, in words."""
        return "says nothing" if self.vacuous else percent(self.share)

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


ARMS_CHANGED = (
    "no number: arms were added or retired. For exponential weights and Tsallis-INF an added arm "
    "costs at most what the start did, and a retired one nothing (docs/theory/arms.md)."
)
ELIGIBLE = (
    "Not all arms were eligible in every round: the bound holds against each arm over the rounds "
    "in which it was, with batches one after the other (docs/theory/arms.md)."
)
AB_TEST, NO_PRIVACY = "ab-test", "no-privacy"
CONVERTED = "one-bit"
"""With experts: whose learner, release or batch are replaced, and what always runs."""
FEW_EXPERTS = "adaptive"
"""What runs with experts unless there are many of them."""
MANY_EXPERTS = 0.55
"""There are many experts where EXP4's guarantee is at most this times every conversion's."""
NO_PROBES = "has no bound here: without probes there is no net."
CONTROLLED = "a control keeps a share of the rounds, whatever is learned."
FINDING = "the first phase finds how outcomes are counted, and teaches nothing."
MIXED = (
    "no number: people with an open slot came with other eligible arms than it was drawn among, "
    "and no bound is known then (docs/theory/arms.md)."
)
PHASES_RESTRICTED = (
    "no number: not all arms were eligible in every round, and phases promise nothing then "
    "(docs/theory/phases.md)."
)
OVERLAPPED = (
    "no number: batches began while others waited for feedback, and its bound is for feedback in "
    "order, or no later than delay= says. Only one-bit-exp3, and one-bit-exp4 with experts, have "
    "bounds for late feedback (docs/theory/delay.md)."
)
SEVERAL_ROUNDS = (
    "Slots take several rounds: where a batch begins before the one before it is released, bounds "
    "for feedback in order do not hold; delay= is then the number of slots that may open before "
    "one has closed (docs/theory/people.md)."
)
FOR_SLOTS = (
    "Regret is counted by slots. Slots beyond a person's cap, and rounds of people whose slot in "
    "the open batch has closed, are not learned from: each adds at most one loss range."
)


class Happened(NamedTuple):
    """What has happened in a run that its bound must say: all of it is public."""

    changed: bool = False
    """Arms were added or retired."""
    restricted: bool = False
    """Not all arms were eligible in every round."""
    mixed: bool = False
    """People with open slots came with other eligible arms."""
    overlapped: bool = False
    """More batches were open when another began than the problem's ``delay`` allows."""
    several: bool = False
    """Slots may take several rounds."""
    missed: int = 0
    """Rounds and slots that were not learned from."""
    controlled: bool = False
    """A control keeps a share of the rounds."""
    finding: bool = False
    """The first phase finds how outcomes are counted."""


@dataclass(frozen=True, repr=False)
class Plan:
    """What each algorithm guarantees for a problem, the smallest regret first."""

    problem: Problem
    rows: list[Row]
    own: Row | None = None
    """What a policy guarantees that was asked for its plan."""
    per_person: int | None = None
    """Slots a person may have, where epsilon and delta are a person's and rounds are slots."""
    losses: str | None = None
    """What was said of losses."""
    local: bool = False
    """Whether it compares what never sees more than one randomised loss at a time."""
    note: str = ""
    """What else is to be said of a policy's guarantee."""

    def after(self, happened: Happened) -> Plan:
        """Return what is left of a policy's plan after what happened in its run.

        Each round that was not learned from adds one loss range to its bound.
        """
        own, notes = None if self.own is None else self.own.after(happened), []
        if own is not None and own.bound is not None:
            if happened.restricted:
                notes.append(ELIGIBLE)
            if happened.missed:
                notes.append(
                    f"The bound includes one loss range for each of {happened.missed:,} rounds or "
                    f"slots so far that were given up, beyond a person's cap or in no slot."
                )
        if happened.several and not self.problem.delay:
            notes.append(SEVERAL_ROUNDS)
        return replace(self, own=own, note=" ".join(notes))

    @property
    def best(self) -> Row:
        """The private algorithm with the smallest guaranteed regret."""
        return min((row for row in self.rows if row.entry.private), key=lambda row: row.regret)

    @property
    def shown(self) -> list[Row]:
        """The rows to look at first; ``rows`` has all.

        What runs, the plain A/B test and no privacy; with experts or on devices, also the smallest
        guarantee.
        """
        names = {self.runs, AB_TEST, NO_PRIVACY}
        if self.problem.with_experts or self.local:
            names.add(self.best.algorithm)
        return [row for row in self.rows if row.algorithm in names]

    @property
    def runs(self) -> str:
        """What runs unless an algorithm is named."""
        if self.problem.with_experts:
            return self.auto[0]
        if self.local:
            return self.best.algorithm
        return DEFAULT if self.losses is None else ALGORITHMS[self.losses][0]

    @property
    def why(self) -> str:
        """The smallest guarantee in one sentence."""
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
    def auto(self) -> tuple[str, str]:
        """With experts: what to expect the least regret of, and why.

        Conversions learn from releases of whole batches, EXP4 from every round about all experts.
        ``bandanna reproduce experts`` measures where which is better: EXP4's guarantee is then far
        below every conversion's.
        """
        private = [row for row in self.rows if row.entry.private]
        conversions = [row for row in private if row.entry.over is not None]
        own = next((row for row in conversions if row.algorithm == FEW_EXPERTS), None)
        others = [row.regret for row in conversions if row is not own]
        best = self.best
        if own is None or own.bound is None:
            if best.vacuous:
                return CONVERTED, f"{self.why} A conversion follows the experts all the same."
            return best.algorithm, self.why
        if best.entry.over is None and best.regret <= MANY_EXPERTS * min(others, default=math.inf):
            return best.algorithm, f"There are many experts for so few arms: {self.why}"
        promised = (
            "It guarantees nothing at this size."
            if own.vacuous
            else f"It guarantees {percent(own.share)} of the rounds."
        )
        why = f"With few experts {FEW_EXPERTS} loses little, whatever losses are like. {promised}"
        if best is not own and not best.vacuous:
            why += f" The smallest guarantee is {best.algorithm}'s, {percent(best.share)}."
        return FEW_EXPERTS, f"{why} If losses are steady, losses='steady' has less regret."

    @property
    def condition(self) -> str:
        """What the bounds assume of feedback, in a few words."""
        feedback = self.problem.assumed_of_feedback
        return feedback if self.per_person is None else f"{feedback} {FOR_SLOTS}"

    def _each(self) -> str:
        """Say what a slot may cost, where persons are protected."""
        if self.per_person is None:
            return ""
        each = self.best.problem
        more = f" and delta {each.delta:.3g}" if each.delta else ""
        return f" and epsilon {each.epsilon:.4g}{more} for each of a person's {self.per_person:,}"

    @property
    def default(self) -> str:
        """What speaks for the default, in one sentence; empty where it is the best row."""
        if self.problem.with_experts:
            name, why = self.auto
            return "" if name == self.best.algorithm else f"The default: {why}"
        name = self.runs
        rows = [row for row in self.rows if row.algorithm == name != self.best.algorithm]
        if not rows:
            return ""
        row, what = rows[0], "The default" if self.losses is None else name
        if row.vacuous:
            return f"{what} has no guarantee here."
        return f"{what} guarantees {percent(row.share)}."

    @property
    def worlds(self) -> str:
        """What devices can feed, where only they are compared."""
        if not self.local:
            return ""
        return (
            "Devices can feed one-bit algorithms (release='device'). Expect little "
            "regret from one-bit while one arm stays the best, and from one-bit-exp3 with "
            "changes= where the best changes."
        )

    def to_dict(self) -> JSON:
        """Return the plan with stable keys."""
        own: JSON = {} if self.own is None else {"own": self.own.to_dict(), "note": self.note}
        if self.per_person is not None:
            each = self.best.problem
            own |= {"per_person": self.per_person, "slot_epsilon": each.epsilon}
        return {
            **self.problem.to_dict(),
            "best": self.best.algorithm,
            "why": self.why,
            "default": self.default,
            "condition": self.condition,
            "losses": self.losses,
            "worlds": self.worlds,
            **own,
            "rows": [row.to_dict() for row in self.rows],
        }

    def __repr__(self) -> str:
        people = "" if self.per_person is None else f" for a person's {self.per_person:,} slots"
        lines = [f"Guaranteed regret after {self.problem}{people}:"]
        width = max(len(row.algorithm) for row in self.rows)
        for row in self.rows:
            if row.bound is not None:
                lines.append(f"  {row.algorithm:{width}}  {row.regret:>14,.0f}  {row.verdict}")
        if self.own is not None:
            known = f"at most {self.own.regret:,.0f}, {percent(self.own.share)}"
            if self.own.bound is None:
                known = self.own.reason
            elif self.own.vacuous:
                known = "promises nothing, its bound is more than choosing at random loses"
            lines.append(f"This policy, {self.own.algorithm}: {known}")
        lines += [self.why, *filter(None, (self.default, self.worlds)), self.condition]
        lines += [self.note] if self.note else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = ["algorithm", "privacy", "batch", "regret at most", "of the rounds"]
        rows = [
            [row.algorithm, row.model, f"{row.bound.batch:,}", f"{row.regret:,.0f}", row.verdict]
            for row in self.rows
            if row.bound is not None
        ]
        caption = f"Guaranteed regret after {self.problem}"
        said = "".join(paragraph(line) for line in (self.why, self.default, self.condition))
        return said + table(caption, headings, rows)


ONE_BIT = "one-bit"
"""Name of the release that devices do, in batches of one."""

VECTOR = "vector"
"""Name of the release that spends delta by itself; its file loads NumPy, which a plan does not."""


def plan(
    arms: int | Problem,
    rounds: int | None = None,
    epsilon: float | None = None,
    *,
    experts: int | None = None,
    delta: float = 0.0,
    delay: int = 0,
    per_person: int | None = None,
    people: int | None = None,
    local: bool = False,
    losses: Losses | None = None,
    changes: int | None = None,
    constants: Constants = "paper",
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
        Protect persons who may have at most this many slots: epsilon and delta are then theirs, and
        rounds are slots. A problem is given besides it.
    people
        With ``per_person``: how many people there are. A batch has at most half as many slots, so
        that it fills. By default the fewest who can take all slots, ``rounds / per_person``.
    local
        Compare what people's own devices can feed, a bit for each round, and other algorithms that
        never see more than one randomised loss at a time.
    losses, changes
        What losses are like, as for ``PrivateBandit``: regret to expect is for such losses, and the
        bound of ``one-bit-exp3`` against all sequences of arms that change so often.
    constants
        With whose constants the paper's algorithms run, as for ``PrivateBandit``.

    Examples
    --------
    >>> plan(arms=10, rounds=1_000_000, epsilon=0.1).best.algorithm
    'one-bit-exp3'
    """
    if isinstance(arms, Problem):
        if (rounds, epsilon, experts, delta, delay) != (None, None, None, 0.0, 0):
            raise InputError(
                "a Problem holds all parameters; pass it alone, or change it with .but()."
            )
        problem = arms
    else:
        if rounds is None or epsilon is None:
            raise InputError("a plan needs rounds= and epsilon=, such as bd.plan(4, 1e5, 0.5).")
        problem = Problem(arms, rounds, epsilon, experts, delta, delay)
    checks.epsilon(problem.epsilon)
    problem.horizon("a plan")
    problem = _in_world(problem, losses, changes)
    if problem.with_experts:
        problem = replace(problem, experts=problem.num_experts)
    if local and (problem.with_experts or per_person is not None):
        raise InputError(
            "devices ask for arms without experts, and keep their persons' budgets themselves: "
            "leave out experts and per_person in a local plan."
        )
    rows = [
        row_of(
            entry,
            problem if per_person is None else problem_of_slot(problem, per_person, entry),
            batch,
        )
        for entry, batch in planned(problem, local=local, constants=constants)
    ]
    if per_person is not None:
        rows = capped(rows, largest_batch(problem.rounds, per_person, people) or 1)
    elif people is not None:
        raise InputError("people= goes with per_person=, the slots that each may have.")
    if losses == STEADY:
        rows = [
            replace(row, bound=None, reason=NO_PROBES) if row.algorithm == DEFAULT else row
            for row in rows
        ]
    rows.sort(key=lambda row: row.regret)
    return Plan(problem, rows, per_person=per_person, local=local, losses=losses)


def largest_batch(rounds: int | None, per_person: int, people: int | None) -> int | None:
    """Return the most slots that a batch may have, so that people fill it; None if unknown.

    Half as many as there are people: nobody has two in a batch, and people come unequally often.
    Without their number, the fewest who can take all slots.

    Examples
    --------
    >>> largest_batch(60_000, per_person=1000, people=None), largest_batch(None, 20, people=500)
    (30, 250)
    """
    if people is None:
        if rounds is None:
            return None
        people = rounds // per_person
    return max(1, people // 2)


def capped(rows: list[Row], most: int) -> list[Row]:
    """Return rows of private algorithms for batches of at most so many slots."""
    return [
        row_of(row.entry, row.problem, most)
        if row.entry.private and row.bound is not None and row.bound.batch > most
        else row
        for row in rows
    ]


def _in_world(problem: Problem, losses: str | None, changes: int | None) -> Problem:
    """Check what was said of losses, and put it into the problem."""
    parameters()["losses"].check(losses)
    if losses == CHANGING and (changes, problem.changes, problem.memory) == (None, None, None):
        return problem.but(changes=USUAL_CHANGES)  # as policies do: adaptive forgets, without a net
    if changes is None:
        return problem
    if losses != CHANGING:
        raise InputError(f"changes= goes with losses='changing'; got losses={losses!r}.")
    return problem.but(changes=changes)


def planned(
    problem: Problem, *, local: bool = False, constants: Constants = "paper"
) -> list[tuple[Algorithm, int | None]]:
    """Return the algorithms of a plan, with the batch they must have, if any."""
    entries = [
        entry.with_constants(constants) if entry.ours else entry
        for entry in algorithms(with_experts=problem.with_experts)
        if not entry.comparison
    ]
    if not local:
        return [(entry, None) for entry in entries]
    single = [entry for entry in entries if entry.local or entry.release == ONE_BIT]
    plain = [entry for entry in entries if not entry.private]
    return [(entry, 1 if entry.release == ONE_BIT else None) for entry in (*single, *plain)]


def problem_of_slot(problem: Problem, per_person: int, entry: Algorithm) -> Problem:
    """Return the problem of one slot, with what it may cost of a person's epsilon and delta."""
    slots, spends = check_slots(per_person), entry.release == VECTOR
    each = slot_for(problem.epsilon, problem.delta, slots, spend_delta=spends)
    return problem.but(epsilon=each.epsilon, delta=each.delta)

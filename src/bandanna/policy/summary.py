"""What a policy has learned, arm by arm, and in words what its guards saw and why it is stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bandanna._core.html import paragraph, table
from bandanna._core.types import ArmName
from bandanna.learners.net import NetReport
from bandanna.learners.stationarity import GuardReport
from bandanna.policy.answers import Answer
from bandanna.policy.state import State
from bandanna.spec import PeopleRule

MANY = 3
"""After so many times a batch's decisions without a release there is something to say."""


class ArmSummary(NamedTuple):
    """What is known of an arm, or of an expert."""

    arm: ArmName
    chance: float | None
    """With which probability it would be drawn now."""
    share: float | None
    """Which share of all decisions so far it was given; None where experts are weighed."""
    batches: int
    """How many of its batches were released."""
    mean: float | None
    """The estimated mean, in the user's units and direction; None before the first release."""
    low: float | None
    high: float | None
    """Its interval, for sampling and noise together, as ``answer`` has it: all of them hold
    together, 95% sure and at any time."""


@dataclass(frozen=True)
class Summary:
    """What a policy has learned, arm by arm."""

    rows: list[ArmSummary]
    decided: int
    released: int
    stationarity: str = ""
    """What the guard of ``dp-klucb`` has seen, in a sentence."""
    hint: str = ""
    """Why nothing is learned, and what to do; empty where nothing is wrong."""
    answer: Answer | None = None
    """Which arm is best, if that can be said."""
    net: str = ""
    """What the net under ``adaptive`` or ``phased`` has seen, in a sentence."""
    unsaid: str = ""
    """Why nothing can be said about means, where that is so."""

    def __str__(self) -> str:
        width = max(len(str(row.arm)) for row in self.rows)
        lines = [f"{self.decided:,} decided, {self.released:,} batches released"]
        for row in self.rows:
            chance = "   -  " if row.chance is None else f"{row.chance:6.1%}"
            if self.unsaid:
                lines.append(f"  {row.arm!s:{width}}  {chance}")
                continue
            mean = "no release yet"
            if row.mean is not None:
                mean = f"mean {self.outcome} {row.mean:.4g} ({row.low:.4g} to {row.high:.4g})"
            share = "" if row.share is None else f"{row.share:.1%} of decisions, "
            lines.append(f"  {row.arm!s:{width}}  {chance}  {share}{row.batches:,} batches, {mean}")
        lines += [f"  {said}" for said in (self.stationarity, self.net, self.unsaid) if said]
        if self.hint:
            lines.append(f"  {self.hint}.")
        if self.answer is not None:
            lines.append(f"  {self.answer.sentence}")
        return "\n".join(lines)

    @property
    def outcome(self) -> str:
        """Whether means are of losses or rewards."""
        return "loss" if self.answer is None else self.answer.units.noun

    def _repr_html_(self) -> str:
        rows = [
            [
                str(row.arm),
                "-" if row.chance is None else f"{row.chance:.1%}",
                "-" if row.share is None else f"{row.share:.1%}",
                f"{row.batches:,}",
                "-" if row.mean is None else f"{row.mean:.4g}",
                "-" if row.mean is None else f"{row.low:.4g} to {row.high:.4g}",
            ]
            for row in self.rows
        ]
        said = f"{self.decided:,} decided, {self.released:,} batches released"
        mean = f"mean {self.outcome}"
        headings = ["arm", "chance", "share so far", "batches", mean, "interval"]
        sentence = "" if self.answer is None else self.answer.sentence
        also = self.stationarity, self.net, self.unsaid, self.hint, sentence
        return table(said, headings, rows) + "".join(map(paragraph, also))


def hint(state: State, batch: int, rule: PeopleRule | None) -> str:
    """Return a sentence about a policy that is stuck; empty while it is not."""
    opened = list(state.open.values())
    rounds, waiting = sum(len(one.losses) for one in opened), state.waiting
    decided = state.rounds
    if decided < MANY * batch:
        return ""
    if rule is not None and 2 * state.missed > decided:
        return (
            f"{state.missed:,} of {decided:,} rounds or slots were not learned from: most who "
            f"come have had all their slots ({rule.per_person:,}) or have one in the open batch. "
            f"Allow more with per_person=, or use a smaller batch="
        )
    if rounds < MANY * batch or 2 * rounds < decided:
        return ""
    slots = sum(len(one.open_slots) for one in opened)
    if rule is not None and slots:
        until = "finish(person) is called"
        if rule.rounds_per_slot is not None:
            until = f"{rule.rounds_per_slot:,} rounds of their person, or until {until}"
        return (
            f"{slots:,} slots are open until {until}, and no batch is released before its slots "
            f"close: call finish by a public rule, such as a fixed time, or use rounds_per_slot=1"
        )
    if waiting:
        return (
            f"{waiting:,} decisions wait for feedback, and no batch is released before its "
            f"feedback has come: call observe, or give_up by a public rule, such as a fixed time"
        )
    return ""


def net_words(net: NetReport | None) -> str:
    """Say in a sentence what ``net`` tells; nothing where there is none."""
    if net is None:
        return ""
    if not net["switched"]:
        return f"Expected regret is at most {net['budget']:,.0f}; the net was not needed."
    return (
        f"Expected regret is at most {net['budget']:,.0f}. To keep that, centred EXP3 plays since "
        f"round {net['after']:,}: losses were too hard to predict."
    )


def alarm_words(seen: GuardReport | None) -> str:
    """Say that a guard has seen losses change; nothing where it has not."""
    return stationarity_words(seen) if seen is not None and seen["alarm"] else ""


def stationarity_words(seen: GuardReport | None) -> str:
    """Say in a sentence what ``stationarity`` tells; nothing where there is no guard."""
    if seen is None or not seen["guard"]:
        return ""
    tests, chance = seen["tests"], f"{seen['false_alarm']:g}"
    if not seen["alarm"] and seen.get("approximate"):
        return (
            f"The order of arms looks steady: {tests:,} comparisons of differences between arms, "
            f"no alarm (designed for a false one in at most {seen['false_alarm']:.1%} of runs; the "
            f"law of errors is approximated)."
        )
    if not seen["alarm"]:
        return (
            f"Losses look steady: {tests:,} comparisons of an arm's releases with its earlier "
            f"ones, no alarm (a false one has probability at most {chance})."
        )
    told = seen.get("most_telling")
    if told is None:
        return (
            f"The order of arms has changed, by {tests:,} comparisons of differences between arms "
            f"(designed for false alarms in at most {seen['false_alarm']:.1%} of runs). What was "
            f"known before fades; after a change so early or soon the adaptive learner plays."
        )
    return (
        f"Losses change: after {told['after_rounds']:,} rounds arm {told['arm'] + 1}'s went from "
        f"{told['loss_before']:.3g} to {told['loss_then']:.3g}, beyond the "
        f"{told['difference_allowed']:.2g} that chance allows (false alarms: probability at most "
        f"{chance}); the adaptive learner plays since."
    )

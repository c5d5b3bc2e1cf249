"""The course of an experiment in phases, wherever it is counted: what is due is done.

A phase has shares, and a time at which it opened. When it has lasted long enough, the next one
opens. When the window of its last exposures is over, it is counted, released once and learned from.
Phases that wait for their window and phases that are open overlap.

All of it is a function of what is kept (``state``, plain values), of a policy, of the clock and of
a cohort, which knows who was met and what came of it. Whoever calls writes state and policy down in
one piece before anything of them can be seen. Nothing private is in the state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from bandanna._core.grid import UNITS
from bandanna._core.types import JSON
from bandanna.counted import Counted
from bandanna.phases.definition import Course, moment_of, written
from bandanna.phases.payloads import PARTS, digest, parts_of, seed_of
from bandanna.policy.facade import PrivateBandit
from bandanna.policy.policy import Policy
from bandanna.policy.promises import Exposed
from bandanna.policy.state import Batch
from bandanna.privacy.composition import slot_for
from bandanna.privacy.release import Released
from bandanna.privacy.sums import Column
from bandanna.scorecard.health import ALARM, ratio_chance
from bandanna.scorecard.view import Check
from bandanna.warehouse.source import duration

LONGEST = 7
"""A phase lasts at most so many times as long as it was to, where few people come."""
ENOUGH = 0.9
"""The part of the people that were planned for with which a phase is closed."""
UNEVEN = 1e-3
"""A phase whose counts are less likely than this under its shares is pointed out."""

Write = Callable[[int, Sequence[int], str, str, str], str]
"""Returns what is published of a phase: its number, shares, seed, time, and the hash of the text
that was published before."""


class Cohort(Protocol):
    """Who was met in a phase, and what came of it, counted somewhere."""

    def came(self, phase: JSON, until: str) -> int:
        """Return how many were met until then: public."""

    def counted(self, phase: JSON) -> Sequence[Counted]:
        """Count a phase that is over: the outcome, then each metric."""


@dataclass(frozen=True)
class Step:
    """What was done."""

    released: tuple[int, ...]
    """Phases that were counted and released."""
    opened: int | None
    """The phase that was opened."""
    waits: datetime | None
    """When there is something to do again; None once the experiment is over."""
    warnings: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Say it."""
        parts = []
        if self.released:
            parts.append(f"Released phase {', '.join(map(str, self.released))}.")
        if self.opened is not None:
            parts.append(f"Opened phase {self.opened} and published its shares.")
        if not parts:
            parts.append("Nothing to do yet." if self.waits else "The experiment is over.")
        if self.waits is not None:
            parts.append(f"Next at {written(self.waits)}.")
        return " ".join([*parts, *self.warnings])


def new_policy(course: Course) -> Policy:
    """Make what plans phases, releases them and learns."""
    policy = PrivateBandit(
        course.arms,
        slot_for(course.epsilon, 0.0, course.per_person or 1).epsilon,
        course.rounds,
        "phased",
        loss_range=course.outcome_range,
        clip=True,
        control=course.control,
        least_share=course.least_share,
        metrics=course.metrics,
        metrics_share=course.metrics_share,
        guardrails=course.guardrails,
    )
    policy.state.rewarded = course.reward
    return promising(course, policy)


def promising(course: Course, policy: Policy) -> Policy:
    """Let a policy promise what the course does: to persons, whose exposures are public."""
    policy.exposed = Exposed(course.epsilon, course.per_person)
    return policy


def begun(salt: str) -> JSON:
    """Return the state of an experiment none of whose phases is open yet."""
    return {"salt": salt, "phases": [], "published": ""}


def go_on(
    course: Course,
    state: JSON,
    policy: Policy,
    moment: datetime,
    cohort: Cohort,
    write: Write,
    *,
    stopped: bool = False,
) -> Step:
    """Do what is due, and change state and policy by it."""
    released, opened, warnings = [], None, []
    for one in state["phases"]:
        closed = one["until"] is not None and one["released"] is None
        if closed and moment >= _after(one["until"], course.window):
            warnings += _release(course, policy, one, cohort.counted(one), moment)
            released.append(int(one["number"]))
    last: JSON | None = state["phases"][-1] if state["phases"] else None
    if (
        last is not None
        and last["until"] is None
        and (stopped or _is_over(course, policy, last, moment, cohort))
    ):
        last["until"] = written(moment)
    over = stopped or policy.state.rounds >= (course.rounds or math.inf)
    over = over or (course.until is not None and moment >= moment_of(course.until))
    if (last is None or last["until"] is not None) and not over:
        opened = _open(course, state, policy, moment, write)
    return Step(tuple(released), opened, due(course, state, moment), tuple(warnings))


def due(
    course: Course, state: Mapping[str, list[JSON]], now: datetime | None = None
) -> datetime | None:
    """Return when there is something to do; of a phase that goes on: when to look again."""
    times = []
    for one in state["phases"]:
        if one["until"] is None:
            time = _after(one["since"], course.every)
            while now is not None and time <= now:
                time += duration(course.every)
            times.append(time)
        elif one["released"] is None:
            times.append(_after(one["until"], course.window))
    return min(times, default=None)


def division(phases: Sequence[JSON]) -> Check:
    """Say whether people were divided as published, in all phases together."""
    seen = [one["released"] for one in phases if one["released"]]
    chance = min([1.0, *(len(seen) * one["sample_ratio"] for one in seen)])
    fair = chance > ALARM
    said = "are divided as published" if fair else "are not divided as published"
    rest = "" if fair else ": are exposures lost, or shares cached for long?"
    return Check("division", fair, f"In all phases people {said} (p = {chance:.2g}){rest}.")


def _is_over(course: Course, policy: Policy, one: JSON, moment: datetime, cohort: Cohort) -> bool:
    """Whether a phase is to be closed: it has its time, and about as many people as planned.

    How many were exposed is public. With fewer than planned it goes on, for some time: noise is as
    large for a short phase as for a long one.
    """
    since, each = moment_of(one["since"]), duration(course.every)
    if moment < since + each:
        return False
    if course.until is not None and moment >= moment_of(course.until):
        return True
    if moment >= since + LONGEST * each:
        return True
    left = (course.rounds or math.inf) - policy.state.rounds
    enough = min(policy.state.open[int(one["batch"])].size, left)
    return cohort.came(one, written(moment)) >= ENOUGH * enough


def _open(course: Course, state: JSON, policy: Policy, moment: datetime, write: Write) -> int:
    """Plan a phase, and write down what is to be published."""
    number, batch = len(state["phases"]), policy.plan_phase()
    assert batch.phase is not None, "the policy plays phases"
    parts, since = parts_of(batch.phase.planned), written(moment)
    seed = seed_of(course, state["salt"], number)
    previous = digest(state["published"]) if state["published"] else ""
    state["published"] = write(number, parts, seed, since, previous)
    state["phases"].append(
        {
            "number": number,
            "batch": batch.number,
            "since": since,
            "until": None,
            "parts": parts,
            "released": None,
        }
    )
    return number


def _column(counted: Counted, column: Column, arm: int) -> int:
    """Return what a column of an arm adds up to; squares are those of losses and of rewards."""
    table = counted.squares if column.square else counted.sums
    assert table is not None, "squares are counted with every outcome"
    return int(table[arm, 0])


def _release(
    course: Course, policy: Policy, one: JSON, found: Sequence[Counted], moment: datetime
) -> list[str]:
    """Release what was counted of a phase, once, and note what may be seen."""
    main, sums = found[0], {}
    for arm, count in enumerate(main.counts[:, 0].tolist()):
        if count:
            losses = int(main.sums[arm, 0])
            beside = (_column(found[one.value], one, arm) for one in policy.columns)
            sums[arm] = count, count * UNITS - losses if course.reward else losses, *beside
    seen: dict[int, float] = {}

    def note(batch: Batch, published: Released | None) -> None:
        assert batch.phase is not None, "the policy plays phases"
        if published is not None:
            seen.update(zip(batch.phase.counts, np.atleast_1d(published).tolist(), strict=True))
        if before is not None:
            before(batch, published)

    before, policy.on_release = policy.on_release, note
    policy.observe_phase(int(one["batch"]), sums)
    policy.on_release = before
    low, high = course.outcome_range
    means = {
        course.arms[arm]: low + (high - low) * (1.0 - loss if course.reward else loss)
        for arm, loss in seen.items()
    }
    counts = dict(zip(course.arms, main.counts[:, 0].tolist(), strict=True))
    p = ratio_chance(list(counts.values()), [part / PARTS for part in one["parts"]])
    one["released"] = {"at": written(moment), "counts": counts, "means": means, "sample_ratio": p}
    if p >= UNEVEN:
        return []
    return [
        f"Phase {one['number']}: its counts do not fit its shares (p = {p:.1g}): are exposures "
        f"lost, or shares cached for long?"
    ]


def _after(moment: str, length: str) -> datetime:
    return moment_of(moment) + duration(length)

"""One experiment whose decisions are made elsewhere, by published shares, at work in memory.

Nothing is kept of a decision. Who met an arm, and what came of it, is reported in bulk: the arm
follows from the salt of the phase. Reports are kept as rows of one length, sealed, until their
phase is counted: then they are added up, released once and erased, in the transaction that opens
what comes next. What is due when is said in ``bandanna.phases.course``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, Never, cast

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import to_units
from bandanna._core.types import JSON, ArmName, BandannaError, InputError
from bandanna.counted import Counted
from bandanna.phases.course import begun, go_on, new_policy, promising
from bandanna.phases.definition import Course, moment_of, written
from bandanna.phases.payloads import PARTS, assigned, digest, seed_of, signed
from bandanna.policy.policy import Policy
from bandanna.store.contract import GoneError
from bandanna.store.open_batches import batch_row, without_batches
from bandanna.store.rows import COUNTED, Changes, Event, Experiment, SealedBlock, Snapshot
from bandanna.store.sql_transaction import SqlTransaction
from bandanna.store.unit_of_work import NewFeedback, UnitOfWork
from bandanna.warehouse.grid import nearest_to_zero

Sign = Callable[[bytes], bytes]
Rows = NDArray[np.void]

FIXED_ARMS = "arms of an experiment that decides at the edge cannot be changed."
DECIDES_ELSEWHERE = (
    "this experiment decides at the edge: assign units by what GET "
    "/v1/experiments/{experiment}/phase returns, and report them to its /feedback."
)
SKEW_SECONDS = 60.0
"""How far a reporter's clock may be ahead."""
NO_VALUE = -1
"""In place of grid units: nothing was reported."""


# --- what an experiment is --------------------------------------------------------------


def course_of(identity: str, settings: JSON) -> Course:
    """Return the course of an experiment from its settings."""
    return Course(
        name=identity,
        arms=tuple(str(arm) for arm in settings["arms"]),
        epsilon=settings["epsilon"],
        every=f"{settings['phase_seconds']:.6f}s",
        window=f"{settings['deadline_seconds']:.6f}s",
        outcome="value",
        outcome_range=tuple(settings.get("loss_range") or (0.0, 1.0)),
        **{name: settings[name] for name in OPTIONS if settings.get(name) is not None},
    )


OPTIONS = (
    *("rounds", "reward", "per_person", "control", "least_share"),
    *("metrics", "metrics_share", "guardrails"),
)
"""What such an experiment may have besides its arms, epsilon, range and times."""


def head_of(course: Course, salt: str) -> JSON:
    """Return what is kept of an experiment that begins: its policy, and no phase yet."""
    return new_policy(course).to_dict(private=False) | {"course": begun(salt)}


def without_phases(experiment: Experiment) -> Policy:
    """Return the policy without its open phases: for those who read."""
    course = course_of(experiment.id, experiment.settings)
    return promising(course, cast(Policy, without_batches(_plain(experiment))))


def _plain(experiment: Experiment) -> Experiment:
    """Return an experiment whose head is that of its policy alone."""
    head = {name: value for name, value in experiment.head.items() if name != "course"}
    return replace(experiment, head=head)


# --- reports ----------------------------------------------------------------------------


class UnitReport(NamedTuple):
    """A unit met its arm, and perhaps what came of it."""

    unit: str
    """Who met it."""
    value: float | None
    """What came of it, if that is known."""
    time: datetime | None
    """When it met its arm; now, if left out."""
    experiment: str | None
    """The key of the phase, as shares have it, in place of the time."""
    arm: ArmName | None
    """Which one, to be compared."""
    metrics: Mapping[str, float] | None
    """Further outcomes."""


class OpenPhase(NamedTuple):
    """A phase that has not been counted."""

    batch: int
    key: str
    since: float
    until: float | None
    """None while its shares are published."""
    closes: float | None
    """When it is counted, if that is known."""
    seed: str
    parts: tuple[int, ...]


def row_type(course: Course) -> np.dtype[np.void]:
    """Return how a report is kept: a hash of the unit, its arm, and values in grid units."""
    return np.dtype([("unit", "<u8"), ("arm", "u1"), ("values", "<i4", (len(course.outcomes),))])


class Reader:
    """Turns reports into rows, given the phases that are open.

    Parameters
    ----------
    course
        Of the experiment.
    phases
        Those that are open.
    hashed
        Hashes a unit, with a key that the database does not hold.
    """

    def __init__(
        self, course: Course, phases: Sequence[OpenPhase], hashed: Callable[[str], int]
    ) -> None:
        self._course, self._phases, self._hashed = course, phases, hashed
        self._by_key = {phase.key: phase for phase in phases}
        self._rows: dict[int, list[tuple[int, int, tuple[int, ...]]]] = {}

    def read(self, report: UnitReport, now: float) -> None:
        """Take a report; refused without repeating its value."""
        phase = self._phase_of(report, now)
        arm = assigned(phase.seed, report.unit, phase.parts)
        if report.arm is not None and str(report.arm) != self._course.arms[arm]:
            raise InputError(
                f"arm: by the shares of {phase.key} the unit meets {self._course.arms[arm]!r}. "
                f"If it was assigned by others, give their key as experiment."
            )
        row = self._hashed(report.unit), arm, self._values(report)
        self._rows.setdefault(phase.batch, []).append(row)

    def blocks(self) -> list[SealedBlock]:
        """Return what was read, packed."""
        kind = row_type(self._course)
        return [
            SealedBlock(batch, np.array(rows, kind).tobytes()) for batch, rows in self._rows.items()
        ]

    def _phase_of(self, report: UnitReport, now: float) -> OpenPhase:
        if report.experiment is not None:
            phase = self._by_key.get(report.experiment)
            if phase is None:
                raise GoneError(
                    f"experiment: {report.experiment[:120]!r} is no phase that still counts."
                )
        else:
            at = now if report.time is None else report.time.timestamp()
            if at > now + SKEW_SECONDS:
                raise InputError("time: it is in the future; give the time the unit met its arm.")
            within = (
                one
                for one in reversed(self._phases)
                if one.since <= at and (one.until is None or at < one.until)
            )
            phase = next(within, None)
            if phase is None and at > now:
                phase = next((one for one in self._phases if one.until is None), None)
            if phase is None:
                raise GoneError("time: the phase of then was counted, or there was none.")
        if phase.closes is not None and now >= phase.closes:
            raise GoneError(f"the window of {phase.key} is over; nothing more is counted.")
        return phase

    def _values(self, report: UnitReport) -> tuple[int, ...]:
        main, *others = self._course.outcomes.items()
        metrics = report.metrics or {}
        unknown = sorted(set(metrics) - {name for name, _ in others})
        if unknown:
            raise InputError(f"metrics: there is no {unknown[0]!r}.")
        given = [report.value, *(metrics.get(name) for name, _ in others)]
        return tuple(
            NO_VALUE if value is None else to_units(name, value, ends, clip=True)
            for (name, ends), value in zip((main, *others), given, strict=True)
        )


class InBlocks:
    """Who was met in a phase, and what came of it, as reported: the cohort of ``go_on``."""

    def __init__(self, course: Course, blocks: Callable[[int], Iterable[bytes]]) -> None:
        self._course, self._blocks = course, blocks
        self.counted_now: list[SealedBlock] = []
        """Who has been counted, where that is limited."""

    def came(self, phase: JSON, _: str) -> int:
        """Return how many were reported."""
        return int(np.unique(self._read(phase)["unit"]).size)

    def counted(self, phase: JSON) -> list[Counted]:
        """Count a phase that is over: each unit once, by the first value that was reported."""
        course, rows = self._course, self._read(phase)
        units, first = np.unique(rows["unit"], return_index=True)
        counts = np.ones(units.size, dtype=bool)
        if course.per_person is not None:
            counts = self._with_a_slot(units, course.per_person)
            self.counted_now.append(SealedBlock(COUNTED, units[counts].astype("<u8").tobytes()))
        arms = rows["arm"][first].astype(np.int64)[counts]
        counted = []
        for place, (name, ends) in enumerate(course.outcomes.items()):
            values = np.full(units.size, to_units(name, nearest_to_zero(ends), ends), np.int64)
            given = rows["values"][:, place]
            known, at = np.unique(rows["unit"][given != NO_VALUE], return_index=True)
            values[np.searchsorted(units, known)] = given[given != NO_VALUE][at]
            counted.append(
                Counted.of_rows(
                    course.arms,
                    arms,
                    values[counts],
                    outcome_range=ends,
                    outcome=name,
                    clip=True,
                    persons=True,
                )
            )
        return counted

    def _with_a_slot(self, units: NDArray[np.uint64], slots: int) -> NDArray[np.bool_]:
        """Say who has been counted in fewer phases than one person may be."""
        earlier = [*self._blocks(COUNTED), *(block.content for block in self.counted_now)]
        had = np.frombuffer(b"".join(earlier), "<u8")
        known, times = np.unique(had, return_counts=True)
        return ~np.isin(units, known[times >= slots])

    def _read(self, phase: JSON) -> Rows:
        text = b"".join(self._blocks(int(phase["batch"])))
        return np.frombuffer(text, row_type(self._course))


# --- the unit of work -------------------------------------------------------------------


class EdgeUnit(UnitOfWork):
    """An experiment that decides at the edge."""

    policy: Policy

    def __init__(self, saved: Snapshot) -> None:
        self._course: JSON = saved.experiment.head["course"]
        super().__init__(saved._replace(experiment=_plain(saved.experiment)))
        self.course = course_of(self.experiment.id, self.experiment.settings)
        promising(self.course, self.policy)

    def begin(self, transaction: SqlTransaction, now: float) -> None:
        """Start to collect what one transaction changes."""
        super().begin(transaction, now)
        self._blocks: list[SealedBlock] = []
        self._planned: list[int] = []
        self._moved = False

    # --- what is asked of it --------------------------------------------------------------

    def go_on(self, sign: Sign) -> float | None:
        """Do what is due, and return when there is something to do again."""
        moment = datetime.fromtimestamp(self._now, UTC)
        cohort = InBlocks(self.course, self._read_blocks)
        write = partial(signed, self.course, sign=sign)
        before = [dict(one) for one in self._course["phases"]]
        stopped = self.experiment.stopped
        try:
            step = go_on(
                self.course, self._course, self.policy, moment, cohort, write, stopped=stopped
            )
        except BandannaError as error:  # what was changed in memory must not stay
            raise RuntimeError(f"a phase failed: {error}") from None
        self._blocks += cohort.counted_now
        self._moved |= self._course["phases"] != before
        if step.opened is not None:
            self._planned.append(int(self._course["phases"][-1]["batch"]))
        self.experiment.observed = self.policy.state.rounds
        return None if step.waits is None else step.waits.timestamp()

    def open_phases(self) -> tuple[OpenPhase, ...]:
        """Return the phases that still count."""
        window = self.experiment.settings["deadline_seconds"]
        phases = []
        for one in self._course["phases"]:
            if one["released"] is None:
                until = None if one["until"] is None else moment_of(one["until"]).timestamp()
                phases.append(
                    OpenPhase(
                        int(one["batch"]),
                        self.course.key_of(one["number"]),
                        moment_of(one["since"]).timestamp(),
                        until,
                        None if until is None else until + window,
                        seed_of(self.course, self._course["salt"], one["number"]),
                        tuple(one["parts"]),
                    )
                )
        return tuple(phases)

    def take(
        self, blocks: Sequence[SealedBlock], seen: Sequence[OpenPhase]
    ) -> tuple[OpenPhase, ...] | None:
        """Keep reports; if other phases are open than the reader has seen, return those instead."""
        here = self.open_phases()
        if here != tuple(seen):
            return here
        self._blocks += blocks
        return None

    def ship(self, arm: ArmName, sign: Sign) -> None:
        """Publish that everyone gets one arm, as shares of a phase that is never counted."""
        parts = [PARTS if one == str(arm) else 0 for one in self.course.arms]
        number, state = len(self._course["phases"]), self._course
        if state.get("shipped") == str(arm):
            return
        seed, since = (
            seed_of(self.course, state["salt"], number),
            datetime.fromtimestamp(self._now, UTC),
        )
        before = digest(state["published"]) if state["published"] else ""
        text = signed(self.course, number, parts, seed, written(since), before, sign=sign)
        state["published"], state["shipped"] = text, str(arm)
        self._moved = True

    def collect(self) -> Changes | None:
        """Return what has changed since ``begin``, or None if nothing has."""
        changes = super().collect()
        if changes is None and (self._blocks or self._moved):
            changes = Changes(counters=self._counters(), observed=self.experiment.observed)
        if changes is not None:
            opened = (self.policy.state.open[number] for number in self._planned)
            changes.batches = [batch_row(batch) for batch in opened]
            changes.blocks = self._blocks
            if self._moved:
                head = self.policy.to_dict(private=False)
                changes.head = head | {"counters": {}, "course": self._course}
        return changes

    # --- what others are asked ------------------------------------------------------------

    def decide(self, *_: object, **__: object) -> Never:
        """Refuse: decisions are made elsewhere."""
        raise InputError(DECIDES_ELSEWHERE)

    def observe(self, event: Event, given: NewFeedback) -> Never:
        """Refuse: nothing is kept of a decision."""
        raise InputError(DECIDES_ELSEWHERE)

    def add_arm(self, name: ArmName) -> list[ArmName]:
        """Refuse: a course has its arms."""
        raise InputError(FIXED_ARMS)

    def retire_arm(self, name: ArmName) -> list[ArmName]:
        """Refuse: a course has its arms."""
        raise InputError(FIXED_ARMS)

    def _read_blocks(self, batch: int) -> list[bytes]:
        """Return the blocks of a batch, those of this transaction last."""
        kept = self._transaction.blocks(self.experiment.number, batch)
        return [*kept, *(block.content for block in self._blocks if block.batch == batch)]

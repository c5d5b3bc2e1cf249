"""The one codec of a policy's state, for saved files and for the database; version 1.

``state_to_dict`` and ``load_state`` are the only way into plain values and back. The plain values
have four sections, so that a store can write each when it changes:

- ``counters``: small, and different after every round.
- ``learned``: different after a batch opens or is released; as large as the learner's state.
- ``people``: a keyed hash for each person, with the slots that person has had.
- ``open_batches``: raw feedback of batches that are not released yet. Private.

A policy's document (``Policy.to_dict``) has these four, the ``version``, the ``spec``, and the
parameters of its ``learner`` and ``release``. ``MIGRATIONS`` turns older versions into the next
one; newer ones are refused. A key that was added within a version has its default in ``DEFAULTS``.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bandanna._core import checks
from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.scale import Scale
from bandanna._core.types import JSON, StateFileError
from bandanna.learners.base import dump_arrays, load_arrays
from bandanna.policy.runner import draw_phase
from bandanna.policy.state import (
    NOT_LEARNED,
    WAITING,
    Batch,
    Found,
    Issuer,
    Phase,
    Retirement,
    Slot,
    State,
)
from bandanna.policy.transitions import add_up
from bandanna.privacy.columns import Columns
from bandanna.privacy.release import ArmTotals, Published, Release
from bandanna.spec import PeopleRule

VERSION = 1
"""Version of the format below. Raise it when older software would misread new files."""

MIGRATIONS: dict[int, Callable[[JSON], JSON]] = {}
"""From a version to the next one: functions of the whole document."""

DEFAULTS: dict[str, JSON] = {"learned": {"found": None}}
"""What keys mean that documents of this version may lack, by section."""

MOST = 2**62
"""No policy decides or releases so often."""

CERTAIN = 1.0 + 1e-9
"""A probability that rounding left just above 1 is one."""


def check_version(document: JSON, named: str) -> int:
    """Return a document's version; refuse one that is newer than this software."""
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StateFileError(f"{named} has no version of its format that is known here.")
    if version > VERSION:
        raise StateFileError(
            f"{named} has version {version} of the format, written by a newer Bandanna; this one "
            f"reads versions up to {VERSION}. Upgrade Bandanna to go on with it."
        )
    return version


def migrated(document: JSON, named: str = "it") -> JSON:
    """Return a document of any version known here as one of this version."""
    for older in range(check_version(document, named), VERSION):
        document = MIGRATIONS[older](document)
    filled = {name: known | document[name] for name, known in DEFAULTS.items()}
    return document | filled | {"version": VERSION}


def state_to_dict(state: State, *, private: bool = True) -> JSON:
    """Return a state as plain values, in sections.

    Without what is ``private`` nothing about anyone is left: no feedback, no person, no key.
    """
    people = state.people
    return {
        "counters": counters_to_dict(state),
        "learned": learned_to_dict(state),
        "people": None if people is None else people.to_dict(persons=private),
        "open_batches": [*map(batch_to_dict, state.open.values())] if private else [],
    }


COUNTED = (
    *("rounds", "batches", "released", "outstanding", "left_out", "control_rounds", "resumed"),
)
"""Whole numbers of a state."""


def counters_to_dict(state: State) -> JSON:
    """Return what changes with every round: small, and public."""
    return {
        **{name: getattr(state, name) for name in COUNTED},
        "restricted": state.restricted,
        "mixed": state.mixed,
        "missed": state.missed_before,
        "rewarded": state.rewarded,
        "issuers": [
            [who, batch, [*map(list, begun.items())]] for who, batch, begun in state.issuers
        ],
        "filling": [batch.number for batch in state.filling.values()],
        "stream": [int(word) for word in state.stream],
    }


def learned_to_dict(state: State) -> JSON:
    """Return what changes when a batch opens or is released, or arms change: public."""
    learned = state.learned
    arrays = dump_arrays(learned) if isinstance(learned, tuple) else learned.state_dict()
    return {
        "learner": arrays,
        "totals": [[choice, *totals] for choice, totals in state.totals.items()],
        "phases": [[list(entry) for entry in phase] for phase in state.phases],
        "played": [[choice, count] for choice, count in state.played.items()],
        "retired": sorted(state.retired),
        "changed": state.changed,
        "first_arms": state.first_arms,
        "metrics": [
            [arm, [list(one) for one in totals]] for arm, totals in state.column_totals.items()
        ],
        "metric_phases": [
            [[arm, count, list(means)] for arm, count, means in phase]
            for phase in state.column_phases
        ],
        "retirements": [list(one) for one in state.retirements],
        "found": None if state.found is None else [list(state.found.scale), *state.found[1:]],
    }


def batch_to_dict(batch: Batch) -> JSON:
    """Return an open batch, raw feedback included: private.

    A round that an interrupt kept from being decided is left out.
    """
    decided = len(batch.losses)
    saved: JSON = {
        "number": batch.number,
        "size": batch.size,
        "choice": batch.choice,
        "importance": batch.importance,
        "credited": batch.credited,
        "chance": batch.chance,
        "among": None if batch.among is None else list(batch.among),
        "numbers": list(batch.numbers[:decided]),
        "arms": list(batch.arms[:decided]),
        "losses": [None if loss == WAITING else loss for loss in batch.losses],
        "waiting": [
            [position, None if ticket is None else ticket.to_dict()]
            for position, ticket in batch.waiting.items()
            if position < decided
        ],
        "given_up": sorted(batch.given_up),
        "tally": batch.tally.to_dict(),
    }
    if batch.raw:
        saved["raw"] = True
    if batch.phase is not None:
        saved["phase"] = phase_to_dict(batch.phase)
    if batch.metrics:
        saved["metrics"] = [[k, list(units)] for k, units in batch.metrics.items() if k < decided]
    for name, known in (("before", batch.before), ("sent", batch.sent)):
        if known:
            saved[name] = [[at, known[at]] for at in sorted(known) if at < decided]
    if batch.slots is None:
        return saved
    return saved | {
        "owners": [f"{slot.person:016x}" for slot in batch.owners[:decided]],
        "slots": [
            [f"{person:016x}", slot.counts, slot.rounds, slot.counted]
            for person, slot in batch.slots.items()
        ],
        "open_slots": [f"{person:016x}" for person in batch.open_slots if person in batch.slots],
        "unused": batch.unused,
    }


def phase_to_dict(phase: Phase) -> JSON:
    """Return how a phase was planned, and from where its order was drawn: public."""
    return {"planned": [int(count) for count in phase.planned], "words": list(phase.words)}


class Limits(NamedTuple):
    """What a saved state must fit."""

    arms: int
    choices: int
    """Arms, or experts where they are followed."""
    people: PeopleRule | None
    release: Release
    as_ticket: Callable[[JSON], Ticket]
    """Reads what crediting a round needs."""
    columns: Columns | None = None


def load_state(state: State, saved: JSON, limits: Limits, *, latest: bool = False) -> None:
    """Fill a fresh state with what ``state_to_dict`` gave, checking every value anew.

    What is decided from here on has a new identity: the rounds that follow may have been given out
    before, after the state was saved, and their feedback must not be credited here. Only who
    records every decision before giving it out knows that this is the ``latest`` state, and keeps
    the identity.
    """
    counters, learned = saved["counters"], saved["learned"]
    _load_learned(state, learned, limits)
    for name in COUNTED:
        setattr(state, name, checks.whole(name, counters[name], at_least=0))
    state.missed_before = checks.whole("missed", counters["missed"], at_least=0)
    state.mixed, state.rewarded = counters["mixed"] is True, counters["rewarded"]
    words = np.array(counters["stream"], dtype=np.uint64)
    if words.shape != state.stream.shape or not words.any():
        raise ValueError("its stream is impossible")
    state.stream[:] = words
    if state.people is not None:
        assert limits.people is not None, "slots belong to persons"
        state.people.load(saved["people"], limits.people.per_person)
    _load_batches(state, saved["open_batches"], limits)
    state.restricted = counters["restricted"] is True or any(
        batch.among is not None for batch in state.open.values()
    )
    filling = [state.open[int(number)] for number in counters["filling"]]
    state.filling = {batch.among: batch for batch in filling}
    if len(state.filling) < len(filling):
        raise ValueError("two batches fill with the same rounds")
    if not (0 <= state.released <= state.batches < MOST and 0 <= state.rounds < MOST):
        raise ValueError("its counts do not fit together")
    if sum(state.plays().values()) > state.rounds:
        raise ValueError("its shares do not fit together")
    _load_issuers(state, counters["issuers"], latest=latest)


def _load_learned(state: State, saved: JSON, limits: Limits) -> None:
    if isinstance(state.learned, tuple):
        load_arrays(state.learned, saved["learner"])
    else:
        state.learned.load_state(saved["learner"])
    of_losses = _totals_of(([arm, [one]] for arm, *one in saved["totals"]), limits.choices, 1)
    state.totals = {arm: totals for arm, (totals,) in of_losses.items()}
    phases = ([[arm, count, [mean]] for arm, count, mean in phase] for phase in saved["phases"])
    state.phases = [
        [(one.arm, one.rounds, one.means[0]) for one in phase]
        for phase in _phases_of(phases, limits.choices, 1)
    ]
    state.played = {int(choice): int(count) for choice, count in saved["played"]}
    if not all(0 <= arm < limits.choices and count > 0 for arm, count in state.played.items()):
        raise ValueError("its shares do not fit together")
    state.changed = saved["changed"] is True or bool(state.retired)
    if saved["found"] is not None:
        _load_found(state, *saved["found"])
    state.first_arms = checks.whole("first_arms", saved["first_arms"], 0, limits.choices)
    _load_metrics(state, saved, limits)


def _totals_of(saved: Iterable[Any], arms: int, columns: int) -> dict[int, tuple[ArmTotals, ...]]:
    """Read what was released of arms in all, column by column."""
    read = {
        int(arm): tuple(ArmTotals(int(batches), *map(float, sums)) for batches, *sums in totals)
        for arm, totals in saved
    }
    for arm, totals in read.items():
        good = all(
            one.rounds >= one.batches >= 1 and all(map(math.isfinite, one)) for one in totals
        )
        if not 0 <= arm < arms or len(totals) != columns or not good:
            raise ValueError(f"what was released of {arm} is impossible")
    return read


def _phases_of(saved: Iterable[Any], arms: int, columns: int) -> list[Sequence[Published]]:
    """Read the same by phase."""
    read: list[Sequence[Published]] = [
        [Published(int(arm), int(rounds), tuple(map(float, means))) for arm, rounds, means in phase]
        for phase in saved
    ]
    for arm, rounds, means in itertools.chain.from_iterable(read):
        good = len(means) == columns and all(map(math.isfinite, means))
        if not 0 <= arm < arms or rounds < 1 or not good:
            raise ValueError(f"what was released of {arm} in a phase is impossible")
    return read


def _load_found(
    state: State,
    scale: Iterable[float],
    rounds: int,
    cut: float | None,
    noise: float,
    related: float | None,
    kept: object,
) -> None:
    low, high, slope = map(float, scale)
    shares = [
        None if one is None else checks.within("share", one, 0.0, 1.0) for one in (cut, related)
    ]
    counted = Scale(*checks.loss_range((low, high)), checks.slope(slope))
    state.scale = counted
    state.found = Found(counted, int(rounds), shares[0], float(noise), shares[1], kept is True)


def _load_metrics(state: State, saved: JSON, limits: Limits) -> None:
    """Read what was released beside losses, and which arms guardrails retired."""
    columns = 0 if limits.columns is None else len(limits.columns)
    names = {} if limits.columns is None else limits.columns.ranges
    state.column_totals = _totals_of(saved["metrics"], limits.arms, columns)
    state.column_phases = _phases_of(saved["metric_phases"], limits.arms, columns)
    for arm, metric, rounds, difference, least, evidence, assumption in saved["retirements"]:
        if not 0 <= arm < limits.arms or metric not in names:
            raise ValueError("a guardrail retired what is not there")
        numbers = float(difference), float(least), float(evidence)
        state.retirements.append(
            Retirement(int(arm), str(metric), int(rounds), *numbers, str(assumption))
        )


def _load_issuers(state: State, saved: Iterable[Any], *, latest: bool) -> None:
    state.issuers = [
        Issuer(str(who), int(batch), {int(number): int(at) for number, at in begun})
        for who, batch, begun in saved
    ]
    if latest:
        state.identity = state.issuers[-1].identity
        return
    joined = {number: len(batch.losses) for number, batch in state.open.items()}
    state.issuers.append(Issuer(state.identity, state.batches, joined))


def _load_batches(state: State, saved: Iterable[JSON], limits: Limits) -> None:
    for entry in saved:
        batch = batch_from_dict(entry, state.rounds, limits)
        for person in batch.slots or ():
            assert state.people is not None, "slots belong to persons"
            state.people.find_in(person, batch)
        if not 0 <= batch.number < state.batches or batch.number in state.open:
            raise ValueError(f"batch {batch.number} is one too many")
        state.open[batch.number] = batch


def batch_from_dict(saved: JSON, decided: int, limits: Limits) -> Batch:
    """Read what ``batch_to_dict`` gave, refusing impossible values.

    After an interrupt a batch may be without rounds, and a round given up but not yet counted.
    """
    number, size, choice = (int(saved[key]) for key in ("number", "size", "choice"))
    chance, among = saved["chance"], saved["among"]
    losses = [WAITING if loss is None else int(loss) for loss in saved["losses"]]
    batch = Batch(
        number,
        size,
        choice,
        float(saved["importance"]),
        int(saved["credited"]),
        None if chance is None else float(chance),
        limits.release.start_phase() if saved.get("phase") else limits.release.start(size),
        None if among is None else tuple(map(int, among)),
        numbers=array("q", (int(one) for one in saved["numbers"])),
        arms=array("l", (int(arm) for arm in saved["arms"])),
        losses=array("i", losses),
        given_up={int(position) for position in saved["given_up"]},
        raw=saved.get("raw") is True,
    )
    for position, ticket in saved["waiting"]:
        batch.waiting[int(position)] = None if ticket is None else limits.as_ticket(ticket)
    if limits.people is not None:
        _load_slots(batch, saved)
    _load_metrics_of(batch, saved.get("metrics", []), limits)
    if saved.get("phase"):
        _load_phase(batch, saved["phase"], limits.arms)
    counted = _load_sums(batch, saved, limits)
    batch.before = {int(at): float(known) for at, known in saved.get("before", [])}
    batch.sent = {int(at): int(units) for at, units in saved.get("sent", [])}
    positions = range(len(losses))
    good = (
        0 <= choice < limits.choices
        and 0 <= batch.credited < limits.choices
        and _draw_is_possible(batch, limits.choices)
        and len(batch.arms) == len(batch.numbers) == len(losses)
        and all(0 <= one < decided for one in batch.numbers)
        and all(0 <= arm < limits.arms for arm in batch.arms)
        and all(loss == WAITING or 0 <= loss <= UNITS for loss in losses)
        and len(counted) <= size
        and (batch.slots is not None or len(losses) <= size)
        and all(position in positions and losses[position] == WAITING for position in batch.waiting)
        and all(position in positions for position in batch.given_up)
        and all(map(math.isfinite, batch.before.values()))
        and all(position in positions for position in (*batch.before, *batch.sent))
        and all(0 <= units <= UNITS for units in batch.sent.values())
        and _importance_is_possible(batch)
    )
    if not good:
        raise ValueError(f"batch {number} holds impossible values")
    return batch


def _load_metrics_of(
    batch: Batch, saved: Iterable[tuple[int, Sequence[int]]], limits: Limits
) -> None:
    """Read the metrics of a batch's rounds; those that lack them had none."""
    expected = 0 if limits.columns is None else limits.columns.values - 1
    for at, given in saved:
        position, units = int(at), tuple(map(int, given))
        observed = 0 <= position < len(batch.losses) and batch.losses[position] != WAITING
        possible = len(units) == expected > 0 and all(0 <= one <= UNITS for one in units)
        if not observed or not possible or position in batch.given_up:
            raise ValueError(f"batch {batch.number} holds impossible metrics")
        batch.metrics[position] = units


def _load_sums(batch: Batch, saved: JSON, limits: Limits) -> list[int]:
    """Go on with sums as they were saved, or add them up again; returns the losses in them.

    Sums of losses follow from rounds; those of contexts with tickets, which stores keep.
    """
    sums, counted = saved["tally"], batch.counted()
    losses = [units for _, units in counted]
    if batch.phase is None:
        batch.tally = limits.release.resume(sums, losses if sums else [], batch.size)
    if limits.columns is not None:
        batch.tally.also(limits.columns)
    tickets = {int(at): limits.as_ticket(ticket) for at, ticket in saved.get("counted", [])}
    for rounds, units in counted:
        ticket = tickets.get(rounds[0])
        if ticket is not None or not sums:
            add_up(batch, rounds, units, ticket)
    return losses


def _load_phase(batch: Batch, saved: JSON, arms: int) -> None:
    """Draw the order of a phase again, as it was drawn, and play what was played."""
    planned = np.zeros(arms)
    counts = [checks.whole("planned", count, at_least=0) for count in saved["planned"]]
    words = np.array(saved["words"], dtype=np.uint64)
    if len(counts) > arms or sum(counts) != batch.size or words.shape != (4,) or not words.any():
        raise ValueError(f"phase {batch.number} was planned in an impossible way")
    planned[: len(counts)] = counts
    batch.phase = draw_phase(planned, words)
    starts = batch.arms if batch.slots is None else map(batch.arm_of, batch.slots.values())
    for arm in starts:
        if arm is not None:
            batch.phase.replay(arm)


def _importance_is_possible(batch: Batch) -> bool:
    if batch.importance == NOT_LEARNED:
        return batch.chance is None
    return (0.0 if batch.chance is None else CERTAIN - 2e-9) <= batch.importance < math.inf


def _draw_is_possible(batch: Batch, choices: int) -> bool:
    among, chance = batch.among, batch.chance
    possible = chance is None or 0.0 < chance <= CERTAIN
    if among is None:
        return possible and batch.credited == batch.choice
    in_order = sorted({*among}) == [*among] and all(0 <= arm < choices for arm in among)
    return possible and in_order and batch.choice in among


def _load_slots(batch: Batch, saved: JSON) -> None:
    batch.slots = {}
    for name, counts, rounds, counted in saved["slots"]:
        slot = Slot(int(name, 16), counts is True, [int(position) for position in rounds])
        slot.counted = None if counted is None else int(counted)
        batch.slots[slot.person] = slot
    batch.owners = [batch.slots[int(name, 16)] for name in saved["owners"]]
    batch.unused = int(saved["unused"])
    opened = [int(name, 16) for name in saved["open_slots"]]
    batch.open_slots = {person: batch.slots[person] for person in opened}
    good = (
        len(batch.owners) == len(saved["losses"])
        and len(batch.slots) == len(saved["slots"]) <= batch.size
        and all(slot.counted is None for slot in batch.open_slots.values())
        and all(0 <= units <= UNITS for _, units in batch.counted())
        and 0 <= batch.unused <= len(batch.owners)
        and all(_owns(batch, slot) for slot in batch.slots.values())
    )
    if not good:
        raise ValueError(f"batch {batch.number} holds impossible slots")


def _owns(batch: Batch, slot: Slot) -> bool:
    in_order = slot.rounds == sorted(set(slot.rounds)) and min(slot.rounds, default=0) >= 0
    return in_order and all(batch.owners[position] is slot for position in slot.rounds)

"""How a batch ends: it is taken out of reach, erased, released once, and noted in what was told.

Every line is ordered so that an interrupt brings no loss to a second release and leaves none
without its noise; ``tests/policy/test_interrupts.py`` stops it everywhere.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from bandanna._core.grid import UNITS
from bandanna._core.types import without_frames
from bandanna.policy.first_phase import Value
from bandanna.policy.state import MOST_IN_PHASES, Batch, Phase, State, Told
from bandanna.policy.transitions import Chooser, Parts, metrics_of
from bandanna.privacy.release import ArmTotals, Published, Released, ReleasedEpoch
from bandanna.privacy.sums import SumRelease


def close(parts: Parts[Chooser], state: State, batch: Batch) -> Released | None:
    """Take a full batch out of reach and only then release it; None if nothing counts in it.

    The batch is gone before it is released: whatever fails, here or later, cannot bring the same
    losses to a second release. If the release fails, nothing is learned from it, and the error does
    not carry the sum along in its traceback.
    """
    state.closed.add(batch.number, batch.as_sent(), batch.given_up, batch.metrics)
    if state.filling.get(batch.among) is batch:
        del state.filling[batch.among]
    state.missed_before += batch.missed
    batch.used, plays = batch.count_used(), batch.plays()
    if parts.default is not None:
        batch.lost = batch.without_feedback()
        state.left_out += sum(batch.lost.values())
    elif batch.slots is None:
        batch.used -= len(batch.given_up)
    del state.open[batch.number]
    for arm, decided in plays.items():
        state.played[arm] = state.played.get(arm, 0) + decided
    raw = _raw_values(batch)
    _erase(state, batch)
    state.changes += 1
    if batch.used == 0 or not _scaled_or_found(parts, state, batch, raw):
        return None
    state.released += 1
    phase = batch.phase
    if phase is None:
        batch.tally.fill(batch.size - batch.used)
    else:  # every arm's sum counts what it has: nothing is missing
        phase.counts = batch.tally.counts
    try:
        released = batch.tally.publish()
    except BaseException as error:
        raise without_frames(error) from None
    batch.told = _told_by(parts, batch, released)
    for one in batch.told:
        known = state.totals.get(one.arm, ArmTotals())
        state.totals[one.arm] = known.and_also(one.mean, one.losses, one.offset)
    if phase is not None and (len(phase.planned) <= MOST_IN_PHASES or state.phases):
        state.phases.append([(one.arm, one.losses, one.mean) for one in batch.told])
    batch.beside = batch.tally.beside
    if batch.beside:
        _note_columns(state, phase, batch.beside)
    return released


def _raw_values(batch: Batch) -> list[Value]:
    """Return what came of the rounds, or slots, of a batch that was not counted as it came."""
    counted = batch.counted() if batch.raw else []
    return [
        Value(
            batch.arms[rounds[0]],
            units,
            metrics_of(batch, rounds),
            batch.before.get(rounds[0], 0.0),
        )
        for rounds, units in counted
    ]


def _scaled_or_found(
    parts: Parts[Chooser], state: State, batch: Batch, values: list[Value]
) -> bool:
    """Count what a batch kept as it was sent; False if it is used otherwise, or not at all.

    However it ends, nothing is left of the values: not in a traceback either.
    """
    try:
        return not batch.raw or _use_values(parts, state, batch, values)
    except BaseException as error:
        raise without_frames(error) from None
    finally:
        values.clear()


def _use_values(parts: Parts[Chooser], state: State, batch: Batch, values: list[Value]) -> bool:
    """Find how to count with what a batch kept, or count it; False if nothing is to be released.

    The first phase finds how to count; of phases that close before it nothing is used. If it is
    gone without having found anything, as an interrupt may leave it, the next one finds it.
    """
    if state.scale is None:
        if FIRST not in state.open and parts.first is not None:
            found = parts.first.find(values, reward=bool(state.rewarded))
            state.scale, state.found = found.scale, found
            state.released += 1
        return False
    for arm, units, metrics, before in values:
        counted = units
        if metrics is not None:
            how = parts.sent_range
            counted = state.scale.units(units, before, how, reward=bool(state.rewarded))
        batch.tally.add(counted, None, arm, metrics)
    return True


FIRST = 0
"""The number of the first batch."""


def _told_by(parts: Parts[Chooser], batch: Batch, released: Released | None) -> list[Told]:
    """Return what a closed batch has told of arms; of those without feedback, nothing.

    How many of its losses are the default loss is public, and so is that. What is released is a
    sum with noise, so what they add to it is subtracted exactly. A bit keeps it.
    """
    release = parts.release
    if released is None or not isinstance(release, SumRelease):
        return []
    assert not isinstance(released, ReleasedEpoch), "an epoch has sums of features"
    if isinstance(released, float) and batch.used == batch.size and not batch.lost:
        return [Told(batch.choice, batch.size, released)]  # as below says, in less time
    phase, default = batch.phase, (parts.default or 0) / UNITS
    if isinstance(released, float):
        sums = [(batch.choice, batch.size, batch.used, released)]
    else:
        assert phase is not None, "a sum for each arm comes from a phase"
        pairs = zip(phase.counts.items(), released, strict=True)
        sums = [(arm, count, count, float(value)) for (arm, count), value in pairs]
    told = []
    for arm, planned, used, value in sums:
        lost = batch.lost.get(arm, 0)
        if used > lost:
            mean, offset = rescaled(value, planned, used - lost), lost * (default - MIDDLE)
            if release.adds_up:
                mean, offset = mean - offset / (used - lost), 0.0
            told.append(Told(arm, used - lost, mean, offset))
    return told


def _note_columns(state: State, phase: Phase | None, beside: Sequence[Published]) -> None:
    """Note what was released beside losses, by phase where there are phases."""
    for arm, count, means in beside:
        known = state.column_totals.get(arm) or (ArmTotals(),) * len(means)
        pairs = zip(known, means, strict=True)
        state.column_totals[arm] = tuple(totals.and_also(mean, count) for totals, mean in pairs)
    if phase is not None and (len(phase.planned) <= MOST_IN_PHASES or state.column_phases):
        state.column_phases.append(beside)


def _erase(state: State, batch: Batch) -> None:
    """Forget all feedback but what the tallies hold, and who gave it."""
    batch.losses, batch.metrics, batch.before, batch.sent = array("i"), {}, {}, {}
    if batch.slots is not None:
        assert state.people is not None, "slots belong to persons"
        state.people.forget(batch)
        batch.slots, batch.owners = {}, []


# --- batches with fewer slots than planned ----------------------------------------------------
#
# A batch of people's slots may close with fewer of them than planned, and slots beyond a person's
# cap count nothing. How many slots of a batch count is public: it follows from who came, never from
# what anyone said. So it may be used:
#
# - the slots that are missing count the middle of the loss range in the sum, which is the same for
#   every arm. The release is the one for a whole batch, with the same numbers and epsilon.
# - a learner of losses takes the value as it is: the mean loss of the whole batch, in which missing
#   slots lose the same whatever is played. Its regret is that of the slots that count.
# - where means are estimated, by answers and by learners that count rounds, the middle is taken
#   out again, and so is the default loss of what was given up: ``Batch.told``.
# - a batch in which nothing counts publishes nothing and teaches nothing.
#
# ``docs/theory/people.md`` has the proofs.

MIDDLE = 0.5
"""What a missing slot counts, on the scale from 0 to 1."""


def rescaled(value: float, planned: int, counted: int) -> float:
    """Return an unbiased value for the slots that count, given the value of the whole batch.

    Examples
    --------
    >>> rescaled(0.4, planned=10, counted=10), rescaled(0.4, planned=10, counted=5)
    (0.4, 0.30000000000000004)
    """
    if counted == planned:
        return value
    return MIDDLE + (planned / counted) * (value - MIDDLE)

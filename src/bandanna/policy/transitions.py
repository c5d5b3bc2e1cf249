"""How a policy's state changes: decide, observe, give up, finish; ``closing.py`` has the end.

Functions of the parts a policy is made of, its state, and an input. Locks, files and transactions
are around them. With the releases' tallies a state is the only keeper of losses. Every change is
ordered so that an interrupt at any line counts no loss twice, leaves no loss without its noise and
gives no identity out twice; ``tests/policy/test_interrupts.py`` stops it everywhere.

With a rule for people a batch holds slots, not rounds. Someone who comes back while their slot is
open meets the arm of its batch again, and all rounds of a slot count once, by their mean: one
person moves a batch's sum by at most one loss, however often they came. ``docs/theory/people.md``
has the proofs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Protocol, TypeVar, cast

from bandanna._core.advice import Advice, Ticket
from bandanna._core.types import ArmName, Decision, DecisionError, InputError
from bandanna.learners.steps import CHOSEN
from bandanna.policy.first_phase import FirstPhase
from bandanna.policy.state import (
    WAITING,
    Batch,
    Drawn,
    EligibleArms,
    People,
    Phase,
    Slot,
    State,
    Verdict,
)
from bandanna.privacy.columns import Columns
from bandanna.privacy.release import (
    Metrics,
    Release,
    Tally,
)
from bandanna.spec import PeopleRule


class Chooser(Protocol):
    """What chooses arms for rounds."""

    shares: bool
    """Whether rounds among some arms share a batch with all others."""

    def choose(
        self, choice: int, side: Advice | None, among: EligibleArms | None
    ) -> tuple[int, Ticket | None]:
        """Choose an arm by what the round comes with, and what its credit will need."""

    def chance(self, drawn: float | None, ticket: Ticket | None) -> float | None:
        """Return the probability of an arm just chosen, by its batch's draw or its own."""


class PhaseChooser(Chooser, Protocol):
    """What plans phases."""

    def draw_any(self, phase: Phase, among: EligibleArms | None) -> tuple[int, float]:
        """Draw an arm where none of the eligible ones is left."""


C_co = TypeVar("C_co", bound=Chooser, covariant=True)


@dataclass(slots=True, eq=False)
class Parts(Generic[C_co]):
    """What a policy is made of: none of it changes from round to round."""

    runner: C_co
    release: Release
    people: PeopleRule | None
    default: int | None
    """The default loss in grid units: for feedback that never came, or slots without any. None
    where nothing is counted for these."""
    columns: Columns | None = None
    """What is released beside losses, where anything is."""
    sent_range: tuple[float, float] = (0.0, 1.0)
    """The range in which outcomes are sent."""
    first: FirstPhase | None = None
    """What the first phase finds; None where it is a phase like all others."""


# --- deciding ---------------------------------------------------------------------------------


def decide(
    parts: Parts[Chooser],
    state: State,
    batch: Batch,
    arms: tuple[ArmName, ...],
    side: Advice | None = None,
    person: int | None = None,
    among: EligibleArms | None = None,
    before: float | None = None,
) -> Decision:
    """Add a round to a batch with room, and return what was decided.

    ``side`` is what the round comes with: experts' advice, or a context. In a phase the arm is
    drawn for the round, among the eligible arms. ``before`` is what was known of its person; of a
    slot's rounds the first one's counts, as later ones may show what the arm has done.
    """
    joins = True
    if batch.phase is None:
        arm, ticket = parts.runner.choose(batch.choice, side, among)
        chance = parts.runner.chance(batch.chance, ticket)
    else:
        ticket = None
        arm, chance, joins = _arm_in_phase(parts, batch, batch.phase, person, among)
    number = state.rounds
    state.rounds = number + 1  # used up before it is given out
    if before is not None:
        slot = None if person is None or batch.slots is None else batch.slots.get(person)
        first = None if slot is None or not slot.rounds else batch.before.get(slot.rounds[0])
        batch.before[len(batch.losses)] = before if first is None else first
    if batch.slots is None:
        position = _open_round(batch, number, arm, ticket)
    else:
        assert person is not None, "slots belong to persons"
        position = _open_round_of(parts, state, batch, number, arm, ticket, person, joins=joins)
    where = batch.numbers[position], batch.number, position
    return Decision(arms[arm], arm, *where, state.identity, chance)


def batch_with_room(state: State, among: EligibleArms | None = None) -> Batch | None:
    """Return the batch that has room for a round among these arms, if there is one.

    Which batch a round is in depends on the arms that are eligible, never on what was drawn: so
    every arm's loss in a batch is one number, whichever is played.
    """
    batch = state.filling.get(among)
    return None if batch is None or batch.full else batch


def batch_for(state: State, person: int, among: EligibleArms | None = None) -> Batch | None:
    """Return the batch a person's next round is in, if it is open: theirs, or one with room.

    Theirs is the newest in which their slot is open and whose arm is eligible.
    """
    assert state.people is not None, "there is no rule for people"
    last = state.people.batches.get(person)
    others = reversed(state.open.values()) if state.restricted else ()
    for batch in chain([] if last is None else [last], others):
        if person in batch.open_slots:
            state.mixed = state.mixed or batch.among != among
            if among is None or batch.choice in among:
                return batch
    return batch_with_room(state, among)


def phase_for(state: State, person: int | None, among: EligibleArms | None = None) -> Batch | None:
    """Return the phase, or epoch of contexts, that the next round is in, if it is open.

    A person stays in the one in which their slot is open, as long as its arm is eligible. Rounds
    of all eligible arms share it: the arm is drawn without looking at the round's feedback, and so
    that is in one arm's sums.
    """
    state.restricted = state.restricted or among is not None
    if person is not None:
        assert state.people is not None, "there is no rule for people"
        last = state.people.batches.get(person)
        if last is not None and person in last.open_slots:
            arm = last.arm_of(last.open_slots[person])
            if among is None or arm is None or arm in among:
                return last
    return batch_with_room(state)


def _arm_in_phase(
    parts: Parts[Chooser],
    batch: Batch,
    phase: Phase,
    person: int | None,
    among: EligibleArms | None,
) -> tuple[int, float, bool]:
    """Return an arm, its chance, and whether the round may join a slot of its person.

    Someone who has a slot meets its arm again. Where that is not eligible another is drawn, and the
    feedback is not used: a slot has one arm.
    """
    slot = None if person is None or batch.slots is None else batch.slots.get(person)
    arm = None if slot is None else batch.arm_of(slot)
    if arm is not None and (among is None or arm in among):
        return arm, phase.chance(arm), True
    if arm is None:
        taken = phase.take(among)
        if taken is not None:
            return *taken, True
    drawn, chance = cast(PhaseChooser, parts.runner).draw_any(phase, among)
    return drawn, chance, slot is None or not slot.rounds


def sealed_batch(state: State, among: EligibleArms | None = None) -> Batch | None:
    """Return the batch that waits for nothing but the next decision to be released.

    So many rounds were in none of its slots that it takes no more people.
    """
    batch = state.filling.get(among)
    return batch if batch is not None and batch.complete else None


def open_batch(
    parts: Parts[Chooser],
    state: State,
    drawn: Drawn,
    among: EligibleArms | None = None,
    phase: Phase | None = None,
    tally: Tally | None = None,
) -> Batch:
    """Open a batch. Its number is used up first, so that no interrupt gives it out twice."""
    if tally is None:
        release = parts.release
        tally = release.start(drawn.size) if phase is None else release.start_phase()
    number = state.batches
    state.batches = number + 1
    if parts.columns is not None:
        tally.also(parts.columns)
    state.changes += 1  # drawing changed what was learned
    batch = Batch(
        number,
        drawn.size,
        drawn.choice,
        drawn.importance,
        drawn.credited,
        drawn.chance,
        tally,
        among,
        slots=None if parts.people is None else {},
        phase=phase,
        raw=parts.first is not None and state.scale is None,
    )
    state.restricted = state.restricted or among is not None
    state.outstanding = max(state.outstanding, len(state.open))
    state.open[number] = batch
    state.filling[among] = batch
    return batch


def within_reach(drawn: Drawn, people: int, first: int) -> Drawn:
    """Shorten a growing batch to the number of people who can fill it, but not below the first.

    ``people`` is how many are known who have slots left: public, as who comes is.
    """
    if drawn.importance != CHOSEN:
        return drawn
    return drawn._replace(size=min(drawn.size, max(first, people)))


def count_phase(
    state: State, number: int, sums: Mapping[int, tuple[int, ...]], columns: int
) -> Batch:
    """Count a phase whose losses were added up elsewhere; returns it, ready to be released.

    Each arm has its count, its losses, and its columns in their order. All are whole numbers: what
    is beyond the grid would leave as it is.
    """
    batch = state.open.get(number)
    if batch is None or batch.phase is None or batch.losses or batch.slots is not None:
        raise DecisionError(f"phase {number} is not open, or is decided here.")
    if batch.elsewhere is not None:
        raise DecisionError(f"phase {number} has been counted before.")
    arms = range(batch.phase.planned.size)
    whole = all(isinstance(one, int) for row in sums.values() for one in row)
    if not whole or any(arm not in arms or len(row) != 2 + columns for arm, row in sums.items()):
        raise InputError(
            f"sums of phase {number} must be {2 + columns} whole numbers for each arm that it has: "
            "how many met it, their losses, and each further column."
        )
    batch.elsewhere = {arm: count for arm, (count, *_) in sums.items() if count > 0}
    state.rounds += sum(batch.elsewhere.values())
    for arm, count in batch.elsewhere.items():
        batch.tally.add_sums(arm, count, sums[arm][1:])
    return batch


def _open_round(batch: Batch, number: int, arm: int, ticket: Ticket | None) -> int:
    """Add a round and return its position; what an interrupt leaves behind is overwritten."""
    position = len(batch.losses)
    batch.waiting[position] = ticket
    del batch.arms[position:], batch.numbers[position:]
    batch.arms.append(arm)
    batch.numbers.append(number)
    batch.losses.append(WAITING)
    return position


def _open_round_of(
    parts: Parts[Chooser],
    state: State,
    batch: Batch,
    number: int,
    arm: int,
    ticket: Ticket | None,
    person: int,
    *,
    joins: bool = True,
) -> int:
    """Add a round of a person, in their slot where that is open and the round may join it.

    A slot that closed while its batch still fills takes no more rounds: its person meets the same
    arm, and that feedback is not used. An interrupt at any line leaves a slot that is closed by
    ``finish``, or one whose feedback is not counted.
    """
    assert batch.slots is not None, "rounds of persons are in slots"
    slot = batch.slots.get(person) or open_slot(parts, state, batch, person)
    position = len(batch.losses)
    if len(batch.arms) > position:  # what an interrupt left behind
        del batch.arms[position:], batch.owners[position:], batch.numbers[position:]
    batch.arms.append(arm)
    batch.owners.append(slot)
    batch.numbers.append(number)
    batch.losses.append(WAITING)
    if joins and person in batch.open_slots:
        slot.rounds.append(position)
        batch.waiting[position] = ticket
        assert parts.people is not None, "there is no rule for people"
        most = parts.people.rounds_per_slot
        if most is not None and len(slot.rounds) >= most:
            del batch.open_slots[person]
    else:
        batch.unused += 1
    return position


def open_slot(parts: Parts[Chooser], state: State, batch: Batch, person: int) -> Slot:
    """Take a slot for a person: it is counted as theirs before it is one."""
    assert state.people is not None, "there is no rule for people"
    assert parts.people is not None, "there is no rule for people"
    assert batch.slots is not None, "slots belong to persons"
    slot = Slot(person, counts=admit(state.people, parts.people, person))
    batch.open_slots[person] = slot
    batch.slots[person] = slot
    state.people.find_in(person, batch)
    return slot


def admit(people: People, rule: PeopleRule, person: int) -> bool:
    """Count one more slot of a person; False if it is one too many."""
    had = people.slots.get(person, 0)
    if had >= rule.per_person:
        return False
    people.slots[person] = had + 1
    if people.admitted is not None:
        people.admitted.add(person)
    return True


# --- feedback ---------------------------------------------------------------------------------


def observe(
    parts: Parts[Chooser],
    state: State,
    decision: Decision,
    units: int,
    metrics: tuple[int, ...] = (),
    *,
    reward: bool | None = None,
) -> Batch | None:
    """Count a loss and its metrics, once; returns its batch if that is now complete.

    Whether it came as a ``reward`` matters where something is subtracted from it, or a range is
    found: so that is noted before it counts. None from devices, which send bits.
    """
    batch = find(state, decision)
    position = decision.position
    verdict: Verdict
    if batch is None:
        verdict = state.closed.compare(decision.batch, position, units, *metrics)
    elif position in batch.given_up:
        verdict = "given up"
    elif position in batch.waiting:
        state.rewarded = state.rewarded if reward is None else reward
        counted = _scaled(parts, state, batch, position, units)
        _count(parts, batch, position, counted, metrics)
        verdict = "same"
    else:
        loss = batch.losses[position]
        same = loss == WAITING or batch.sent.get(position, loss) == units
        same = same and batch.metrics.get(position, metrics) == metrics
        verdict = "same" if same else "different"
    if verdict != "same":
        raise _refusal(decision, verdict)
    return batch if batch is not None and batch.complete else None


def _scaled(parts: Parts[Chooser], state: State, batch: Batch, position: int, sent: int) -> int:
    """Return what is counted of an outcome, and keep how it was sent until its batch closes."""
    if state.scale is None or batch.raw:
        return sent
    batch.sent[position] = sent
    known = batch.before.get(position, 0.0)
    return state.scale.units(sent, known, parts.sent_range, reward=bool(state.rewarded))


def _count(
    parts: Parts[Chooser], batch: Batch, position: int, units: int, metrics: Metrics
) -> None:
    """Count a loss, and metrics where any came. From the first line on it has its feedback.

    Interrupted after it, the loss is not counted; the batch still closes, and nothing is counted
    twice when the feedback is sent again.
    """
    batch.ticket = ticket = batch.waiting.pop(position)
    batch.losses[position] = units
    if metrics:
        batch.metrics[position] = metrics
    if batch.slots is not None:
        count_slot(parts, batch, batch.owners[position], ticket)
    elif not batch.raw:
        batch.tally.add(units, ticket, batch.arms[position], metrics)


def give_up(parts: Parts[Chooser], state: State, decision: Decision) -> Batch | None:
    """Count the default loss of a decision without feedback; with feedback, change nothing.

    Without a default loss nothing is counted. Nothing is counted for its metrics in any case: their
    means are of the rounds that had feedback.
    Whether feedback had come is all that could show, never what it was.
    """
    batch = find(state, decision)
    position = decision.position
    if batch is not None and position in batch.waiting:
        batch.given_up.add(position)
        if batch.slots is None and parts.default is not None:
            default = parts.release.default_feedback(parts.default)
            _count(parts, batch, position, default, None)
        else:  # nothing is counted, and a slot's mean leaves the round out
            batch.ticket = ticket = batch.waiting.pop(position)
            if batch.slots is not None:
                count_slot(parts, batch, batch.owners[position], ticket)
    return batch if batch is not None and batch.complete else None


def count_slot(parts: Parts[Chooser], batch: Batch, slot: Slot, ticket: Ticket | None) -> None:
    """Count a slot, once, if no round of it can change any more."""
    if slot.person in batch.open_slots or slot.counted is not None:
        return
    known, missed = [], False
    losses, waiting, given_up = batch.losses, batch.waiting, batch.given_up
    for position in slot.rounds:
        if position in waiting:
            return
        if position in given_up:
            missed = True
        elif losses[position] != WAITING:
            known.append(losses[position])
    if not known and not missed:
        return  # an interrupt came before anyone knew of a round of it: nothing to count
    units = rounded_mean(known) if known and slot.counts else parts.default
    if units is None:  # nothing is counted for what never came
        slot.counts, units = False, 0
    slot.counted = units
    if slot.counts:
        add_up(batch, slot.rounds, units, ticket)


def add_up(batch: Batch, rounds: Sequence[int], units: int, ticket: Ticket | None) -> None:
    """Add a round, or the rounds of a slot, to the sums of a batch, once."""
    if not batch.raw:  # else it is counted when the batch closes
        batch.tally.add(units, ticket, batch.arms[rounds[0]], metrics_of(batch, rounds))


def metrics_of(batch: Batch, rounds: Sequence[int]) -> Metrics:
    """Return the mean metrics of the rounds that had feedback; None if none of them had.

    Those of an interrupted round may be missing: then all are, and none is counted.
    """
    losses, given_up = batch.losses, batch.given_up
    came = [at for at in rounds if losses[at] != WAITING and at not in given_up]
    metrics = [batch.metrics.get(at, ()) for at in came]
    if len(metrics) < 2:
        return metrics[0] if metrics else None
    return tuple(rounded_mean(list(units)) for units in zip(*metrics, strict=False))


def rounded_mean(units: list[int]) -> int:
    """Return the mean of whole numbers, rounded half to even: no floating point.

    Examples
    --------
    >>> rounded_mean([1, 2]), rounded_mean([2, 3]), rounded_mean([0, 0, 1])
    (2, 2, 0)
    """
    if len(units) == 1:
        return units[0]
    whole, rest = divmod(sum(units), len(units))
    twice = 2 * rest - len(units)
    return whole + (twice > 0 or (twice == 0 and whole % 2 == 1))


def finish(parts: Parts[Chooser], state: State, person: int) -> list[Batch]:
    """Close the open slots of a person; returns the batches that are now complete."""
    theirs = [batch for batch in state.open.values() if batch.slots and person in batch.slots]
    if not theirs:
        raise DecisionError(
            "this person has no slot in an open batch: they were never decided for, or their "
            "batch has been released."
        )
    for batch in theirs:
        assert batch.slots is not None, "slots belong to persons"
        slot, ticket = batch.slots[person], None
        batch.open_slots.pop(person, None)
        for position in slot.rounds:
            if position in batch.waiting:
                batch.given_up.add(position)
                batch.ticket = ticket = batch.waiting.pop(position)
        count_slot(parts, batch, slot, ticket)
    return [batch for batch in theirs if batch.complete]


def owner_of(state: State, decision: Decision) -> int:
    """Return the person whose slot a decision belongs to, in an open batch."""
    batch = find(state, decision)
    if batch is None or not batch.owners:
        raise DecisionError("this decision belongs to no open slot.")
    return batch.owners[decision.position].person


# --- what is refused --------------------------------------------------------------------------


def find(state: State, decision: Decision) -> Batch | None:
    """Return the open batch of a decision, or None if it has closed; refuse foreign decisions."""
    if decision.policy != state.issuer_of(decision.batch, decision.position):
        raise DecisionError(f"decision {decision.round} {_stranger(state, decision)}")
    batch = state.open.get(decision.batch)
    size = decision.position + 1 if batch is None else len(batch.losses)
    if (
        not 0 <= decision.batch < state.batches
        or not 0 <= decision.position < size
        or (batch is not None and not _belongs(decision, batch))
    ):
        raise DecisionError(f"decision {decision.round} was never made by this policy.")
    return batch


def _stranger(state: State, decision: Decision) -> str:
    if state.issued_by(decision.policy):
        return (
            "was made after the file was saved that this policy was loaded from; its feedback "
            "cannot be credited."
        )
    return f"was made by another policy ({decision.policy}); this one is {state.identity}."


def _belongs(decision: Decision, batch: Batch) -> bool:
    position = decision.position
    return batch.arms[position] == decision.index and decision.round == batch.numbers[position]


_REFUSED: dict[Verdict, str] = {
    "different": (
        "has already been observed with another value; the first one stands. Neither is repeated "
        "here because feedback is private."
    ),
    "given up": ("was given up; feedback that came too late is not used."),
    "forgotten": (
        "has been observed and its batch released; whether the value is the same can no longer be "
        "told. The first one stands."
    ),
}


def _refusal(decision: Decision, verdict: Verdict) -> DecisionError:
    error = DecisionError(f"decision {decision.round} {_REFUSED[verdict]}")
    error.reason = verdict
    return error


def known_as(state: State, person: object) -> int:
    """Return the keyed hash of a person; refuse persons where rounds are protected."""
    if state.people is None:
        raise InputError(
            "this policy protects rounds and knows no persons; make it with per_person=, the "
            "slots each may have, or leave out person=."
        )
    return state.people.known_as(person)


def as_decision(decision: Decision | Mapping[str, object]) -> Decision:
    """Take a decision, or the dictionary of one, refusing anything else."""
    try:
        made = Decision(**decision) if isinstance(decision, Mapping) else decision  # type: ignore[arg-type]
    except TypeError:
        made = None
    if not isinstance(made, Decision):
        raise DecisionError(
            f"observe takes the Decision that decide() returned, or its _asdict(); got "
            f"{type(decision).__name__}."
        )
    numbers = made.index, made.round, made.batch, made.position
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise DecisionError(
            "this decision was never made by this policy: its index, round, batch and position "
            "must be whole numbers."
        )
    return made


def check_bit(bit: object) -> int:
    """Require the bit that a device sends."""
    if type(bit) is not int or bit not in (0, 1):
        raise InputError("a device sends a bit, 0 or 1, as a whole number.")
    return bit

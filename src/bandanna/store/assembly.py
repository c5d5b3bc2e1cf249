"""A policy from what a store kept of it."""

from __future__ import annotations

from dataclasses import replace

from bandanna._core.types import JSON, StateFileError
from bandanna.policy.facade import DAMAGE, policy_from_dict
from bandanna.policy.policy import Policy
from bandanna.policy.state import KEY_BYTES, Batch
from bandanna.store.rows import Event, Experiment, Feedback, OpenBatch, Place, Saved, State

HASHED_BEFORE = bytes(KEY_BYTES).hex()
"""The policy's key for persons. Whoever has a store hashes them with its secret before they get
here, so a key beside the hashes would protect nobody: this one is no secret."""


def assemble(saved: Saved, before: Policy | None = None) -> tuple[Policy, dict[Place, Event]]:
    """Return the policy, checked anew, and for each place that was read the event that holds it.

    Batches that are the same as ``before`` come from there, and ``before`` is used no more.
    """
    holders: dict[Place, Event] = {}
    for event in saved.events:
        if event.place not in holders or event.state is not State.VOID:
            holders[event.place] = event
    by_batch: dict[int, list[Event]] = {batch.number: [] for batch in saved.batches}
    feedback = {(row.batch, row.position): row for row in saved.feedback}
    try:
        for place in sorted(holders):
            by_batch[place[0]].append(holders[place])
        opened: dict[int, JSON | Batch] = {
            batch.number: _batch(batch, by_batch[batch.number], feedback) for batch in saved.batches
        }
        if before is not None:
            opened |= {number: before.state.open[number] for number in saved.unchanged}
        head = saved.experiment.head
        data = head | {"open_batches": [opened[number] for number in sorted(opened)]}
        if data["people"] is not None:
            data["people"] = {"key": HASHED_BEFORE, "slots": _by_count(saved.people)}
        counters = head["counters"]
        resumed = counters["resumed"] + saved.experiment.resumed
        data["counters"] = counters | {"resumed": resumed}
        policy = policy_from_dict(data, latest=True)
        if before is not None:
            policy.state.join(before.state)
        return policy, holders
    except DAMAGE as error:
        raise StateFileError(
            f"what the database holds of {saved.experiment.id} is damaged: {type(error).__name__}."
        ) from None


def without_batches(experiment: Experiment) -> Policy:
    """Return the policy without its open batches and its people: for those who read, not decide."""
    head = experiment.head | {"counters": experiment.head["counters"] | {"filling": []}}
    return assemble(Saved(replace(experiment, head=head), [], [], [], {}))[0]


def _batch(batch: OpenBatch, events: list[Event], feedback: dict[Place, Feedback]) -> JSON:
    """Return what ``batch_to_dict`` would."""
    if "slots" in batch.tally:
        whole: JSON = batch.tally["slots"]
        return whole
    if [event.position for event in events] != list(range(len(events))):
        raise ValueError("a place is missing")
    rows = [feedback.get(event.place) for event in events]
    losses = [None if row is None else row.loss for row in rows]
    return batch._asdict() | {
        **batch.tally["drawn"],
        "tally": batch.tally["tally"],
        "numbers": [event.round for event in events],
        "arms": [event.arm for event in events],
        "losses": losses,
        "waiting": [
            [position, None if row is None else row.ticket]
            for position, row in enumerate(rows)
            if losses[position] is None
        ],
        "given_up": [k for k, row in enumerate(rows) if row is not None and row.given_up],
    }


def _by_count(people: dict[str, int]) -> dict[str, list[str]]:
    """Return persons by the number of places they have had."""
    found: dict[str, list[str]] = {}
    for person, places in people.items():
        found.setdefault(str(places), []).append(person)
    return found

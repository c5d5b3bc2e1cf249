"""A policy from what a store kept of it."""

from __future__ import annotations

from bandanna._core.types import JSON, StateFileError
from bandanna.policies.batch import Batch
from bandanna.policies.loading import DAMAGE, policy_from_dict
from bandanna.policies.people import KEY_BYTES
from bandanna.policies.policy import Policy
from bandanna.store.rows import Event, Feedback, OpenBatch, Place, Saved, State

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
            opened |= {number: before.ledger.open[number] for number in saved.unchanged}
        head = saved.experiment.head
        ledger = head["ledger"] | {"open_batches": [opened[number] for number in sorted(opened)]}
        if ledger["people"] is not None:
            known = {"key": HASHED_BEFORE, "places": _by_count(saved.people)}
            ledger["people"] = ledger["people"] | known
        resumed = head["resumed"] + saved.experiment.resumed
        data = head | {"ledger": ledger, "resumed": resumed}
        policy = policy_from_dict(data, latest=True)
        if before is not None:
            policy.ledger.join(before.ledger)
        return policy, holders
    except DAMAGE as error:
        raise StateFileError(
            f"what the database holds of {saved.experiment.id} is damaged: {type(error).__name__}."
        ) from None


def _batch(batch: OpenBatch, events: list[Event], feedback: dict[Place, Feedback]) -> JSON:
    """Return what ``Batch.to_dict`` would."""
    if "places" in batch.tally:
        whole: JSON = batch.tally["places"]
        return whole
    if [event.position for event in events] != list(range(len(events))):
        raise ValueError("a place is missing")
    rows = [feedback.get(event.place) for event in events]
    losses = [None if row is None else row.loss for row in rows]
    return batch._asdict() | {
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

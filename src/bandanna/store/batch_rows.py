"""What a store keeps of a batch in memory, as rows."""

from __future__ import annotations

from bandanna._core.types import JSON
from bandanna.policy.codec import batch_to_dict, phase_to_dict
from bandanna.policy.state import WAITING, Batch
from bandanna.store.rows import Feedback, OpenBatch


def kept_of(batch: Batch) -> JSON:
    """Return what is kept of a batch beside single rounds; of slots, everything is private."""
    if batch.slots is not None:
        return {"slots": batch_to_dict(batch)}
    drawn: JSON = {"credited": batch.credited, "chance": batch.chance, "among": batch.among}
    if batch.phase is not None:
        drawn["phase"] = phase_to_dict(batch.phase)
    return {"drawn": drawn, "tally": batch.tally.to_dict()}


def changes_by_round(kept: JSON) -> bool:
    """Whether what is kept of a batch changes with each of its rounds, or when it opens only."""
    return "slots" in kept or bool(kept["tally"])


def batch_row(batch: Batch, tally: JSON) -> OpenBatch:
    """Return what is kept of an open batch."""
    return OpenBatch(batch.number, batch.size, batch.choice, batch.importance, tally)


def feedback_row(batch: Batch, position: int) -> Feedback | None:
    """Return what is kept of one place, or None if there is nothing yet."""
    loss, ticket = batch.losses[position], batch.waiting.get(position)
    if batch.slots is not None or (loss == WAITING and ticket is None):
        return None
    return Feedback(
        batch.number,
        position,
        None if loss == WAITING else loss,
        position in batch.given_up,
        None if ticket is None else ticket.to_dict(),
    )

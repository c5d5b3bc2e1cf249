"""What a store keeps of a batch in memory, as rows."""

from __future__ import annotations

from bandanna._core.types import JSON
from bandanna.policies.batch import WAITING, Batch
from bandanna.policies.places import PlacesBatch
from bandanna.store.rows import Feedback, OpenBatch


def tally_of(batch: Batch) -> JSON:
    """Return what is private of a batch beside single losses; of places, everything is."""
    return {"places": batch.to_dict()} if isinstance(batch, PlacesBatch) else batch.tally.to_dict()


def batch_row(batch: Batch, tally: JSON) -> OpenBatch:
    """Return what is kept of an open batch."""
    return OpenBatch(batch.number, batch.size, batch.choice, batch.importance, tally)


def feedback_row(batch: Batch, position: int) -> Feedback | None:
    """Return what is kept of one place, or None if there is nothing yet."""
    loss, ticket = batch.losses[position], batch.waiting.get(position)
    if isinstance(batch, PlacesBatch) or (loss == WAITING and ticket is None):
        return None
    return Feedback(
        batch.number,
        position,
        None if loss == WAITING else loss,
        position in batch.given_up,
        None if ticket is None else ticket.to_dict(),
    )

"""A ledger as plain values, for files and stores, and back: every value is checked anew."""

from __future__ import annotations

import math
from collections.abc import Callable

from bandanna.advice import Ticket
from bandanna.policies.batch import Batch, fill_from_dict
from bandanna.policies.ledger import Ledger
from bandanna.policies.places import PlacesBatch, load_places
from bandanna.privacy.reading import Told
from bandanna.types import JSON

MOST = 2**62
"""No policy decides or releases so often."""


def ledger_to_dict(ledger: Ledger, *, batches: bool = True) -> JSON:
    """Return everything, as plain values; open batches hold raw feedback.

    Without ``batches``, nothing about anyone: no feedback, no person, no key.
    """
    here = ledger.open.values() if batches else ()
    return {
        "issuers": ledger.issuers.to_list(),
        "batches": ledger.batches,
        "rounds": ledger.rounds,
        "released": ledger.released,
        "told": [[choice, *told] for choice, told in ledger.told.items()],
        "current": None if ledger.current is None else ledger.current.number,
        "people": None if ledger.people is None else ledger.people.to_dict(persons=batches),
        "open_batches": [batch.to_dict() for batch in here],
    }


def load_ledger(
    ledger: Ledger,
    saved: JSON,
    choices: int,
    arms: int,
    as_ticket: Callable[[JSON], Ticket],
    *,
    latest: bool = False,
) -> None:
    """Go on from what ``ledger_to_dict`` gave, checking every value anew.

    What is decided from here on has a new identity: the rounds that follow may have been
    given out before, after the file was saved, and their feedback must not be credited here.
    Only whoever records every decision before giving it out knows that this is the ``latest``
    state, and keeps the identity.
    """
    ledger.batches, ledger.decided = int(saved["batches"]), int(saved["rounds"])
    ledger.released = int(saved["released"])
    for choice, count, *sums in saved["told"]:
        told = Told(int(count), *map(float, sums))
        if not 0 <= choice < choices or not all(map(math.isfinite, told)) or told.batches < 1:
            raise ValueError(f"what was released of {choice} is impossible")
        ledger.told[int(choice)] = told
    if ledger.people is not None:
        ledger.people.load(saved["people"])
    for entry in saved["open_batches"]:
        batch = _batch_from(ledger, entry, arms, as_ticket)
        if not 0 <= batch.number < ledger.batches or batch.number in ledger.open:
            raise ValueError(f"batch {batch.number} is one too many")
        if not 0 <= batch.choice < choices:
            raise ValueError(f"batch {batch.number} holds impossible values")
        ledger.open[batch.number] = batch
    current = saved["current"]
    ledger.current = None if current is None else ledger.open[int(current)]
    counts = 0 <= ledger.released <= ledger.batches < MOST and 0 <= ledger.rounds < MOST
    if ledger.rounds != int(saved["rounds"]) or not counts:
        raise ValueError("its counts do not fit together")
    if latest:
        ledger.identity = ledger.issuers.resume(saved["issuers"])
        return
    joined = {number: len(batch.losses) for number, batch in ledger.open.items()}
    ledger.issuers.load(saved["issuers"], ledger.identity, ledger.batches, joined)


def _batch_from(
    ledger: Ledger, saved: JSON, arms: int, as_ticket: Callable[[JSON], Ticket]
) -> Batch:
    number, first, size, choice = (int(saved[key]) for key in ("number", "first", "size", "choice"))
    batch = ledger.new_batch(number, first, size, choice, float(saved["importance"]))
    if isinstance(batch, PlacesBatch):
        load_places(batch, saved)
        fill_from_dict(batch, saved, ledger.release, batch.counted(), arms, as_ticket)
        return batch
    known = [int(loss) for loss in saved["losses"] if loss is not None]
    fill_from_dict(batch, saved, ledger.release, known, arms, as_ticket)
    if len(batch.losses) > batch.size:
        raise ValueError(f"batch {batch.number} holds impossible values")
    return batch

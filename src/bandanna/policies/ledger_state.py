"""A ledger as plain values, for files and stores, and back: every value is checked anew."""

from __future__ import annotations

import math
from collections.abc import Callable

from bandanna._core import checks
from bandanna._core.advice import Ticket
from bandanna._core.types import JSON
from bandanna.policies.among import Drawn
from bandanna.policies.batch import Batch, fill_from_dict
from bandanna.policies.ledger import Ledger
from bandanna.policies.places import PlacesBatch, load_places
from bandanna.privacy.reading import Told

MOST = 2**62
"""No policy decides or releases so often."""

CERTAIN = 1.0 + 1e-9
"""A probability that rounding left just above 1 is one."""


def ledger_to_dict(ledger: Ledger, *, batches: bool = True) -> JSON:
    """Return everything, as plain values; open batches hold raw feedback.

    Without ``batches``, nothing about anyone: no feedback, no person, no key.
    """
    here = ledger.open.values() if batches else ()
    return {
        "issuers": ledger.issuers.to_list(),
        "batches": ledger.batches,
        "rounds": ledger.rounds,
        "played": [[choice, count] for choice, count in ledger.played.items()],
        "released": ledger.released,
        "told": [[choice, *told] for choice, told in ledger.told.items()],
        "restricted": ledger.restricted,
        "mixed": ledger.mixed,
        "overlapped": ledger.overlapped,
        "missed": ledger.missed_before,
        "rooms": [batch.number for batch in ledger.rooms.values()],
        "among": [
            [batch.number, list(batch.among), batch.credited, batch.chance]
            for batch in ledger.open.values()
            if batch.among is not None
        ],
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

    Among the open batches may be some that were loaded before and have not changed.

    What is decided from here on has a new identity: the rounds that follow may have been
    given out before, after the file was saved, and their feedback must not be credited here.
    Only whoever records every decision before giving it out knows that this is the ``latest``
    state, and keeps the identity.
    """
    ledger.batches, ledger.rounds = int(saved["batches"]), int(saved["rounds"])
    ledger.released = int(saved["released"])
    for choice, count, *sums in saved["told"]:
        told = Told(int(count), *map(float, sums))
        possible = told.rounds >= told.batches >= 1 and all(map(math.isfinite, told))
        if not 0 <= choice < choices or not possible:
            raise ValueError(f"what was released of {choice} is impossible")
        ledger.told[int(choice)] = told
    if ledger.people is not None:
        ledger.people.load(saved["people"])
    for entry in saved["open_batches"]:
        batch = _kept(ledger, entry) if isinstance(entry, Batch) else None
        batch = batch or _batch_from(ledger, entry, arms, as_ticket)
        if not 0 <= batch.number < ledger.batches or batch.number in ledger.open:
            raise ValueError(f"batch {batch.number} is one too many")
        if not 0 <= batch.choice < choices:
            raise ValueError(f"batch {batch.number} holds impossible values")
        ledger.open[batch.number] = batch
    ledger.played = {int(choice): int(count) for choice, count in saved["played"]}
    if sum(ledger.played.values()) > ledger.rounds or not all(
        0 <= choice < choices and count > 0 for choice, count in ledger.played.items()
    ):
        raise ValueError("its shares do not fit together")
    _load_draws(ledger, saved, choices)
    if not (0 <= ledger.released <= ledger.batches < MOST and 0 <= ledger.rounds < MOST):
        raise ValueError("its counts do not fit together")
    if latest:
        ledger.identity = ledger.issuers.resume(saved["issuers"])
        return
    joined = {number: len(batch.losses) for number, batch in ledger.open.items()}
    ledger.issuers.load(saved["issuers"], ledger.identity, ledger.batches, joined)


def _load_draws(ledger: Ledger, saved: JSON, choices: int) -> None:
    """Read how open batches were drawn, and which of them have room."""
    ledger.restricted = saved["restricted"] is True or saved["among"] != []
    ledger.mixed = saved.get("mixed") is True
    ledger.overlapped = saved.get("overlapped") is True
    ledger.missed_before = checks.whole("missed", saved.get("missed", 0), at_least=0)
    for number, among, credited, chance in saved["among"]:
        batch = ledger.open[int(number)]
        batch.among, batch.credited = tuple(map(int, among)), int(credited)
        batch.chance = None if chance is None else float(chance)
        good = (
            sorted({*batch.among}) == [*batch.among]
            and batch.choice in batch.among
            and all(0 <= arm < choices for arm in (*batch.among, batch.credited))
            and (batch.chance is None or 0.0 < batch.chance <= CERTAIN)
        )
        if not good:
            raise ValueError(f"batch {number} holds impossible values")
    ledger.rooms = {ledger.open[int(n)].among: ledger.open[int(n)] for n in saved["rooms"]}
    if len(ledger.rooms) < len(saved["rooms"]):
        raise ValueError("two batches fill with the same rounds")


def _kept(ledger: Ledger, batch: Batch) -> Batch:
    """Return a batch as it is; its persons are counted here from now on."""
    if isinstance(batch, PlacesBatch):
        assert ledger.people is not None, "places belong to persons"
        batch.move_to(ledger.people)
    return batch


def _batch_from(
    ledger: Ledger, saved: JSON, arms: int, as_ticket: Callable[[JSON], Ticket]
) -> Batch:
    number, size, choice = (int(saved[key]) for key in ("number", "size", "choice"))
    drawn = Drawn(choice, float(saved["importance"]), size, choice, None)
    batch = ledger.new_batch(number, size, drawn)
    if isinstance(batch, PlacesBatch):
        load_places(batch, saved)
        fill_from_dict(
            batch, saved, ledger.release, batch.counted(), arms, ledger.rounds, as_ticket
        )
        return batch
    known = [int(loss) for loss in saved["losses"] if loss is not None]
    fill_from_dict(batch, saved, ledger.release, known, arms, ledger.rounds, as_ticket)
    if len(batch.losses) > batch.size:
        raise ValueError(f"batch {batch.number} holds impossible values")
    return batch

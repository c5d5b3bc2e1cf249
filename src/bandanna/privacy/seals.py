"""A short hash beside each entry of a certificate: an accidental change is traced to its line."""

from __future__ import annotations

from collections.abc import Iterator

from bandanna._core.documents import seal
from bandanna._core.types import JSON
from bandanna.privacy.mechanism import Finding

SEAL_LENGTH = 12


def sealed(entries: JSON) -> JSON:
    """Return entries with a seal for each."""
    return {**entries, "seals": {key: short_seal(key, value) for key, value in entries.items()}}


def short_seal(key: str, value: object) -> str:
    """Return the seal of an entry."""
    return seal([key, value])[:SEAL_LENGTH]


def check_seals(data: JSON) -> Iterator[Finding]:
    """Find entries that were changed, added or left out by accident."""
    seals = data.get("seals")
    if not isinstance(seals, dict):
        yield Finding("seals", False, "missing")
        return
    for key in data:
        if key not in ("seals", *seals):
            yield Finding(key, False, "has no seal: it was added, or its name was changed")
    for key, mark in seals.items():
        if key not in data:
            yield Finding("seals", False, f"seals {key!r}, which is not there")
        elif short_seal(key, data[key]) != mark:
            yield Finding(key, False, "does not match its seal: one of the two was changed")

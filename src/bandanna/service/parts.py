"""The parts of an experiment: one for each public segment, or a single one where there are none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from bandanna._core.types import Guarantee, InputError
from bandanna.policy.segments import promise_together
from bandanna.store.rows import Experiment


def grouped(rows: Iterable[Experiment]) -> list[list[Experiment]]:
    """Return experiments, each with all its parts, in the order of their making."""
    found: dict[str, list[Experiment]] = {}
    for row in rows:
        found.setdefault(row.id, []).append(row)
    return list(found.values())


def part_for(parts: list[Experiment], segment: str | None) -> Experiment:
    """Return the part for a segment; one has to be named exactly where there are some."""
    if segment is None and not parts[0].segment:
        return parts[0]
    if not parts[0].segment:
        raise InputError("this experiment has no segments; leave segment out.")
    for part in parts:
        if part.segment == segment:
            return part
    known = ", ".join(repr(part.segment) for part in parts[:20])
    more = ", ..." if len(parts) > 20 else ""
    given = "give a segment" if segment is None else f"unknown segment {segment!r}"
    raise InputError(f"{given}; there are {known}{more}.")


def same_as_made(known: list[Experiment], asked: list[Experiment]) -> list[Experiment]:
    """Return an experiment that was made before, if it is the one that is asked for again."""
    if [_made(part) for part in known] != [_made(part) for part in asked]:
        raise InputError("this Idempotency-Key was used before, for another experiment.")
    return known


def _made(part: Experiment) -> object:
    """Return what an experiment was made as; arms may have been added since."""
    settings = {name: value for name, value in part.settings.items() if name != "arms"}
    return part.name, part.segment, json.loads(json.dumps(settings))


def promised(promises: Mapping[str, Guarantee]) -> Guarantee:
    """Return what an experiment promises, from the promises of its parts by segment."""
    return promises[""] if "" in promises else promise_together(promises)

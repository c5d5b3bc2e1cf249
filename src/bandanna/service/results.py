"""What releases say: shares, means with intervals, bounds. Nothing else enters here."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence

from bandanna._core.extras import need
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.algorithms import find
from bandanna.planner.plan import row_of
from bandanna.policy.diagnostics import CONFIDENCE, ArmSummary
from bandanna.policy.parts import slot_problem
from bandanna.policy.policy import Policy
from bandanna.problem import Problem
from bandanna.service.models import moment
from bandanna.service.steady import steadiness
from bandanna.store.rows import Experiment, Release

POINTS, FEWEST = 50, 10
"""Most points of a chart, and fewest batches behind each."""


def summary(policy: Policy, releases: Sequence[Release]) -> JSON:
    """Return what can be said about each arm, and about the run so far."""
    rows = policy.summary().rows
    releases = [release for release in releases if release.size > 0]
    weighed = any(isinstance(release.value, list) for release in releases)
    rounds = [0] * len(rows)
    for release in releases:
        rounds[release.choice] += release.size
    everything = sum(rounds)
    choices = [_choice(row, mine, everything) for row, mine in zip(rows, rounds, strict=True)]
    return {
        "what": "arm" if policy.experts is None else "expert",
        "confidence": CONFIDENCE,
        "answer": policy.answer().to_dict(),
        "choices": [] if weighed else choices,
        "shares": [] if weighed else _shares(len(rows), releases),
        "decided": policy.decided,
        "batch": policy.batch,
        "places": _places(policy),
        "batches_released": len(releases),
        "rounds_released": everything,
        "regret_bound": _bound_so_far(policy),
        "regret_condition": _problem(policy).assumed_of_feedback,
        "steadiness": steadiness(releases, len(rows)) | {"guard": policy.stationarity},
    }


def _choice(row: ArmSummary, rounds: int, everything: int) -> JSON:
    shown = {"name": row.arm, "chance": row.chance, "batches": row.batches, "rounds": rounds}
    shown["share"] = rounds / everything if everything else None
    return shown | {"mean": row.mean, "low": row.low, "high": row.high}


def _shares(count: int, releases: Sequence[Release]) -> list[JSON]:
    """Return the shares of arms in the rounds released since the moment before."""
    step = max(FEWEST, math.ceil(len(releases) / POINTS))
    points: list[JSON] = []
    for begin in range(0, len(releases), step):
        some = releases[begin : begin + step]
        rounds = [0] * count
        for release in some:
            rounds[release.choice] += release.size
        total = sum(rounds)
        points.append({"at": moment(some[-1].released_at), "shares": [n / total for n in rounds]})
    return points


def _places(policy: Policy) -> JSON | None:
    """Return how many places persons have used; who has is told nobody."""
    people = policy.state.people
    return None if people is None else {"used": people.used, "most": policy.spec.per_person}


def _problem(policy: Policy) -> Problem:
    """Return what the policy has been asked so far."""
    size = len(policy.arms), max(1, policy.decided), policy.recipe.release.guarantee().epsilon
    slot = slot_problem(policy.spec)
    return Problem(*size, policy.experts, slot.delta, policy.spec.delay)


def _bound_so_far(policy: Policy) -> float | None:
    """Return the most that the regret is guaranteed to be in expectation, if anything is."""
    if policy.decided < 1:
        return None
    if policy.regret_bound is not None:
        return policy.regret_bound
    entry = find(policy.algorithm, advised=policy.experts is not None)
    try:
        row = row_of(entry, _problem(policy), policy.batch)
    except InputError:
        return None
    if not math.isfinite(row.regret):
        return None
    low, high = policy.loss_range
    return (high - low) * (row.regret + policy.state.missed)


def export_rows(part: Experiment, releases: Sequence[Release]) -> list[JSON]:
    """Return released values and what they are about: all that an export may hold."""
    experts = part.settings.get("experts")
    what = "arm" if experts is None else "expert"
    names: Sequence[ArmName] = part.settings["arms"] if experts is None else range(experts)
    begin = {"segment": part.segment} if part.segment else {}
    return [
        begin
        | {
            "batch": release.batch,
            what: names[release.choice],
            "rounds": release.size,
            "released": release.value,
            "released_at": moment(release.released_at),
        }
        for release in releases
        if release.size > 0  # otherwise nothing in it counted, and nothing was released
    ]


def as_csv(rows: list[JSON]) -> str:
    """Write rows as CSV; cells that a spreadsheet would run as formulas are quoted as text."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows[0] if rows else ["batch", "arm", "rounds", "released", "released_at"])
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def as_parquet(rows: list[JSON]) -> bytes:
    """Write rows as Parquet."""
    need("studies", "an export as Parquet")
    import polars

    if not rows:
        raise InputError("nothing has been released yet.")
    data = io.BytesIO()
    flat = [{name: _flat(value) for name, value in row.items()} for row in rows]
    polars.DataFrame(flat).write_parquet(data)
    return data.getvalue()


def _flat(value: object) -> object:
    return json.dumps(value) if isinstance(value, list) else value


def _cell(value: object) -> object:
    text = _flat(value)
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t") else text

"""What releases say: shares, means with intervals, bounds. Nothing else enters here."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from bandanna.extras import need
from bandanna.policies.policy import Policy
from bandanna.privacy import LaplaceRelease, OneBitRelease
from bandanna.problem import Problem
from bandanna.service.models import moment
from bandanna.service.steady import steadiness
from bandanna.store.rows import Release
from bandanna.theory.catalogue import find
from bandanna.theory.planner import row_of
from bandanna.types import JSON, InputError

POINTS, FEWEST = 50, 10
"""Most points of a chart, and fewest batches behind each."""
CONFIDENCE = 0.95
_NORMAL = 1.959963984540054


def summary(policy: Policy, releases: Sequence[Release]) -> JSON:
    """Return what can be said about each arm, and about the run so far."""
    names = list(policy.arms) if policy.experts is None else list(range(policy.experts))
    weighed = any(isinstance(release.value, list) for release in releases)
    return {
        "what": "arm" if policy.experts is None else "expert",
        "confidence": CONFIDENCE,
        "choices": []
        if weighed
        else [_choice(policy, k, n, releases) for k, n in enumerate(names)],
        "shares": [] if weighed else _shares(len(names), releases),
        "batch": policy.batch,
        "batches_released": len(releases),
        "rounds_released": sum(release.size for release in releases),
        "regret_bound": _bound_so_far(policy, policy.decided),
        "steadiness": steadiness(releases, len(names)),
    }


def _choice(policy: Policy, index: int, name: object, releases: Sequence[Release]) -> JSON:
    mine = [release for release in releases if release.choice == index]
    rounds, everything = sum(r.size for r in mine), sum(r.size for r in releases)
    shown = {"name": name, "batches": len(mine), "rounds": rounds}
    shown["share"] = rounds / everything if everything else None
    values = [float(r.value) for r in mine if not isinstance(r.value, list)]
    mean = _mean(policy, values, [release.size for release in mine])
    return shown | dict(zip(("mean", "low", "high"), mean, strict=True))


def _mean(
    policy: Policy, values: list[float], sizes: list[int]
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return the mean loss of released batches with the noise's bias removed, and an interval.

    One-bit: Hoeffding's inequality for bits, stretched by the slope. Laplace: the noise's known
    variance and the largest a mean of losses can have, by the normal law. Both are for a number
    of batches that is fixed beforehand.
    """
    release, count = policy.recipe.release, len(values)
    if not count:
        return None, None, None
    centre = math.fsum(values) / count
    if isinstance(release, OneBitRelease):
        half = math.sqrt(math.log(2 / (1 - CONFIDENCE)) / (2 * count)) / release.slope
        centre = 0.5 + (centre - 0.5) / release.slope
    elif isinstance(release, LaplaceRelease):
        noise = math.fsum(2.0 / (size * release.epsilon) ** 2 for size in sizes) / count**2
        half = _NORMAL * math.sqrt(noise + 0.25 / count)
    else:
        return None, None, None
    low, high = policy.loss_range
    ends = (low + (high - low) * x for x in (centre, centre - half, centre + half))
    at, least, most = (min(max(end, low), high) for end in ends)
    return at, least, most


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


def _bound_so_far(policy: Policy, rounds: int) -> float | None:
    """Return the most that the regret is guaranteed to be in expectation, if anything is."""
    if rounds < 1:
        return None
    advised = policy.experts is not None
    epsilon = policy.recipe.release.guarantee().epsilon
    problem = Problem(len(policy.arms), rounds, epsilon, policy.experts, policy.delta)
    try:
        row = row_of(find(policy.algorithm, advised=advised), problem, policy.batch)
    except InputError:
        return None
    return row.regret if math.isfinite(row.regret) else None


def export_rows(policy: Policy, releases: Sequence[Release]) -> list[JSON]:
    """Return released values and what they are about: all that an export may hold."""
    what = "arm" if policy.experts is None else "expert"
    names: Sequence[Any] = policy.arms if policy.experts is None else range(policy.experts)
    return [
        {
            "batch": release.batch,
            what: names[release.choice],
            "rounds": release.size,
            "released": release.value,
            "released_at": moment(release.released_at),
        }
        for release in releases
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


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def _cell(value: Any) -> Any:
    text = _flat(value)
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t") else text

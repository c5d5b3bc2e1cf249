"""Shares as SDKs read them: GrowthBook's features, flagd's flags, and a signed one of our own.

Shares are whole numbers of 1/10,000, as GrowthBook's buckets are; the learner is told of these and
not of what they were rounded from. Each phase has a seed of its own: who met an arm in one phase
says nothing about the next. Where everyone counts once, one seed serves all phases, so that people
keep their arm as far as shares allow.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import JSON
from bandanna.phases.definition import Course, Definition

PARTS = 10_000
"""Shares are whole numbers of one over this."""
FORMAT, VERSION = "bandanna phase", 1


def parts_of(planned: NDArray[np.float64]) -> list[int]:
    """Round shares to whole parts that add up, the largest remainders up; none becomes 0.

    Examples
    --------
    >>> parts_of(np.array([1.0, 1.0, 1.0])), parts_of(np.array([0.0, 1.0, 99_999.0]))
    ([3334, 3333, 3333], [0, 1, 9999])
    """
    exact = planned / planned.sum() * PARTS
    parts = np.where(planned > 0.0, np.maximum(np.floor(exact), 1.0), 0.0)
    while parts.sum() > PARTS:
        parts[np.argmax(parts)] -= 1.0
    left = int(PARTS - parts.sum())
    for arm in np.argsort(parts - exact, kind="stable")[:left]:
        parts[arm] += 1.0
    return [int(part) for part in parts]


def growthbook(definition: Definition, phase: int, parts: Sequence[int], seed: str, *_: str) -> str:
    """Return features as GrowthBook's SDKs take them."""
    rule = {
        "key": definition.key_of(phase),
        "name": definition.name,
        "phase": str(phase),
        "seed": seed,
        "hashAttribute": definition.attribute,
        "hashVersion": 2,
        "coverage": 1,
        "weights": [part / PARTS for part in parts],
        "variations": list(definition.arms),
        "meta": [{"key": arm} for arm in definition.arms],
    }
    feature = {"defaultValue": definition.arms[0], "rules": [rule]}
    return _text({"status": 200, "features": {definition.name: feature}})


def flagd(definition: Definition, phase: int, parts: Sequence[int], seed: str, *_: str) -> str:
    """Return a flag as flagd reads it."""
    by = {"cat": [seed, {"var": "targetingKey"}]}
    flag = {
        "state": "ENABLED",
        "variants": {arm: arm for arm in definition.arms},
        "defaultVariant": definition.arms[0],
        "targeting": {"fractional": [by, *map(list, zip(definition.arms, parts, strict=True))]},
        "metadata": {"phase": definition.key_of(phase)},
    }
    return _text(
        {"$schema": "https://flagd.dev/schema/v0/flags.json", "flags": {definition.name: flag}}
    )


def signed(
    course: Course,
    phase: int,
    parts: Sequence[int],
    seed: str,
    since: str,
    previous: str,
    *,
    sign: Callable[[bytes], bytes],
) -> str:
    """Return our own: a text, and its signature; the text has the hash of the one before.

    Whoever has two of them sees whether they are of one chain: everyone was told the same shares.
    """
    said = {
        "format": FORMAT,
        "version": VERSION,
        "experiment": course.name,
        "phase": phase,
        "key": course.key_of(phase),
        "salt": seed,
        "arms": list(course.arms),
        "parts": list(parts),
        "not_before": since,
        "every": course.every,
        "epsilon": course.epsilon,
        "previous": previous,
    }
    text = json.dumps(said, separators=(",", ":"))
    mark = sign(text.encode())
    return _text({"payload": text, "signature": base64.b64encode(mark).decode()})


def seed_of(course: Course, salt: str, phase: int) -> str:
    """Return the seed of a phase: a new one each, unless everyone counts once in all phases."""
    return salt if course.per_person == 1 else f"{salt}-{phase}"


def digest(text: str) -> str:
    """Return the hash by which the next payload names this one."""
    return hashlib.sha256(text.encode()).hexdigest()


def assigned(salt: str, unit: str, parts: Sequence[int]) -> int:
    """Return the index of the arm of a unit, as clients of our own payload compute it.

    Examples
    --------
    >>> [assigned("salt", f"u{k}", [5000, 5000]) for k in range(8)]
    [0, 1, 0, 0, 0, 1, 1, 0]
    """
    mark = hashlib.sha256(f"{salt}:{unit}".encode()).digest()
    bucket = int.from_bytes(mark[:4], "big") * PARTS >> 32
    for arm, part in enumerate(parts):
        bucket -= part
        if bucket < 0:
            return arm
    raise AssertionError("shares add up")


def _text(document: JSON) -> str:
    return json.dumps(document, indent=2) + "\n"

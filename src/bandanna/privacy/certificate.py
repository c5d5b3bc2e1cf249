"""Certificates: a guarantee as a document that others can check without trusting us.

``verify`` recomputes the promise from the numbers in the document: the mechanism's inequality in
rational arithmetic, and the same by dp-accounting, which shares no code with us. Every entry also
carries a seal, so that an accidental change is traced to its line; a seal proves nothing about
privacy, the arithmetic does.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator
from fractions import Fraction
from importlib import metadata
from typing import Any, NamedTuple

from bandanna.checks import MAX_EPSILON
from bandanna.documents import seal
from bandanna.privacy import accounting
from bandanna.privacy.one_bit_integers import integers_satisfy
from bandanna.privacy.release import PROTECTED, PROTECTED_WITH_EXPERTS
from bandanna.privacy.vector import SAMPLERS as VECTOR_SAMPLERS
from bandanna.privacy.vector_certificate import VECTOR_ENTRIES, check_vector
from bandanna.types import JSON, Guarantee, InputError
from bandanna.version import __version__

FORMAT = "bandanna certificate"
VERSION = 1
SEAL_LENGTH = 12
TOLERANCE = 1e-3
"""How far dp-accounting's numerical epsilon may be from the claim, relatively."""

MECHANISM_ENTRIES = {
    "one-bit": ("batch", "units", "a", "b", "denominator"),
    "laplace": ("batch", "units", "scale"),
    **dict.fromkeys(VECTOR_SAMPLERS, VECTOR_ENTRIES),
}


ENTRIES = (
    *("format", "version", "software", "epsilon", "delta", "model", "protects", "mechanism"),
    *("sampler", "sampler_version", "loss_low", "loss_high", "assumptions", "because"),
)
SAMPLERS = {
    "one-bit": "secrets.randbelow",
    "laplace": "OpenDP discrete Laplace, i64",
    **VECTOR_SAMPLERS,
}
FEWEST_ASSUMPTIONS = 6


class Finding(NamedTuple):
    """One thing that was checked."""

    entry: str
    holds: bool
    why: str


def make_certificate(guarantee: Guarantee, setting: JSON) -> JSON:
    """Write a guarantee down; ``setting`` is what else the promise depends on."""
    if not guarantee.private or guarantee.facts.get("mechanism") not in MECHANISM_ENTRIES:
        raise InputError(f"there is nothing to certify: {guarantee.because}.")
    entries: JSON = {
        "format": FORMAT,
        "version": VERSION,
        "software": f"bandanna {__version__}",
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "model": guarantee.model,
        "protects": guarantee.protects,
        **guarantee.facts,
        "sampler_version": _sampler_version(guarantee.facts["mechanism"]),
        **setting,
        "assumptions": list(guarantee.assumptions),
        "because": guarantee.because,
    }
    return {**entries, "seals": {key: _short_seal(key, value) for key, value in entries.items()}}


def verify(text: str) -> list[Finding]:
    """Check a certificate; it is good if every finding holds."""
    try:
        data = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return [Finding("file", False, f"not valid JSON: {error}")]
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return [Finding("format", False, f"must be {FORMAT!r}; got {_get(data, 'format')!r}")]
    if type(data.get("version")) is not int or data["version"] != VERSION:
        why = f"this software reads version {VERSION}; got {data.get('version')!r}"
        return [Finding("version", False, why)]
    broken = list(_check_seals(data))
    if broken:
        return broken
    findings: list[Finding] = []
    try:
        findings.extend(_check_promise(data))
    except (KeyError, TypeError, ValueError, ArithmeticError, MemoryError) as error:
        findings.append(Finding("file", False, f"entries are missing or impossible: {error!r}"))
    return findings


def line_of(text: str, entry: str) -> int | None:
    """Return the number of the line an entry is on."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip().startswith(json.dumps(entry)):
            return number
    return None


def _check_seals(data: JSON) -> Iterator[Finding]:
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
        elif _short_seal(key, data[key]) != mark:
            yield Finding(key, False, "does not match its seal: one of the two was changed")


def _check_promise(data: JSON) -> Iterator[Finding]:
    mechanism, epsilon, delta = data["mechanism"], data["epsilon"], data["delta"]
    if mechanism not in MECHANISM_ENTRIES:
        known = ", ".join(MECHANISM_ENTRIES)
        yield Finding("mechanism", False, f"unknown; there are {known}")
        return
    numbers = {key: data[key] for key in MECHANISM_ENTRIES[mechanism]}
    wrong = list(_check_types({**numbers, "epsilon": epsilon}))
    yield from wrong
    if wrong:
        return
    yield from _check_words(data)
    low, high = data["loss_low"], data["loss_high"]
    in_order = all(type(end) in (int, float) for end in (low, high)) and low < high
    yield Finding("loss_low", in_order, f"a public range, {low} to {high}")
    if mechanism in VECTOR_SAMPLERS:
        if type(delta) not in (int, float) or not 0 <= delta < 1:
            yield Finding("delta", False, "must be a number from 0 to below 1")
            return
        yield Finding("model", data["model"] == "central", "batches are summed first: central")
        for entry, holds, why in check_vector(mechanism, numbers, epsilon, delta):
            yield Finding(entry, holds, why)
        return
    pure = type(delta) in (int, float) and delta == 0.0
    yield Finding("delta", pure, f"{mechanism} is pure: delta is 0")
    check = _check_one_bit if mechanism == "one-bit" else _check_laplace
    exact = list(check(numbers, epsilon))
    yield from exact
    expected = "local" if numbers["batch"] == 1 else "central"
    yield Finding("model", data["model"] == expected, f"batches of {numbers['batch']}: {expected}")
    # What exact arithmetic refutes needs no second opinion, and too little noise takes a minute.
    if all(finding.holds for finding in exact):
        yield _second_opinion({"mechanism": mechanism, **numbers}, epsilon)


def _check_types(numbers: JSON) -> Iterator[Finding]:
    """Whole numbers must be whole, and nothing may be negative, endless or a text."""
    for key, value in numbers.items():
        if key in ("epsilon", "scale", "multiplier", "least"):
            top = MAX_EPSILON if key == "epsilon" else math.inf
            good = type(value) in (int, float) and 0 < value <= top and math.isfinite(value)
            if not good:
                yield Finding(key, False, "must be a finite number above 0, in range")
        elif type(value) is not int or value < 1:
            yield Finding(key, False, "must be a whole number, at least 1")


def _check_words(data: JSON) -> Iterator[Finding]:
    """What is promised must be what was proved, no more, and nothing may be left out."""
    mechanism = data["mechanism"]
    known = {*ENTRIES, *MECHANISM_ENTRIES[mechanism], "seals"}
    for key in sorted(set(data) ^ known):
        found = "is not known here" if key in data else "is missing"
        yield Finding(key, False, found)
    vector = mechanism in VECTOR_SAMPLERS
    covered = (PROTECTED,) if vector else (PROTECTED, PROTECTED_WITH_EXPERTS)
    same = data.get("protects") in covered
    yield Finding("protects", same, "one round's feedback, which is what the lemma covers")
    sampler = data.get("sampler") == SAMPLERS[mechanism]
    yield Finding("sampler", sampler, f"{SAMPLERS[mechanism]}, fed by the operating system")
    count = len(data.get("assumptions") or [])
    yield Finding("assumptions", count >= FEWEST_ASSUMPTIONS, f"{count} are stated")


def _without_repeats(pairs: list[tuple[str, Any]]) -> JSON:
    keys = [key for key, _ in pairs]
    repeated = {key for key in keys if keys.count(key) > 1}
    if repeated:
        raise ValueError(f"repeated entries: {', '.join(sorted(repeated))}")
    return dict(pairs)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _check_one_bit(numbers: JSON, epsilon: float) -> Iterator[Finding]:
    a, b, units, batch = (int(numbers[key]) for key in ("a", "b", "units", "batch"))
    fits = numbers["denominator"] == 2 * a + b * batch * units
    yield Finding("denominator", fits, "equals 2 a + b * batch * units")
    holds = integers_satisfy(a, b, epsilon, units)
    yield Finding("epsilon", holds, "(a + b * units) / a <= exp(epsilon), in exact fractions")


def _check_laplace(numbers: JSON, epsilon: float) -> Iterator[Finding]:
    scale, units = Fraction(numbers["scale"]), int(numbers["units"])
    holds = units <= Fraction(epsilon) * scale
    yield Finding("epsilon", holds, "units / scale <= epsilon, in exact fractions")


def _second_opinion(facts: JSON, epsilon: float) -> Finding:
    """Compute epsilon at a small delta by dp-accounting and compare with the claim."""
    claimed = Guarantee(
        float(epsilon), 0.0, "", "central", "", "", facts=facts, curve=lambda delta: epsilon
    )
    delta = 1e-9
    numeric = accounting.tight_epsilon(claimed, delta)
    why = f"dp-accounting finds {numeric:.6g} at delta {delta:g}"
    return Finding("epsilon", numeric <= epsilon * (1 + TOLERANCE), why)


def _short_seal(key: str, value: Any) -> str:
    return seal([key, value])[:SEAL_LENGTH]


def _get(data: Any, key: str) -> Any:
    return data.get(key) if isinstance(data, dict) else None


def _sampler_version(mechanism: str) -> str:
    if mechanism != "one-bit":
        return f"opendp {metadata.version('opendp')}"
    return f"python {platform.python_version()}"

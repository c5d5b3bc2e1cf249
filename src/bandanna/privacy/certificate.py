"""Certificates: a guarantee as a document that others can check without trusting us.

``verify`` recomputes the promise from the numbers in the document: the mechanism's inequality in
rational arithmetic, and the same by dp-accounting, which shares no code with us. Every entry also
carries a seal, so that an accidental change is traced to its line; a seal proves nothing about
privacy, the arithmetic does.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from fractions import Fraction
from importlib import metadata
from typing import Any, NamedTuple

from bandanna.documents import seal
from bandanna.privacy import accounting
from bandanna.privacy.one_bit import integers_satisfy
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
}


class Finding(NamedTuple):
    """One thing that was checked."""

    entry: str
    holds: bool
    why: str


def make_certificate(guarantee: Guarantee, setting: JSON) -> JSON:
    """Write a guarantee down; ``setting`` is what else the promise depends on."""
    if not guarantee.private:
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
        data = json.loads(text)
    except ValueError as error:
        return [Finding("file", False, f"not valid JSON: {error}")]
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return [Finding("format", False, f"must be {FORMAT!r}; got {_get(data, 'format')!r}")]
    if data.get("version") != VERSION:
        why = f"this software reads version {VERSION}; got {data.get('version')!r}"
        return [Finding("version", False, why)]
    broken = list(_check_seals(data))
    if broken:
        return broken
    findings: list[Finding] = []
    try:
        findings.extend(_check_promise(data))
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
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
    mechanism, epsilon, delta = data["mechanism"], float(data["epsilon"]), float(data["delta"])
    if mechanism not in MECHANISM_ENTRIES:
        known = ", ".join(MECHANISM_ENTRIES)
        yield Finding("mechanism", False, f"unknown; there are {known}")
        return
    yield Finding("delta", delta == 0.0, f"{mechanism} is pure: delta is 0")
    numbers = {key: data[key] for key in MECHANISM_ENTRIES[mechanism]}
    check = _check_one_bit if mechanism == "one-bit" else _check_laplace
    yield from check(numbers, epsilon)
    expected = "local" if numbers["batch"] == 1 else "central"
    yield Finding("model", data["model"] == expected, f"batches of {numbers['batch']}: {expected}")
    in_order = data["loss_low"] < data["loss_high"]
    why = f"a public range, {data['loss_low']:g} to {data['loss_high']:g}"
    yield Finding("loss_low", in_order, why)
    yield _second_opinion({"mechanism": mechanism, **numbers}, epsilon)


def _check_one_bit(numbers: JSON, epsilon: float) -> Iterator[Finding]:
    a, b, units, batch = (int(numbers[key]) for key in ("a", "b", "units", "batch"))
    fits = numbers["denominator"] == 2 * a + b * batch * units
    yield Finding("denominator", fits, "equals 2 a + b * batch * units")
    holds = integers_satisfy(a, b, epsilon, units)
    yield Finding("epsilon", holds, "(a + b * units) / a <= exp(epsilon), in exact fractions")


def _check_laplace(numbers: JSON, epsilon: float) -> Iterator[Finding]:
    scale, units = Fraction(numbers["scale"]), int(numbers["units"])
    holds = units <= Fraction(epsilon) * scale and int(numbers["batch"]) >= 1
    yield Finding("epsilon", holds, "units / scale <= epsilon, in exact fractions")


def _second_opinion(facts: JSON, epsilon: float) -> Finding:
    """Compute epsilon at a small delta by dp-accounting and compare with the claim."""
    claimed = Guarantee(epsilon, 0.0, "", "central", "", "", facts=facts)
    delta = 1e-9
    numeric = accounting.tight_epsilon(claimed, delta)
    why = f"dp-accounting finds {numeric:.6g} at delta {delta:g}"
    return Finding("epsilon", numeric <= epsilon * (1 + TOLERANCE), why)


def _short_seal(key: str, value: Any) -> str:
    return seal([key, value])[:SEAL_LENGTH]


def _get(data: Any, key: str) -> Any:
    return data.get(key) if isinstance(data, dict) else None


def _sampler_version(mechanism: str) -> str:
    if mechanism == "laplace":
        return f"opendp {metadata.version('opendp')}"
    return f"python {platform.python_version()}"

"""Certificates: a guarantee as a document that others can check without trusting us.

``verify`` recomputes the promise from the numbers in the document: the mechanism's inequality in
rational arithmetic, and the same by dp-accounting, which shares no code with us. Every entry also
carries a seal, so that an accidental change is traced to its line; a seal proves nothing about
privacy, the arithmetic does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from bandanna.checks import MAX_EPSILON
from bandanna.documents import seal
from bandanna.privacy.mechanism import Finding, Mechanism, is_positive
from bandanna.privacy.registry import MECHANISMS
from bandanna.privacy.release import PROTECTED, PROTECTED_WITH_EXPERTS
from bandanna.types import JSON, Guarantee, InputError
from bandanna.version import __version__

FORMAT = "bandanna certificate"
VERSION = 1
SEAL_LENGTH = 12
ENTRIES = (
    *("format", "version", "software", "epsilon", "delta", "model", "protects", "mechanism"),
    *("sampler", "sampler_version", "loss_low", "loss_high", "assumptions", "because"),
)
FEWEST_ASSUMPTIONS = 6


def make_certificate(guarantee: Guarantee, setting: JSON) -> JSON:
    """Write a guarantee down; ``setting`` is what else the promise depends on."""
    kind = MECHANISMS.get(guarantee.facts.get("mechanism", ""))
    if not guarantee.private or kind is None:
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
        "sampler_version": kind.sampler_version(),
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
    kind, epsilon, delta = MECHANISMS.get(data["mechanism"]), data["epsilon"], data["delta"]
    if kind is None:
        yield Finding("mechanism", False, f"unknown; there are {', '.join(MECHANISMS)}")
        return
    wrong = list(kind.impossible(data))
    if not is_positive(epsilon) or epsilon > MAX_EPSILON:
        wrong.append(Finding("epsilon", False, "must be a finite number above 0, in range"))
    if type(delta) not in (int, float) or not 0 <= delta < 1:
        wrong.append(Finding("delta", False, "must be a number from 0 to below 1"))
    if wrong:
        yield from wrong
        return
    yield from _check_words(data, kind)
    low, high = data["loss_low"], data["loss_high"]
    in_order = all(type(end) in (int, float) for end in (low, high)) and low < high
    yield Finding("loss_low", in_order, f"a public range, {low} to {high}")
    mechanism = kind.read(data)
    together = f"batches of {mechanism.batch}: {mechanism.model}"
    yield Finding("model", data["model"] == mechanism.model, together)
    yield from mechanism.check(epsilon, delta)


def _check_words(data: JSON, kind: type[Mechanism]) -> Iterator[Finding]:
    """What is promised must be what was proved, no more, and nothing may be left out."""
    known = {*ENTRIES, *kind.entries(), "seals"}
    for key in sorted(set(data) ^ known):
        found = "is not known here" if key in data else "is missing"
        yield Finding(key, False, found)
    covered = (PROTECTED, PROTECTED_WITH_EXPERTS) if kind.hides_advice else (PROTECTED,)
    same = data.get("protects") in covered
    yield Finding("protects", same, "one round's feedback, which is what the lemma covers")
    sampler = data.get("sampler") == kind.sampler
    yield Finding("sampler", sampler, f"{kind.sampler}, fed by the operating system")
    count = len(data.get("assumptions") or [])
    yield Finding("assumptions", count >= FEWEST_ASSUMPTIONS, f"{count} are stated")


def _without_repeats(pairs: list[tuple[str, object]]) -> JSON:
    keys = [key for key, _ in pairs]
    repeated = {key for key in keys if keys.count(key) > 1}
    if repeated:
        raise ValueError(f"repeated entries: {', '.join(sorted(repeated))}")
    return dict(pairs)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _short_seal(key: str, value: object) -> str:
    return seal([key, value])[:SEAL_LENGTH]


def _get(data: object, key: str) -> object:
    return data.get(key) if isinstance(data, dict) else None

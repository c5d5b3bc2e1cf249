"""Certificates: a guarantee as a document, derived again and checked entry by entry.

A short hash stands beside each entry, so that an accidental change is traced to its line. A
certificate may be signed, and may hold what devices were told.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bandanna import signatures
from bandanna._core.advice import MAX_EXPERTS
from bandanna._core.checks import MAX_ARMS, MAX_EPSILON, MIN_EPSILON
from bandanna._core.documents import seal
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.privacy.charges import (
    BEFORE_ENTRIES,
    FIRST_ENTRIES,
    INSIDE,
    START_ENTRIES,
    check_before,
    check_charged,
    check_first,
    check_start,
    impossible_first,
    stated_of_before,
    stated_of_first,
    stated_of_start,
)
from bandanna.privacy.charges import FORMAT as FORMAT_CHARGED
from bandanna.privacy.composition import check_person_slots, impossible_slots
from bandanna.privacy.mechanism import Finding, Mechanism, float_of, is_range
from bandanna.privacy.range import RANGE_ENTRIES, check_bought, impossible_range
from bandanna.privacy.registry import MECHANISMS
from bandanna.privacy.statements import (
    PERSON_ENTRIES,
    PROTECTED,
    PROTECTED_WITH_EXPERTS,
    PUBLIC_ROWS,
    Assumed,
    composes_slots,
    composition_of,
    protected_person,
    wrong_assumptions,
)
from bandanna.version import __version__

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


HISTORY = "parameters"
HISTORY_SHAPES = {
    "fingerprint": r"[0-9a-f]{64}",
    "key_id": r"[0-9a-f]{16}",
    "since": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}Z",
}


def with_history(certificate: JSON, history: Sequence[JSON]) -> JSON:
    """Return a certificate that also lists what devices were told."""
    if certificate["format"] == FORMAT_CHARGED:
        return {**certificate, INSIDE: with_history(certificate[INSIDE], history)}
    entries = {key: value for key, value in certificate.items() if key != "seals"}
    return sealed(entries | {HISTORY: list(history)})


def check_history(data: JSON) -> Iterator[Finding]:
    """Check what the list looks like, where there is one."""
    if HISTORY in data:
        told = data[HISTORY]
        good = isinstance(told, list) and all(map(_is_line, told))
        yield Finding(HISTORY, good, "what devices were told: fingerprints, to be compared")


def _is_line(line: object) -> bool:
    return (
        isinstance(line, dict)
        and set(line) == set(HISTORY_SHAPES)
        and all(re.fullmatch(shape, str(line[name])) for name, shape in HISTORY_SHAPES.items())
    )


SIGNATURE = "signature"


def sign_certificate(certificate: JSON, private_key: bytes) -> JSON:
    """Return a certificate with a signature, instead of one that it may have.

    Examples
    --------
    >>> import bandanna as bd
    >>> from bandanna._core.documents import to_text
    >>> from bandanna.privacy.certificate import verify
    >>> from bandanna.signatures import make_key
    >>> key = make_key()
    >>> certificate = bd.PrivateBandit(arms=2, epsilon=0.5).certificate()
    >>> signed = sign_certificate(certificate, key.private)
    >>> all(finding.holds for finding in verify(to_text(signed), key=key.public))
    True
    """
    mark = signatures.sign(private_key, _signed_part(certificate))
    return {**certificate, SIGNATURE: base64.b64encode(mark).decode()}


def check_signature(certificate: JSON, public_key: bytes) -> Finding:
    """Check that a certificate was signed by the owner of a key."""
    given = certificate.get(SIGNATURE)
    if given is None:
        return Finding(SIGNATURE, False, "missing: nobody stands behind this certificate")
    try:
        mark = base64.b64decode(str(given), validate=True)
    except ValueError:
        mark = b""
    if not signatures.verify(public_key, _signed_part(certificate), mark):
        return Finding(SIGNATURE, False, "not by the owner of this key, or something was changed")
    return Finding(SIGNATURE, True, f"by the owner of key {signatures.key_id(public_key)}")


def _signed_part(certificate: JSON) -> bytes:
    entries = {key: value for key, value in certificate.items() if key != SIGNATURE}
    return json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()


FORMAT = "bandanna certificate"
FORMAT_TOGETHER = "bandanna certificates of segments"
VERSION = 1
OF_LOGS = "answer"
"""What stands for the algorithm in the certificate of a log."""

ENTRIES = (
    *("format", "version", "software", "policy", "algorithm", "arms", "experts"),
    *("epsilon", "delta", "model", "protects", "mechanism", "sampler", "sampler_version"),
    *("loss_low", "loss_high", "assumptions", "because", "seals"),
)
SHAPES = {
    "software": r"bandanna [0-9][0-9a-z.+-]{0,30}",
    "policy": r"[0-9a-f]{8,64}",
    "algorithm": r"[a-z0-9][a-z0-9 ()+-]{0,60}",
}
"""What entries look like that name things and promise nothing."""


class Group(NamedTuple):
    """Entries that a certificate has together, or none of them."""

    entries: tuple[str, ...]
    impossible: Callable[[JSON], Iterator[Finding]] = lambda data: iter(())
    """Numbers that no certificate with these entries has."""
    stated: Callable[[JSON], tuple[str, ...]] = lambda data: ()
    """What such a certificate must assume."""


GROUPS = {
    "slot_epsilon": Group(PERSON_ENTRIES, impossible_slots),
    "range_epsilon": Group(RANGE_ENTRIES, impossible_range),
    "first_parts": Group(FIRST_ENTRIES, impossible_first, stated_of_first),
    "start_certificate": Group(START_ENTRIES, stated=stated_of_start),
    "adjusted": Group(BEFORE_ENTRIES, stated=stated_of_before),
}
"""Entries that not every certificate has, by the one that tells."""


class Setting(NamedTuple):
    """What a certificate is about, besides its guarantee."""

    policy: str
    """The identity that all its decisions carry."""
    algorithm: str
    arms: int
    experts: int | None
    loss_low: float
    loss_high: float


def make_certificate(guarantee: Guarantee, setting: Setting, also: JSON | None = None) -> JSON:
    """Write a guarantee down; ``also`` are entries of a bought range, or of a log at the start."""
    kind = MECHANISMS.get(guarantee.facts.get("mechanism", ""))
    if not guarantee.private or kind is None:
        raise InputError(f"there is nothing to certify: {guarantee.because}.")
    entries: JSON = {
        "format": FORMAT,
        "version": VERSION,
        "software": f"bandanna {__version__}",
        "policy": setting.policy,
        "algorithm": setting.algorithm,
        "arms": setting.arms,
        "experts": setting.experts,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "model": guarantee.model,
        "protects": guarantee.protects,
        **guarantee.facts,
        "sampler_version": kind.sampler_version(),
        "loss_low": setting.loss_low,
        "loss_high": setting.loss_high,
        "assumptions": list(guarantee.assumptions),
        "because": guarantee.because,
    }
    return sealed(entries | (also or {}))


def together(certificates: dict[str, JSON]) -> JSON:
    """Return the certificates of segments in one document."""
    return {"format": FORMAT_TOGETHER, "version": VERSION, "segments": certificates}


def verify(text: str, *, key: bytes | None = None) -> list[Finding]:
    """Check a certificate, or those of segments; it is good if every finding holds.

    With ``key``, a public one, it must carry a signature by its owner.
    """
    return _verify(text, key)


def _verify(text: str, key: bytes | None = None, times: int = 1) -> list[Finding]:
    """Check a certificate of what was released so many times."""
    try:
        data = json.loads(
            text,
            object_pairs_hook=_without_repeats,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        return [Finding("file", False, f"not valid JSON: {error}")]
    if isinstance(data, dict) and data.get("format") == FORMAT_TOGETHER:
        return _verify_together(data, key)
    if isinstance(data, dict) and data.get("format") == FORMAT_CHARGED:
        return _verify_charged(data, key)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        form = data.get("format") if isinstance(data, dict) else None
        return [Finding("format", False, f"must be {FORMAT!r}; got {form!r}")]
    if type(data.get("version")) is not int or data["version"] != VERSION:
        why = f"this software reads version {VERSION}; got {data.get('version')!r}"
        return [Finding("version", False, why)]
    findings: list[Finding] = []
    try:
        if key is not None:
            findings.append(check_signature(data, key))
        data.pop(SIGNATURE, None)
        broken = list(check_seals(data))
        findings.extend(broken or _check_promise(data, times))
    except InputError:  # of the key's, which is ours and not the certificate's
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        MemoryError,
        RecursionError,
    ) as error:
        findings.append(Finding("file", False, f"entries are missing or impossible: {error!r}"))
    return findings


def _verify_together(data: JSON, key: bytes | None) -> list[Finding]:
    """Check the certificate of every segment."""
    segments = data.get("segments")
    if set(data) != {"format", "version", "segments"} or not isinstance(segments, dict):
        return [Finding("segments", False, "must be certificates by segment, and nothing else")]
    if not segments:
        return [Finding("segments", False, "there are none")]
    return [
        finding._replace(entry=f"{name}: {finding.entry}")
        for name, one in segments.items()
        for finding in _verify(json.dumps(one), key)
    ]


def _verify_charged(data: JSON, key: bytes | None) -> list[Finding]:
    """Check the certificate of a release, and what resumptions made of it."""
    findings = [] if key is None else [check_signature(data, key)]
    entries = {name: value for name, value in data.items() if name != SIGNATURE}
    try:
        findings.extend(check_charged(entries))
    except (TypeError, ValueError, ArithmeticError) as error:
        findings.append(Finding("file", False, f"entries are missing or impossible: {error!r}"))
    inside, resumed = data.get(INSIDE), data.get("resumed")
    nested = isinstance(inside, dict) and inside.get("format") == FORMAT
    times = resumed + 1 if type(resumed) is int else 1
    return [*findings, *_verify(json.dumps(inside if nested else None), times=times)]


def line_of(text: str, entry: str) -> int | None:
    """Return the number of the line an entry is on."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip().startswith(json.dumps(entry)):
            return number
    return None


def _check_promise(data: JSON, times: int) -> Iterator[Finding]:
    kind = MECHANISMS.get(data["mechanism"])
    if kind is None:
        yield Finding("mechanism", False, f"unknown; there are {', '.join(MECHANISMS)}")
        return
    groups = [group for told, group in GROUPS.items() if told in data]
    needed = {*ENTRIES, *kind.entries(), *(key for group in groups for key in group.entries)}
    given = set(data) - ({HISTORY} if kind.on_device else set())
    wrong = [
        Finding(key, False, "is not known here" if key in data else "is missing")
        for key in sorted(given ^ needed)
    ] or [*_impossible(data), *kind.impossible(data)]
    for group in groups:
        wrong = wrong or list(group.impossible(data))
    ranged = "range_epsilon" in data
    if ranged and ("start_certificate" in data or times > 1):
        wrong.append(Finding("range_epsilon", False, "adds up with no log and no resumption here"))
    if wrong:
        yield from wrong
        return
    mechanism = kind.read(data)
    words = [*_check_words(data, mechanism), *check_history(data)]
    yield from words
    if not all(finding.holds for finding in words):
        return  # what words refute needs no arithmetic
    if composes_slots(data):
        yield from check_person_slots(mechanism, data)
    else:
        yield from mechanism.check(data["epsilon"], data["delta"])
    if ranged:
        yield from check_bought(data)
    if "start_certificate" in data:
        yield from check_start(data, _verify_log, times)
    if "adjusted" in data:
        yield from check_before(data, times)
    if "first_parts" in data:
        yield from check_first(data)


def _verify_log(data: JSON) -> list[Finding]:
    """Check the certificate of a log that a policy starts from."""
    more = {"start_certificate", "range_epsilon", "adjusted", "first_parts"}
    if not isinstance(data, dict) or data.get("format") != FORMAT or more & set(data):
        return [Finding("format", False, "must be the certificate of an answer from a log")]
    return _verify(json.dumps(data))


def _impossible(data: JSON) -> Iterator[Finding]:
    """Numbers that no certificate has."""
    ranges = {"epsilon": (MIN_EPSILON, MAX_EPSILON), "delta": (0.0, 1.0)}
    for key, (least, most) in ranges.items():
        good = type(data[key]) in (int, float) and least <= float_of(data[key]) <= most
        if not good or data["delta"] == 1:
            yield Finding(key, False, f"must be a number from {least:g} to {most:g}")
    for key, least, most in (("arms", 2, MAX_ARMS), ("experts", 1, MAX_EXPERTS)):
        if (key, data[key]) != ("experts", None) and not (
            type(data[key]) is int and least <= data[key] <= most
        ):
            yield Finding(key, False, f"must be a whole number from {least} to {most}")
    if not is_range([data["loss_low"], data["loss_high"]]):
        yield Finding("loss_low", False, "must be numbers in range, loss_low below loss_high")


def _check_words(data: JSON, mechanism: Mechanism) -> Iterator[Finding]:
    """What is promised must be what was proved, no more, and nothing may be left out."""
    for key, shape in SHAPES.items():
        if not isinstance(data[key], str) or not re.fullmatch(shape, data[key]):
            yield Finding(key, False, "is not what this software writes")
    slots = data["slots"] if composes_slots(data) else None
    if slots is None:
        named = str(data["algorithm"]), data["experts"]
        most = mechanism.protected(*named)
        same = data["protects"] in (most, PROTECTED if most == PROTECTED_WITH_EXPERTS else most)
        unit = "round" if mechanism.per_person is None else "person"
        what = f"one {unit}'s feedback, as is proved for {data['algorithm']}"
        reasons = mechanism.reasons
    else:
        same = data["protects"] == protected_person(slots)
        what = f"all that one person contributes in {slots} slots"
        added = composition_of(slots, data["delta"])
        reasons = tuple(f"{reason}; {added}" for reason in mechanism.reasons)
    yield Finding("protects", same, what)
    if "experts" in mechanism.entries() and data["experts"] is None:
        yield Finding("experts", False, "this mechanism is one for experts")
    sampler = data["sampler"] == mechanism.sampler
    yield Finding("sampler", sampler, f"{mechanism.sampler}, fed by the operating system")
    name, oldest = mechanism.sampled_by
    good = mechanism.good_sampler(data["sampler_version"])
    yield Finding("sampler_version", good, f"{name} from {oldest} on draws as it should")
    low, high, stated = data["loss_low"], data["loss_high"], data["assumptions"]
    how = "a range bought within the bounds" if mechanism.bought else "a public range"
    yield Finding("loss_low", True, f"{how}, {low} to {high}")
    said = stated if isinstance(stated, list) else [None]
    about = Assumed(
        *(low, high, data["experts"], slots or mechanism.per_person),
        in_epochs=mechanism.per_person is not None,
        bought="range_epsilon" in data or mechanism.bought,
    )
    of_log = data["algorithm"] == OF_LOGS and not mechanism.hides_presence
    rows = (PUBLIC_ROWS,) if of_log else ()
    charges = [text for told, one in GROUPS.items() if told in data for text in one.stated(data)]
    also = (*mechanism.assumptions(), *charges, *rows)
    wrong = wrong_assumptions(said, about, also)
    yield Finding("assumptions", not wrong, "; ".join(wrong) or f"all {len(stated)} are stated")
    model = mechanism.model if slots is None else "central"
    yield Finding("model", data["model"] == model, f"{mechanism.sizes}: {model}")
    if data["because"] not in reasons:
        yield Finding("because", False, f"the proof says: {reasons[0]}")


def _without_repeats(pairs: list[tuple[str, object]]) -> JSON:
    keys = [key for key, _ in pairs]
    repeated = {key for key in keys if keys.count(key) > 1}
    if repeated:
        raise ValueError(f"repeated entries: {', '.join(sorted(repeated))}")
    return dict(pairs)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is beyond the numbers that are used here")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")

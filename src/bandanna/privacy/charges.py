"""Certificates of policies that cost more than one release: resumed, or started from a log.

Each resumption from an older copy may have released what was open again, with fresh noise, so that
epsilon and delta are those of the release times the number of resumptions plus one (basic
composition). The document holds the certificate of the release, which is checked as always, and
the number.

What is subtracted from outcomes may hold feedback that was released before: that has both
epsilons added up.

A log that a policy starts from was released with an epsilon of its own, before the run. The run
reads only what was released, so people in the log alone are protected with the log's epsilon, and
people in the run alone with the policy's. For people who are in both, the two add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from bandanna._core.checks import MAX_EPSILON
from bandanna._core.types import JSON, Guarantee, times_up
from bandanna.privacy.composition import float_above
from bandanna.privacy.log_release import SideRelease, possible_parts, prove_parts
from bandanna.privacy.mechanism import Finding, float_of
from bandanna.privacy.parts import added_up
from bandanna.privacy.statements import before_assumed, first_assumed, started_assumed

FORMAT = "bandanna certificate of a charged policy"
VERSION = 1
MOST = 10**6
"""Resumptions that anybody would certify."""

INSIDE = "certificate"
ENTRIES = {"format", "version", "epsilon", "delta", "resumed", "because", INSIDE}


def charged(certificate: JSON, resumed: int) -> JSON:
    """Return the certificate of a policy that was resumed so many times more than once.

    Examples
    --------
    >>> import bandanna as bd
    >>> certificate = bd.PrivateBandit(arms=2, epsilon=0.5).certificate()
    >>> charged(certificate, 2)["epsilon"]
    1.5
    """
    if resumed == 0:
        return certificate
    spent = _spent(certificate, resumed)
    because = _because(resumed)
    start: JSON = {"format": FORMAT, "version": VERSION}
    return start | spent | {"resumed": resumed, "because": because, INSIDE: certificate}


def check_charged(data: JSON) -> Iterator[Finding]:
    """Check what the certificate inside does not say; that is checked by itself."""
    if set(data) != ENTRIES or data["version"] != VERSION:
        yield Finding("file", False, f"must have these entries and no others: {sorted(ENTRIES)}")
        return
    resumed, inside = data["resumed"], data[INSIDE]
    if type(resumed) is not int or not 1 <= resumed <= MOST:
        yield Finding("resumed", False, f"must be a whole number from 1 to {MOST}")
        return
    if not isinstance(inside, dict) or not {"epsilon", "delta"} <= set(inside):
        yield Finding(INSIDE, False, "must be the certificate of the release")
        return
    yield Finding("resumed", True, f"charged {resumed + 1} times, by basic composition")
    for name, least in _spent(inside, resumed).items():
        why = f"{resumed + 1} times {inside[name]}: {least}"
        yield Finding(name, type(data[name]) in (int, float) and data[name] == least, why)
    if data["because"] != _because(resumed):
        yield Finding("because", False, f"the proof says: {_because(resumed)}")


def with_charge(certificate: JSON) -> JSON:
    """Return the entries of a certificate, with what resumptions cost if it tells of any."""
    if certificate.get("format") != FORMAT:
        return certificate
    inside = certificate[INSIDE]
    because = f"{inside['because']}; {certificate['because']}"
    spent = {name: certificate[name] for name in ("epsilon", "delta")}
    return {**inside, **spent, "because": because}


def _spent(certificate: JSON, resumed: int) -> dict[str, float]:
    epsilon = times_up(resumed + 1, certificate["epsilon"])
    return {"epsilon": epsilon, "delta": min(1.0, times_up(resumed + 1, certificate["delta"]))}


def _because(resumed: int) -> str:
    return (
        f"it was resumed from an older copy {resumed} times, and what was open may have been "
        f"released {resumed + 1} times (Lemma 'Basic Composition')"
    )


START_ENTRIES = ("start_certificate", "epsilon_with_start")
"""Entries of the certificate of a policy that starts from a log; others have none of them."""


def with_start(log: float, own: float, times: int = 1) -> float:
    """Return what a log and a run, charged some times, cost someone who is in both.

    Examples
    --------
    >>> with_start(0.5, 0.25)
    0.75
    """
    return float_above(Fraction(log) + times * Fraction(own))


def assuming_start(promise: Guarantee, log: float, times: int = 1) -> Guarantee:
    """Return a policy's promise that also says what holds for the people of a log."""

    def says(size: int, epsilon: float) -> str:
        logged = times_up(size, log)
        return started_assumed(logged, with_start(logged, epsilon, times))

    return replace(promise.assuming(says(1, promise.epsilon)), restated=says)


def start_entries(certificate: JSON, epsilon: float, times: int = 1) -> JSON:
    """Return the entries of a policy with an epsilon that starts from a certified log."""
    together = with_start(float(certificate["epsilon"]), epsilon, times)
    return {"start_certificate": certificate, "epsilon_with_start": together}


def stated_of_start(data: JSON) -> tuple[str, ...]:
    """Return what such a certificate must assume."""
    log = float_of(data["start_certificate"]["epsilon"])
    return (started_assumed(log, float_of(data["epsilon_with_start"])),)


BEFORE_ENTRIES = ("adjusted", "before_epsilon", "epsilon_with_before")
"""Entries of the certificate of a policy that subtracts what was known before."""


def assuming_before(promise: Guarantee, name: str, before: float, times: int = 1) -> Guarantee:
    """Return a policy's promise that also says what is subtracted, and what it cost before."""

    def says(size: int, epsilon: float) -> str:
        earlier = times_up(size, before)
        return before_assumed(name, earlier, with_start(earlier, epsilon, times))

    return replace(promise.assuming(says(1, promise.epsilon)), restated=says)


def before_entries(name: str, before: float, epsilon: float, times: int = 1) -> JSON:
    """Return the entries of a policy with an epsilon that subtracts what was known before."""
    together = with_start(before, epsilon, times)
    return {"adjusted": name, "before_epsilon": before, "epsilon_with_before": together}


def stated_of_before(data: JSON) -> tuple[str, ...]:
    """Return what such a certificate must assume."""
    before, together = (float_of(data[name]) for name in BEFORE_ENTRIES[1:])
    return (before_assumed(str(data["adjusted"]), before, together),)


def check_before(data: JSON, times: int = 1) -> Iterator[Finding]:
    """Prove what a run, charged some times, and what was released before cost together."""
    before, stated = data["before_epsilon"], data["epsilon_with_before"]
    good = type(before) in (int, float) and 0.0 <= float_of(before) <= MAX_EPSILON
    yield Finding("before_epsilon", good, f"must be a number from 0 to {MAX_EPSILON:g}")
    if good:
        both = with_start(float_of(before), float_of(data["epsilon"]), times)
        same = type(stated) in (int, float) and stated == both
        why = f"what was released before and the run cost {both:g} together"
        yield Finding("epsilon_with_before", same, why)


FIRST_ENTRIES = ("first_rounds", "first_parts")
"""Entries of the certificate of a policy whose first phase finds how outcomes are counted."""


def assuming_first(promise: Guarantee, rounds: int) -> Guarantee:
    """Return a policy's promise that also says what its first phase is used for.

    Its parts have other laws than sums, so what is known of those alone is left out.
    """
    return replace(promise.assuming(first_assumed(rounds)), curve=None, group=None)


def first_entries(rounds: int, parts: Sequence[SideRelease]) -> JSON:
    """Return the entries of a policy whose first phase releases these parts."""
    return {"first_rounds": rounds, "first_parts": [part.to_dict() for part in parts]}


def stated_of_first(data: JSON) -> tuple[str, ...]:
    """Return what such a certificate must assume."""
    return (first_assumed(data["first_rounds"]),)


def impossible_first(data: JSON) -> Iterator[Finding]:
    """Entries that no first phase has."""
    rounds = data["first_rounds"]
    if type(rounds) is not int or rounds < 1:
        yield Finding("first_rounds", False, "must be a whole number, at least 1")
    if not possible_parts(data["first_parts"]):
        yield Finding("first_parts", False, "must list what, kind, epsilon and scale of each")


def check_first(data: JSON) -> Iterator[Finding]:
    """Prove what the first phase costs: no more than any other round, or slot of a person."""
    parts = data["first_parts"]
    yield from prove_parts(parts, "first_parts")
    most = float_of(data.get("slot_epsilon", data["epsilon"]))
    together = added_up(float_of(part["epsilon"]) for part in parts)
    why = f"{len(parts)} parts add up to {together:g}, at most {most:g}"
    yield Finding("first_parts", together <= most, why)


def check_start(
    data: JSON, verify: Callable[[JSON], list[Finding]], times: int = 1
) -> Iterator[Finding]:
    """Prove what the log cost, and what it and a run, charged some times, cost who is in both."""
    inside = data["start_certificate"]
    for finding in verify(inside):
        yield finding._replace(entry=f"start_certificate: {finding.entry}")
    both, stated = (
        with_start(float_of(inside["epsilon"]), float_of(data["epsilon"]), times),
        data["epsilon_with_start"],
    )
    good = type(stated) in (int, float) and stated == both
    yield Finding("epsilon_with_start", good, f"log and run cost {both:g} together")

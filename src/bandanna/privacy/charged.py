"""Certificates of policies that were resumed from older copies, and charged for it.

Each resumption may have released what was open again, with fresh noise, so that epsilon and delta
are those of the release times the number of resumptions plus one (basic composition). The document
holds the certificate of the release, which is checked as always, and the number.
"""

from __future__ import annotations

from collections.abc import Iterator

from bandanna._core.types import JSON, times_up
from bandanna.privacy.mechanism import Finding

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
        why = f"{resumed + 1} times {inside[name]}: at least {least}"
        yield Finding(name, type(data[name]) in (int, float) and data[name] >= least, why)
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

"""A policy that starts from the releases of a log, in a certificate: what both cost together.

The log was released with an epsilon of its own, before the run. The run reads only what was
released, so people in the log alone are protected with the log's epsilon, and people in the run
alone with the policy's. For people who are in both, the two add up (basic composition).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from bandanna._core.types import JSON, Guarantee
from bandanna.privacy.composition import float_above
from bandanna.privacy.mechanism import Finding, float_of
from bandanna.privacy.statements import started_assumed

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
    return promise.assuming(started_assumed(log, with_start(log, promise.epsilon, times)))


def start_entries(certificate: JSON, epsilon: float, times: int = 1) -> JSON:
    """Return the entries of a policy with an epsilon that starts from a certified log."""
    together = with_start(float(certificate["epsilon"]), epsilon, times)
    return {"start_certificate": certificate, "epsilon_with_start": together}


def stated_of_start(data: JSON) -> tuple[str, ...]:
    """Return what such a certificate must assume."""
    if "start_certificate" not in data:
        return ()
    log = float_of(data["start_certificate"]["epsilon"])
    return (started_assumed(log, float_of(data["epsilon_with_start"])),)


def check_start(data: JSON, verify: Callable[[JSON], list[Finding]]) -> Iterator[Finding]:
    """Prove what the log cost, and what both cost someone who is in the log and in the run."""
    inside = data["start_certificate"]
    for finding in verify(inside):
        yield finding._replace(entry=f"start_certificate: {finding.entry}")
    least = with_start(float_of(inside["epsilon"]), float_of(data["epsilon"]))
    good = type(data["epsilon_with_start"]) in (int, float) and data["epsilon_with_start"] >= least
    yield Finding("epsilon_with_start", good, f"log and run cost {least:g} together")

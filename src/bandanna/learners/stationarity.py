"""Test whether an arm's distribution of losses stays the same, from its releases alone.

Under stationarity every release of an arm is the mean of independent draws in [0, 1] with one mean,
plus discrete Laplace noise of known scale. So each new one is compared with all earlier ones of its
arm. The test looks at released values only: it costs no privacy and no exploration.

False alarms, over a whole run of any length, at most ``alpha``. Each arm has a share of it, its
odds: ``alpha / (2 K)`` the first K arms, and ``alpha / (2 j (j + 1))`` the j-th that is added.
Half of an arm's odds is spent on the earlier draws, by a bound that holds at all times at once
(their number is not fixed in advance: it depends on what was seen). The other half is spent on the
new draws, the new noise and the sum of the old noise, ``odds / (2 r (r + 1))`` for its comparison
with ``r`` earlier releases, by bounds that hold for each. Proofs: ``docs/theory/stationary.md``.
"""

from __future__ import annotations

import math
from typing import NotRequired, Protocol, TypedDict

from bandanna._core.compiled import step
from bandanna.learners.records import record_of


class GuardNumbers(Protocol):
    """What the guard has seen."""

    tests: float
    alarm: float
    """1 once there was one."""
    closest: float
    """The largest difference over what is allowed; the next five are of that test."""
    arm: float
    after: float
    """Rounds before it."""
    old: float
    """The arm's mean before, and then."""
    new: float
    allowed: float
    added: float
    """Arms that were added to those it began with."""


GUARD = record_of(GuardNumbers)

MIXED = 25.0
"""Where the bound for all times is tightest: from about four times as many draws on."""


@step
def largest_difference(
    new: float, old: float, releases: float, epsilon: float, odds: float
) -> float:
    """Return how far a mean of ``new`` draws may be from one of ``old``, in so many releases.

    ``odds`` is the probability of a false alarm that this arm may have.
    """
    level = math.log(12.0 * releases * (releases + 1.0) / odds)
    draws = math.sqrt(0.5 * level / new)
    noise = level / (epsilon * new)
    spread = 0.25 * old + MIXED
    at_all_times = math.log(2.0 / odds) + 0.5 * math.log(spread / MIXED)
    old_draws = math.sqrt(2.0 * spread * at_all_times) / old
    old_noise = (2.0 * math.sqrt(releases * level) + level) / (epsilon * old)
    return draws + noise + old_draws + old_noise


@step
def note_test(
    seen: GuardNumbers, arm: int, rounds: float, old: float, new: float, allowed: float
) -> None:
    """Count a comparison of means; the guard remembers the most telling one."""
    seen.tests += 1.0
    ratio = abs(new - old) / allowed
    if ratio > seen.closest:
        seen.closest = ratio
        seen.arm = arm
        seen.after = rounds
        seen.old = old
        seen.new = new
        seen.allowed = allowed
        seen.alarm = 1.0 if ratio > 1.0 else 0.0


class ArmChange(TypedDict):
    """A release against the earlier ones of its arm."""

    arm: int
    after_rounds: int
    loss_before: float
    loss_then: float
    difference_allowed: float


class GuardReport(TypedDict):
    """What the guard has seen."""

    guard: bool
    """Whether there is one."""
    tests: int
    alarm: bool
    false_alarm: float
    """How likely an alarm is where nothing changes, at most."""
    approximate: NotRequired[bool]
    """Whether that is what it was designed for, not what is proved."""
    most_telling: NotRequired[ArmChange]


def guard_report(seen: GuardNumbers, *, guard: bool, false_alarm: float) -> GuardReport:
    """Say what the guard has seen."""
    report = GuardReport(
        guard=guard,
        tests=int(seen.tests),
        alarm=bool(seen.alarm),
        false_alarm=false_alarm,
    )
    if seen.tests:
        report["most_telling"] = ArmChange(
            arm=int(seen.arm),
            after_rounds=int(seen.after),
            loss_before=float(1.0 - seen.old),
            loss_then=float(1.0 - seen.new),
            difference_allowed=float(seen.allowed),
        )
    return report

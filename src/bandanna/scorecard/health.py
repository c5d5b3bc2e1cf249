"""Whether an experiment went as it should: what public counts say of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bandanna._core.checks import as_float
from bandanna._core.types import ArmName, InputError
from bandanna.scorecard.view import Check

ALARM = 0.01
"""A fair division raises an alarm with at most this probability."""


def ratio_chance(counts: Sequence[int], shares: Sequence[float]) -> float:
    """Return how likely a division as far from the shares as this one is by chance.

    Exact: of each arm the binomial probability of so many people or fewer, and of so many or more;
    the smallest of them, times twice the number of arms. Two arms are one binomial.

    Examples
    --------
    >>> round(ratio_chance([9_600, 10_400], [0.5, 0.5]), 9)
    1.6e-08
    >>> ratio_chance([10_000, 10_000], [0.5, 0.5])
    1.0
    """
    from scipy.special import betainc  # the binomial law; scipy.stats takes seconds to load

    people = sum(counts)
    tested = 1 if len(counts) == 2 else len(counts)
    least = 1.0
    for count, share in list(zip(counts, shares, strict=True))[:tested]:
        if count < people:
            least = min(least, float(betainc(people - count, count + 1, 1.0 - share)))
        if count > 0:
            least = min(least, float(betainc(count, people - count + 1, share)))
    return min(1.0, 2.0 * tested * least)


def sample_ratio(
    names: Sequence[ArmName],
    counts: Sequence[int],
    shares: Mapping[ArmName, float] | None = None,
    per: str = "people",
) -> Check:
    """Return whether people were divided as planned; in equal parts by default."""
    planned = planned_shares(names, shares)
    chance = ratio_chance(counts, planned)
    seen = ", ".join(
        f"{name} {100.0 * count / max(sum(counts), 1):.1f}%"
        for name, count in list(zip(names, counts, strict=True))[:6]
    )
    asked = "in equal parts" if shares is None else "as planned"
    if chance > ALARM:
        return Check(
            "division", True, f"{per.capitalize()} are divided {asked} (p = {chance:.2g})."
        )
    unless = " If other shares were planned, give them." if shares is None else ""
    return Check(
        "division",
        False,
        f"{per.capitalize()} are not divided {asked}: {seen} (p = {chance:.1g}). Something decides "
        f"who is counted; find it before you believe a difference.{unless}",
    )


def planned_shares(
    names: Sequence[ArmName], shares: Mapping[ArmName, float] | None
) -> tuple[float, ...]:
    """Return the planned share of each arm, all of them together 1."""
    if shares is None:
        return (1.0 / len(names),) * len(names)
    if not isinstance(shares, Mapping):
        raise InputError(
            f"shares must be a dict of arms and their shares, such as {{{names[0]!r}: 0.5, ...}}; "
            f"got {shares!r}."
        )
    by_name = {str(name): share for name, share in shares.items()}
    if set(by_name) != {str(name) for name in names}:
        raise InputError(
            f"shares are for the arms {', '.join(map(str, names))}; got "
            f"{', '.join(map(str, shares))}."
        )
    values = [by_name[str(name)] for name in names]
    if not all(math.isfinite(as_float(value)) and value > 0.0 for value in values):
        raise InputError(f"shares must be positive numbers; got {values!r}.")
    return tuple(value / sum(values) for value in values)

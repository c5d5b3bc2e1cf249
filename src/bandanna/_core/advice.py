"""Expert advice as arrays, in the layout compiled code reads fastest.

Experts who name one arm take a byte or two each: ``(experts,)`` whole numbers. Experts who spread
their advice take ``(arms, experts)`` floats: what all experts say of one arm lies together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import JSON, ArmName, InputError

Advice = NDArray[Any]
"""Whole numbers or floats: the number of dimensions tells."""

TOLERANCE = 1e-4
"""How far from 1 the sum of an expert's advice may be; within it, it is scaled to 1."""

MAX_EXPERTS = 10**6


class Ticket(NamedTuple):
    """What is needed to credit a round's loss to experts later; all of it is public."""

    advice: Advice
    """The round's votes; or one row, each expert's share of the chosen arm."""
    arm: int
    """Index of the chosen arm, or 0 where there is one row only."""
    importance: float

    def to_dict(self) -> JSON:
        """Return plain values."""
        return {"advice": self.advice.tolist(), "arm": self.arm, "importance": self.importance}


def ticket_of(advice: Advice, arm: int, importance: float) -> Ticket:
    """Keep what must be kept of a round's advice: votes, or shares of the arm."""
    if advice.ndim == 1:
        return Ticket(advice, arm, importance)
    return Ticket(np.ascontiguousarray(advice[arm : arm + 1]), 0, importance)


def ticket_from_dict(saved: JSON, arms: int, experts: int) -> Ticket:
    """Make a ticket from what ``Ticket.to_dict`` gave, refusing impossible ones.

    Older files may have a row for every arm.
    """
    spread = isinstance(saved["advice"][0], list)
    rows = len(saved["advice"]) if spread else 1
    advice = np.array(saved["advice"], dtype=np.float64 if spread else np.int64)
    ticket = Ticket(advice, int(saved["arm"]), float(saved["importance"]))
    good = (
        rows in (1, arms)
        and advice.shape == ((rows, experts) if spread else (experts,))
        and np.all((advice >= 0) & (advice <= (1 if spread else arms - 1)))
        and 0 <= ticket.arm < (rows if spread else arms)
        and 1.0 - 1e-9 <= ticket.importance < np.inf
    )
    if not good:
        raise ValueError("a waiting round holds impossible values")
    return ticket if spread else ticket._replace(advice=advice.astype(vote_type(arms)))


def vote_type(arms: int) -> type[np.uint8 | np.uint16 | np.uint32]:
    """Return the smallest type that holds the index of an arm."""
    return np.uint8 if arms <= 2**8 else np.uint16 if arms <= 2**16 else np.uint32


def check_advice(
    advice: object,
    experts: int,
    arms: int,
    names: Sequence[ArmName] = (),
    expert_names: Sequence[ArmName] = (),
) -> Advice:
    """Turn one round's advice into an array, refusing what is no advice.

    Experts may name arms by their names, where those are texts. Advice may be given by the names of
    experts.
    """
    if isinstance(advice, Mapping):
        advice = _in_order(advice, expert_names)
    if isinstance(advice, list | tuple) and any(isinstance(said, str) for said in advice):
        advice = _by_name(advice, names)
    table = _as_array(advice)
    if table.shape not in ((experts,), (experts, arms)):
        raise InputError(
            f"advice must be the index of an arm for each of {experts} experts, shape "
            f"({experts},), or a distribution over arms for each, shape ({experts}, {arms}); "
            f"got shape {table.shape}."
        )
    checked: Advice = check_rounds_of_advice(table[np.newaxis], arms)[0]
    return checked


def check_rounds_of_advice(table: Advice, arms: int, start: int | None = None) -> Advice:
    """Turn several rounds' advice, (rounds, experts) or (rounds, experts, arms), into an array."""
    if table.ndim == 2:
        return _votes(table, arms, start)
    with np.errstate(invalid="ignore", over="ignore"):  # what is out of range is refused below
        shares = table.astype(np.float64)
        totals = shares.sum(axis=2)
        wrong = ~(np.abs(totals - 1.0) <= TOLERANCE) | ~(shares >= 0.0).all(axis=2)
    if wrong.any():
        at, expert = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"each expert's advice must be numbers from 0 to 1 that add up to 1 (within "
            f"{TOLERANCE:g}); that of expert {expert}{_when(start, at)} adds up to "
            f"{totals[at, expert]:.6g}: {_some(shares[at, expert])}."
        )
    shares /= totals[:, :, np.newaxis]
    return np.ascontiguousarray(shares.transpose(0, 2, 1))


def _votes(table: Advice, arms: int, start: int | None) -> Advice:
    with np.errstate(invalid="ignore"):
        wrong = ~((table >= 0) & (table < arms) & (table == np.floor(table)))
    if wrong.any():
        at, expert = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"an expert's advice must be the index of an arm, 0 to {arms - 1}; that of expert "
            f"{expert}{_when(start, at)} is {table[at, expert].item()!r}."
        )
    return np.array(table, dtype=vote_type(arms), order="C")  # a copy: callers reuse their arrays


def _when(start: int | None, at: int) -> str:
    """Say which round of a table it is; a single round needs no number."""
    return "" if start is None else f" in round {start + at}"


def _some(row: Advice) -> str:
    shown = ", ".join(f"{share:.6g}" for share in row[:6])
    return f"[{shown}{', ...' if row.size > 6 else ''}]"


def _in_order(advice: Mapping[Any, object], experts: Sequence[ArmName]) -> list[object]:
    known = set(experts)
    for name in advice:
        if name not in known:
            shown = ", ".join(map(repr, experts[:20]))
            raise InputError(f"advice is for an unknown expert, {name!r}; there are {shown}.")
    missing = [name for name in experts if name not in advice]
    if missing:
        raise InputError(f"advice is missing: expert {missing[0]!r} said nothing.")
    return [advice[name] for name in experts]


def _by_name(advice: Sequence[object], names: Sequence[ArmName]) -> list[int]:
    indices: dict[object, int] = {name: index for index, name in enumerate(names)}
    unknown = [said for said in advice if said not in indices]
    if unknown:
        choices = ", ".join(map(repr, names))
        raise InputError(f"advice names an unknown arm, {unknown[0]!r}; there are {choices}.")
    return [indices[said] for said in advice]


def _as_array(advice: object) -> Advice:
    try:
        table = np.asarray(advice)
    except ValueError:
        raise InputError("advice must be a table of numbers, all rows as long.") from None
    if table.dtype.kind not in "iuf":
        raise InputError(f"advice must be a table of numbers; got {table.dtype} values.")
    return table


def as_advice_table(advice: object, rounds: int, arms: int) -> Advice:
    """Require a whole table of advice of the right shape; its values are checked as it is read."""
    table = _as_array(advice)
    good = table.ndim in (2, 3) and table.shape[0] == rounds and table.shape[1] >= 1
    if not good or (table.ndim == 3 and table.shape[2] != arms):
        raise InputError(
            f"advice must have shape (rounds, experts) with indices of arms, or (rounds, experts, "
            f"arms) with distributions, for {rounds} rounds and {arms} arms; got {table.shape}."
        )
    return table

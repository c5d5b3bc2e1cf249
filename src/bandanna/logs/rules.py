"""Does deciding by a column pay? What the best rule by categories gains over the best arm."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import JSON, ArmName
from bandanna.logs.released import ReleasedCells
from bandanna.policy.statements import Units

MOST_RULES = 100_000


@dataclass(frozen=True)
class Gain:
    """What deciding by one column would gain over the best single arm."""

    column: str
    gain: float
    low: float
    high: float
    """By the normal approximation, for all rules together; in the user's units."""
    rule: dict[str, ArmName]
    """The arm that looks best in each category."""
    sentence: str

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return dict(vars(self))


def rule_gain(
    index: int,
    cells: tuple[tuple[str, tuple[str, ...]], ...],
    released: ReleasedCells,
    names: Sequence[ArmName],
    units: Units,
    alpha: float,
) -> Gain:
    """Estimate what the best rule by one column gains over the best single arm."""
    arms, others = len(names), tuple(k + 1 for k in range(len(cells)) if k != index)
    shape = (arms, *(len(categories) for _, categories in cells))
    n = released.counts.reshape(shape).sum(axis=others)
    noises = (released.counts.reshape(shape) > 0).sum(axis=others)
    total = released.sums.reshape(shape).sum(axis=others)
    seen = n.sum(axis=0) > 0
    n, noises, total = n[:, seen], noises[:, seen], total[:, seen]
    shares = n.sum(axis=0) / n.sum()
    overall = total.sum(axis=1) / n.sum(axis=1)
    means = np.where(n > 0, total / np.maximum(n, 1.0), overall[:, None])
    edge = 1.0 / (np.maximum(n, 1.0) + 2.0)
    inside = np.clip(means, edge, 1.0 - edge)
    spread = inside * (1.0 - inside) / np.maximum(n, 1.0)
    spread += 2.0 * released.scale**2 * noises / np.maximum(n, 1.0) ** 2
    spread = np.where(n > 0, spread, 0.25)
    gain, low, high = gain_interval(means, spread, shares, alpha)
    column, known = cells[index]
    categories = [name for name, there in zip(known, seen, strict=True) if there]
    rule = {name: names[int(means[:, x].argmin())] for x, name in enumerate(categories)}
    width = units.width
    if low > 0.0:
        words = f"Deciding by {column} would gain {units.gain(gain, low, high)}"
        sentence = f"{words} over the best single arm, by the normal approximation."
    else:
        sentence = (
            f"Deciding by {column} gains nothing that can be told from chance, and at most "
            f"{units.amount(high)} over the best single arm, by the normal approximation."
        )
    return Gain(column, width * gain, width * low, width * high, rule, sentence)


def gain_interval(
    means: NDArray[np.float64],
    spread: NDArray[np.float64],
    shares: NDArray[np.float64],
    alpha: float,
) -> tuple[float, float, float]:
    """Return what the best rule by category gains over the best single arm, with its interval.

    ``means`` are losses of each arm (row) in each category (column), ``spread`` their variances,
    ``shares`` how common categories are. The gain is the least over arms of the largest over rules
    of a linear function of the means. All of these are bounded at once by a normal bound for each.
    """
    from scipy.special import ndtri  # loaded when first used

    arms, width = means.shape
    rules = float(arms) ** width
    z = float(-ndtri(max(alpha / (2.0 * rules * arms), 1e-300)))
    best = means.argmin(axis=0)
    chosen = np.array([best])
    if rules <= MOST_RULES:
        chosen = np.array(list(itertools.product(range(arms), repeat=width)))
    at = np.arange(width)
    middle, low, high = [], [], []
    for arm in range(arms):
        more = shares * (means[arm] - means[chosen, at])
        noise = shares**2 * np.where(chosen != arm, spread[arm] + spread[chosen, at], 0.0)
        size, radius = more.sum(axis=1), z * np.sqrt(noise.sum(axis=1))
        middle.append(size.max())
        low.append((size - radius).max())
        top = (size + radius).max()
        if rules > MOST_RULES:  # a rule's radius is at most the sum over its categories
            apart = np.where(np.arange(arms)[:, None] != arm, spread[arm] + spread, 0.0)
            top = (shares * (means[arm] - means + z * np.sqrt(apart))).max(axis=0).sum()
        high.append(top)
    least = max(min(low), 0.0)
    most = max(min(high), least)
    return float(min(max(min(middle), least), most)), float(least), float(most)

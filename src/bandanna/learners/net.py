"""A net under the adaptive learner: centred EXP3 plays the rest when the bound grows too large.

It learns from the same Laplace releases. ``within_unit`` turns one into a number in [0, 1] whose
expectation is a straight line in the batch's mean loss, which is what the bound of centred EXP3
needs. Nothing but released values is used, so the net costs no privacy. The theorem and its proof
are in ``docs/theory/adaptive.md``.
"""

from __future__ import annotations

import math
from typing import NotRequired, TypedDict

from bandanna._core.compiled import step

REST = 0.0317
"""Rest term of centred EXP3's bound: see ``bandanna.theory.centred``."""

ROUNDING = 1e-12
"""A released value so close to 0 or 1 is 0 or 1."""


class NetReport(TypedDict):
    """What a net has seen, in losses that were learned from."""

    budget: float
    """What the expected regret of the whole run must not exceed."""
    switched: bool
    """Whether centred EXP3 has taken over."""
    after: NotRequired[int]
    """After how many losses it did."""


@step
def within_unit(loss: float, noise: float) -> float:
    """Return a number in [0, 1] with expectation ``(1 - s)/2 + s x``, ``s = 1/(1 + 2 noise)``.

    ``loss`` is ``x`` in [0, 1] plus Laplace noise of that scale. The number jumps at both ends:
    that makes up for what the noise beyond them loses, exactly.
    """
    if loss < -ROUNDING:
        return 0.0
    if loss > 1.0 + ROUNDING:
        return 1.0
    return (noise + loss) / (1.0 + 2.0 * noise)


@step
def rate_for(left: float, arms: int) -> float:
    """Return the learning rate of centred EXP3 for so many losses."""
    return math.sqrt(8.0 * math.log(arms) / (left * arms))


@step
def rest_regret(rate: float, arms: int, noise: float) -> float:
    """Bound the regret of centred EXP3 over the losses that its rate is for."""
    higher = 8.0 * REST * math.exp(0.5 * rate)
    return (1.0 + 2.0 * noise) * math.log(arms) * (2.0 / rate + higher)


@step
def rest_paid(rate: float, arms: int, noise: float, losses: float, cost: float) -> float:
    """Bound its regret over the losses so far, by what its steps really cost."""
    higher = REST * math.exp(0.5 * rate) * rate * rate * losses * arms
    return (1.0 + 2.0 * noise) * (math.log(arms) / rate + rate * cost + higher)

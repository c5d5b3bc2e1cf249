"""Baselines that make a bandit's loss estimates as steady as they can be.

The estimate of arm ``i`` is ``b_i + 1[I = i] (loss - b_i) / p_i``: unbiased for every baseline
``b_i`` that does not depend on the arm drawn. The two here make the worst cost of a step smallest,
for entropy (EXP3, EXP4) and for square roots (Tsallis-INF). Proofs: ``docs/theory/centred.md``.

All baselines are added when an arm is drawn, and the baseline of its arm must be known again when
its loss comes. So they are those of the draw however late that is, and estimates are unbiased even
if how late a loss comes depends on the arm. Baselines at a fixed rate are functions of the chance
alone. Others travel in the last bits of the importance: ``with_baseline`` and ``baseline_of``.
"""

from __future__ import annotations

import math

import numpy as np

from bandanna._core.compiled import step

NOTHING_LEFT = 37.0
"""From here on ``1 - exp(-u)`` is 1 to the last bit."""

STEPS = 2.0**20
CARRIED = 2**20 - 1
"""The last bits of an importance, which carry a baseline in steps of 2**-20. The importance is off
by less than 2**-32 of itself then."""


@step
def with_baseline(importance: float, baseline: float) -> float:
    """Return an importance that carries a baseline from 0 to 1 in its last twenty bits.

    It is at least 1 if it was.
    """
    bits = np.float64(importance).view(np.int64)
    return float(np.int64((bits & ~CARRIED) | _in_steps(baseline)).view(np.float64))


@step
def baseline_of(importance: float, newest: float) -> float:
    """Return the baseline that an importance carries.

    Where ``newest`` agrees with it, as it does with feedback in order, that one, which is exact.
    """
    kept = np.float64(importance).view(np.int64) & CARRIED
    return newest if _in_steps(newest) == kept else kept / STEPS


@step
def _in_steps(baseline: float) -> int:
    """Return a baseline in steps of 2**-20, below 1."""
    return int(min(max(baseline * STEPS, 0.0), STEPS - 1.0))


@step
def entropy_baseline(z: float) -> tuple[float, float]:
    """Return the baseline for EXP3 and EXP4, and what the arm's step then costs.

    ``z`` is the probability over the learning rate. The baseline ``-z ln(z (1 - exp(-1/z)))`` rises
    from 0 to 1/2, the cost ``z (1 / (1 - exp(-1/z)) - z - b(z))``, in units of the squared rate,
    from 0 to 1/8. From ``z = 1`` on those are differences of nearly equal numbers and their series
    are summed: ``1/2 - sum_k c_k z**(1 - 2k)`` and ``sum_k (2k + 1) c_k z**(2 - 2k)`` with
    ``c_k = B_2k / (2k (2k)!)``, Bernoulli's numbers. Errors stay below 1e-12.
    """
    if z >= 1.0:
        u = 1.0 / z
        v = u * u
        series = -691.0 / 15692092416000.0 + v / 1046139494400.0
        series = 1.0 / 479001600.0 + v * series
        series = -1.0 / 9676800.0 + v * series
        series = 1.0 / 181440.0 + v * series
        series = -1.0 / 2880.0 + v * series
        costs = -691.0 / 1207084032000.0 + v / 69742632960.0
        costs = 1.0 / 43545600.0 + v * costs
        costs = -1.0 / 1075200.0 + v * costs
        costs = 1.0 / 25920.0 + v * costs
        costs = -1.0 / 576.0 + v * costs
        return 0.5 - u * (1.0 / 24.0 + v * series), 0.125 + v * costs
    if z <= 1e-300:  # 1 / z would overflow
        return 0.0, 0.0
    u = 1.0 / z
    if u > NOTHING_LEFT:
        baseline = z * math.log(u)
        return baseline, z * (1.0 - z - baseline)
    rest = -math.expm1(-u)
    baseline = z * math.log(u / rest)
    return baseline, z * (1.0 / rest - z - baseline)


@step
def root_baseline(chance: float, c: float) -> float:
    """Return the baseline for Tsallis-INF, whose probabilities are ``(c / (L_i + y))**2``.

    With ``v = 1 / (c sqrt(chance))`` the loss to compare with is
    ``w = (v + 2 - sqrt(v*v + 4)) / (2 v)``: there losses 0 and 1 cost the same, ``w (1 - w)``. The
    baseline ``b`` solves ``b + chance (1/2 - b) = w``, because an arm that is not played moves by
    ``b - 1/2``; where the arm is nearly certain, ``b`` stays within about 1/8 of 1/2 instead.
    """
    v = 1.0 / (c * math.sqrt(chance))
    w = 2.0 / (v + 2.0 + math.sqrt(v * v + 4.0))
    return 0.5 - (0.5 - w) / max(1.0 - chance, min(v, 0.5))

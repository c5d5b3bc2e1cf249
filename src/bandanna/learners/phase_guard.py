"""Whether the order of arms has changed: a test on differences within phases.

Two arms of one phase met the same rounds, so what moves all arms cancels in their difference. If
differences are steady, those of the last phases and those before estimate the same number, with
errors of known law: sampling, nearly normal, and Laplace noise. The chance of a contradiction as
large as the one seen is computed for that sum by a saddlepoint approximation: a normal quantile
would be far too small for the tails of Laplace noise. Released values are all it looks at.
"""

from __future__ import annotations

import math

from bandanna._core.compiled import part, step
from bandanna.learners.phase_model import Model


@part
def difference(
    model: Model, first: int, last: int, arm: int, lead: int, variance: float
) -> tuple[float, float]:
    """Return an arm's mean minus the leader's over phases [first, last), and its weight."""
    total = 0.0
    seen = 0.0
    for j in range(first, last):
        if model.rounds[arm, j] > 0.0 and model.rounds[lead, j] > 0.0:
            weight = 1.0 / _variance(model, j, arm, lead, variance)
            total += weight
            seen += weight * (model.means[arm, j] - model.means[lead, j])
    return (seen / total if total > 0.0 else 0.0), total


@step
def _variance(model: Model, phase: int, arm: int, lead: int, variance: float) -> float:
    sampling = variance / model.rounds[arm, phase] + variance / model.rounds[lead, phase]
    return float(sampling + model.noise[arm, phase] + model.noise[lead, phase])


@part
def log_chance(
    model: Model, split: int, last: int, arm: int, lead: int, variance: float, gap: float
) -> float:
    """Return the log of the chance that the two sides differ by ``gap`` or more, one-sided."""
    before = 0.0
    after = 0.0
    largest = 0.0
    for j in range(last):
        if model.rounds[arm, j] > 0.0 and model.rounds[lead, j] > 0.0:
            weight = 1.0 / _variance(model, j, arm, lead, variance)
            if j < split:
                before += weight
            else:
                after += weight
    normal = 0.0
    for j in range(last):
        if model.rounds[arm, j] > 0.0 and model.rounds[lead, j] > 0.0:
            part = _part(model, j, split, arm, lead, variance, before, after)
            sampling = variance / model.rounds[arm, j] + variance / model.rounds[lead, j]
            normal += part * part * sampling
            noise = max(model.noise[arm, j], model.noise[lead, j])
            largest = max(largest, part * math.sqrt(0.5 * noise))
    low = 0.0
    high = 0.999999 / largest if largest > 0.0 else 1e9
    for _ in range(40):
        rate = 0.5 * (low + high)
        _, slope, _ = _cumulants(
            model, rate, normal, split, last, arm, lead, variance, before, after
        )
        if slope < gap:
            low = rate
        else:
            high = rate
    rate = 0.5 * (low + high)
    value, _, curve = _cumulants(
        model, rate, normal, split, last, arm, lead, variance, before, after
    )
    return value - rate * gap - math.log(max(rate * math.sqrt(2.0 * math.pi * curve), 1.0))


@step
def _part(
    model: Model,
    phase: int,
    split: int,
    arm: int,
    lead: int,
    variance: float,
    before: float,
    after: float,
) -> float:
    total = before if phase < split else after
    return 1.0 / (_variance(model, phase, arm, lead, variance) * total)


@part
def _cumulants(
    model: Model,
    rate: float,
    normal: float,
    split: int,
    last: int,
    arm: int,
    lead: int,
    variance: float,
    before: float,
    after: float,
) -> tuple[float, float, float]:
    """Return the cumulant generating function of the sum of errors and two derivatives."""
    value = 0.5 * rate * rate * normal
    slope = rate * normal
    curve = normal
    for j in range(last):
        if model.rounds[arm, j] > 0.0 and model.rounds[lead, j] > 0.0:
            part = _part(model, j, split, arm, lead, variance, before, after)
            for who in (arm, lead):
                square = 0.5 * part * part * model.noise[who, j]
                left = 1.0 - rate * rate * square
                value -= math.log(left)
                slope += 2.0 * rate * square / left
                curve += 2.0 * square * (1.0 + rate * rate * square) / (left * left)
    return value, slope, curve

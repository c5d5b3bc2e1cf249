"""The mixed model behind phases: arm means are fixed, what moves all arms in a phase is random.

A record is what one phase released of an arm: its rounds, their mean, and the variance of the noise
on it. An arm's weight in a phase is one over the variance of its mean. With phase effects of
variance s2, a phase adds ``diag(w) - k w w'`` to the information, ``k = s2 / (1 + s2 sum(w))``, so
the information is a diagonal minus one rank for each phase. Everything below uses that: the cost
is arms times phases squared, never arms cubed.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import part, step
from bandanna._core.streams import Stream, normal
from bandanna.inference import MOST_SQUARE
from bandanna.learners.records import Record, record_of

Floats = NDArray[np.float64]

PRIOR = 4.0
"""How many losses at the level of all arms the prior is worth."""

CLEARLY = 2.0
"""Phase effects are believed in once they exceed their standard error this often."""

LEAST = 0.02
"""Losses vary at least this part of what losses that are 0 or 1 do: no fit is surer."""

FAR = 5.0
"""An arm further than this many standard errors behind the best is not drawn."""

CAREFUL = 3.0
"""Standard errors by which a mean may be wrong where the law of its errors matters."""


class CommonNumbers(Protocol):
    """What is common to all arms."""

    level: float
    """The mean of all losses."""
    variance: float
    """How much they vary in a round."""
    effects: float
    """The variance of phase effects."""


SUMMARY = record_of(CommonNumbers)


class Model(NamedTuple):
    """Records by arm and phase, and room for the fit."""

    rounds: Floats
    means: Floats
    noise: Floats
    squares: Floats
    """Means of squares around the middle of the range; the most they can be where unknown."""
    fitted: Floats
    """Mean of each arm, given all phases."""
    precision: Floats
    """Diagonal of the information: the prior and all weights."""
    errors: Floats
    """Standard error of each arm's mean."""
    weights: Floats
    """By arm and phase."""
    mixed: Floats
    """By phase and phase: the Cholesky factor of what phase effects add to the covariance."""
    solved: Floats
    drawn: Floats
    summary: Record[CommonNumbers]


@part
def pooled_level(model: Model, phases: int) -> float:
    """Return the mean of all losses that were released, away from 0 and 1."""
    total = 0.0
    rounds = 0.0
    for i in range(model.rounds.shape[0]):
        for j in range(phases):
            total += model.rounds[i, j] * model.means[i, j]
            rounds += model.rounds[i, j]
    if rounds == 0.0:
        return 0.5
    return min(max(total / rounds, 0.01), 0.99)


@part
def pooled_variance(model: Model, phases: int, level: float) -> float:
    """Return how much losses vary within an arm, from the squares that were released.

    What their noise may hide is added, one standard deviation of it: without noise enough it is
    that of losses that are 0 or 1, which is the most there can be.
    """
    total = 0.0
    rounds = 0.0
    blur = 0.0
    for i in range(model.rounds.shape[0]):
        own = 0.0
        mean = 0.0
        for j in range(phases):
            if model.squares[i, j] != MOST_SQUARE:
                own += model.rounds[i, j]
                mean += model.rounds[i, j] * model.means[i, j]
                total += model.rounds[i, j] * model.squares[i, j]
                blur += model.rounds[i, j] ** 2 * model.noise[i, j]
        if own > 0.0:
            mean = min(max(mean / own, 0.0), 1.0)
            total -= own * (mean - 0.5) ** 2
            rounds += own
    most = level * (1.0 - level)
    if rounds == 0.0:
        return most
    spread = math.sqrt(blur * (1.0 + (2.0 * level - 1.0) ** 2))
    return min(max((total + spread) / rounds, LEAST * most), most)


@part
def fit(model: Model, phases: int) -> None:
    """Fit the means of all arms; phase effects are left out unless they are clearly there."""
    level = pooled_level(model, phases)
    variance = pooled_variance(model, phases, level)
    model.summary[0].level = level
    model.summary[0].variance = variance
    prior = PRIOR / variance
    for i in range(model.rounds.shape[0]):
        information = prior
        evidence = prior * level
        for j in range(phases):
            rounds = model.rounds[i, j]
            weight = 0.0
            if rounds > 0.0:
                weight = 1.0 / (variance / rounds + model.noise[i, j])
            model.weights[i, j] = weight
            information += weight
            evidence += weight * model.means[i, j]
        model.precision[i] = information
        model.fitted[i] = evidence / information
    effects = effect_variance(model, phases)
    model.summary[0].effects = effects
    if effects > 0.0:
        _fit_with_effects(model, phases, effects, prior * level)


@part
def effect_variance(model: Model, phases: int) -> float:
    """Return the variance of phase effects, by moments; 0 unless it is clearly larger."""
    if phases < 3:
        return 0.0
    effects = 0.0
    expected = 0.0
    for j in range(phases):
        total = 0.0
        residual = 0.0
        for i in range(model.rounds.shape[0]):
            weight = model.weights[i, j]
            total += weight
            residual += weight * (model.means[i, j] - model.fitted[i])
        if total > 0.0:
            residual /= total
            effects += residual * residual - 1.0 / total
            expected += 1.0 / total
    effects /= phases
    error = math.sqrt(2.0 / phases) * expected / phases
    return effects if effects >= CLEARLY * error else 0.0


@part
def _fit_with_effects(model: Model, phases: int, effects: float, prior: float) -> None:
    """Take phase effects of this variance out (Woodbury)."""
    arms = model.rounds.shape[0]
    for j in range(phases):
        for k in range(j + 1):
            shared = 0.0
            total = 0.0
            for i in range(arms):
                shared += model.weights[i, j] * model.weights[i, k] / model.precision[i]
                total += model.weights[i, j]
            model.mixed[j, k] = (1.0 / effects + total if j == k else 0.0) - shared
    _cholesky(model.mixed, phases)
    for i in range(arms):
        model.fitted[i] = prior
    for j in range(phases):
        total = 0.0
        seen = 0.0
        for i in range(arms):
            total += model.weights[i, j]
            seen += model.weights[i, j] * model.means[i, j]
        part = effects / (1.0 + effects * total) * seen
        for i in range(arms):
            model.fitted[i] += model.weights[i, j] * (model.means[i, j] - part)
    for i in range(arms):
        model.fitted[i] /= model.precision[i]
    for j in range(phases):
        model.solved[j] = 0.0
        for i in range(arms):
            model.solved[j] += model.weights[i, j] * model.fitted[i]
    _solve_lower(model.mixed, model.solved, phases)
    _solve_upper(model.mixed, model.solved, phases)
    for i in range(arms):
        for j in range(phases):
            model.fitted[i] += model.weights[i, j] * model.solved[j] / model.precision[i]


@part
def _cholesky(matrix: Floats, size: int) -> None:
    """Replace the lower triangle by its Cholesky factor."""
    for j in range(size):
        for k in range(j + 1):
            value = matrix[j, k]
            for i in range(k):
                value -= matrix[j, i] * matrix[k, i]
            if j == k:
                matrix[j, j] = math.sqrt(max(value, 1e-12))
            else:
                matrix[j, k] = value / matrix[k, k]


@part
def _solve_lower(factor: Floats, vector: Floats, size: int) -> None:
    for j in range(size):
        for k in range(j):
            vector[j] -= factor[j, k] * vector[k]
        vector[j] /= factor[j, j]


@part
def _solve_upper(factor: Floats, vector: Floats, size: int) -> None:
    for back in range(size):
        j = size - 1 - back
        for k in range(j + 1, size):
            vector[j] -= factor[k, j] * vector[k]
        vector[j] /= factor[j, j]


@part
def _spreads(model: Model, phases: int) -> None:
    """Write the standard error of every arm's mean in place of its precision's use for draws."""
    effects = model.summary[0].effects > 0.0
    for i in range(model.rounds.shape[0]):
        variance = 1.0 / model.precision[i]
        if effects:
            for j in range(phases):
                model.solved[j] = model.weights[i, j]
            _solve_lower(model.mixed, model.solved, phases)
            total = 0.0
            for j in range(phases):
                total += model.solved[j] * model.solved[j]
            variance += total / (model.precision[i] * model.precision[i])
        model.errors[i] = math.sqrt(variance)


@part
def thompson_shares(
    model: Model, phases: int, bold: float, draws: int, shares: Floats, stream: Stream
) -> None:
    """Write how often each arm is best among draws from the fit, its deviations times ``bold``."""
    arms = model.rounds.shape[0]
    _spreads(model, phases)
    best = math.inf
    for i in range(arms):
        shares[i] = 0.0
        best = min(best, model.fitted[i] + FAR * bold * model.errors[i])
    contenders = 0
    last = 0
    for i in range(arms):
        if model.fitted[i] - FAR * bold * model.errors[i] <= best:
            contenders += 1
            last = i
    if contenders == 1:
        shares[last] = 1.0
        return
    effects = model.summary[0].effects > 0.0
    for _ in range(draws):
        if effects:
            for j in range(phases):
                model.drawn[j] = normal(stream)
            _solve_upper(model.mixed, model.drawn, phases)
        winner = -1
        least = math.inf
        for i in range(arms):
            if model.fitted[i] - FAR * bold * model.errors[i] > best:
                continue
            value = model.fitted[i] + bold * normal(stream) / math.sqrt(model.precision[i])
            if effects:
                common = 0.0
                for j in range(phases):
                    common += model.weights[i, j] * model.drawn[j]
                value += bold * common / model.precision[i]
            if value < least:
                winner, least = i, value
        shares[winner] += 1.0 / draws


# --- whether the order of arms has changed ------------------------------------------------------
#
# A test on differences within phases.
#
# Two arms of one phase met the same rounds, so what moves all arms cancels in their difference. If
# differences are steady, those of the last phases and those before estimate the same number, with
# errors of known law: Laplace noise, and sampling. The chance of a contradiction as large as the
# one seen is bounded by Chernoff's inequality: a normal quantile would be far too small for the
# tails of Laplace noise and of rare outcomes. Of all losses in [0, 1] with the same mean those that
# are 0 or 1 have the largest moments (Hoeffding), so each arm's sampling is that of a coin, with a
# chance a few standard errors nearer to 1/2 than was seen. Released values are all it looks at.


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
    """Bound the log of the chance that the two sides differ by ``gap`` or more, one-sided."""
    before, after = 0.0, 0.0
    for j in range(last):
        if model.rounds[arm, j] > 0.0 and model.rounds[lead, j] > 0.0:
            weight = 1.0 / _variance(model, j, arm, lead, variance)
            if j < split:
                before += weight
            else:
                after += weight
    largest = 0.0
    for j in range(last):
        if model.rounds[arm, j] > 0.0 and model.rounds[lead, j] > 0.0:
            part = _part(model, j, split, arm, lead, variance, before, after)
            noise = max(model.noise[arm, j], model.noise[lead, j])
            largest = max(largest, part * math.sqrt(0.5 * noise))
    coins = _coin(model, arm, variance), _coin(model, lead, variance)
    low = 0.0
    high = 0.999999 / largest if largest > 0.0 else 1e9
    for _ in range(40):
        rate = 0.5 * (low + high)
        _, slope = _cumulants(model, rate, split, last, (arm, lead), coins, (before, after))
        if slope < gap:
            low = rate
        else:
            high = rate
    value, _ = _cumulants(model, low, split, last, (arm, lead), coins, (before, after))
    return value - low * gap


@step
def _coin(model: Model, arm: int, variance: float) -> float:
    """Return an arm's mean loss, ``CAREFUL`` standard errors nearer to 1/2."""
    error = CAREFUL / math.sqrt(model.precision[arm])
    mean = min(max(model.fitted[arm], 0.0), 1.0)
    return float(min(mean + error, 0.5) if mean < 0.5 else max(mean - error, 0.5))


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
    split: int,
    last: int,
    pair: tuple[int, int],
    coins: tuple[float, float],
    sides: tuple[float, float],
) -> tuple[float, float]:
    """Bound the cumulant generating function of the sum of errors; also returns its derivative.

    The arm's mean before the split counts for a gap and its mean after it against, the leader's the
    other way round.
    """
    value = 0.0
    slope = 0.0
    variance = model.summary[0].variance
    for j in range(last):
        if model.rounds[pair[0], j] > 0.0 and model.rounds[pair[1], j] > 0.0:
            part = _part(model, j, split, pair[0], pair[1], variance, sides[0], sides[1])
            for k in range(2):
                square = 0.5 * part * part * model.noise[pair[k], j]
                left = 1.0 - rate * rate * square
                value -= math.log(left)
                slope += 2.0 * rate * square / left
                rounds = model.rounds[pair[k], j]
                each = part / rounds if (k == 0) == (j < split) else -part / rounds
                raised = min(rate * each, 700.0)
                factor = 1.0 + coins[k] * math.expm1(raised)
                value += rounds * (math.log(factor) - coins[k] * raised)
                slope += rounds * each * coins[k] * (math.exp(raised) / factor - 1.0)
    return value, slope

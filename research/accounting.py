"""The paper's privacy toolbox (its appendix "Privacy properties"), as functions.

Each function names the statement it computes. Distributions are sequences of probabilities over
the same outcomes; with ``Fraction`` entries the arithmetic is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, ParamSpec, TypeVar

from bandanna._core import checks
from bandanna._core.types import JSON, Guarantee, InputError, group_delta, times_up
from bandanna.privacy.exact_arithmetic import log_of
from bandanna.privacy.mechanism import Mechanism, Numerics, PrivacyLoss, worst_loss
from bandanna.privacy.registry import MECHANISMS
from bandanna.privacy.statements import PERSON_ENTRIES

Probability = float | Fraction
Data = ParamSpec("Data")
Middle = TypeVar("Middle")
Output = TypeVar("Output")


class Budget(NamedTuple):
    """Privacy parameters."""

    epsilon: float
    """How far log probabilities may be apart."""
    delta: float = 0.0
    """What probability may be beyond that."""


def laplace_mechanism(sensitivity: float, epsilon: float) -> float:
    """Definition "Laplace Mechanism": return the scale of noise that gives epsilon.

    Examples
    --------
    >>> laplace_mechanism(sensitivity=0.1, epsilon=0.5)
    0.2
    """
    return checks.positive("sensitivity", sensitivity) / checks.positive("epsilon", epsilon)


def basic_composition(budgets: Sequence[Budget]) -> Budget:
    """Lemma "Basic Composition": epsilons and deltas add up.

    Examples
    --------
    >>> basic_composition([Budget(0.5), Budget(0.25, 0.125)])
    Budget(epsilon=0.75, delta=0.125)
    """
    return Budget(math.fsum(b.epsilon for b in budgets), math.fsum(b.delta for b in budgets))


def advanced_composition(epsilons: Sequence[float], delta: float) -> Budget:
    """Lemma "Advanced Composition", with the paper's constants.

    ``3/2 sum(eps^2) + sqrt(6 sum(eps^2) log(1/delta))`` for pure mechanisms and any delta in
    (0, 1).

    Examples
    --------
    >>> round(advanced_composition([0.1] * 100, delta=1e-6).epsilon, 3)
    10.605
    """
    _check_delta(delta, above_zero=True)
    squares = math.fsum(checks.positive("epsilon", epsilon) ** 2 for epsilon in epsilons)
    return Budget(1.5 * squares + math.sqrt(6.0 * squares * math.log(1.0 / delta)), delta)


def group_privacy(budget: Budget, size: int) -> Budget:
    """Lemma "Group Privacy": what holds for datasets that differ in ``size`` records.

    The paper states the pure case; with a delta it grows by ``1 + e^eps + ... + e^((k-1) eps)``.

    Examples
    --------
    >>> group_privacy(Budget(0.5), size=3)
    Budget(epsilon=1.5, delta=0.0)
    """
    size = checks.whole("size", size, at_least=1)
    return Budget(times_up(size, budget.epsilon), group_delta(budget.epsilon, budget.delta, size))


def post_process(
    mechanism: Callable[Data, Middle], function: Callable[[Middle], Output]
) -> Callable[Data, Output]:
    """Lemma "Post Processing": the composition has the guarantee of the mechanism."""

    def processed(*data: Data.args, **options: Data.kwargs) -> Output:
        return function(mechanism(*data, **options))

    return processed


def max_ratio(first: Sequence[Probability], second: Sequence[Probability]) -> Probability:
    """Return the largest P(S)/Q(S) over events S: the exponential of the max divergence."""
    _check_pair(first, second)
    if any(p > 0 and q == 0 for p, q in zip(first, second, strict=True)):
        return math.inf
    return max(p / q for p, q in zip(first, second, strict=True) if q > 0)


def max_divergence(
    first: Sequence[Probability], second: Sequence[Probability], delta: Probability = 0
) -> float:
    """Return the (delta-approximate) max divergence of two discrete distributions, exactly.

    ``max log((P(S) - delta) / Q(S))`` over events S with ``P(S) >= delta``. For any epsilon the
    event that most exceeds ``exp(epsilon) Q`` holds the outcomes of largest likelihood ratio, so
    only the outcomes' prefixes in that order need to be tried.

    Examples
    --------
    >>> from fractions import Fraction as F
    >>> p, q = [F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]
    >>> math.exp(max_divergence(p, q))
    3.0000000000000004
    >>> max_divergence(p, q, delta=F(1, 2))
    0.0
    """
    _check_pair(first, second)
    _check_delta(float(delta))
    pairs = [pair for pair in zip(first, second, strict=True) if pair != (0, 0)]
    pairs.sort(key=lambda pair: pair[0] / pair[1] if pair[1] > 0 else math.inf, reverse=True)
    best = -math.inf
    in_first: Probability = 0
    in_second: Probability = 0
    for p, q in pairs:
        in_first, in_second = in_first + p, in_second + q
        if in_first > delta:
            if in_second == 0:
                return math.inf
            best = max(best, log_of(Fraction(in_first - delta) / Fraction(in_second)))
    return best


def indistinguishable(
    first: Sequence[Probability],
    second: Sequence[Probability],
    epsilon: float,
    delta: Probability = 0,
) -> bool:
    """Definition "(eps, delta)-indistinguishability", both ways."""
    return (
        max_divergence(first, second, delta) <= epsilon
        and max_divergence(second, first, delta) <= epsilon
    )


def local_epsilon(channel: Sequence[Sequence[Probability]], delta: Probability = 0) -> float:
    """Definition "Local differential privacy": the smallest epsilon of a discrete channel.

    Row i holds the distribution of the output for the i-th possible value of one person.

    Examples
    --------
    >>> round(local_epsilon([[0.75, 0.25], [0.25, 0.75]]), 6) == round(math.log(3), 6)
    True
    """
    if len(channel) < 2:
        raise InputError("a channel needs at least two possible inputs.")
    return max(
        max_divergence(row, other, delta)
        for i, row in enumerate(channel)
        for j, other in enumerate(channel)
        if i != j
    )


def mechanism_of(facts: JSON) -> Mechanism:
    """Return the mechanism that a guarantee's facts describe."""
    name = facts.get("mechanism")
    if name not in MECHANISMS:
        raise InputError(
            f"no accounting for mechanism {name!r}; there are {', '.join(MECHANISMS)}."
        )
    return MECHANISMS[name].read(facts)


def tight_epsilon(guarantee: Guarantee, delta: float, rounds: int = 1) -> float:
    """Return the smallest epsilon at a delta, numerically, for what a guarantee protects.

    By dp-accounting, composing privacy loss distributions. Rounded upwards. For a policy with
    ``per_person`` this is everything one person contributes.

    Parameters
    ----------
    guarantee
        That of a policy or a release, not one that was derived from it.
    delta
        From 0 to below 1.
    rounds
        For a policy without ``per_person``: how many rounds are one person's. Several need
        batches of one, since rounds that share a batch do not compose.

    Examples
    --------
    >>> import bandanna as bd
    >>> local = bd.PrivateBandit(arms=2, epsilon=0.1, batch=1).guarantee
    >>> round(tight_epsilon(local, 1e-6, rounds=20), 3)
    1.789
    """
    _check_delta(delta)
    loss = privacy_loss(guarantee, rounds=rounds)
    rounds = int(rounds)
    if delta == 0.0:
        if guarantee.delta > 0.0:
            raise InputError("this mechanism needs a delta above 0; got 0.")
        return times_up(rounds, guarantee.epsilon)  # pure: group privacy is tight
    grid = 0.0 if guarantee.unit == "person" else mechanism_of(guarantee.facts).grid
    found = float(loss.get_epsilon_for_delta(delta)) + rounds * grid
    return found if guarantee.delta else min(found, times_up(rounds, guarantee.epsilon))


def privacy_loss(guarantee: Guarantee, *, rounds: int = 1, pessimistic: bool = True) -> PrivacyLoss:
    """Return dp-accounting's privacy loss distribution of a guarantee's mechanism.

    For one round that is the worst pair of neighbouring batches; over several, the worst for a
    person who is behind all of them; with ``per_person``, the worst for one person's slots.
    """
    rounds = checks.whole("rounds", rounds, at_least=1)
    if not guarantee.facts:
        raise InputError(
            "accounting starts from the guarantee of a policy or a release, not from one that was "
            "derived from it (by for_group, at_delta, together, segments or a second resume)."
        )
    if guarantee.unit == "person":
        if rounds > 1:
            raise InputError(
                f"with per_person the guarantee is for all rounds of one person: leave out "
                f"rounds={rounds}. For several people, use for_group."
            )
        if all(key in guarantee.facts for key in PERSON_ENTRIES):
            slots, epsilon, delta = (guarantee.facts[key] for key in PERSON_ENTRIES)
            return worst_loss(epsilon, delta, slots)
    mechanism = mechanism_of(guarantee.facts)
    if rounds > 1 and not mechanism.alone:
        raise InputError(
            f"several rounds of one person may be released together; use "
            f"guarantee.for_group({rounds})."
        )
    numerics = Numerics.fit_for(guarantee.epsilon, pessimistic=pessimistic)
    return mechanism.loss(guarantee.epsilon, rounds, numerics)


def _check_delta(delta: float, *, above_zero: bool = False) -> None:
    if not 0 <= delta < 1 or (above_zero and delta == 0):
        raise InputError(
            f"delta must be {'above' if above_zero else 'from'} 0 and below 1; got {delta!r}."
        )


def _check_pair(first: Sequence[Probability], second: Sequence[Probability]) -> None:
    for chances in (first, second):
        if len(first) != len(second) or not chances:
            raise InputError("both distributions need the same, positive number of outcomes.")
        if min(chances) < 0 or abs(float(sum(chances)) - 1.0) > 1e-9:
            raise InputError("probabilities must not be negative and must add up to 1.")

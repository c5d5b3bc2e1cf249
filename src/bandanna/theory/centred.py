"""Regret bounds of learners with centred estimates, plain numbers in and out.

Proofs: ``docs/theory/centred.md``. ``choices`` is the logarithm of how many arms or experts the
best is sought among, or of how many sequences of arms; ``losses`` are in [0, 1].
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna.theory.tuning import best_batch, one_bit_price

REST = 0.0317
"""Bounds ``r(z)``, what the first two orders in the learning rate leave of a step's cost."""


class OneBit(NamedTuple):
    """How to run a learner behind one-bit releases, and what is then guaranteed."""

    regret: float
    batch: int
    learning_rate: float


# --- exponential weights --------------------------------------------------------------------


def centred_rate(choices: float, losses: float, arms: int) -> float:
    """Return the learning rate ``sqrt(8 choices / (n K))``."""
    return math.sqrt(8.0 * choices / (losses * arms))


def centred_regret(choices: float, losses: float, arms: int) -> float:
    """Bound the regret of centred EXP3 or EXP4 at that rate.

    ``sqrt(n K choices / 2) + 0.254 exp(eta / 2) choices``.

    Examples
    --------
    >>> round(centred_regret(math.log(10), losses=50_000, arms=10))
    759
    """
    if choices <= 0.0 or losses < 1:
        return 0.0
    rate = centred_rate(choices, losses, arms)
    return centred_regret_paid(choices, rate, losses, arms, losses * arms / 8.0)


def centred_anytime_regret(losses: float, arms: int) -> float:
    """Bound the regret of centred EXP3 at the rates ``2 sqrt(log(K) / (K t))``, for all n at once.

    ``sqrt(n K log K) + 0.127 exp(eta_1 / 2) (1 + log n) log K``: ``sqrt(2)`` times that of a known
    number of losses, to first order.

    Examples
    --------
    >>> round(centred_anytime_regret(50_000, arms=10))
    1079
    """
    choices = math.log(arms)
    first = 2.0 * math.sqrt(choices / arms)
    rest = 4.0 * REST * math.exp(first / 2.0) * choices * (1.0 + math.log(max(losses, 1.0)))
    return math.sqrt(losses * arms * choices) + rest


def centred_regret_paid(
    choices: float, rate: float, losses: float, arms: int, cost: float
) -> float:
    """Bound the regret by what was really paid: ``cost`` is the sum of ``f(p_i / eta)``.

    That sum is in the learner's state. In expectation over runs the regret is at most the mean of
    what this returns.
    """
    rest = REST * math.exp(rate / 2.0) * rate**2 * losses * arms
    return choices / rate + rate * cost + rest


def tracking_choices(changes: float, losses: float, arms: int) -> float:
    """Return what sequences of arms with so many changes cost a fixed share of ``S / (n - 1)``.

    ``(S + 1) log K + S log(1 / alpha) + (n - 1 - S) log(1 / (1 - alpha))``.
    """
    changes = min(changes, losses - 1)
    if changes <= 0:
        return math.log(arms)
    share = tracking_share(changes, losses)
    staying = losses - 1 - changes
    stay = -staying * math.log1p(-share) if staying else 0.0
    return (changes + 1) * math.log(arms) - changes * math.log(share) + stay


def tracking_share(changes: float, losses: float) -> float:
    """Return the share that suits a number of changes: ``S / (n - 1)``."""
    return min(changes / max(losses - 1.0, 1.0), 1.0)


# --- Tsallis-INF ----------------------------------------------------------------------------


def centred_tsallis_regret(losses: float, arms: int, known: bool = True) -> float:
    """Bound the regret of centred Tsallis-INF, the number of losses known in advance or not.

    ``sqrt(2 n (K - sqrt(K))) + (1 - 1/sqrt(K)) / (1 - eta/4)`` with a fixed rate, and
    ``2 sqrt(K n) - sqrt(n) + log(n) / 2 + 2`` without.

    Examples
    --------
    >>> round(centred_tsallis_regret(50_000, 100)), round(centred_tsallis_regret(50_000, 10))
    (3001, 828)
    """
    root = math.sqrt(arms)
    anytime = 2.0 * math.sqrt(arms * losses) - math.sqrt(losses) + 0.5 * math.log(losses) + 2.0
    spread = 1.0 - 1.0 / root
    rate = math.sqrt(32.0 * spread / losses)
    if not known or rate > 4.0 / 3.0:
        return anytime
    return math.sqrt(2.0 * losses * (arms - root)) + spread / (1.0 - rate / 4.0)


# --- behind one-bit releases ----------------------------------------------------------------


def one_bit_centred_exp3(
    arms: int, rounds: int, epsilon: float, batch: int | None = None, changes: int = 0
) -> OneBit:
    """Bound centred EXP3 on released bits, with the best batch unless one is given.

    ``(tau / s) R(floor(T / tau), K) + tau``, against the best arm; with changes, against every
    sequence of arms that changes so often, ``tau`` more for each change inside a batch.

    Examples
    --------
    >>> one_bit_centred_exp3(arms=10, rounds=1_000_000, epsilon=0.1).regret < 30_500
    True
    """

    def whole(size: float, count: float) -> float:
        learning = centred_regret(tracking_choices(changes, count, arms), count, arms)
        return one_bit_price(size, epsilon) * learning + (changes + 1) * size

    batch = batch or best_batch(whole, rounds, max(32, 4 * changes))
    losses = max(rounds // batch, 1)
    rate = centred_rate(tracking_choices(changes, losses, arms), losses, arms)
    return OneBit(whole(batch, losses), batch, rate)


def one_bit_centred_tsallis(
    arms: int, rounds: int, epsilon: float, batch: int | None = None
) -> OneBit:
    """Bound centred Tsallis-INF on released bits, with the best batch unless one is given.

    It is below centred EXP3's from about 25 arms on. The rate is that of ``TsallisInf``.

    Examples
    --------
    >>> exp3 = one_bit_centred_exp3(arms=100, rounds=10**6, epsilon=0.5).regret
    >>> round(one_bit_centred_tsallis(arms=100, rounds=10**6, epsilon=0.5).regret / exp3, 3)
    0.884
    """

    def whole(size: float, count: float) -> float:
        return one_bit_price(size, epsilon) * centred_tsallis_regret(count, arms) + size

    batch = batch or best_batch(whole, rounds)
    losses = max(rounds // batch, 1)
    rate = math.sqrt(32.0 * (1.0 - 1.0 / math.sqrt(arms)) / losses)
    return OneBit(whole(batch, losses), batch, rate)


def smallest_guarantee(arms: int, rounds: int, epsilon: float) -> float:
    """Return the smallest guarantee known for losses fixed in advance, with feedback in order."""
    return min(
        one_bit_centred_exp3(arms, rounds, epsilon).regret,
        one_bit_centred_tsallis(arms, rounds, epsilon).regret,
    )


def one_bit_centred_exp4(arms: int, experts: int, rounds: int, epsilon: float) -> OneBit:
    """Bound centred EXP4 on one released bit a round: ``R / tanh(epsilon / 2)``."""
    choices = math.log(experts)
    price = one_bit_price(1, epsilon)
    rate = centred_rate(choices, rounds, arms) if experts > 1 else 1.0
    return OneBit(price * centred_regret(choices, rounds, arms), 1, rate)

"""EXP4 that releases every round by itself: the paper's, ours, and without privacy.

``tree_bound`` is for EXP4 over all pruned trees of a context, behind one-bit releases (proof:
``docs/theory/trees.md``). The comparison is with every tree of so many leaves, an arm at each leaf,
for losses of any kind that are fixed in advance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna._core.types import JSON
from bandanna.spec import Problem
from bandanna.theory.centred import centred_rate, centred_regret_paid, one_bit_centred_exp4
from bandanna.theory.delay import late_exp4
from bandanna.theory.tuning import (
    PAPER,
    PROOF,
    Bound,
    Tuning,
    Weights,
    check_epsilon,
    noisy_weights,
    one_bit_price,
    release,
    require_horizon,
)


def learner(problem: Problem, found: Weights) -> JSON:
    """Name EXP4 and its parameters."""
    size = {"experts": problem.experts, "arms": problem.arms}
    return {"name": "exp4", **size, **found._asdict()}


def no_privacy(problem: Problem) -> Tuning:
    """EXP4 on losses in [0, 1]: no mixing is needed."""
    rounds, choices = problem.horizon("exp4"), math.log(problem.num_experts)
    rate = math.sqrt(2.0 * choices / (rounds * problem.arms))
    return Tuning(learner(problem, Weights(rate)), release("plain", problem, 1))


def no_privacy_bound(problem: Problem) -> Bound:
    """EXP4 without privacy: ``sqrt(2 T K log N)``."""
    arms, rounds, _ = problem.size
    return Bound(
        "EXP4 (Auer and others 2002)",
        {"sqrt(2 T K log N)": math.sqrt(2.0 * rounds * arms * math.log(problem.num_experts))},
    )


def centred_no_privacy(problem: Problem) -> Tuning:
    """Centred EXP4 on losses in [0, 1], as for bits that are never flipped."""
    rounds, never = problem.horizon("centred-exp4"), 40.0
    tuned = one_bit_centred_exp4(problem.arms, problem.num_experts, rounds, never)
    parts = learner(problem, Weights(tuned.learning_rate)) | {"centred": True}
    return Tuning(parts, release("plain", problem, 1))


def one_bit_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Centred EXP4 on single released bits: ``sqrt(T K log(N) / 2) / s``, ``s = tanh(eps/2)``."""
    if problem.delay:
        return late_exp4(problem)
    arms, rounds, epsilon = problem.size
    tuned = one_bit_centred_exp4(arms, problem.num_experts, rounds, epsilon)
    choices, slope = math.log(problem.num_experts), math.tanh(epsilon / 2.0)
    leading = math.sqrt(rounds * arms * choices / 2.0) / slope
    return Bound(
        "one-bit release and centred EXP4 (docs/theory/centred.md)",
        {
            "sqrt(T K log(N) / 2) / s": leading,
            "0.254 exp(eta/2) log(N) / s": tuned.regret - leading,
        },
        settings={"learning_rate": tuned.learning_rate, "centred": True},
    )


def local(problem: Problem) -> Tuning:
    """Theorem "Locally Private EXP4"."""
    arms, epsilon, choices = problem.arms, min(problem.epsilon, 1.0), math.log(problem.num_experts)

    def at(horizon: int) -> Weights:
        log_term = math.log(arms * horizon)
        spread = 3.0 * horizon * arms * (1.0 + 10.0 * log_term**2 / epsilon**2)
        rate = math.sqrt(choices / spread)
        return Weights(rate, 4.0 * rate * arms * log_term / epsilon)

    require_horizon(
        "local-exp4",
        "its mixing would be above 1",
        problem.but(delta=0.0),
        lambda horizon: at(horizon).mixing <= 1.0,
    )
    tuned = at(problem.horizon("local-exp4"))
    return Tuning(learner(problem, tuned), release("laplace", problem, 1))


def local_bound(problem: Problem) -> Bound:
    """Theorem "Locally Private EXP4": ``16 sqrt(T K log N) log(K T) / eps + 1`` for eps <= 1."""
    arms, rounds, epsilon = problem.size
    check_epsilon(problem)
    local(problem)
    log_term, choices = math.log(arms * rounds), math.log(problem.num_experts)
    leading = 16.0 * math.sqrt(rounds * arms * choices) * log_term / epsilon
    source = f"{PAPER}, Theorem 'Locally Private EXP4'"
    return Bound(source, {"16 sqrt(T K log N) log(K T) / eps": leading, "1": 1.0})


def tight_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Locally private EXP4, ``2 sqrt(C(1/eps) T K log N)``, for any epsilon."""
    arms, rounds, epsilon = problem.size
    terms, settings = noisy_weights(math.log(problem.num_experts), arms, rounds, 1.0 / epsilon)
    return Bound(
        f"local EXP4, tight constants ({PROOF})",
        {
            "log(N) / eta": terms.choices,
            "eta T K (1/2 + lam^2) / (1 - theta^2)": terms.variance,
            "gamma T": terms.mixing,
        },
        settings=settings,
    )


class TreeBound(NamedTuple):
    """A learning rate, and what is guaranteed with it."""

    regret: float
    learning_rate: float


def tree_choices(arms: int, leaves: int) -> float:
    """Return the logarithm of one over the prior weight of a tree: ``m ln K + (2m - 1) ln 2``."""
    return leaves * math.log(arms) + (2 * leaves - 1) * math.log(2.0)


def tree_rate(arms: int, rounds: int, leaves: int) -> float:
    """Return the learning rate for trees of so many leaves."""
    return centred_rate(tree_choices(arms, leaves), rounds, arms)


def tree_bound(
    arms: int, rounds: int, epsilon: float, leaves: int, tuned_for: int | None = None
) -> TreeBound:
    """Bound the regret against every tree with so many leaves.

    ``coth(epsilon / 2) sqrt(T K (m ln K + (2m - 1) ln 2) / 2)`` and lower order.

    Parameters
    ----------
    arms, rounds, epsilon
        K, T, and the privacy parameter of a round.
    leaves
        Leaves of the tree compared with.
    tuned_for
        Leaves that the learning rate is for; the same unless given.

    Examples
    --------
    >>> bound = tree_bound(arms=3, rounds=1_000_000, epsilon=1.0, leaves=4)
    >>> 8_000 < bound.regret < 8_100
    True
    """
    rate = tree_rate(arms, rounds, tuned_for or leaves)
    choices = tree_choices(arms, leaves)
    paid = centred_regret_paid(choices, rate, rounds, arms, rounds * arms / 8.0)
    return TreeBound(one_bit_price(1, epsilon) * paid, rate)

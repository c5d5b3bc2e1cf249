"""A one-run audit: canaries through a whole policy, one in every batch.

A fair coin decides, for every batch, whether one person's loss is 0 or 1; all others' are 0. From
the released values alone an attacker guesses the coins of the batches that look telling. Under
epsilon-privacy each guess is right with probability at most ``e^eps / (1 + e^eps)``, whatever the
other guesses were, so too many right ones disprove the claim in a single run.
"""

from __future__ import annotations

import math

import numpy as np

from bandanna._core import checks
from bandanna.audits.attack import AuditResult
from bandanna.audits.intervals import lower_limit
from bandanna.audits.watching import watch
from bandanna.policies import Policy


def audit_canaries(
    policy: Policy, *, batches: int, significance: float, exact: bool = False, seed: int = 0
) -> AuditResult | None:
    """Attack a fresh copy of a policy by canaries; None where its release offers no guesses."""
    batches = checks.whole("batches", batches, at_least=1)
    guess = policy.recipe.release.guess
    if guess(np.zeros((1, 1))) is None:
        return None
    coins = np.random.default_rng([seed, 2]).integers(0, 2, batches)
    seen = watch(
        policy,
        lambda decision: 0.0 if decision.position else float(coins[decision.batch]),
        batches,
        [seed],
        exact=exact,
    )
    guesses = guess(np.array(seen.published))
    assert guesses is not None
    made = guesses >= 0
    right = int(np.count_nonzero(guesses[made] == coins[made]))
    return _judge(right, int(made.sum()), batches, policy.guarantee.epsilon, significance)


def _judge(right: int, made: int, batches: int, claimed: float, significance: float) -> AuditResult:
    share = lower_limit(right, made, significance)
    epsilon = math.log(share / (1.0 - share)) if share > 0.5 else 0.0
    return AuditResult(
        epsilon=epsilon,
        claimed=claimed,
        delta=0.0,
        significance=significance,
        draws=batches,
        event=f"{right:,} of {made:,} guesses of canaries were right",
        first_share=right / made if made else 0.0,
        second_share=1.0 - right / made if made else 0.0,
    )

"""A one-run audit: canaries through a whole policy, one in every batch.

A fair coin decides, for every batch, whether one person's loss is 0 or 1; all others' are 0. From
the released values alone an attacker guesses the coins of the batches that look telling. Under
epsilon-privacy each guess is right with probability at most ``e^eps / (1 + e^eps)``, whatever the
other guesses were, so too many right ones disprove the claim in a single run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandanna import checks
from bandanna.audits.attack import SIGNIFICANCE, AuditResult
from bandanna.audits.intervals import lower_limit
from bandanna.policies import Policy
from bandanna.privacy.release import SumRelease
from bandanna.streams import new_stream
from bandanna.types import JSON, Guarantee, InputError


class RecordingRelease(SumRelease):
    """Passes on to another release and keeps what was released: that is public anyway."""

    name = "recording"

    def __init__(self, release: SumRelease) -> None:
        self._release = release
        self.batch = release.batch
        self.values: list[float] = []

    def release(self, total: int, size: int | None = None) -> float:
        """Publish a batch's sum and keep what was published."""
        self.values.append(self._release.release(total, size))
        return self.values[-1]

    def guarantee(self) -> Guarantee:
        """Return the promise of the release inside."""
        return self._release.guarantee()

    def fast(self) -> NamedTuple:
        """Return the numbers of the release inside."""
        return self._release.fast()

    def to_dict(self) -> JSON:
        """Return the release inside."""
        return self._release.to_dict()


def audit_policy(
    policy: Policy,
    *,
    batches: int = 20_000,
    significance: float = SIGNIFICANCE,
    exact: bool = False,
    seed: int = 0,
) -> AuditResult:
    """Attack a fresh copy of a policy by canaries, one in each of many batches.

    Parameters
    ----------
    policy
        A private policy; it is left alone.
    batches
        How many canaries.
    significance
        Probability with which the bound may exceed the true epsilon.
    exact
        Use the noise that protects people instead of seeded noise.
    seed
        For the coins, the arms and the seeded noise.
    """
    claimed = policy.guarantee
    if not claimed.private:
        raise InputError("this policy promises nothing, so there is nothing to audit.")
    batches = checks.whole("batches", batches, at_least=1)
    copy = policy.rehearse(new_stream([seed, 0]), new_stream([seed, 1]))
    inside = policy.recipe.release if exact else copy._ledger.release
    assert isinstance(inside, SumRelease)
    recording = RecordingRelease(inside)
    copy._ledger.release = recording
    coins = np.random.default_rng([seed, 2]).integers(0, 2, batches)
    low, high = policy.loss_range
    for coin in coins:
        for position in range(policy.batch):
            decision = copy.decide()
            copy.observe(decision, loss=high if position == 0 and coin else low)
    guesses = policy.recipe.release.guess(np.array(recording.values))
    made = guesses >= 0
    right = int(np.count_nonzero(guesses[made] == coins[made]))
    return _judge(right, int(made.sum()), batches, claimed.epsilon, significance)


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

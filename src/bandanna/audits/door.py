"""Is the release the only door? Decisions must not depend on losses in any other way.

The proof of privacy says: decisions follow from published values and from random numbers that
have nothing to do with anyone. So make the published values have nothing to do with the losses
either, keep the random numbers, change every loss, and nothing at all may change. This is exact:
an honest policy never fails, and one that hands a loss to its learner, in whatever way, does as
soon as a decision shows it.
"""

from __future__ import annotations

import numpy as np

from bandanna.audits.watching import Losses, Seen, watch
from bandanna.policies import Policy

BATCHES, ROUNDS = 300, 5000
"""Batches that are played; fewer of them, but at least 50, where they are long."""


def side_door(policy: Policy, *, seed: int = 0) -> str:
    """Return how losses show in a fresh copy of a policy whose releases are blind; or nothing."""
    batches = max(50, min(BATCHES, ROUNDS // policy.batch))
    anything = np.random.default_rng([seed, 3]).random(1009)
    inputs: dict[str, Losses] = {
        "every loss is the largest": lambda decision: 1.0,
        "losses are random": lambda decision: float(anything[decision.round % anything.size]),
    }
    for delay in (0, 2 * policy.batch + 1):
        none, again = (
            watch(policy, lambda decision: 0.0, batches, [seed], blind=True, delay=delay)
            for _ in range(2)
        )
        if _difference(none, again):
            return "the policy does not repeat itself when its random numbers do"
        for name, losses in inputs.items():
            seen = watch(policy, losses, batches, [seed], blind=True, delay=delay)
            found = _difference(none, seen)
            if found:
                return f"{found} when {name}, though what was published is the same"
    return ""


def _difference(first: Seen, second: Seen) -> str:
    """Say what differs between two runs, if anything does."""
    for one, other in zip(first.published, second.published, strict=True):
        if not np.array_equal(one, other):
            return "what is published changes"
    for place, (one_, other_) in enumerate(zip(first.decisions, second.decisions, strict=False)):
        if one_[1:5] != other_[1:5]:
            return f"decision {place} changes"
    if len(first.decisions) != len(second.decisions):
        return "the number of decisions changes"
    return "what was learned changes" if first.learned != second.learned else ""

"""Many short runs of a whole policy on two neighbouring inputs.

All losses are 0, but for one that is 1 on the first input, in a batch that is drawn at random, and
public. What an observer sees, published values and arms, is put in order
from that batch on, with the distance from its value to the nearest other one, and given to the
general attack, which looks for what tells, alone, in pairs and weighted: noise that is too small,
left out, or used again for another batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import Decision
from bandanna.audits.attack import MOST_EPSILON, AuditResult, audit, fewest_draws
from bandanna.audits.watching import watch
from bandanna.policies import Policy

LENGTH = 9
"""Batches in a run."""

SELECTION = 0.5
"""Runs are few, and what gives a policy away may be rare: half of them choose the event."""


def audit_runs(
    policy: Policy, *, runs: int, significance: float, exact: bool = False, seed: int = 0
) -> AuditResult | None:
    """Attack a policy by so many short runs; None where that is too few to say anything."""
    promise = policy.guarantee
    if promise.epsilon > MOST_EPSILON or (1 - SELECTION) * runs < fewest_draws(
        promise.epsilon, significance
    ):
        return None
    return audit(
        _observed(policy, 1.0, exact, [seed, 4]),
        _observed(policy, 0.0, exact, [seed, 5]),
        promise.epsilon,
        draws=runs,
        significance=significance,
        delta=promise.delta,
        selection=SELECTION,
    )


def _observed(
    policy: Policy, loss: float, exact: bool, seed: list[int]
) -> Callable[[int], NDArray[np.float64]]:
    def run(number: int) -> NDArray[np.float64]:
        place = int(np.random.default_rng([*seed, number]).integers(LENGTH))
        counted: list[Decision] = []

        def losses(decision: Decision) -> float:
            # Where experts agree on the first arm, a loss counts only if that arm was chosen.
            counts = decision.index == 0 or policy.experts is None
            if decision.batch != place or counted or not counts:
                return 0.0
            counted.append(decision)
            return loss

        seen = watch(
            policy,
            losses,
            LENGTH,
            [*seed, number],
            exact=exact,
            agreed=place,
        )
        arms = np.zeros(LENGTH)
        for decision in reversed(seen.decisions[: LENGTH * policy.batch]):
            arms[decision.batch] = decision.index
        # From the batch of the canary on, and round to the one before it.
        published = np.roll(np.array(seen.published), -place, axis=0)
        # Noise that is used again shows as another batch's value at a distance of exactly 0.
        nearest = np.abs(published[1:] - published[0]).max(axis=1).min()
        return np.concatenate([published.ravel(), np.roll(arms, -place), [nearest]])

    return lambda count: np.array([run(number) for number in range(count)])

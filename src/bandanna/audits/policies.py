"""Attacks on whole policies: a planted round, everything that is published, and side doors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.types import JSON, Decision, InputError
from bandanna.audits.attack import (
    MOST_EPSILON,
    NO_PROOF,
    SIGNIFICANCE,
    AuditResult,
    audit,
    fewest_draws,
    lower_limit,
)
from bandanna.audits.transcript import Before, Losses, Seen, watch
from bandanna.policy import Policy


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
        before=lambda batch, position: 1.0 if position else 1.0 - float(coins[batch % batches]),
    )
    published = np.array(seen.published)
    arms = np.zeros(batches, dtype=np.int64)
    if policy.plays_phases:  # the canary is in the sum of its arm
        for decision in seen.decisions:
            if decision.position == 0 and decision.batch < batches:
                arms[decision.batch] = decision.index
        published = published[np.arange(batches), arms][:, np.newaxis] / policy.batch
    guesses = guess(published)
    assert guesses is not None
    if seen.metrics:  # the canary is in all sums at once: guess where they agree
        sums = np.array(seen.metrics)[np.arange(batches), arms]
        guesses = np.where((guesses == 1) & (sums < 1.0).any(axis=1), -1, guesses)
        guesses = np.where((guesses == 0) & (sums > 0.0).any(axis=1), -1, guesses)
    made = guesses >= 0
    right = int(np.count_nonzero(guesses[made] == coins[made]))
    judged = int(made.sum())
    share = lower_limit(right, judged, significance)
    return AuditResult(
        epsilon=math.log(share / (1.0 - share)) if share > 0.5 else 0.0,
        claimed=policy.guarantee.epsilon,
        delta=0.0,
        significance=significance,
        draws=batches,
        event=f"{right:,} of {judged:,} guesses of canaries were right",
        first_share=right / judged if judged else 0.0,
        second_share=1.0 - right / judged if judged else 0.0,
    )


BATCHES, ROUNDS = 300, 5000
"""Batches that are played; fewer of them, but at least 50, where they are long."""


def side_door(policy: Policy, *, seed: int = 0) -> str:
    """Return how losses show in a fresh copy of a policy whose releases are blind; or nothing."""
    batches = max(50, min(BATCHES, ROUNDS // policy.batch))
    anything = np.random.default_rng([seed, 3]).random(1009)
    nothing: Losses = lambda decision: 0.0  # noqa: E731
    largest: Before = lambda batch, position: 1.0  # noqa: E731
    same = "though what was published is the same"
    inputs: dict[str, tuple[Losses, Before]] = {
        f"every loss is the largest, {same}": (lambda decision: 1.0, largest),
        f"losses are random, {same}": (
            lambda decision: float(anything[decision.round % anything.size]),
            largest,
        ),
    }
    if policy.spec.adjust is not None:
        inputs["what was known before is another number"] = nothing, lambda batch, position: 0.0
    for delay in (0, 2 * policy.batch + 1):
        play = partial(watch, policy, batches=batches, seed=[seed], blind=True, delay=delay)
        none = play(nothing)
        if _difference(none, play(nothing)):
            return "the policy does not repeat itself when its random numbers do"
        for name, (losses, before) in inputs.items():
            if difference := _difference(none, play(losses, before=before)):
                return f"{difference} when {name}"
    return ""


PUBLISHED = {
    "published": "what is published",
    "metrics": "what is published of metrics",
    "squares": "what is published of squares",
}


def _difference(first: Seen, second: Seen) -> str:
    """Say what differs between two runs, if anything does."""
    for name, called in PUBLISHED.items():
        one, other = getattr(first, name), getattr(second, name)
        if len(one) != len(other) or not all(map(np.array_equal, one, other)):
            return f"{called} changes"
    for index, (one, other) in enumerate(zip(first.decisions, second.decisions, strict=False)):
        if one[1:5] != other[1:5]:
            return f"decision {index} changes"
    if len(first.decisions) != len(second.decisions):
        return "the number of decisions changes"
    return "what was learned changes" if first.learned != second.learned else ""


LENGTH = 9
"""Batches in a run."""

SELECTION = 0.5
"""Runs are few, and what gives a policy away may be rare: half of them choose the event."""


PAIRS = (1.0, 0.0), (1.0, 0.5), (0.5, 0.0)
"""Losses of the canary on either input. The first pair has one square; where squares are released
too, the others move both."""


def audit_runs(
    policy: Policy,
    *,
    runs: int,
    significance: float,
    exact: bool = False,
    seed: int = 0,
    pair: tuple[float, float] = PAIRS[0],
) -> AuditResult | None:
    """Attack a policy by so many short runs; None where that is too few to say anything."""
    promise = policy.guarantee
    if promise.epsilon > MOST_EPSILON or (1 - SELECTION) * runs < fewest_draws(
        promise.epsilon, significance
    ):
        return None
    return audit(
        _observed(policy, pair[0], exact, [seed, 4]),
        _observed(policy, pair[1], exact, [seed, 5]),
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
        canary = int(np.random.default_rng([*seed, number]).integers(LENGTH))
        counted: list[Decision] = []

        def losses(decision: Decision) -> float:
            # Where experts agree on the first arm, a loss counts only if that arm was chosen.
            counts = decision.index == 0 or policy.experts is None
            if decision.batch != canary or counted or not counts:
                return 0.0
            counted.append(decision)
            return loss

        seen = watch(
            policy,
            losses,
            LENGTH,
            [*seed, number],
            exact=exact,
            agreed=canary,
            before=lambda batch, position: 1.0 - loss * (batch == canary and position == 0),
        )
        arms = np.zeros(LENGTH)
        for decision in reversed(seen.decisions):
            if decision.batch < LENGTH:
                arms[decision.batch] = decision.index
        # From the batch of the canary on, and round to the one before it.
        published = np.roll(np.array(seen.published), -canary, axis=0)
        # Noise that is used again shows as another batch's value at a distance of exactly 0.
        nearest = np.abs(published[1:] - published[0]).max(axis=1).min()
        everything = [published.ravel(), np.roll(arms, -canary), np.array([nearest])]
        if seen.metrics:
            metrics = np.array(seen.metrics)[canary]
            together = published[0].sum() * policy.batch + metrics.sum()
            everything += [metrics.ravel(), np.array([together])]
        if seen.squares:  # by themselves, and with the sum that moves with them
            squares = np.array(seen.squares)[canary]
            total = published[0].sum() * policy.batch
            sides = [total + squares.sum(), total - squares.sum()]
            everything += [squares.ravel(), np.array(sides)]
        return np.concatenate(everything)

    return lambda count: np.array([run(number) for number in range(count)])


@dataclass(frozen=True)
class PolicyAudit:
    """What the attacks on a policy found."""

    claimed: float
    significance: float
    attacks: dict[str, AuditResult]
    side_door: str
    """How losses show other than through what is published; empty if they do not."""

    @property
    def epsilon(self) -> float:
        """Lower bound on the true epsilon; above it with probability at most ``significance``."""
        return max((result.epsilon for result in self.attacks.values()), default=0.0)

    @property
    def passed(self) -> bool:
        """Whether the claim survived; that proves nothing."""
        return self.epsilon <= self.claimed and not self.side_door

    def __str__(self) -> str:
        lines = [
            f"{'passed' if self.passed else 'FAILED'}: epsilon is at least {self.epsilon:.4g} "
            f"(claimed {self.claimed:g}, significance {self.significance:g})"
        ]
        lines += [f"{name}: {result.event}" for name, result in self.attacks.items()]
        lines.append(f"side door: {self.side_door or 'none found'}")
        return "\n".join([*lines, NO_PROOF] if self.passed else lines)


def audit_policy(
    policy: Policy,
    *,
    batches: int = 20_000,
    runs: int = 1000,
    significance: float = SIGNIFICANCE,
    exact: bool = False,
    seed: int = 0,
) -> PolicyAudit:
    """Attack fresh copies of a policy, with experts or without.

    Parameters
    ----------
    policy
        A private policy; it is left alone.
    batches
        How many canaries, in one long run.
    runs
        How many short runs, on either input.
    significance
        Probability with which the bound may exceed the true epsilon.
    exact
        Use the noise that protects people instead of seeded noise.
    seed
        For the coins, the arms and the seeded noise.
    """
    promise = policy.guarantee
    if policy.spec.finds:
        raise InputError(
            "the first phase of this policy finds how outcomes are counted; audit one with "
            "loss_range=, slope= and adjusted_range= given."
        )
    if not promise.private or promise.epsilon == 0:
        raise InputError("this policy promises nothing that could fail: there is nothing to audit.")
    half = significance / 2  # so that both together are wrong no more often than stated
    tried = {
        "canaries": audit_canaries(
            policy, batches=batches, significance=half, exact=exact, seed=seed
        )
    }
    columns = policy._parts.columns
    squares = columns is not None and any(one.square for one in columns.columns)
    pairs = PAIRS if squares else PAIRS[:1]
    asked: JSON = {"runs": runs, "significance": half / len(pairs), "exact": exact, "seed": seed}
    for pair in pairs:
        with_squares = "" if pair == PAIRS[0] else f", losses {pair[0]:g} and {pair[1]:g}"
        tried[f"short runs{with_squares}"] = audit_runs(policy, **asked, pair=pair)
    attacks = {name: result for name, result in tried.items() if result is not None}
    return PolicyAudit(promise.epsilon, significance, attacks, side_door(policy, seed=seed))

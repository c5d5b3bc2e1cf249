"""Playing a policy while writing down everything an observer sees: decisions, published values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Ticket
from bandanna._core.streams import new_stream
from bandanna._core.types import BandannaError, Decision
from bandanna.policy import Policy
from bandanna.policy.codec import learned_to_dict
from bandanna.policy.transitions import batch_with_room
from bandanna.privacy.release import Metrics, Release, Released, Tally

Floats = NDArray[np.float64]
Losses = Callable[[Decision], float]
"""The loss of a decision, from 0 to 1."""
Before = Callable[[int, int], float]
"""What was known before, from 0 to 1, by batch and position; for policies that subtract it."""


class WatchedRelease:
    """Passes on to another release and keeps what was published: that is public anyway.

    ``blind`` hides the losses from the release inside: what it publishes then has nothing to do
    with them, while everything else about the policy is as it was. ``constant`` hides its noise
    too: what the policy learns from is always the same.
    """

    def __init__(
        self, inside: Release, *, blind: bool = False, constant: bool = False, arms: int = 0
    ) -> None:
        self._inside = inside
        self._blind, self._constant = blind, constant
        self.published: list[Floats] = []
        self.beside: list[Floats] = []
        """Sums of further columns: one row for each arm of a phase, else one."""
        self.tallies: list[WatchedTally] = []
        """All batches that were opened, in their order."""
        self._arms = arms
        """Where phases are played, how many arms there are."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._inside, name)

    def start(self, size: int | None = None) -> WatchedTally:
        """Open a batch of the release inside."""
        return WatchedTally(self._inside.start(size), self)

    def start_phase(self) -> WatchedTally:
        """Open a phase of the release inside."""
        return WatchedTally(self._inside.start_phase(), self)


class WatchedTally:
    """Passes on to another tally, and keeps what was counted and what was published."""

    published: Floats

    def __init__(self, inside: Tally, release: WatchedRelease) -> None:
        self._inside, self._release = inside, release
        self.counted = 0
        release.tallies.append(self)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inside, name)

    def add(
        self, units: int, ticket: Ticket | None = None, arm: int = 0, metrics: Metrics = None
    ) -> None:
        """Count a loss and what came with it, or zeros in their place."""
        self.counted += units
        if self._release._blind:
            units, metrics = 0, None if metrics is None else (0,) * len(metrics)
        self._inside.add(units, ticket, arm, metrics)

    def publish(self) -> Released:
        """Publish, and keep what was published: of a phase, the sums of each arm."""
        arms = self._release._arms
        counts = self._inside.counts if arms else {}
        released = self._inside.publish()
        self.published = np.atleast_1d(np.array(released))
        if arms:
            self.published = np.zeros(arms)
            for (arm, count), mean in zip(counts.items(), np.atleast_1d(released), strict=True):
                self.published[arm] = count * mean
        self._release.published.append(self.published)
        if beside := self._inside.beside:
            sums = np.zeros((max(arms, 1), len(beside[0].means)))
            for arm, count, means in beside:
                sums[arm if arms else 0] = count * np.array(means)
            self._release.beside.append(sums)
        if not self._release._constant:
            return released
        return 0.5 if isinstance(released, float) else np.zeros_like(released)


class Seen(NamedTuple):
    """What an observer of one run sees."""

    decisions: list[Decision]
    published: list[Floats]
    learned: str
    """Everything learned, where a policy shows it: it follows from what was published."""
    metrics: list[Floats]
    """Published sums of metrics, one row for each arm of a phase; empty without metrics."""
    squares: list[Floats]
    """The same of squares, of losses and of metrics."""


def watch(
    policy: Policy,
    losses: Losses,
    batches: int,
    seed: list[int],
    *,
    blind: bool = False,
    exact: bool = False,
    delay: int = 0,
    agreed: int | None = None,
    before: Before = lambda batch, position: 1.0,
) -> Seen:
    """Play a fresh copy of a policy until so many batches are published.

    Feedback comes ``delay`` rounds late. Experts' advice is random, but unanimous in the batch
    ``agreed``: there, one loss counts for all of them. What was known before is the largest, but
    where ``before`` says otherwise.
    """
    copy = policy.rehearse(new_stream([*seed, 0]), new_stream([*seed, 1]))
    inside = policy.recipe.release.in_process() if exact else copy._parts.release
    arms = len(policy.arms) if copy._parts.runner.phases else 0
    watched = WatchedRelease(inside, blind=blind, arms=arms)
    copy._parts.release = cast(Release, watched)
    ranges = policy.spec.metrics or {}
    if exact:
        copy._parts.columns = policy._parts.columns
    advice_rng = np.random.default_rng([*seed, 2])
    low, high = policy.loss_range
    waiting: deque[Decision] = deque()
    decisions: list[Decision] = []
    while len(watched.published) < batches:
        room = batch_with_room(copy.state)
        batch = copy.state.batches if room is None else room.number
        if policy.spec.adjust is not None:
            known = before(batch, 0 if room is None else len(room.losses))
            decision = copy.decide(before=low + (high - low) * known)
        elif policy.experts is None:
            decision = copy.decide()
        else:
            votes = advice_rng.integers(0, len(policy.arms), policy.experts)
            decision = copy.decide(votes * 0 if agreed == batch else votes)
        decisions.append(decision)
        waiting.append(decision)
        while len(waiting) > delay and len(watched.published) < batches:
            due = waiting.popleft()
            value = losses(due)  # the outcome and all metrics change together
            also = {name: ends[0] + (ends[1] - ends[0]) * value for name, ends in ranges.items()}
            copy.observe(due, loss=low + (high - low) * value, metrics=also or None)
    square = np.array([one.square for one in policy.columns], dtype=bool)
    kept = watched.beside
    sides = [[seen[:, which] for seen in kept if which.any()] for which in (~square, square)]
    return Seen(decisions, watched.published, _learned(copy), *sides)


def _learned(policy: Policy) -> str:
    try:
        return repr(learned_to_dict(policy.state)["learner"])
    except (BandannaError, TypeError):  # another library's learner does not show what it knows
        return ""

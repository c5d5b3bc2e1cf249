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
from bandanna.privacy.columns import Columns, ColumnsTally, Published
from bandanna.privacy.release import Release, Released, Tally

Losses = Callable[[Decision], float]
"""The loss of a decision, from 0 to 1."""
Before = Callable[[int, int], float]
"""What was known before, from 0 to 1, by batch and position; for policies that subtract it."""


class WatchedRelease:
    """Passes on to another release and keeps what was published: that is public anyway.

    ``blind`` hides the losses from the release inside: what it publishes then has nothing to do
    with them, while everything else about the policy is as it was.
    """

    def __init__(self, inside: Release, *, blind: bool = False, arms: int = 0) -> None:
        self._inside = inside
        self._blind = blind
        self.published: list[NDArray[np.float64]] = []
        self._arms = arms
        """Where phases are played, how many arms there are."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._inside, name)

    def start(self, size: int | None = None) -> WatchedTally:
        """Open a batch of the release inside."""
        return WatchedTally(self._inside.start(size), self.published, blind=self._blind)

    def start_phase(self) -> WatchedTally:
        """Open a phase of the release inside."""
        inside = self._inside.start_phase()
        return WatchedTally(inside, self.published, blind=self._blind, arms=self._arms)


class WatchedTally:
    """Passes on to another tally and keeps what was published."""

    def __init__(
        self,
        inside: Tally,
        published: list[NDArray[np.float64]],
        *,
        blind: bool,
        arms: int = 0,
    ) -> None:
        self._inside = inside
        self._published = published
        self._blind = blind
        self._arms = arms

    def __getattr__(self, name: str) -> object:
        return getattr(self._inside, name)

    def add(self, units: int, ticket: Ticket | None = None) -> None:
        """Count a loss, or a 0 in its place."""
        self._inside.add(0 if self._blind else units, ticket)

    def add_to(self, arm: int, units: int) -> None:
        """Count a loss of an arm, or a 0 in its place."""
        self._inside.add_to(arm, 0 if self._blind else units)

    def publish(self) -> Released:
        """Publish, and keep what was published: of a phase, the sum of each arm."""
        counts = self._inside.counts if self._arms else {}
        released = self._inside.publish()
        seen = np.atleast_1d(np.array(released))
        if self._arms:
            seen = np.zeros(self._arms)
            for (arm, count), mean in zip(counts.items(), np.atleast_1d(released), strict=True):
                seen[arm] = count * mean
        self._published.append(seen)
        return released


class WatchedColumns:
    """Passes on to what is released beside losses and keeps what was published, by arm."""

    def __init__(self, inside: Columns, arms: int, *, blind: bool) -> None:
        self._inside = inside
        self._arms = arms
        self._blind = blind
        self.published: list[NDArray[np.float64]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._inside, name)

    def start(self) -> WatchedColumnsTally:
        """Open a batch of the columns inside."""
        return WatchedColumnsTally(self._inside.start(), self, blind=self._blind)

    def keep(self, released: list[Published]) -> None:
        """Keep the sums of a batch: one for each arm and column in phases, else one a column."""
        seen = np.zeros((max(self._arms, 1), len(self._inside)))
        for arm, count, means in released:
            seen[arm if self._arms else 0] = count * np.array(means)
        self.published.append(seen)


class WatchedColumnsTally(ColumnsTally):
    """Passes on to another tally and keeps what was published."""

    def __init__(self, inside: ColumnsTally, kept: WatchedColumns, *, blind: bool) -> None:
        self._inside = inside
        self._kept = kept
        self._blind = blind
        self.values = inside.values

    def add(self, arm: int, values: tuple[int, ...]) -> None:
        """Count a round's values, or zeros in their place."""
        self._inside.add(arm, (0,) * len(values) if self._blind else values)

    def publish(self) -> list[Published]:
        """Publish, and keep what was published."""
        released = self._inside.publish()
        self._kept.keep(released)
        return released


class Seen(NamedTuple):
    """What an observer of one run sees."""

    decisions: list[Decision]
    published: list[NDArray[np.float64]]
    learned: str
    """Everything learned, where a policy shows it: it follows from what was published."""
    metrics: list[NDArray[np.float64]]
    """Published sums of metrics, one row for each arm of a phase; empty without metrics."""
    squares: list[NDArray[np.float64]]
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
    ranges, columns = policy.spec.metrics or {}, copy._parts.columns
    kept: list[NDArray[np.float64]] = []
    squares: list[bool] = []
    if columns is not None:
        drawn = policy._parts.columns if exact else columns
        assert drawn is not None
        watched_columns = WatchedColumns(drawn, arms, blind=blind)
        copy._parts.columns = cast(Columns, watched_columns)
        kept, squares = watched_columns.published, [one.square for one in drawn.columns]
    advice_rng = np.random.default_rng([*seed, 2])
    low, high = policy.loss_range
    waiting: deque[Decision] = deque()
    decisions: list[Decision] = []
    while len(watched.published) < batches:
        if policy.spec.adjust is not None:
            room = batch_with_room(copy.state)
            where = (copy.state.batches, 0) if room is None else (room.number, len(room.losses))
            decision = copy.decide(before=low + (high - low) * before(*where))
        elif policy.experts is None:
            decision = copy.decide()
        else:
            votes = advice_rng.integers(0, len(policy.arms), policy.experts)
            room = batch_with_room(copy.state)
            unanimous = agreed == (copy.state.batches if room is None else room.number)
            decision = copy.decide(votes * 0 if unanimous else votes)
        decisions.append(decision)
        waiting.append(decision)
        while len(waiting) > delay and len(watched.published) < batches:
            due = waiting.popleft()
            value = losses(due)  # the outcome and all metrics change together
            also = {name: ends[0] + (ends[1] - ends[0]) * value for name, ends in ranges.items()}
            copy.observe(due, loss=low + (high - low) * value, metrics=also or None)
    square = np.array(squares, dtype=bool)
    sides = [[seen[:, which] for seen in kept if which.any()] for which in (~square, square)]
    return Seen(decisions, watched.published, _learned(copy), *sides)


def _learned(policy: Policy) -> str:
    try:
        return repr(learned_to_dict(policy.state)["learner"])
    except (BandannaError, TypeError):  # another library's learner does not show what it knows
        return ""

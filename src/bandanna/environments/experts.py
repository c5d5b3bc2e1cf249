"""An environment with experts: losses and advice, made chunk by chunk.

A chunk holds some thousand rounds, so that a million rounds of a thousand experts never have to
lie in memory at once. A chunk is the same whenever it is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Advice, as_advice_table, check_rounds_of_advice, vote_type
from bandanna._core.compiled import kernel
from bandanna._core.grid import UNITS, LossRange, array_to_units, check_range
from bandanna.environments.base import Comparator, World

CHUNK_BYTES = 8_000_000


class Chunk(NamedTuple):
    """Some rounds in a row."""

    start: int
    """The first of them, from 0."""
    losses: NDArray[np.int64]
    """(rounds, arms), in grid units."""
    advice: Advice
    """(rounds, experts) indices of arms, or (rounds, arms, experts) shares."""


class ExpertEnvironment(World):
    """Losses and advice for ``rounds`` rounds, fixed in advance (an oblivious adversary)."""

    comparator: Comparator = "experts"
    experts: int
    spread: bool
    """Whether experts spread their advice over arms instead of naming one."""

    @abstractmethod
    def make(self, number: int, start: int, stop: int) -> tuple[NDArray[np.int64], Advice]:
        """Return losses and advice of the rounds of a chunk."""

    @property
    def chunk_rounds(self) -> int:
        """Rounds in a chunk."""
        bytes_a_round = self.experts * (8 * self.arms if self.spread else 1) + 8 * self.arms
        return max(1, CHUNK_BYTES // bytes_a_round)

    def chunks(self) -> Iterator[Chunk]:
        """Go through all rounds."""
        size = self.chunk_rounds
        for number, start in enumerate(range(0, self.rounds, size)):
            yield Chunk(start, *self.make(number, start, min(start + size, self.rounds)))


class ExpertTable(ExpertEnvironment):
    """Losses and advice from tables.

    Parameters
    ----------
    losses
        (rounds, arms) losses.
    advice
        (rounds, experts) indices of arms, or (rounds, experts, arms) distributions over arms.
    loss_range
        Smallest and largest possible loss.
    arm_names, expert_names
        What they are called.
    """

    name = "table"

    def __init__(
        self,
        losses: object,
        advice: object,
        loss_range: LossRange = (0.0, 1.0),
        arm_names: Sequence[str] = (),
        expert_names: Sequence[str] = (),
    ) -> None:
        self.loss_range = check_range(loss_range)
        self.arm_names, self.expert_names = tuple(arm_names), tuple(expert_names)
        self._losses = array_to_units(losses, loss_range=self.loss_range)
        self.rounds, self.arms = self._losses.shape
        self._advice = as_advice_table(advice, self.rounds, self.arms)
        self.experts = self._advice.shape[1]
        self.spread = self._advice.ndim == 3
        self._check_size()
        for _ in self.chunks():  # refuse bad advice now and not midway
            pass

    def make(self, number: int, start: int, stop: int) -> tuple[NDArray[np.int64], Advice]:
        """Return a part of the tables."""
        advice = check_rounds_of_advice(self._advice[start:stop], self.arms, start)
        return self._losses[start:stop], advice


@kernel
def add_expert_losses(
    losses: NDArray[np.int64], advice: Advice, low: int, high: int, totals: NDArray[np.float64]
) -> None:
    """Add what each expert would have lost in rounds [low, high) of a chunk."""
    for t in range(low, high):
        if advice.ndim == 2:
            for j in range(totals.size):
                totals[j] += losses[t, advice[t, j]]
        else:
            for i in range(losses.shape[1]):
                for j in range(totals.size):
                    totals[j] += losses[t, i] * advice[t, i, j]


CONFIDENCE = 0.8
"""Where experts spread their advice: the share they give to the arm they would name."""

TOGETHER = 0.9
"""How often the experts of a cluster say the same."""


class SyntheticExperts(ExpertEnvironment):
    """Each round one arm is best; experts know it more or less often.

    Parameters
    ----------
    experts, arms, rounds
        Size of the problem.
    quality
        How often the good expert names the best arm; otherwise it names another.
    low, high
        Losses of the best arm and of the others.
    spread
        Experts give most of their advice to the arm they would name, and the rest to all.
    seed
        Makes the sequence: the same seed, the same losses and advice.
    """

    def __init__(
        self,
        experts: int,
        arms: int,
        rounds: int,
        quality: float = 0.9,
        *,
        low: float = 0.2,
        high: float = 0.8,
        spread: bool = False,
        seed: int = 0,
    ) -> None:
        self.experts = checks.whole("experts", experts, at_least=1)
        self.arms, self.rounds = checks.arms(arms), checks.rounds(rounds)
        self._check_size()
        self.quality = checks.within("quality", quality, 0.0, 1.0)
        self.low = checks.within("low", low, 0.0, 1.0)
        self.high = checks.within("high", high, self.low, 1.0)
        self.spread = bool(spread)
        self.seed = checks.whole("seed", seed, at_least=0)

    def make(self, number: int, start: int, stop: int) -> tuple[NDArray[np.int64], Advice]:
        """Draw a chunk of rounds, from a stream of its own."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        count = stop - start
        best = rng.integers(0, self.arms, count)
        levels = round(self.low * UNITS), round(self.high * UNITS)
        losses = np.where(np.arange(self.arms) == best[:, np.newaxis], *levels).astype(np.int64)
        votes = rng.integers(0, self.arms, (count, self.experts), dtype=vote_type(self.arms))
        self._teach(rng, votes, best, start)
        if not self.spread:
            return losses, votes
        shares = np.full((count, self.arms, self.experts), (1.0 - CONFIDENCE) / self.arms)
        rounds, names = np.indices(votes.shape)
        shares[rounds, votes, names] += CONFIDENCE
        return losses, shares

    @abstractmethod
    def _teach(self, rng: Generator, votes: Advice, best: Advice, start: int) -> None:
        """Replace guesses by what the better experts know; all others guess."""

    def _opinion(self, rng: Generator, best: Advice, quality: float) -> Advice:
        """Name the best arm as often as a quality says, and another one otherwise."""
        wrong = (best + rng.integers(1, self.arms, best.size)) % self.arms
        return np.where(rng.random(best.size) < quality, best, wrong)


class OneGoodExpert(SyntheticExperts):
    """The first expert is good, the others guess."""

    name: ClassVar[str] = "one-good"

    def _teach(self, rng: Generator, votes: Advice, best: Advice, start: int) -> None:
        votes[:, 0] = self._opinion(rng, best, self.quality)


class ClusteredExperts(SyntheticExperts):
    """Experts come in groups that mostly say the same; the first group is the best.

    There are about as many groups as experts in a group. The qualities of the other groups go
    down evenly to guessing.
    """

    name: ClassVar[str] = "clustered"

    def _teach(self, rng: Generator, votes: Advice, best: Advice, start: int) -> None:
        groups = max(1, round(self.experts**0.5))
        for group, members in enumerate(np.array_split(np.arange(self.experts), groups)):
            worse = group / groups
            quality = (1.0 - worse) * self.quality + worse / self.arms
            opinion = self._opinion(rng, best, quality)
            together = rng.random((best.size, members.size)) < TOGETHER
            votes[:, members] = np.where(together, opinion[:, np.newaxis], votes[:, members])


class SwitchingExperts(SyntheticExperts):
    """The first expert is good in the first half of the rounds, the second one thereafter.

    A learner that follows the first has to unlearn; a share ``head_start`` more of the rounds
    belongs to the second, so that it is the best in hindsight.
    """

    name: ClassVar[str] = "switching-experts"
    head_start: ClassVar[float] = 0.05

    @property
    def _change(self) -> int:
        return round((0.5 - self.head_start / 2) * self.rounds)

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """When the second expert takes over."""
        inside = 0 < self._change < self.rounds and self.experts > 1
        return np.array([0, self._change, self.rounds]) if inside else None

    def _teach(self, rng: Generator, votes: Advice, best: Advice, start: int) -> None:
        opinion = self._opinion(rng, best, self.quality)
        change = self._change - start
        first = np.arange(best.size) < change
        second = min(1, self.experts - 1)
        votes[first, 0] = opinion[first]
        votes[~first, second] = opinion[~first]

"""Synthetic experts."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Advice, vote_type
from bandanna._core.grid import UNITS
from bandanna.environments.experts import ExpertEnvironment

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

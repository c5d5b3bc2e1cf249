"""A log in which experts advised, as an environment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice, vote_type
from bandanna.environments.experts import ExpertEnvironment
from bandanna.environments.log import Log

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class _ArmRows(NamedTuple):
    """The rows in which an arm was played, those that are alike side by side."""

    units: Integers
    upto: Floats
    """Weights of the rows up to each, itself included."""
    starts: Integers
    stops: Integers
    """Where the rows of each cell, a block and what was advised, are; those of the whole block
    where the arm was never played in the cell."""
    empty: NDArray[np.bool_]
    """Whether that is so."""


class AdvisedLog(ExpertEnvironment):
    """Rounds drawn from the rows of a log, with what experts advised there.

    Each round a row is drawn at random, of the round's time where the log is in order, and its
    advice is given. An arm's loss is the outcome of a row drawn among those where that arm was
    played and the experts said just the same; among all with that arm where there is none.

    Parameters
    ----------
    log
        With advice.
    rounds
        How many.
    blocks
        Into how many blocks of time the log is cut.
    seed
        Makes the sequence.
    """

    name = "log"
    spread = False

    def __init__(self, log: Log, rounds: int, blocks: int = 1, seed: int = 0) -> None:
        assert log.advice is not None
        self.rounds, self.seed = rounds, seed
        self.arms, self.arm_names = len(log.arm_names), log.arm_names
        self.experts, self.expert_names = log.advice.shape[1], log.expert_names
        self.loss_range = log.loss_range
        self._check_size()
        self._votes = log.advice.astype(vote_type(self.arms))
        self._edges = np.rint(np.linspace(0, log.size, blocks + 1)).astype(np.int64)
        block_of = np.searchsorted(self._edges, np.arange(log.size), side="right") - 1
        patterns = np.unique(log.advice, axis=0, return_inverse=True)[1].ravel()
        count = int(patterns.max()) + 1
        self._cells = (block_of * count + patterns).astype(np.int64)
        self._rows = [_arm_rows(log, arm, self._cells, count, blocks) for arm in range(self.arms)]
        self.about = (
            f"resampling rows and their advice, {log.size:,} rows"
            + (f", in {blocks} blocks of time" if blocks > 1 else "")
            + f"; outcomes from rows with the same arm and advice, but for {self._others():.1%} "
            "where no row has both and any with the arm is taken"
        )

    def make(self, number: int, start: int, stop: int) -> tuple[Integers, Advice]:
        """Draw rows, and for every arm the outcome of one that is alike."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        blocks = self._edges.size - 1
        block = np.arange(start, stop) * blocks // self.rounds
        low, high = self._edges[block], self._edges[block + 1]
        rows = low + (rng.random(stop - start) * (high - low)).astype(np.int64)
        cells = self._cells[rows]
        losses = np.zeros((stop - start, self.arms), dtype=np.int64)
        for arm, alike in enumerate(self._rows):
            first, last = alike.starts[cells], alike.stops[cells]
            before = np.where(first > 0, alike.upto[first - 1], 0.0)
            drawn = before + rng.random(stop - start) * (alike.upto[last - 1] - before)
            drawn_rows = np.searchsorted(alike.upto, drawn, side="right")
            losses[:, arm] = alike.units[np.clip(drawn_rows, first, last - 1)]
        return losses, self._votes[rows]

    def _others(self) -> float:
        """Return for what share of rows and arms no row is alike."""
        return float(np.mean([alike.empty[self._cells] for alike in self._rows]))


def _arm_rows(log: Log, arm: int, cells: Integers, count: int, blocks: int) -> _ArmRows:
    """Put an arm's rows in order of their cells."""
    mine = np.flatnonzero(log.arms == arm)
    mine = mine[np.argsort(cells[mine], kind="stable")]
    every = np.arange(count * blocks)
    starts = np.searchsorted(cells[mine], every, side="left")
    stops = np.searchsorted(cells[mine], every, side="right")
    first = every // count * count
    of_block = np.searchsorted(cells[mine], first), np.searchsorted(cells[mine], first + count)
    empty = starts == stops
    weights = 1.0 / log.chances()[mine]
    return _ArmRows(
        log.units[mine],
        np.cumsum(weights),
        np.where(empty, of_block[0], starts),
        np.where(empty, of_block[1], stops),
        empty,
    )

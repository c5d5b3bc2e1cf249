"""A log replayed as an environment: each arm's rows, drawn again, with advice or without."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Advice, vote_type
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS, LossRange
from bandanna._core.private_inputs import private_inputs
from bandanna._core.streams import Stream, binomial, uniform
from bandanna._core.types import InputError
from bandanna.environments.base import Memory, register
from bandanna.environments.experts import ExpertEnvironment
from bandanna.environments.log import Floats, Integers, Log, LogSample, read_log, sample_of
from bandanna.environments.returning import log_by_person
from bandanna.environments.synthetic import Steps, segment_of


class ResampleParams(NamedTuple):
    """Each block's and arm's different losses, with their probabilities."""

    edges: NDArray[np.int64]
    arms: int
    starts: NDArray[np.int64]
    """Where the losses of a block and an arm begin."""
    values: NDArray[np.int64]
    chances: NDArray[np.float64]
    upto: NDArray[np.float64]
    """Probability of a value or one before it."""


class ReplayParams(NamedTuple):
    """The rows in order, and the probability with which each is taken when its arm is played."""

    arms: NDArray[np.int64]
    units: NDArray[np.int64]
    keep: NDArray[np.float64]


@step
def _resample(
    params: ResampleParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    block = segment_of(params.edges, start)
    total = 0
    while start < stop:
        until = min(stop, params.edges[block + 1])
        cell = block * params.arms + arm
        total += _draws(params, params.starts[cell], params.starts[cell + 1], until - start, stream)
        start = until
        block += 1
    return total


@step
def _draws(params: ResampleParams, low: int, high: int, count: int, stream: Stream) -> int:
    """Add up some draws: one by one, or how often each loss is drawn, whichever is faster."""
    total = np.int64(0)
    if count < high - low:
        for _ in range(count):
            u = uniform(stream)
            first, last = low, high - 1
            while first < last:
                middle = (first + last) >> 1
                if params.upto[middle] > u:
                    last = middle
                else:
                    first = middle + 1
            total += params.values[first]
        return int(total)
    mass = 1.0
    for index in range(low, high - 1):
        drawn = binomial(stream, count, min(1.0, params.chances[index] / mass))
        total += drawn * params.values[index]
        count -= drawn
        mass -= params.chances[index]
        if mass <= 0.0:
            break
    total += count * params.values[high - 1]
    return int(total)


@step
def _replay(
    params: ReplayParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    total = 0
    row = memory[0]
    while start < stop:
        if params.arms[row] == arm and uniform(stream) < params.keep[row]:
            total += params.units[row]
            start += 1
        row += 1
        if row == params.arms.size:  # hardly ever: the rounds are chosen so that rows suffice
            row = 0
    memory[0] = row
    return total


register(ResampleParams, _resample)
register(ReplayParams, _replay)


BLOCKS, ROWS = 20, 50
"""By default a log in order of time is cut into at most so many blocks, and so that every arm has
at least so many rows in each, where it can be."""

SURE = 6.0
"""Standard deviations: what is sure that far goes wrong less often than once in 10^8 runs."""


def usual_blocks(log: Log) -> int:
    """Return how many blocks to cut a log into."""
    if not log.ordered:
        return 1
    rarest = int(np.bincount(log.arms).min())
    return max(1, min(BLOCKS, rarest // ROWS))


def block_tables(log: Log, blocks: int) -> tuple[ResampleParams, Floats]:
    """Weigh rows by one over their propensity, and add up equal losses.

    Returns the log as compiled code reads it, with edges that count rows, and the means by block
    and arm, as losses from 0 to 1.
    """
    weights = 1.0 / log.chances()
    edges, block_of = log.blocks(blocks)
    width = len(log.arm_names)
    starts, values, chances = [0], [], []
    means = np.zeros((blocks, width))
    for block in range(blocks):
        for arm in range(width):
            rows = (block_of == block) & (log.arms == arm)
            if not rows.any():
                raise InputError(
                    f"in block {block + 1} of {blocks} no row has arm {log.arm_names[arm]!r}; use "
                    f"fewer blocks."
                )
            outcomes, which = np.unique(log.units[rows], return_inverse=True)
            share = np.bincount(which, weights=weights[rows]) / weights[rows].sum()
            values.append(outcomes)
            chances.append(share)
            starts.append(starts[-1] + outcomes.size)
            means[block, arm] = float(share @ outcomes) / UNITS
    upto = [np.minimum(np.cumsum(share), 1.0) for share in chances]
    tables = ResampleParams(
        edges,
        width,
        np.array(starts, dtype=np.int64),
        np.concatenate(values).astype(np.int64),
        np.concatenate(chances),
        np.concatenate(upto),
    )
    return tables, means


def replay_rounds(log: Log) -> int:
    """Return how many rounds a log is enough for, but for one run in 10^8.

    A row is taken with probability c, the smallest propensity, whatever arm is played: its arm
    was chosen with its propensity p, and it is kept with probability c/p.
    """
    chances = log.chances()
    for arm, name in enumerate(log.arm_names):
        weights = 1.0 / chances[log.arms == arm]
        off = abs(float(weights.sum()) - log.size)
        if off > SURE * math.sqrt(max(float((weights**2).sum()) - log.size, 0.0)) + 1e-6 * log.size:
            raise InputError(
                f"the propensities do not fit the log: arm {name!r} was played in {weights.size:,} "
                f"rows, far from as often as they say. A replay would be wrong; resample, or leave "
                f"the propensities out if arms were chosen at random."
            )
    taken = log.size * float(chances.min())
    rounds = math.floor(taken - SURE * math.sqrt(taken))
    if rounds < 1:
        raise InputError(
            f"a replay of {log.name} would take about {taken:.3g} of {log.size:,} rows, too few "
            f"to go on: some propensity is very small. Resample instead."
        )
    return rounds


How = Literal["resample", "replay"]


class Logged(Steps):
    """A log of decisions and their outcomes, for rehearsing what a policy would have done.

    A log knows the outcome of the arm that was played and of no other. There are two ways to use
    it. ``resample``: the loss of an arm is the outcome of a row drawn at random among those with
    that arm. ``replay``: a run goes through the log in order and takes a row where the policy
    plays the arm that was played then, and otherwise skips it; each row is used at most once, so
    that a run is shorter than the log.

    Parameters
    ----------
    log
        A CSV or Parquet file, or a data frame: one row for each decision.
    arm, outcome
        Names of the columns with the arm that was played and its outcome.
    loss_range
        Smallest and largest possible outcome, known without looking at people's.
    reward
        Whether a large outcome is good; otherwise it is a loss.
    rounds
        How many decisions to rehearse; by default as many as the log allows.
    how
        ``resample`` or ``replay``.
    propensity
        Column with the probability with which the arm was chosen then. With it both ways are
        right also where some people were likelier to get an arm than others.
    segment
        Column with a group of people. Without propensities, arms are compared within each group,
        so that it does not matter who got which arm more often.
    time
        Column to put rows in order by: numbers, or dates 2024-01-31, or 31/01/2024 where some day
        is above 12. The log is then cut into ``blocks``, and a round's loss is drawn among the
        rows of its time: what changed in the log changes in the rehearsal.
    person
        Column with whose row it is. What a person met of one arm is then one row, a slot, whose
        outcome is the mean of theirs: people come back as they do in the log, rounds are slots,
        and regret is counted by people. Policies with ``per_person`` count in the same way.
    blocks
        How many; by default as many as leave 50 rows of each arm in each, at most 20.
    advice
        Columns with the arm that each expert advised; they are the experts' names. Then it is for
        policies with experts, and resampled only: see ``AdvisedLog``.
    clip
        Count outcomes outside the range as its nearer end, as policies with ``clip=True`` do.

    Examples
    --------
    >>> visits = {"plan": ["a", "a", "b", "b"], "visits": [0, 4, 8, 16]}
    >>> log = Logged(visits, arm="plan", outcome="visits", loss_range=(0, 16))
    >>> log.arm_names, log.means
    (('a', 'b'), array([ 2., 12.]))
    """

    name = "log"
    comparator = "expected"

    @private_inputs
    def __init__(
        self,
        log: object,
        *,
        arm: str,
        outcome: str,
        loss_range: LossRange = (0.0, 1.0),
        reward: bool = False,
        rounds: int | None = None,
        how: How = "resample",
        propensity: str | None = None,
        segment: str | None = None,
        time: str | None = None,
        person: str | None = None,
        blocks: int | None = None,
        clip: bool = False,
        advice: Sequence[str] = (),
    ) -> None:
        if advice and how == "replay":
            raise InputError("a log with advice is resampled; replay goes without experts.")
        if how not in ("resample", "replay"):
            raise InputError(f"how must be resample or replay; got {how!r}.")
        if blocks is not None and time is None:
            raise InputError("blocks are about time; name its column, time=.")
        self.log = read_log(
            log,
            arm=arm,
            outcome=outcome,
            loss_range=loss_range,
            reward=reward,
            clip=clip,
            propensity=propensity,
            person=person,
            time=time,
            segment=segment,
            advice=advice,
        )
        self._visits = self.log.size
        if person is not None:
            self.log = log_by_person(self.log)
        self.how, self.reward, self.outcome = how, bool(reward), outcome
        self.arm_names, self.arms = self.log.arm_names, len(self.log.arm_names)
        self.loss_range = self.log.loss_range
        count = usual_blocks(self.log) if blocks is None else checks.whole("blocks", blocks, 1)
        self._tables, self._means = block_tables(self.log, count)
        self._set_rounds(rounds)

    def of(self, log: Log) -> Logged:
        """Return the same for other outcomes."""
        other = self.environment(self.rounds)
        other.log, other.loss_range = log, log.loss_range
        other._tables, other._means = block_tables(log, len(self._means))
        return other

    def as_environment(self, rounds: int | None = None) -> Logged | AdvisedLog:
        """Return the environment for a number of rounds, with experts if the log has advice."""
        sized = self.environment(self.rounds if rounds is None else rounds)
        if self.log.advice is None:
            return sized
        return AdvisedLog(self.log, sized.rounds, len(self._means))

    def environment(self, rounds: int | None = None) -> Logged:
        """Return the same log for another number of rounds, without its advice."""
        other = object.__new__(Logged)
        other.__dict__.update(self.__dict__)
        other._set_rounds(rounds)
        return other

    def _set_rounds(self, rounds: int | None) -> None:
        log = self.log
        most = log.size if self.how == "resample" else replay_rounds(log)
        self.rounds = most if rounds is None else checks.rounds(rounds)
        if self.how == "replay" and self.rounds > most:
            raise InputError(
                f"replay uses each row at most once: {log.name} has {log.size:,} rows, enough for "
                f"{most:,} rounds; got {rounds:,}. To rehearse more, resample."
            )
        count = len(self._means)
        self._edges = np.rint(np.linspace(0, self.rounds, count + 1)).astype(np.int64)
        blocks = f", in {count} blocks of time" if count > 1 else ""
        rows = f"{log.size:,} rows"
        if log.people is not None:
            rows = f"{log.size:,} slots of {np.unique(log.people).size:,} people"
            rows += f" who came {self._visits:,} times"
        self.about = (
            f"resampling within arms, {rows}{blocks}"
            if self.how == "resample"
            else f"replay by rejection: a run uses {self.rounds:,} of {rows}{blocks}, as the "
            f"smallest propensity is {log.chances().min():.3g}; resampling uses all"
        )

    @property
    def sample(self) -> LogSample:
        """What the log says about its arms, and how surely: unprotected, like the log."""
        return sample_of(self.log, reward=self.reward, outcome=self.outcome)

    @property
    def content(self) -> str:
        """A hash of all that the losses depend on, beside the rounds."""
        return f"{self.log.content()}-{self.how}-{len(self._means)}"

    @property
    def steady(self) -> bool:
        """Whether every arm's outcomes have one law: the log is not in blocks of time."""
        return len(self._means) == 1

    @property
    def means(self) -> NDArray[np.float64]:
        """Each arm's mean outcome, in the log's own units."""
        shares = np.diff(self._edges) / self.rounds
        means = self.span * (shares @ self._means)
        low, high = self.loss_range
        outcomes: NDArray[np.float64] = high - means if self.reward else low + means
        return outcomes

    def params(self) -> ResampleParams | ReplayParams:
        """Return the log as compiled code reads it."""
        if self.how == "resample":
            return self._tables._replace(edges=self._edges)
        chances = self.log.chances()
        return ReplayParams(self.log.arms, self.log.units, chances.min() / chances)

    def memory(self) -> NDArray[np.int64]:
        """Return the row of the log at which a replay is."""
        return np.zeros(1, dtype=np.int64)


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
        self._edges, block_of = log.blocks(blocks)
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

"""Logged data as an environment: what was tried, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import LossRange
from bandanna._core.types import InputError
from bandanna.environments.advised_log import AdvisedLog
from bandanna.environments.base import Environment, edges_of_best
from bandanna.environments.by_person import log_by_person
from bandanna.environments.log import Log, read_log
from bandanna.environments.log_steps import ReplayParams, ResampleParams
from bandanna.environments.log_tables import block_tables, replay_rounds, usual_blocks

How = Literal["resample", "replay"]


class Logged(Environment):
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
        Names of the columns with the arm that was played and what came of it.
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
        Column to put rows in order by. The log is then cut into ``blocks``, and a round's loss
        is drawn among the rows of its time: what changed in the log changes in the rehearsal.
    person
        Column with whose row it is. What a person met of one arm is then one row, a place, whose
        outcome is the mean of theirs: people come back as they do in the log, rounds are places,
        and regret is counted by people. Policies with ``per_person`` count just so.
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
        self._tables = block_tables(self.log, count)
        self._set_rounds(rounds)

    def of(self, log: Log) -> Logged:
        """Return the same for other outcomes."""
        other = self.environment(self.rounds)
        other.log, other.loss_range = log, log.loss_range
        other._tables = block_tables(log, len(self._tables.means))
        return other

    def place(self, rounds: int | None = None) -> Logged | AdvisedLog:
        """Return the environment for a number of rounds: where experts advise, with them."""
        sized = self.environment(self.rounds if rounds is None else rounds)
        if self.log.advice is None:
            return sized
        return AdvisedLog(self.log, sized.rounds, len(self._tables.means))

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
        count = self._tables.means.shape[0]
        self._edges = np.rint(np.linspace(0, self.rounds, count + 1)).astype(np.int64)
        blocks = f", in {count} blocks of time" if count > 1 else ""
        rows = f"{log.size:,} rows"
        if log.people is not None:
            rows = f"{log.size:,} places of {np.unique(log.people).size:,} people"
            rows += f" who came {self._visits:,} times"
        self.about = (
            f"resampling within arms, {rows}{blocks}"
            if self.how == "resample"
            else f"replay by rejection: a run uses {self.rounds:,} of {rows}{blocks}"
        )

    @property
    def content(self) -> str:
        """A hash of all that the losses depend on, beside the rounds."""
        return f"{self.log.content()}-{self.how}-{self._tables.means.shape[0]}"

    @property
    def steady(self) -> bool:
        """Whether every arm's outcomes have one law: the log is not in blocks of time."""
        return len(self._tables.means) == 1

    @property
    def means(self) -> NDArray[np.float64]:
        """Each arm's mean outcome, in the log's own units."""
        shares = np.diff(self._edges) / self.rounds
        means = self.span * (shares @ self._tables.means)
        low, high = self.loss_range
        found: NDArray[np.float64] = high - means if self.reward else low + means
        return found

    def params(self) -> ResampleParams | ReplayParams:
        """Return the log as compiled code reads it."""
        if self.how == "resample":
            tables = self._tables
            losses = tables.starts, tables.values, tables.chances, tables.upto
            return ResampleParams(self._edges, self.arms, *losses)
        chances = self.log.chances()
        return ReplayParams(self.log.arms, self.log.units, chances.min() / chances)

    def memory(self) -> NDArray[np.int64]:
        """Return the place in the log where a replay is."""
        return np.zeros(1, dtype=np.int64)

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Rounds at which another arm is best, by blocks of time."""
        return edges_of_best(self._edges, self._tables.means)

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's expected total loss before each of the given rounds."""
        edges = self._edges
        played = np.clip(stops[:, None] - edges[None, :-1], 0, np.diff(edges)[None, :])
        totals: NDArray[np.float64] = played @ self._tables.means
        return totals

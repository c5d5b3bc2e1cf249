"""Race: find the best arm with a stated confidence, in as few rounds as possible, then play it.

The arm with the smallest mean so far runs against the rival with the least evidence against it;
whichever of the two has fewer rounds is played next. Its batch is long enough for the noise on it
to count little, and shorter where a decision is near. A rival leaves when the evidence that the
leader is better reaches the level that ``ErrorBudget`` has for it. Where it is known how much
losses vary the evidence is that of ``bandanna.any_time_normal``, else that of
``bandanna.inference``, which is proved. So a best arm is named wrongly in less than a share
``alpha`` of runs, however long they are, if losses are steady.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import kernel, once, step
from bandanna._core.streams import Stream, binomial, laplace, normal
from bandanna._core.types import InputError
from bandanna.any_time_normal import (
    EARLY,
    Moments,
    one_sided,
    pair_evidence,
    pair_radius,
    variance_of,
)
from bandanna.error_budget import ErrorBudget
from bandanna.inference import (
    MOST_SQUARE,
    STEEPEST,
    Law,
    Totals,
    law_of,
    least_evidence,
    scratch,
    square_bound,
)
from bandanna.learners.base import CompiledLearner, Dropped, RaceReport, Report, aligned_zeros
from bandanna.learners.prior import Prior, check_prior, weighed
from bandanna.learners.records import Record, record_of
from bandanna.learners.sampling import total_of
from bandanna.learners.steps import CHOSEN, Lesson, register

Floats = NDArray[np.float64]

LONGEST = checks.MAX_ROUNDS
VARIES = 0.005
"""Losses of an arm vary at least so much, as batches are chosen."""
CALM, STEP = 5.0, 0.1
"""Losses of a batch vary so many times as much as its noise, if the arm's rounds then grow by no
more than ``growth``; and it is at least this part of them."""
AIM, LEAST = 0.5, 0.2
"""As arms are nearly told apart a batch is this part of what that still takes, as things look; and
at least this part of what it is otherwise."""
SHARE = 0.1
"""Once there is an answer, a batch is at most this share of all rounds."""
NARROWED, CLEAR = 0.15, 0.1
"""Once there is an answer, the closest rival is played on until the standard error of its mean is
this part of the difference, in at most that share of the rounds, if their number is known."""

PROVED, BOUNDED, SQUARES, BINARY = range(4)
"""What evidence rests on: proofs, by the range alone or with released squares; or the normal law,
with released squares or as losses are 0 or 1."""
EVIDENCE = {"proved": PROVED, "bounded": BOUNDED, "squares": SQUARES, "binary": BINARY}


class RaceParams(NamedTuple):
    """Numbers for the compiled steps."""

    law: Law
    squares: Law
    """That of four times the squares, for a bound on them."""
    kind: int
    of_squares: float
    """Log evidence for that bound."""
    level: float
    """Log evidence at which an arm leaves."""
    early: float
    """The same while there are too few losses for the normal law."""
    growth: float
    first: int
    tolerance: float
    uniform: bool
    before: float
    """Rounds that were known at the start, which are not counted as the race's."""
    rounds: float
    """Rounds that there will be, or 0."""
    noise: float
    """Variance of the noise on a sum."""


class RaceAnswer(Protocol):
    """What the race has found."""

    winner: float
    """Counted from 1; 0 before."""
    when: float
    """After how many rounds it was known."""


ANSWER = record_of(RaceAnswer)


class RaceState(NamedTuple):
    """What was released of each arm, and who is still in the race."""

    sums: Floats
    """Released sums of losses."""
    squared: Floats
    """The same of their squares around 1/2."""
    plays: Floats
    releases: Floats
    waiting: Floats
    """Batches that have not been released yet."""
    racing: Floats
    """1 for arms that may still be the best, else 0."""
    evidence: Floats
    """Log evidence when the arm left."""
    dropped: Floats
    """Rounds after which the arm left."""
    beaten: Floats
    """The arm that it lost against, counted from 1."""
    answer: Record[RaceAnswer]
    scratch: Floats


@dataclass(frozen=True)
class Race(CompiledLearner):
    """Find the best arm with a stated confidence, then play it.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    epsilon
        The privacy parameter of the releases: Laplace noise of scale ``1 / epsilon`` on a sum.
    confidence
        The best arm is named wrongly with probability at most one minus this, if losses are
        steady.
    tolerance
        An arm is good enough once no other can be better by more than this, as a share of the
        range of losses.
    growth
        By how much an arm's rounds grow from batch to batch at most, above 1.
    opening
        Rounds in an arm's first batch; 2 / epsilon by default.
    evidence
        What it rests on: ``proved`` for any losses in [0, 1]; ``bounded``, the same with a bound on
        how much they vary, from the squares that were released; ``squares``, the normal
        approximation with these; or ``binary``, the same for losses that are 0 or 1.
    uniform
        Play all arms alike, also those that left, as an A/B test does: for comparison.
    prior
        What was released of each arm before, or None.
    before
        Rounds behind a prior that it had with other arms.
    first, ever
        Arms that it began with and arms that there ever were, where arms have come and gone.
    rounds
        How many rounds there will be, if that is known. Some of those that are left once there is
        an answer then make the difference to the closest rival narrower.
    """

    arms: int
    epsilon: float
    confidence: float = 0.95
    tolerance: float = 0.0
    growth: float = 2.0
    uniform: bool = False
    prior: Prior | None = None
    before: float = 0.0
    first: int = 0
    ever: int = 0
    opening: int | None = None
    evidence: str = "proved"
    rounds: int | None = None
    name: ClassVar[str] = "race"
    tells_chance: ClassVar[bool] = False
    grows: ClassVar[bool] = True
    watches: ClassVar[bool] = True
    starts: ClassVar[bool] = True
    per_arm: ClassVar[tuple[str, ...]] = (
        *("sums", "squared", "plays", "releases", "waiting"),
        *("racing", "evidence", "dropped", "beaten"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.epsilon(self.epsilon)
        if self.rounds is not None:
            checks.set_fields(self, rounds=checks.rounds(self.rounds))
        checks.within("confidence", self.confidence, 0.5, 1.0 - 1e-12)
        checks.within("tolerance", self.tolerance, 0.0, 1.0)
        checks.within("growth", self.growth, 1.01, 100.0)
        checks.within("before", self.before, 0.0, math.inf)
        checks.within("first", self.first, 0, max(self.ever, 0))
        checks.set_fields(self, prior=check_prior(self.prior, self.arms))
        if self.opening is not None:
            checks.whole("opening", self.opening, 1, LONGEST)
        if self.evidence not in EVIDENCE:
            raise InputError(
                f"evidence must be one of {', '.join(EVIDENCE)}; got {self.evidence!r}."
            )

    def params(self) -> RaceParams:
        """Return the numbers for the compiled steps."""
        first = self.opening or min(math.ceil(2.0 / self.epsilon), LONGEST)
        scale, kind = 1.0 / float(self.epsilon), EVIDENCE[self.evidence]
        law = law_of(scale, STEEPEST) if kind == BOUNDED else law_of(scale)
        level = -math.log(self.error()) if kind <= BOUNDED else one_sided(self.error())
        return RaceParams(
            law=law,
            squares=law_of(4.0 * scale),
            kind=kind,
            of_squares=-math.log(self._budget.square(self._newest)),
            level=level,
            early=-math.log(EARLY * self.error()),
            growth=float(self.growth),
            first=first,
            tolerance=float(self.tolerance),
            uniform=bool(self.uniform),
            before=float(self.before + self._known_rounds()),
            rounds=float(self.rounds or 0),
            noise=2.0 * scale * scale,
        )

    def error(self) -> float:
        """Return the error probability of each step, with which an arm leaves or is good enough.

        Once arms have come or gone there is no longer one best of all: what is said of pairs
        decides, at the strictest of their levels.
        """
        budget = self._budget.with_squares if self.evidence == "bounded" else self._budget
        if not self.ever and budget.best > 0.0:
            return budget.best
        return budget.pair(0, self._newest)

    @property
    def _budget(self) -> ErrorBudget:
        return ErrorBudget(1.0 - self.confidence, self.first or self.arms)

    @property
    def _newest(self) -> int:
        return (self.ever or self.arms) - 1

    def _known_rounds(self) -> float:
        if self.prior is None:
            return 0.0
        return float(weighed(self.prior, 1.0 / float(self.epsilon)).rounds.sum())

    def start(self) -> RaceState:
        """Return the state before the first round."""
        state = RaceState._make([*aligned_zeros(*[self.arms] * 9, ANSWER), scratch()])
        state.racing[:] = 1.0
        if self.prior is not None:
            told = weighed(self.prior, 1.0 / float(self.epsilon))
            state.sums[:], state.plays[:] = told.sums, told.rounds
            state.releases[:], state.squared[:] = told.releases, told.squares
            settle_once(self.params(), state)
        return state

    def with_arms(self, state: RaceState, kept: list[int], added: int) -> tuple[Self, RaceState]:
        """Return a learner for other arms, which remembers how many rounds were known before."""
        learner, fresh = super().with_arms(state, kept, added)
        return replace(
            learner,
            before=self.before + self._known_rounds(),
            first=self.first or self.arms,
            ever=(self.ever or self.arms) + added,
        ), fresh

    def welcome(self, state: RaceState, first: int) -> None:
        """Let new arms race; an arm that had won has to win again."""
        state.racing[first:] = 1.0
        state.answer[0].winner = state.answer[0].when = 0.0
        state.beaten[:] = 0.0

    def take_back(self, state: RaceState, arm: int, importance: float) -> None:
        """Wait no more for a batch that taught nothing."""
        if importance == CHOSEN:
            state.waiting[arm] -= 1.0

    def report(self, state: RaceState) -> Report:
        """Say who is still in the race, and who left it why."""
        gone = [
            Dropped(
                arm,
                int(state.beaten[arm]) - 1 if state.beaten[arm] > 0.0 else None,
                int(state.dropped[arm]),
                float(state.evidence[arm]),
            )
            for arm in np.argsort(state.dropped, kind="stable").tolist()
            if state.racing[arm] == 0.0
        ]
        winner = int(state.answer[0].winner) - 1
        racing = tuple(int(arm) for arm in np.flatnonzero(state.racing))
        known = None if winner < 0 else winner
        return Report(race=RaceReport(known, int(state.answer[0].when), racing, tuple(gone)))


@step
def _totals(params: RaceParams, state: RaceState, arm: int) -> Totals:
    told = state.plays[arm], state.releases[arm]
    square = MOST_SQUARE
    if params.kind == BOUNDED:
        square = square_bound(
            params.squares, state.squared[arm], told[0], told[1], params.of_squares, state.scratch
        )
    return Totals(state.sums[arm], told[0], told[1], 0.0, 1.0, min(square, MOST_SQUARE))


@step
def _moments(state: RaceState, arm: int) -> Moments:
    return Moments(state.sums[arm], state.squared[arm], state.plays[arm], state.releases[arm])


@step
def _mean(state: RaceState, arm: int) -> float:
    return float(state.sums[arm] / state.plays[arm])


@step
def _against(params: RaceParams, state: RaceState, lead: int, arm: int, margin: float) -> float:
    """Return the evidence that the leader is better, or worse by less than a margin.

    As a part of what is needed: 1 is enough.
    """
    if params.kind > BOUNDED:
        first, second = _moments(state, lead), _moments(state, arm)
        far = pair_radius(first, second, params.law.scale, params.kind == BINARY, params.level)
        if not math.isinf(far):  # else it is too early for the normal law
            away = _mean(state, arm) - _mean(state, lead) + margin
            return float(away / far)
    a, b = _totals(params, state, lead), _totals(params, state, arm)
    evidence, _ = least_evidence(params.law, a, b, -margin, state.scratch)
    return evidence / (params.level if params.kind <= BOUNDED else params.early)


@step
def _evidence(params: RaceParams, state: RaceState, lead: int, arm: int) -> float:
    """Return the logarithm of the evidence that the leader is better."""
    if params.kind <= BOUNDED:
        return _against(params, state, lead, arm, 0.0) * params.level
    first, second = _moments(state, lead), _moments(state, arm)
    return pair_evidence(first, second, params.law.scale, params.kind == BINARY, 0.0)


@step
def _leader(state: RaceState) -> int:
    """Return the arm in the race with the smallest mean, or -1."""
    lead, least = -1, math.inf
    for i in range(state.plays.size):
        if state.racing[i] > 0.0 and state.plays[i] > 0.0 and _mean(state, i) < least:
            lead, least = i, _mean(state, i)
    return lead


@step
def _expected(params: RaceParams, state: RaceState, arm: int) -> float:
    """Return an arm's rounds once the batches have come that it waits for."""
    plays = state.plays[arm]
    if plays == 0.0:
        return float(state.waiting[arm] * params.first)
    return float(plays * params.growth ** state.waiting[arm])


@step
def _untried(state: RaceState, lead: int) -> int:
    """Return an arm in the race that was not played yet, or -1.

    Before the first release that is the arm with the fewest batches waiting.
    """
    arm = -1
    for i in range(state.plays.size):
        fresh = state.plays[i] == 0.0 and (lead < 0 or state.waiting[i] == 0.0)
        if state.racing[i] > 0.0 and fresh and (arm < 0 or state.waiting[i] < state.waiting[arm]):
            arm = i
    return arm


@step
def _next(params: RaceParams, state: RaceState, lead: int) -> int:
    """Return the leader or its closest rival, whichever has fewer rounds."""
    rival, least = lead, math.inf
    for i in range(state.plays.size):
        if i != lead and state.racing[i] > 0.0 and state.plays[i] > 0.0:
            evidence = _against(params, state, lead, i, 0.0)
            if evidence < least:
                rival, least = i, evidence
    fewer = _expected(params, state, rival) <= _expected(params, state, lead)
    return rival if fewer else lead


@step
def _fewest(params: RaceParams, state: RaceState) -> int:
    arm = 0
    for i in range(state.plays.size):
        if _expected(params, state, i) < _expected(params, state, arm):
            arm = i
    return arm


@step
def _draw(params: RaceParams, state: RaceState, stream: Stream) -> tuple[int, float]:
    arm = int(state.answer[0].winner) - 1
    if arm < 0:
        lead = _leader(state)
        arm = _untried(state, lead)
        if arm < 0:
            arm = _fewest(params, state) if params.uniform else _next(params, state, lead)
    elif params.rounds > 0.0 and not params.tolerance > 0.0:
        arm = _to_narrow(params, state, arm)
    state.waiting[arm] += 1.0
    return arm, CHOSEN


@step
def _to_narrow(params: RaceParams, state: RaceState, winner: int) -> int:
    """Return the closest rival while its mean is not clear enough, else the winner."""
    rival, least = winner, math.inf
    for i in range(state.plays.size):
        if i != winner and state.plays[i] > 0.0 and _mean(state, i) < least:
            rival, least = i, _mean(state, i)
    if rival == winner or state.plays[winner] == 0.0:
        return winner
    rounds = _expected(params, state, rival)
    if rounds >= NARROWED * params.rounds:
        return winner
    gap = least - _mean(state, winner)
    mean = min(max(least, 0.01), 0.99)
    noise = params.noise * (state.releases[rival] + state.waiting[rival]) / (rounds * rounds)
    clear = mean * (1.0 - mean) / rounds + noise <= (CLEAR * gap) ** 2
    return winner if gap > 0.0 and clear else rival


@step
def _length(params: RaceParams, state: RaceState, arm: int) -> int:
    plays = state.plays[arm]
    if plays == 0.0:
        return params.first
    rounds = (params.growth - 1.0) * plays
    if state.answer[0].winner > 0.0:
        share = math.ceil(SHARE * total_of(state.plays))
        rounds = min(rounds, max(share, float(params.first)))
    else:
        binary = params.kind in (PROVED, BINARY)
        varies = max(variance_of(_moments(state, arm), params.law.scale, binary), VARIES)
        rounds = max(STEP * plays, min(rounds, CALM * params.noise / varies))
        rounds = max(LEAST * rounds, min(rounds, AIM * _missing(params, state, arm) * plays))
    return int(min(max(math.ceil(rounds), 1.0), float(LONGEST)))


@step
def _missing(params: RaceParams, state: RaceState, arm: int) -> float:
    """Return what it takes until the leader and an arm, or any arm and the leader, are told apart.

    As a part of the rounds so far, if the difference stays as it is.
    """
    lead, most = _leader(state), 0.0
    for i in range(state.plays.size):
        rival = i != lead and state.racing[i] > 0.0 and state.plays[i] > 0.0
        if rival and arm in (i, lead):
            most = max(most, _against(params, state, lead, i, 0.0))
    if most <= 0.0:
        return math.inf
    # The normal law's radius falls with the root of the rounds; log evidence grows with them.
    return 1.0 / (most * most if params.kind > BOUNDED else most) - 1.0


@step
def _update(params: RaceParams, state: RaceState, lesson: Lesson) -> None:
    arm, _, loss, rounds = lesson
    state.waiting[arm] -= 1.0
    state.sums[arm] += loss * rounds
    state.plays[arm] += rounds
    state.releases[arm] += 1.0
    _settle(params, state)


@step
def _settle(params: RaceParams, state: RaceState) -> None:
    """Let arms leave that are worse beyond doubt, and name the winner once it is known."""
    lead = _leader(state)
    if state.answer[0].winner > 0.0 or lead < 0:
        return
    total, left, good = -params.before, 0, True
    for i in range(state.plays.size):
        total += state.plays[i]
    for i in range(state.plays.size):
        if state.racing[i] == 0.0:
            continue
        left += 1
        if i == lead:
            continue
        if state.plays[i] == 0.0:
            good = False
            continue
        if _against(params, state, lead, i, 0.0) >= 1.0:
            state.racing[i] = 0.0
            state.evidence[i] = max(_evidence(params, state, lead, i), params.level)
            state.dropped[i] = total
            state.beaten[i] = lead + 1.0
            left -= 1
        elif params.tolerance > 0.0 and good:
            good = _against(params, state, lead, i, params.tolerance) >= 1.0
    if left == 1 or (params.tolerance > 0.0 and good):
        state.answer[0].winner = lead + 1.0
        state.answer[0].when = total


@step
def _note_square(
    params: RaceParams, state: RaceState, arm: int, square: float, rounds: int
) -> None:
    state.squared[arm] += square * rounds


register(RaceParams, _draw, _update, _length, _note_square)


settle_once = once(_settle)


@kernel
def run_race(
    params: RaceParams,
    state: RaceState,
    means: Floats,
    sd: float,
    scale: float,
    most: float,
    stream: Stream,
) -> float:
    """Run a race to its end on simulated losses; returns its rounds, or -1 after ``most``.

    Losses are 0 or 1; with an ``sd`` above 0 they are any that vary by this, whose sums are as good
    as normal. When the best arm has left it is over, and wrong: arms that are alike would race for
    ever. ``scale`` is that of the Laplace noise. For planning: no feedback of anyone is involved.
    """
    total, best = 0.0, int(np.argmin(means))
    while state.answer[0].winner == 0.0 and total < most:
        arm, importance = _draw(params, state, stream)
        rounds = _length(params, state, arm)
        if sd > 0.0:
            lost = rounds * means[arm] + math.sqrt(float(rounds)) * sd * normal(stream)
            square = rounds * (sd * sd + (means[arm] - 0.5) ** 2) + laplace(stream, scale)
            _note_square(params, state, arm, square / rounds, rounds)
        else:
            lost = float(binomial(stream, rounds, means[arm]))
        lost += laplace(stream, scale)
        _update(params, state, Lesson(arm, importance, lost / rounds, rounds))
        total += rounds
        if state.racing[best] == 0.0:
            return total
    return state.answer[0].when if state.answer[0].winner > 0.0 else -1.0

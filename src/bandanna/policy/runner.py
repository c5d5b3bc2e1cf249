"""How a policy plays: what opens a batch, how an arm is chosen in it, what its release teaches.

- ``PlayArm``: an arm is drawn for a batch and played (the paper's Algorithm 1).
- ``FollowExpert``: an expert is drawn for a batch and followed; the learner is any bandit learner
  over experts (Algorithm 6).
- ``WeighExperts``: EXP4 on single released losses.
- ``WeighInBatches``: EXP4 on batches, each expert's estimate released (Algorithm 2).

The steps are written once; the online object and the simulator both call them. They are plain
functions, because another library's learner has to be played in Python.

Decisions among some of the arms (``eligible=``): a learner that draws at random draws as ever. If
what it drew may not be played, another arm is drawn in its stead, from the same probabilities
renormalised, and its loss is learned as the loss of the one that was drawn. So every arm is played
with its renormalised probability, and the learner plays an ordinary bandit in which an arm that may
not be played loses what the others do. ``docs/theory/arms.md`` has the proof, and what it says of
regret. A learner that ranks arms by what it knows of each one ranks those that may be played.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice, Ticket, ticket_of
from bandanna._core.compiled import kernel, python_source
from bandanna._core.dispatch import dispatched
from bandanna._core.streams import Stream, uniform
from bandanna._core.types import InputError
from bandanna.learners import Compiled, CompiledLearner, ExpertLearner, PhaseLearner
from bandanna.learners.base import Player as LearnerPlayer
from bandanna.learners.base import Report
from bandanna.learners.exp4 import (
    Exp4Params,
    Exp4State,
    advised_arm,
    exp4_choose,
    exp4_learn_all,
    exp4_update,
)
from bandanna.learners.phased_state import PHASE, PhaseNumbers
from bandanna.learners.phased_steps import draw_from
from bandanna.learners.records import Record
from bandanna.learners.sampling import pick
from bandanna.learners.steps import (
    Lesson,
    draw,
    learn_phase_once,
    length,
    note_square,
    open_phase_once,
    update,
)
from bandanna.policy.parts import Recipe, follows_experts, weighs_in_batches
from bandanna.policy.state import NOT_LEARNED, Drawn, EligibleArms, Phase, State, Told
from bandanna.privacy.release import Values


class PlayArm(NamedTuple):
    """An arm is drawn for a batch and played."""

    params: NamedTuple | LearnerPlayer
    state: NamedTuple | None


class FollowExpert(NamedTuple):
    """An expert is drawn for a batch and followed."""

    params: NamedTuple | LearnerPlayer
    state: NamedTuple | None


class WeighExperts(NamedTuple):
    """EXP4 on single losses."""

    params: Exp4Params
    state: Exp4State


class WeighInBatches(NamedTuple):
    """EXP4 on batches: weights change when a batch has been released."""

    params: Exp4Params
    state: Exp4State


Estimates = NDArray[np.float64]


class Credit(NamedTuple):
    """What a batch released, and what its credit needs."""

    choice: int
    weight: float
    """What came with the draw of the choice."""
    advice: Advice
    """That of the batch's last round, as are the arm and its importance."""
    arm: int
    importance: float
    value: float
    estimates: Estimates
    """One for each expert, or the mean square beside the value."""
    rounds: int
    """How many rounds the batch had."""


Play = PlayArm | FollowExpert | WeighExperts | WeighInBatches

NO_ADVICE: Advice = np.zeros(0, dtype=np.uint8)
NO_ESTIMATES: Estimates = np.zeros(0)


# --- the steps --------------------------------------------------------------------------------


@dispatched
def open_batch(play: Play, stream: Stream) -> tuple[int, float, int]:
    """Begin a batch: which arm or expert, its importance, and for how many rounds."""
    raise NotImplementedError


@dispatched
def choose(play: Play, choice: int, advice: Advice, stream: Stream) -> tuple[int, float]:
    """Choose an arm in a round of a batch; returns it with its importance."""
    raise NotImplementedError


@dispatched
def learn(play: Play, credit: Credit) -> None:
    """Learn from what a batch released: a value, or an estimate for each expert."""
    raise NotImplementedError


def _draw(play: PlayArm | FollowExpert, stream: Stream) -> tuple[int, float, int]:
    choice, weight = draw(play.params, play.state, stream)
    return choice, weight, length(play.params, play.state, choice)


def _nothing_drawn(play: WeighExperts | WeighInBatches, stream: Stream) -> tuple[int, float, int]:
    return 0, 1.0, 0


def _follow(play: FollowExpert, choice: int, advice: Advice, stream: Stream) -> tuple[int, float]:
    return advised_arm(advice, choice, stream), 1.0


def _weigh(
    play: WeighExperts | WeighInBatches, choice: int, advice: Advice, stream: Stream
) -> tuple[int, float]:
    return exp4_choose(play.params, play.state, advice, stream)


def _credit_choice(play: PlayArm | FollowExpert, credit: Credit) -> None:
    if credit.estimates.size > 0:
        square = credit.estimates[0]
        note_square(play.params, play.state, credit.choice, square, credit.rounds)
    lesson = Lesson(credit.choice, credit.weight, credit.value, credit.rounds)
    update(play.params, play.state, lesson)


def _credit_experts(play: WeighExperts, credit: Credit) -> None:
    arm, importance = credit.arm, credit.importance
    exp4_update(play.params, play.state, credit.advice, arm, importance, credit.value)


def _weigh_anew(play: WeighInBatches, credit: Credit) -> None:
    exp4_learn_all(play.params, play.state, credit.estimates)


for _kind, _open, _choose, _learn in (
    (PlayArm, _draw, None, _credit_choice),
    (FollowExpert, _draw, _follow, _credit_choice),
    (WeighExperts, _nothing_drawn, _weigh, _credit_experts),
    (WeighInBatches, _nothing_drawn, _weigh, _weigh_anew),
):
    open_batch.register(_kind, _open)
    learn.register(_kind, _learn)
    if _choose is not None:  # where an arm is played it was chosen when the batch opened
        choose.register(_kind, _choose)


def start_learner(recipe: Recipe, stream: Stream) -> NamedTuple | LearnerPlayer:
    """Return a learner's arrays, or another library's learner; only that looks at the stream."""
    learner = recipe.learner
    return learner.start() if isinstance(learner, Compiled) else learner.play(stream)


def start_play(
    recipe: Recipe,
    experts: int | None,
    stream: Stream,
    learned: NamedTuple | LearnerPlayer | None = None,
) -> Play:
    """Begin to play a recipe, or go on with what was learned."""
    learner = recipe.learner
    if learned is None:
        learned = start_learner(recipe, stream)
    if isinstance(learner, ExpertLearner):
        weighs = WeighInBatches if weighs_in_batches(recipe) else WeighExperts
        return weighs(cast(Exp4Params, learner.params()), cast(Exp4State, learned))
    draws = FollowExpert if follows_experts(recipe, experts) else PlayArm
    if isinstance(learned, tuple):
        assert isinstance(learner, Compiled)
        return draws(learner.params(), learned)
    return draws(learned, None)


@kernel
def open_once(play: Play, stream: Stream) -> tuple[int, float, int]:
    """Begin a batch, from Python."""
    return open_batch(play, stream)


@kernel
def choose_once(play: Play, choice: int, advice: Advice, stream: Stream) -> tuple[int, float]:
    """Choose an arm, from Python."""
    return choose(play, choice, advice, stream)


@kernel
def learn_once(play: Play, credit: Credit) -> None:
    """Learn from a release, from Python."""
    learn(play, credit)


@kernel
def pick_once(weights: NDArray[np.float64], stream: Stream) -> int:
    """Draw an index from weights that add up to 1, from Python."""
    return pick(weights, 0, weights.size, uniform(stream))


@kernel
def order_once(
    planned: NDArray[np.float64],
    left: NDArray[np.float64],
    phase: Record[PhaseNumbers],
    order: NDArray[np.int32],
    stream: Stream,
) -> None:
    """Draw the order of a phase, from Python."""
    for position in range(order.size):
        order[position] = draw_from(planned, left, phase[0], stream)[0]


def draw_phase(planned: NDArray[np.float64], stream: Stream) -> Phase:
    """Draw in which order the arms of a phase are played."""
    words = tuple(int(word) for word in stream)
    phase = np.zeros(1, PHASE)
    phase[0].length = phase[0].left = planned.sum()
    phase[0].lead = planned.argmax()
    order = np.zeros(int(phase[0].length), dtype=np.int32)
    order_once(planned, planned.copy(), phase, order, stream)
    return Phase(planned, words, order)


def with_control(planned: NDArray[np.float64], control: int, wanted: int) -> NDArray[np.float64]:
    """Return the counts of a phase of the same size in which an arm has at least so many rounds.

    Examples
    --------
    >>> with_control(np.array([0.0, 60.0, 40.0]), 0, 10).tolist()
    [10.0, 54.0, 36.0]
    """
    size = float(planned.sum())
    if planned[control] >= wanted:
        return planned
    others = planned.copy()
    others[control] = 0.0
    kept = np.floor(others * (size - wanted) / others.sum())
    kept[control] = size - kept.sum()
    shares: NDArray[np.float64] = kept
    return shares


# --- for the object a user holds --------------------------------------------------------------


class Runner:
    """Plays a recipe on a state: draws for batches and rounds, learns from releases."""

    def __init__(self, recipe: Recipe, experts: int | None, state: State, count: int) -> None:
        self._state = state
        self._stream = state.stream
        self._count = count
        """Arms there are and were."""
        self._arms = tuple(arm for arm in range(count) if arm not in state.retired)
        """Which arm each of the learner's is: it knows those that are not retired."""
        learned = cast("NamedTuple | LearnerPlayer", state.learned)
        self._play = start_play(recipe, experts, state.stream, learned)
        compiled = self._play.state is not None
        self._open = open_once if compiled else python_source(open_once)
        self._choose = choose_once if compiled else python_source(choose_once)
        self._learn = learn_once if compiled else python_source(learn_once)
        learner = recipe.learner
        self.weighs = isinstance(learner, ExpertLearner)
        self._learner = learner if isinstance(learner, Compiled) else None
        self._tells = self._learner is not None and self._learner.tells_chance
        self._follows = isinstance(self._play, FollowExpert)
        self.phases = self.shares = isinstance(learner, PhaseLearner)

    # --- drawing --------------------------------------------------------------------------

    def open(self, among: EligibleArms | None = None) -> Drawn:
        """Begin a batch, for all arms or among some."""
        arms = self._arms
        if not self._some_retired:
            return self._draw(among)
        drawn = self._draw(among and tuple(k for k, arm in enumerate(arms) if arm in among))
        return drawn._replace(choice=arms[drawn.choice], credited=arms[drawn.credited])

    def _draw(self, among: EligibleArms | None) -> Drawn:
        """Draw among the learner's arms."""
        play, stream = self._play, self._stream
        if among is None:
            choice, importance, size = self._open(play, stream)
            return Drawn(choice, importance, size, choice, self._chance_of(importance))
        assert isinstance(play, PlayArm)
        assert self._learner is not None
        assert play.state is not None
        chances = self._learner.chances(play.state)
        if chances is None:
            return self._draw_ranked(play, among)
        shares = chances[list(among)]
        whole = float(shares.sum())
        # Probabilities may be too small for floating point: then nothing is known of these arms.
        shares = shares / whole if whole > 0.0 else np.full(len(among), 1.0 / len(among))
        credited, importance, size = self._open(play, stream)
        # If what was drawn may not be played, an arm that may be is drawn in its stead.
        choice = credited if credited in among else among[pick_once(shares, stream)]
        return Drawn(choice, importance, size, credited, float(shares[among.index(choice)]))

    def _draw_ranked(self, play: PlayArm, among: EligibleArms) -> Drawn:
        """Let a learner rank some arms: it sees a state that holds these alone."""
        assert self._learner is not None
        assert isinstance(play.state, tuple)
        arms = list(among)
        arrays = {name: getattr(play.state, name) for name in self._learner.per_arm}
        part = play.state._replace(**{name: array[arms] for name, array in arrays.items()})
        position, importance, size = self._open(play._replace(state=part), self._stream)
        for name, array in arrays.items():  # what drawing changed
            array[arms] = getattr(part, name)
        arm = among[position]
        return Drawn(arm, importance, size, arm, self._chance_of(importance))

    def choose(
        self, choice: int, advice: Advice | None, among: EligibleArms | None
    ) -> tuple[int, Ticket | None]:
        """Choose an arm; where experts are weighed, with what their credit will need.

        An arm that is played was drawn among the eligible ones when its batch opened.
        """
        if advice is None:
            return choice, None
        arm, importance = self._choose(self._play, choice, advice, self._stream)
        if not self.weighs:
            return arm, None
        return arm, ticket_of(advice, arm, importance)

    def _chance_of(self, importance: float) -> float | None:
        """Return the probability with which an arm was drawn among all, where that is known."""
        known = self._tells and not self._follows and not self.weighs
        return 1.0 / importance if known else None

    def chance(self, drawn: float | None, ticket: Ticket | None) -> float | None:
        """Return the probability of an arm just chosen, by its batch's draw or its own."""
        return drawn if ticket is None or not self._tells else 1.0 / ticket.importance

    def chances(self) -> NDArray[np.float64] | None:
        """Return the distribution of the next draw, of an arm or an expert, where it is known."""
        state = self._play.state
        if self._learner is None or state is None:
            return None
        drawn = self._learner.chances(state)
        if drawn is None or not self._some_retired:
            return drawn
        chances = np.zeros(self._count)
        chances[list(self._arms)] = drawn
        return chances

    # --- phases ---------------------------------------------------------------------------

    def open_phase(
        self, control: int | None = None, least: float = 0.0, behind: float = 0.0
    ) -> tuple[Drawn, Phase]:
        """Plan a phase and draw the order of its arms.

        The ``control`` keeps a share of its rounds, and makes up for those by which it is behind.
        The others give them up evenly. Of a batch of one arm in which it takes that arm's place
        nothing is learned.
        """
        play, stream = self._play, self._stream
        size, memo = open_phase_once(play.params, play.state, stream)
        planned = np.zeros(self._count)
        planned[list(self._arms)] = play.state.planned  # type: ignore[union-attr]
        if control is not None:
            own = planned[control]
            wanted = max(math.floor(least * size), math.ceil(behind + least * size))
            planned = with_control(planned, control, min(wanted, size))
            if memo > 0.0 and 2.0 * planned[control] >= size > 2.0 * own:
                self.take_back(self._arms[0], memo)
                memo = NOT_LEARNED
        lead = int(planned.argmax())
        return Drawn(lead, memo, size, lead, None), draw_phase(planned, stream)

    def draw_any(self, phase: Phase, among: EligibleArms | None) -> tuple[int, float]:
        """Draw an arm where none of the eligible ones is left: by shares, or evenly."""
        arms = list(self._arms if among is None else among)
        arms = [arm for arm in arms if arm in self._arms] or list(self._arms)
        new = max(max(arms) + 1 - phase.planned.size, 0)  # added since the phase was planned
        weights = np.pad(phase.planned, (0, new))[arms]
        whole = float(weights.sum())
        weights = weights / whole if whole > 0.0 else np.full(len(arms), 1.0 / len(arms))
        at = pick_once(weights, self._stream)
        return arms[at], float(weights[at])

    def learn_phase(self, memo: float, told: Sequence[Told], squares: Mapping[int, float]) -> None:
        """Learn from what a phase released; of retired arms there is nothing to learn any more."""
        rounds, values = np.zeros(len(self._arms)), np.zeros(len(self._arms))
        squared = np.full(len(self._arms), np.nan)
        for one in told:
            if one.arm in self._arms:
                at = self._arms.index(one.arm) if self._some_retired else one.arm
                rounds[at], values[at] = one.losses, one.mean
                squared[at] = squares.get(one.arm, np.nan)
        learn_phase_once(self._play.params, self._play.state, memo, rounds, values, squared)

    def adjust_phase(self, planned: int, had: int) -> None:
        """Learn that a phase had another number of rounds than was planned for it."""
        if self.phases and self._learner is not None and self._play.state is not None:
            self._learner.adjust(self._play.state, planned, had)

    # --- learning -------------------------------------------------------------------------

    def learn(
        self,
        choice: int,
        weight: float,
        ticket: Ticket | None,
        released: Values,
        rounds: int,
        square: float | None = None,
    ) -> None:
        """Learn from what a batch of so many rounds released; ``ticket`` is its last round's.

        ``square`` is the mean of squares around the middle of the range, where that was released.
        Of an arm that is retired there is nothing to learn any more.
        """
        if self._some_retired:
            if choice not in self._arms:
                return
            choice = self._arms.index(choice)
        about = (NO_ADVICE, 0, 1.0) if ticket is None else ticket
        beside = NO_ESTIMATES if square is None else np.array([square])
        what = (released, beside) if isinstance(released, float) else (0.0, released)
        self._learn(self._play, Credit(choice, weight, *about, *what, rounds))

    def take_back(self, choice: int, importance: float) -> None:
        """Take a draw back whose batch taught nothing."""
        state = self._play.state
        if self._learner is None or state is None:
            return
        if self.phases:
            self._learner.take_back(state, 0, importance)
        elif choice in self._arms:
            self._learner.take_back(state, self._arms.index(choice), importance)

    def report(self) -> Report:
        """Return what the learner says of its own run."""
        if self._learner is None or self._play.state is None:
            return Report()
        return self._learner.report(self._play.state)

    def watched(self) -> Report:
        """Return the same of learners that tell of a guard or a race; nothing of others."""
        tells = self._learner is not None and self._learner.watches
        return self.report() if tells else Report()

    # --- arms that come and go --------------------------------------------------------------

    @property
    def _some_retired(self) -> bool:
        return len(self._arms) < self._count

    def with_arms(self, active: tuple[int, ...], count: int, name: str) -> CompiledLearner:
        """Go on with other arms, of ``count`` in all; returns the learner that knows them."""
        learner, play = self._learner, self._play
        if not isinstance(play, PlayArm) or not isinstance(learner, CompiledLearner):
            why = "arms of other libraries' bandits" if learner is None else "with experts, arms"
            raise InputError(f"{why} cannot be added or retired; make a new policy.")
        if not learner.per_arm:
            raise InputError(f"arms cannot be added to {name} or retired from it.")
        assert play.state is not None
        kept = [self._arms.index(arm) for arm in active if arm in self._arms]
        changed, learned = learner.with_arms(play.state, kept, len(active) - len(kept))
        self._learner, self._arms, self._count = changed, active, count
        self._state.learned = learned
        self._play = PlayArm(changed.params(), learned)
        return changed

    def check_among(self, name: str) -> None:
        """Refuse to draw among some arms where that is not defined."""
        if self.weighs or self._follows:
            raise InputError(
                "eligible= is for policies without experts; let the experts advise eligible arms."
            )
        if not self._can_restrict:
            raise InputError(
                f"{name} knows no probabilities of what it draws, so that nothing can be drawn "
                f"among some arms only; one-bit, one-bit-exp3, adaptive and dp-klucb can."
            )

    @cached_property
    def _can_restrict(self) -> bool:
        learner = self._learner
        if learner is None:
            return False
        return learner.phases or learner.ranks or self.chances() is not None

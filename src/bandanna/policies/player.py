"""A play under way, from Python: for the object a user holds."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice, Ticket, ticket_of
from bandanna._core.compiled import kernel, python_source
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, InputError
from bandanna.learners import Compiled, CompiledLearner
from bandanna.learners.base import Report, dump_arrays, load_arrays
from bandanna.learners.steps import CHOSEN
from bandanna.policies.among import Among, Drawn, draw_ranked, draw_renormalised
from bandanna.policies.plays import (
    NO_ADVICE,
    NO_ESTIMATES,
    Estimates,
    FollowExpert,
    Play,
    PlayArm,
    WeighExperts,
    WeighInBatches,
    choose,
    learn,
    open_batch,
    start_play,
    weighs_all_arms,
)
from bandanna.policies.recipe import Recipe
from bandanna.privacy.release import Released


@kernel
def open_once(play: Play, stream: Stream) -> tuple[int, float, int]:
    """Begin a batch, from Python."""
    return open_batch(play, stream)


@kernel
def choose_once(play: Play, choice: int, advice: Advice, stream: Stream) -> tuple[int, float]:
    """Choose an arm, from Python."""
    return choose(play, choice, advice, stream)


@kernel
def learn_once(
    play: Play,
    choice: int,
    weight: float,
    advice: Advice,
    arm: int,
    importance: float,
    value: float,
    estimates: Estimates,
    rounds: int,
) -> None:
    """Learn from a release, from Python."""
    learn(play, choice, weight, advice, arm, importance, value, estimates, rounds)


class Player:
    """A play under way, for the object a user holds."""

    def __init__(
        self,
        recipe: Recipe,
        experts: int | None,
        stream: Stream,
        active: tuple[int, ...],
        count: int,
    ) -> None:
        self._stream = stream
        self._count = count
        """Arms there are and were."""
        self._arms = active
        """Which arm each of the learner's is: it knows those that are not retired."""
        self._play = start_play(recipe, experts, stream)
        compiled = self._play.state is not None
        self._open = open_once if compiled else python_source(open_once)
        self._choose = choose_once if compiled else python_source(choose_once)
        self._learn = learn_once if compiled else python_source(learn_once)
        self.weighs = isinstance(self._play, WeighExperts | WeighInBatches)
        self._whole = weighs_all_arms(recipe)
        self._learner = recipe.learner if isinstance(recipe.learner, Compiled) else None
        self._tells = self._learner is not None and self._learner.tells_chance
        self._follows = isinstance(self._play, FollowExpert)

    def open(self, among: Among | None = None) -> Drawn:
        """Begin a batch, for all arms or among some."""
        arms = self._arms
        if not self._some_retired:
            return self._draw(among)
        drawn = self._draw(among and tuple(k for k, arm in enumerate(arms) if arm in among))
        return drawn._replace(choice=arms[drawn.choice], credited=arms[drawn.credited])

    def _draw(self, among: Among | None) -> Drawn:
        """Draw among the learner's arms."""
        play, stream = self._play, self._stream
        if among is None:
            choice, importance, size = self._open(play, stream)
            return Drawn(choice, importance, size, choice, self.told(importance))
        assert isinstance(play, PlayArm)
        assert self._learner is not None
        assert play.state is not None
        chances = self._learner.chances(play.state)
        if chances is not None:
            return draw_renormalised(self._open, play, stream, among, chances)
        drawn = draw_ranked(self._open, play, stream, among, self._learner.per_arm)
        return Drawn(*drawn, drawn[0], self.told(drawn[1]))

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
        kept = [self._arms.index(arm) for arm in active if arm in self._arms]
        changed, state = learner.with_arms(play.state, kept, len(active) - len(kept))
        self._learner, self._arms, self._count = changed, active, count
        self._play = PlayArm(changed.params(), state)
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

    def choose(self, choice: int, advice: Advice | None) -> tuple[int, Ticket | None]:
        """Choose an arm; where experts are weighed, with what their credit will need."""
        if advice is None:
            return choice, None
        arm, importance = self._choose(self._play, choice, advice, self._stream)
        if not self.weighs:
            return arm, None
        return arm, ticket_of(advice, arm, importance, whole=self._whole)

    @cached_property
    def _can_restrict(self) -> bool:
        learner = self._learner
        return learner is not None and (learner.ranks or self.chances() is not None)

    def told(self, importance: float) -> float | None:
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
        found = self._learner.chances(state)
        if found is None or not self._some_retired:
            return found
        chances = np.zeros(self._count)
        chances[list(self._arms)] = found
        return chances

    def learn(
        self, choice: int, weight: float, ticket: Ticket | None, released: Released, rounds: int
    ) -> None:
        """Learn from what a batch of so many rounds released; ``ticket`` is its last round's.

        Of an arm that is retired there is nothing to learn any more.
        """
        if self._some_retired:
            if choice not in self._arms:
                return
            choice = self._arms.index(choice)
        credit = (NO_ADVICE, 0, 1.0) if ticket is None else ticket
        what = (released, NO_ESTIMATES) if isinstance(released, float) else (0.0, released)
        self._learn(self._play, choice, weight, *credit, *what, rounds)

    def report(self) -> Report:
        """Return what the learner says of its own run."""
        if self._learner is None or self._play.state is None:
            return Report()
        return self._learner.report(self._play.state)

    def forget(self, choice: int, importance: float) -> None:
        """Take a draw back whose batch taught nothing, where the learner waits for its loss."""
        waiting = getattr(self._play.state, "waiting", None)
        counts = not getattr(self._learner, "grows", False) or importance == CHOSEN
        if waiting is not None and counts and choice in self._arms:
            waiting[self._arms.index(choice)] -= 1.0

    def state_dict(self) -> JSON:
        """All that has been learned, as plain lists."""
        if self._play.state is None:
            assert not isinstance(self._play.params, tuple)
            return self._play.params.state_dict()
        return dump_arrays(self._play.state)

    def load_state(self, state: JSON) -> None:
        """Go on from what ``state_dict`` gave."""
        if self._play.state is None:
            assert not isinstance(self._play.params, tuple)
            self._play.params.load_state(state)
        else:
            load_arrays(self._play.state, state)

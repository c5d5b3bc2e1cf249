"""How a policy with experts chooses and learns: three ways to play.

- ``Following``: an expert is drawn for a batch and followed; the learner is any bandit learner
  over experts (the paper's Algorithm 6).
- ``Weighing``: EXP4 on single released losses.
- ``WeighingBatches``: EXP4 on batches, each expert's estimate released (the paper's Algorithm 2).
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna.advice import Advice, vote_type
from bandanna.learners import Exp4, Learner
from bandanna.learners.base import dump_arrays, load_arrays
from bandanna.learners.exp4 import (
    advised_arm_once,
    exp4_choose_once,
    exp4_learn_all_once,
    exp4_learn_once,
)
from bandanna.policies.batches import Batch
from bandanna.policies.expert_recipe import ExpertRecipe
from bandanna.privacy.vector import VectorRelease, add_round_once
from bandanna.streams import Stream
from bandanna.types import JSON


class Ticket(NamedTuple):
    """What is needed to credit a round's loss later; all of it is public."""

    advice: Advice
    """The round's votes; or one row, each expert's share of the chosen arm."""
    arm: int
    """Index of the chosen arm, or 0 where there is one row only."""
    importance: float


class ExpertBatch(Batch):
    """Rounds that are released together."""

    __slots__ = ("arms", "scale", "sums", "tickets")

    def __init__(self, number: int, expert: int = 0, importance: float = 1.0) -> None:
        super().__init__(number, expert, importance)
        self.arms = array("l")
        """Arm chosen in each round."""
        self.tickets: dict[int, Ticket] = {}
        """Of rounds that wait for feedback."""
        self.sums: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """Experts' sums so far: private, and erased with the losses."""
        self.scale = 0.0
        """The noise that the rounds counted so far ask for."""

    def open_round_of(self, arm: int) -> int:
        """Add a round in which an arm was chosen and return its position."""
        position = len(self.losses)
        del self.arms[position:]  # left behind by an interrupt
        self.arms.append(arm)
        return self.open_round()

    def erase(self) -> None:
        """Forget the losses and their sums."""
        super().erase()
        self.sums = np.zeros(0, dtype=np.int64)


class Play(Protocol):
    """One way to play."""

    def open_batch(self, number: int) -> ExpertBatch:
        """Begin a batch."""

    def choose(self, batch: ExpertBatch, position: int, advice: Advice) -> int:
        """Choose an arm and remember what is needed to credit its loss."""

    def credit(self, batch: ExpertBatch, position: int, units: int) -> None:
        """Count a loss."""

    def learn(self, batch: ExpertBatch, release: Any) -> None:
        """Release a full batch and learn from what comes out."""

    def state_dict(self) -> JSON:
        """All that has been learned, as plain lists."""

    def load_state(self, state: JSON) -> None:
        """Go on from what ``state_dict`` gave."""


class Following:
    """Follow one expert through a batch."""

    def __init__(self, learner: Learner, stream: Stream) -> None:
        self._player = learner.play(stream)
        self._stream = stream
        self.state_dict = self._player.state_dict
        self.load_state = self._player.load_state

    def open_batch(self, number: int) -> ExpertBatch:
        """Draw the expert to follow."""
        return ExpertBatch(number, *self._player.draw())

    def choose(self, batch: ExpertBatch, position: int, advice: Advice) -> int:
        """Do what the expert says."""
        return advised_arm_once(advice, batch.arm, self._stream)

    def credit(self, batch: ExpertBatch, position: int, units: int) -> None:
        """Nothing to do: the losses are summed when the batch closes."""

    def learn(self, batch: ExpertBatch, release: Any) -> None:
        """Release the batch's mean loss as that of its expert."""
        total = batch.total()
        batch.erase()
        self._player.update(batch.arm, batch.importance, release.release(total))


class Weighing:
    """EXP4 on single losses."""

    def __init__(self, learner: Exp4, stream: Stream) -> None:
        self._params = learner.params()
        self._state = learner.start()
        self._stream = stream

    def open_batch(self, number: int) -> ExpertBatch:
        """Begin a batch."""
        return ExpertBatch(number)

    def choose(self, batch: ExpertBatch, position: int, advice: Advice) -> int:
        """Draw an arm by the experts' weights."""
        arm, importance = exp4_choose_once(self._params, self._state, advice, self._stream)
        votes = advice.ndim == 1
        kept = advice if votes else np.ascontiguousarray(advice[arm : arm + 1])
        batch.tickets[position] = Ticket(kept, arm if votes else 0, importance)
        return arm

    def credit(self, batch: ExpertBatch, position: int, units: int) -> None:
        """Nothing to do: the loss is released at once."""

    def learn(self, batch: ExpertBatch, release: Any) -> None:
        """Release the loss and count it for the experts who advised its arm."""
        total = batch.total()
        batch.erase()
        advice, arm, importance = batch.tickets.pop(0)
        estimate = release.release(total) * importance
        exp4_learn_once(self._params, self._state, advice, arm, estimate)

    def state_dict(self) -> JSON:
        """All that has been learned, as plain lists."""
        return dump_arrays(self._state)

    def load_state(self, state: JSON) -> None:
        """Go on from what ``state_dict`` gave."""
        self._state = load_arrays(self._state, state)


class WeighingBatches(Weighing):
    """EXP4 on batches: weights change when a batch has been released."""

    def __init__(self, learner: Exp4, release: VectorRelease, stream: Stream) -> None:
        super().__init__(learner, stream)
        self._experts = learner.experts
        self._fast = release.fast()

    def open_batch(self, number: int) -> ExpertBatch:
        """Begin a batch with empty sums."""
        batch = ExpertBatch(number)
        batch.sums = np.zeros(self._experts, dtype=np.int64)
        return batch

    def credit(self, batch: ExpertBatch, position: int, units: int) -> None:
        """Add the loss to the sums of the experts who advised its arm."""
        scale = add_round_once(self._fast, batch.sums, *batch.tickets[position], units)
        batch.scale = max(batch.scale, scale)
        del batch.tickets[position]

    def learn(self, batch: ExpertBatch, release: Any) -> None:
        """Release the experts' sums and weigh the experts anew."""
        sums = batch.sums
        batch.erase()
        exp4_learn_all_once(self._params, self._state, release.release(sums, batch.scale))


def start_play(recipe: ExpertRecipe, stream: Stream) -> Play:
    """Begin to play a recipe."""
    learner, release = recipe
    if isinstance(release, VectorRelease):
        assert isinstance(learner, Exp4)
        return WeighingBatches(learner, release, stream)
    if isinstance(learner, Exp4):
        return Weighing(learner, stream)
    return Following(learner, stream)


def ticket_to_dict(ticket: Ticket) -> JSON:
    """Return a ticket as plain values."""
    return {
        "advice": ticket.advice.tolist(),
        "arm": ticket.arm,
        "importance": ticket.importance,
    }


def ticket_from_dict(saved: JSON, arms: int, experts: int) -> Ticket:
    """Make a ticket from what ``ticket_to_dict`` gave."""
    spread = isinstance(saved["advice"][0], list)
    advice = np.array(saved["advice"], dtype=np.float64 if spread else np.int64)
    ticket = Ticket(advice, int(saved["arm"]), float(saved["importance"]))
    good = (
        advice.shape == ((1, experts) if spread else (experts,))
        and np.all((advice >= 0) & (advice <= (1 if spread else arms - 1)))
        and 0 <= ticket.arm < (1 if spread else arms)
        and 1.0 - 1e-9 <= ticket.importance < np.inf
    )
    if not good:
        raise ValueError("a waiting round holds impossible values")
    return ticket if spread else ticket._replace(advice=advice.astype(vote_type(arms)))

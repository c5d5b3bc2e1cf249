"""How a contextual policy plays: what opens a batch, draws an arm, and learns from a release.

``LinearPlay`` regresses on the released sums of epochs, ``contextual/trees.py`` has another. Each
holds what was learned: public, since it follows from releases.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from bandanna._core.advice import Advice, Ticket
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, InputError
from bandanna.contextual.features import Context, Encoder
from bandanna.contextual.regression import Fit, Noise, Reading, fit, read_release
from bandanna.contextual.schedule import epoch_length, planned_ends
from bandanna.contextual.steps import Floats, Scores, compute_chances, draw
from bandanna.learners.base import Learner, Player
from bandanna.policy.state import EligibleArms, Learned
from bandanna.policy.transitions import Chooser
from bandanna.privacy import Release
from bandanna.privacy.epoch_sums import EpochTally, OfEpochs, read_released
from bandanna.privacy.release import Released, ReleasedEpoch, Tally


class ContextPlay(Chooser, Learned, Protocol):
    """A learner at play, as ``policy/transitions.py`` and a contextual policy use it."""

    shares: bool = True
    """Rounds among some arms share batches with all others: each is counted by its own arm."""
    phases: ClassVar[bool] = False

    def chance(self, drawn: float | None, ticket: Ticket | None) -> float:
        """Return the probability of an arm just chosen."""
        assert ticket is not None, "each round has its own"
        return min(1.0, 1.0 / ticket.importance)

    def chances(self, side: Advice) -> Floats:
        """Return the probability of each arm in a context."""

    def open(self, number: int) -> tuple[int, Tally]:
        """Return how many rounds a batch has, and what counts them."""

    def learn(self, released: Released, ticket: Ticket | None) -> None:
        """Learn from what a batch released; ``ticket`` is its last round's."""

    def as_ticket(self, saved: JSON) -> Ticket:
        """Read what crediting a round needs, refusing what is impossible."""


class ContextLearner(Learner):
    """A learner that decides by an encoded context."""

    encoder: Encoder

    def play(self, stream: Stream) -> Player:
        """Refuse: a player draws without context."""
        raise InputError(f"{self.name} decides by context.")

    def encode(self, context: Context) -> Advice:
        """Return a context as it is decided by."""
        return self.encoder.encode(context)

    @abstractmethod
    def begin(self, release: Release, rounds: int, stream: Stream) -> ContextPlay:
        """Begin to play so many rounds, with what publishes."""


def checked_ticket(saved: JSON, context: Advice, arms: int) -> Ticket:
    """Return a ticket whose context has been checked."""
    ticket = Ticket(context, int(saved["arm"]), float(saved["importance"]))
    if not 0 <= ticket.arm < arms or not 1.0 - 1e-9 <= ticket.importance < np.inf:
        raise ValueError("a waiting round holds impossible values")
    return ticket


@dataclass(frozen=True)
class LinearLearner(ContextLearner):
    """Regression from released statistics, for each arm."""

    name: ClassVar[str] = "linear"
    arms: int
    encoder: Encoder

    def begin(self, release: Release, rounds: int, stream: Stream) -> LinearPlay:
        """Begin to play in epochs."""
        assert isinstance(release, OfEpochs)
        return LinearPlay(self, release, planned_ends(rounds, release), stream)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name, "arms": self.arms, "encoder": self.encoder.to_dict()}


class LinearPlay(ContextPlay):
    """Scores that follow from the epochs released so far.

    Decisions use the newest scores there are; the map and the length of an epoch are fixed when it
    opens.
    """

    def __init__(
        self, learner: LinearLearner, release: OfEpochs, ends: tuple[int, ...], stream: Stream
    ) -> None:
        self._encoder, self._release, self.ends = learner.encoder, release, ends
        self._size = learner.arms, learner.encoder.size
        self._noise = Noise(release.scale, release.product_scale)
        self._stream = stream
        self._forget()

    def _forget(self) -> None:
        arms, size = self._size
        self.past: list[ReleasedEpoch] = []
        """What was released."""
        self._readings: list[Reading] = []
        self.fitted: Fit | None = None
        self.scores = Scores(np.zeros((arms, size)), np.zeros(1), np.zeros(arms))  # all arms alike
        self._transform, self._length = np.eye(size), 1.0

    def open(self, number: int) -> tuple[int, Tally]:
        """Open the epoch of a number."""
        length = self.length(number)
        return length, self.start(length)

    def length(self, number: int) -> int:
        """Return how many rounds an epoch has."""
        return epoch_length(self.ends, number)

    def start(self, length: int) -> EpochTally:
        """Return what counts an epoch of a length, with the map that is known now."""
        return self._release.start(length, self._transform)

    def choose(
        self, choice: int, side: Advice | None, among: EligibleArms | None
    ) -> tuple[int, Ticket]:
        """Draw an arm by its score."""
        assert side is not None, "a round comes with a context"
        if among is None:
            arm, importance = draw(side, self.scores, self._stream)
        else:
            at, importance = draw(side, self.scores.among(list(among)), self._stream)
            arm = among[at]
        return arm, Ticket(side, arm, importance)

    def chances(self, side: Advice) -> Floats:
        """Return the probability of each arm in a context."""
        compute_chances(side, self.scores)
        return self.scores.chances.copy()

    def learn(self, released: Released, ticket: Ticket | None = None) -> None:
        """Fit anew, with an epoch more."""
        assert isinstance(released, ReleasedEpoch), "an epoch releases sums of features"
        both = self._release.both
        self.past.append(released)
        self._readings.append(read_release(released, self._noise, both=both))
        about = self._readings, self._noise, self._encoder.constant, self._length
        self.fitted = fitted = fit(*about, both=both)
        self.scores, self._transform, self._length = fitted.scores, fitted.transform, fitted.length

    def as_ticket(self, saved: JSON) -> Ticket:
        """Read a ticket."""
        context = np.array(saved["advice"], dtype=np.float64)
        if context.shape != self._size[1:] or not np.isfinite(context).all():
            raise ValueError("a waiting round holds impossible values")
        return checked_ticket(saved, context, self._size[0])

    def state_dict(self) -> JSON:
        """Return the releases: scores follow from them."""
        return {"epochs": [past.to_dict() for past in self.past]}

    def load_state(self, state: JSON) -> None:
        """Learn from each release again."""
        self._forget()
        for saved in state["epochs"]:
            self.learn(read_released(saved, *self._size))

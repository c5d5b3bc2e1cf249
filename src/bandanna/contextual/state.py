"""What a contextual policy keeps: plain data, and the one way it is written down.

Feedback that has not been released is in open epochs and nowhere else: integer sums, and one
number for each round, kept to tell whether feedback was sent twice. Epochs end at lengths that
grow, set before the first round.
"""

from __future__ import annotations

import math
import secrets
from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import UNITS
from bandanna._core.types import JSON, Decision, DecisionError
from bandanna.contextual.regression import Fit
from bandanna.contextual.steps import Counts, Scores, new_counts, uniform_scores
from bandanna.policy.state import People
from bandanna.privacy.epochs import Statistics

GROWTH = 1.6
"""Each epoch ends at this multiple of the one before."""

FIRST = {False: 1.0, True: 3.0}
SMALLEST = 50


def first_end(rounds: int, arms: int, features: int, deviation: float, *, both: bool) -> int:
    """Return the shortest first epoch worth releasing with noise of a deviation."""
    worth = FIRST[both] * arms * math.sqrt(features) * deviation
    return max(1, int(min(rounds / 4, max(SMALLEST, worth))))


def epoch_ends(rounds: int, first: int) -> tuple[int, ...]:
    """Return the rounds at which epochs end; the last is ``rounds``.

    Ends are counted back from the last, so that what is learned is used for a fixed share.

    Examples
    --------
    >>> epoch_ends(10_000, 1_000)
    (1527, 2442, 3907, 6250, 10000)
    """
    ends = [rounds]
    while ends[-1] / GROWTH >= first:
        before = math.ceil(ends[-1] / GROWTH)
        if before == ends[-1]:  # 1 or 2
            break
        ends.append(before)
    return tuple(reversed(ends))


def end_after(ends: tuple[int, ...], epoch: int) -> int:
    """Return the round at which an epoch ends, counted from 0, beyond the planned ones too."""
    if epoch < len(ends):
        return ends[epoch]
    end = ends[-1]
    for _ in range(epoch - len(ends) + 1):
        end = math.ceil(end * GROWTH)
    return end


VERSION = 1
WAITING, GIVEN_UP = -1, -2


@dataclass(repr=False)
class Waiting:
    """A decision without feedback."""

    arm: int
    phi: NDArray[np.float64]
    who: int | None = None
    """Whose slot it is, by their hash, for those who store it."""


@dataclass(repr=False)
class Epoch:
    """Rounds that are released together."""

    number: int
    start: int
    """Its first round."""
    size: int
    counts: Counts
    losses: array[int] = field(default_factory=lambda: array("i"))
    """For each round decided: its loss in grid units, or that it waits or was given up."""
    waiting: dict[int, Waiting] = field(default_factory=dict)
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """Which decision of the policy each round was."""
    members: set[int] = field(default_factory=set)
    """Whose slots are in it, by their hashes."""
    extras: int = 0
    """Decisions for people who have no slot left, or one in this epoch: they are not counted."""
    closed: bool = False
    """Whether it takes no more rounds, before it is full."""

    @property
    def full(self) -> bool:
        """Whether it takes no more rounds."""
        return self.closed or len(self.losses) == self.size

    @property
    def complete(self) -> bool:
        """Whether every round is decided and has its feedback or was given up."""
        return self.full and not self.waiting

    def round_of(self, position: int) -> int:
        """Return which decision a round was."""
        return self.numbers[position]


@dataclass(repr=False)
class Past:
    """One epoch that was released: public numbers."""

    statistics: Statistics
    transform: NDArray[np.float64]
    rounds: NDArray[np.int64]
    """Feedback by arm; where contexts are protected, all of it at index 0."""


@dataclass(repr=False)
class State:
    """Everything that a policy knows."""

    arms: int
    features: int
    ends: tuple[int, ...]
    """Rounds at which epochs end."""
    identity: str = field(default_factory=lambda: secrets.token_hex(8))
    issuers: list[tuple[int, str]] = field(default_factory=list)
    """From which round on which identity made decisions."""
    decided: int = 0
    counted: int = 0
    """Decisions that are in epochs: all of them, but for people's further rounds."""
    sizes: list[int] = field(default_factory=list)
    """Rounds that each epoch opened so far was to have."""
    open: dict[int, Epoch] = field(default_factory=dict)
    past: list[Past] = field(default_factory=list)
    fitted: Fit | None = None
    """Computed from ``past``; not saved."""
    people: People | None = None
    """Who has had how many slots, where persons are protected."""
    length: float = 1.0
    """Length of coefficients that fits go on from."""

    def __post_init__(self) -> None:
        if not self.issuers:
            self.issuers.append((0, self.identity))

    @property
    def scores(self) -> Scores:
        """How arms are drawn now."""
        if self.fitted is None:
            return uniform_scores(self.features, self.arms)
        return self.fitted.scores

    @property
    def opened(self) -> int:
        """Epochs opened so far."""
        return len(self.sizes)

    def current(self) -> Epoch:
        """Return the epoch that the next decision is in; opened if need be."""
        last = self.open.get(self.opened - 1)
        if last is not None and not last.full:
            return last
        number, start = self.opened, self.decided
        transform = np.eye(self.features) if self.fitted is None else self.fitted.transform
        size = max(1, end_after(self.ends, number) - self.counted)
        epoch = Epoch(number, start, size, new_counts(transform, self.arms))
        self.sizes.append(size)  # its number is used up
        self.open[number] = epoch
        return epoch

    def find(self, decision: Decision) -> Epoch | None:
        """Return the open epoch of a decision, None if it is in none, or refuse."""
        number, position = decision.batch, decision.position
        issuer = [name for first, name in self.issuers if first <= decision.round]
        if decision.policy != issuer[-1]:
            raise DecisionError(
                f"decision {decision.round} was made by another policy, or after the file was "
                f"saved that this one was loaded from."
            )
        epoch = self.open.get(number)
        if not 0 <= number < self.opened or decision.round >= self.decided:
            raise DecisionError(f"decision {decision.round} was never made by this policy.")
        if self.people is not None and position >= self.sizes[number]:
            return None
        if epoch is None:
            error = DecisionError(
                f"decision {decision.round} had its feedback or was given up: its epoch has been "
                f"released."
            )
            error.reason = "forgotten"
            raise error
        if not 0 <= position < len(epoch.losses) or decision.round != epoch.round_of(position):
            raise DecisionError(f"decision {decision.round} was never made by this policy.")
        waiting = epoch.waiting.get(position)
        if waiting is not None and waiting.arm != decision.index:
            raise DecisionError(f"decision {decision.round} was for another arm.")
        return epoch

    # --- files ----------------------------------------------------------------------------

    def to_dict(self, *, private: bool = True) -> JSON:
        """Return everything as plain values: as private as the feedback of open epochs.

        Without ``private``, open epochs and people are left out.
        """
        people = self.people
        return {
            "state_version": VERSION,
            "arms": self.arms,
            "features": self.features,
            "ends": list(self.ends),
            "issuers": [list(pair) for pair in self.issuers],
            "decided": self.decided,
            "counted": self.counted,
            "people": None if people is None else people.to_dict(persons=private),
            "sizes": self.sizes,
            "open": [_epoch_to_dict(epoch) for epoch in self.open.values() if private],
            "past": [_past_to_dict(past) for past in self.past],
        }

    @classmethod
    def from_dict(cls, data: JSON, *, latest: bool = False) -> State:
        """Go on from what ``to_dict`` returned; values are checked.

        It gets a new identity, unless this is known to be the ``latest`` state.
        """
        if data["state_version"] != VERSION:
            raise ValueError(f"its state has version {data['state_version']!r}")
        state = cls(
            checks.arms(data["arms"]),
            checks.whole("features", data["features"], 1),
            tuple(checks.rounds(end) for end in data["ends"]),
        )
        state.decided = checks.whole("decided", data["decided"], 0)
        state.counted = checks.whole("counted", data["counted"], 0, state.decided)
        if data["people"] is not None:
            state.people = People()
            state.people.load(data["people"], checks.MAX_SLOTS)
        state.sizes = [checks.rounds(size) for size in data["sizes"]]
        state.issuers = [(int(first), str(name)) for first, name in data["issuers"]]
        if latest:
            state.identity = state.issuers[-1][1]
        else:
            state.issuers.append((state.decided, state.identity))
        for saved in data["open"]:
            epoch = _epoch_from_dict(saved, state)
            state.open[epoch.number] = epoch
        state.past = [_past_from_dict(saved, state) for saved in data["past"]]
        known = len(state.past) + len(state.open)
        if sorted(state.open) != list(state.open) or known > state.opened:
            raise ValueError("its epochs do not add up")
        return state


def _epoch_to_dict(epoch: Epoch) -> JSON:
    """Return an open epoch; a round that an interrupt kept from being decided is left out."""
    decided = len(epoch.losses)
    return {
        "number": epoch.number,
        "start": epoch.start,
        "size": epoch.size,
        "transform": epoch.counts.transform.tolist(),
        "products": epoch.counts.products.tolist(),
        "sums": epoch.counts.sums.tolist(),
        "rounds": epoch.counts.rounds.tolist(),
        "losses": epoch.losses.tolist(),
        "waiting": [
            [at, one.arm, one.phi.tolist()] for at, one in epoch.waiting.items() if at < decided
        ],
        "numbers": epoch.numbers[:decided].tolist(),
        "members": [f"{member:016x}" for member in sorted(epoch.members)],
        "extras": epoch.extras,
        "closed": epoch.closed,
    }


def _epoch_from_dict(data: JSON, state: State) -> Epoch:
    transform = _floats(data["transform"], (state.features, state.features))
    counts = new_counts(transform, state.arms)
    for name in ("products", "sums", "rounds"):
        target = getattr(counts, name)
        target[:] = _whole(data[name], target.shape)
    losses = array("i", data["losses"])
    if any(not GIVEN_UP <= loss <= UNITS for loss in losses):
        raise ValueError("its losses are impossible")
    waiting = {
        int(at): Waiting(int(arm), _floats(phi, (state.features,)))
        for at, arm, phi in data["waiting"]
    }
    if not {at for at, loss in enumerate(losses) if loss == WAITING}.issuperset(waiting):
        raise ValueError("its waiting decisions do not add up")
    if any(not 0 <= one.arm < state.arms for one in waiting.values()):
        raise ValueError("its arms are impossible")
    size = checks.whole("size", data["size"], max(1, len(losses)))
    number = checks.whole("number", data["number"], 0, state.opened - 1)
    start = checks.whole("start", data["start"], 0, state.decided)
    numbers = array("q", data["numbers"])
    if len(numbers) != len(losses):
        raise ValueError("its rounds do not add up")
    members = {int(member, 16) for member in data["members"]}
    extras = checks.whole("extras", data["extras"], 0)
    closed = data["closed"] is True
    return Epoch(number, start, size, counts, losses, waiting, numbers, members, extras, closed)


def _past_to_dict(past: Past) -> JSON:
    return {
        "products": past.statistics.products.tolist(),
        "sums": past.statistics.sums.tolist(),
        "transform": past.transform.tolist(),
        "rounds": past.rounds.tolist(),
    }


def _past_from_dict(data: JSON, state: State) -> Past:
    pairs = state.features * (state.features + 1) // 2
    return Past(
        Statistics(
            _whole(data["products"], (state.arms, pairs)),
            _whole(data["sums"], (state.arms, state.features)),
        ),
        _floats(data["transform"], (state.features, state.features)),
        _whole(data["rounds"], (state.arms,)),
    )


def _floats(values: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    made = np.array(values, dtype=np.float64)
    if made.shape != shape or not np.isfinite(made).all():
        raise ValueError("its numbers are impossible")
    return made


def _whole(values: object, shape: tuple[int, ...]) -> NDArray[np.int64]:
    made = np.array(values)
    if made.dtype.kind != "i" or made.shape != shape:
        raise ValueError("its sums are impossible")
    return made.astype(np.int64)

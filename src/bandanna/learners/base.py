"""What a learner is: validated parameters, a state of plain arrays, and two compiled steps."""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import JSON, InputError
from bandanna.learners.net import NetReport
from bandanna.learners.records import numbers_in
from bandanna.learners.stationarity import GuardReport
from bandanna.learners.steps import draw_once, update_once

LINE = 8
"""Floats in a cache line."""

State = Any
"""A named tuple of arrays, of a learner's own kind."""

SCRATCH = "scratch"
"""How fields of a state are named that mean nothing between steps."""


NEVER_NEGATIVE = frozenset({"chances", "weights", "blocks", "total", "updates"})
"""Fields of a state that a damaged file may not make negative."""


class Dropped(NamedTuple):
    """An arm that left a race, by index, and the evidence for that."""

    arm: int
    by: int | None
    """The arm it lost against."""
    rounds: int
    """After how many rounds of all arms."""
    log_evidence: float
    """Logarithm of the evidence: at ``log(1 / p)`` chance does so with probability at most p."""


class RaceReport(NamedTuple):
    """Who is still in a race for the best arm, by index."""

    winner: int | None
    rounds: int
    """After how many rounds the winner was known; 0 before."""
    racing: tuple[int, ...]
    dropped: tuple[Dropped, ...]
    """In the order in which they left."""


class Report(NamedTuple):
    """What a learner says of itself, from released losses alone: public."""

    regret: float | None = None
    """Bound on its expected regret so far, in losses it learned from, where feedback came in order;
    None where it keeps no such bound."""
    guard: GuardReport | None = None
    """What its test for changing losses has seen; None where it has none."""
    net: NetReport | None = None
    """What the net under its promise has seen; None where there is none."""
    race: RaceReport | None = None
    """Who may still be the best arm, where it looks for one; else None."""


class Player(Protocol):
    """A learner at play, as a policy sees it."""

    def draw(self) -> tuple[int, float]:
        """Choose an arm; returns it with its importance."""

    def update(self, arm: int, importance: float, loss: float, rounds: int = 1) -> None:
        """Learn from the released loss of a batch of an arm that was drawn with that importance."""

    def state_dict(self) -> JSON:
        """All that has been learned, as plain lists."""

    def load_state(self, state: JSON) -> None:
        """Go on from what ``state_dict`` gave."""


class Learner(ABC):
    """A bandit algorithm with its parameters, ready to play."""

    name: ClassVar[str]
    assumptions: ClassVar[tuple[str, ...]] = ()
    """What must be true of it for a policy around it to be private."""
    arms: int

    @abstractmethod
    def play(self, stream: Stream) -> Player:
        """Start to play, drawing arms from a stream."""

    @abstractmethod
    def to_dict(self) -> JSON:
        """Name and parameters, enough to make the learner again."""


class Compiled(ABC):
    """An algorithm of ours; subclasses are frozen dataclasses.

    ``params()`` gives the numbers and ``start()`` the initial arrays that compiled steps work on.
    """

    name: ClassVar[str]
    tells_chance: ClassVar[bool] = True
    """Whether a draw's importance is one over its probability, or an estimate of that."""
    grows: ClassVar[bool] = False
    """Whether it decides how long each batch is; its release must know that."""
    phases: ClassVar[bool] = False
    """Whether it plays phases: several arms in turn, one release each when the phase is over."""
    ranks: ClassVar[bool] = False
    """Whether it chooses by what it knows of each arm alone, so that it can choose among some."""
    watches: ClassVar[bool] = False
    """Whether its report tells of a guard against changes, or of a race for the best arm."""
    per_arm: ClassVar[tuple[str, ...]] = ()
    """Fields of its state that hold one value for each arm."""
    starts: ClassVar[bool] = False
    """Whether it can start from released sums: it has a parameter ``prior``."""

    def chances(self, state: State) -> NDArray[np.float64] | None:
        """Return the distribution of the next draw; None where it is not known.

        Where a state holds it under the name ``chances``, a draw from a copy brings it up to date.
        """
        if not self.tells_chance or not hasattr(state, "chances"):
            return None
        return self._drawn_from(state)

    def report(self, state: State) -> Report:
        """Say what the learner knows of its own run: nothing, unless it keeps track of it."""
        return Report()

    def take_back(self, state: State, arm: int, importance: float) -> None:  # noqa: B027
        """Take a draw back whose batch taught nothing; for learners that count what they await."""

    def adjust(self, state: State, planned: int, had: int) -> None:  # noqa: B027
        """Learn that a phase had another number of rounds than was planned for it."""

    def _drawn_from(self, state: State) -> NDArray[np.float64]:
        then = copy.deepcopy(state)
        draw_once(self.params(), then, new_stream(0))
        chances: NDArray[np.float64] = then.chances
        return chances

    @abstractmethod
    def params(self) -> NamedTuple:
        """Return the parameters as a named tuple of numbers, for compiled code."""

    @abstractmethod
    def start(self) -> State:
        """Return a fresh state: a named tuple of arrays, changed in place by the steps."""

    def to_dict(self) -> JSON:
        """Name and parameters, enough to make the learner again."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = {field.name: _plain(getattr(self, field.name)) for field in fields if field.init}
        return {"name": self.name, **values}


class CompiledLearner(Compiled, Learner):
    """A bandit learner of ours: its steps are those of ``bandanna.learners.steps``."""

    def __post_init__(self) -> None:
        """Check the number of arms; subclasses check what else there is."""
        checks.set_fields(self, arms=checks.arms(self.arms))

    def play(self, stream: Stream) -> Player:
        """Start to play, drawing arms from a stream."""
        return CompiledPlayer(self, stream)

    def with_arms(self, state: State, kept: list[int], added: int) -> tuple[Self, State]:
        """Return a learner for other arms, and its state: what is known of those that are kept.

        New arms follow those. What the fields in ``per_arm`` do not hold is kept as it is.
        """
        prior: JSON = {"prior": None} if self.starts else {}
        learner = dataclasses.replace(self, arms=len(kept) + added, **prior)  # type: ignore[type-var]
        fresh = learner.start()
        for name, known in state._asdict().items():
            array = getattr(fresh, name)
            if name in self.per_arm:
                array[: len(kept)] = known[kept]
            elif array.shape == known.shape:
                array[...] = known
        learner.welcome(fresh, len(kept))
        return learner, fresh

    def welcome(self, state: State, first: int) -> None:
        """Make a state whole in which arms from ``first`` on are new: level with the best."""


class PhaseLearner(CompiledLearner):
    """A learner that plays phases, by ``open_phase``, ``draw_round`` and ``learn_phase``."""

    grows: ClassVar[bool] = True
    phases: ClassVar[bool] = True

    def play(self, stream: Stream) -> Player:
        """Refuse: a player draws one arm for each release."""
        raise InputError(f"{self.name} plays phases: ask for it by algorithm={self.name!r}.")


class ExpertLearner(Compiled):
    """A learner that weighs experts: it needs their advice to draw, and to learn."""

    assumptions: ClassVar[tuple[str, ...]] = ()
    experts: int
    arms: int
    mixing: float
    """Share of uniform draws of arms."""


def _plain(value: object) -> object:
    """Return a parameter as JSON can write it: numbers of any library are numbers."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def aligned_zeros(*kinds: int | np.dtype[np.void]) -> list[NDArray[Any]]:
    """Return arrays of zeros next to each other, each starting a cache line.

    Of each its number of floats is given, or what its one record is made of. Where small arrays
    happen to lie makes a round of EXP3 take 28 or 35 nanoseconds; here they lie well.
    """
    sizes = [len(kind.names or ()) if isinstance(kind, np.dtype) else kind for kind in kinds]
    lines = [-(-size // LINE) * LINE for size in sizes]
    block = np.zeros(sum(lines) + LINE)
    start = -(block.ctypes.data // block.itemsize) % LINE
    arrays = []
    for kind, size, room in zip(kinds, sizes, lines, strict=True):
        array = block[start : start + size]
        arrays.append(array.view(kind) if isinstance(kind, np.dtype) else array)
        start += room
    return arrays


class CompiledPlayer:
    """A learner at play through its compiled steps."""

    def __init__(self, learner: CompiledLearner, stream: Stream) -> None:
        self._params = learner.params()
        self._state = learner.start()
        self._stream = stream

    def draw(self) -> tuple[int, float]:
        """Choose an arm; returns it with its importance."""
        return draw_once(self._params, self._state, self._stream)

    def update(self, arm: int, importance: float, loss: float, rounds: int = 1) -> None:
        """Learn from the loss of a batch of an arm."""
        update_once(self._params, self._state, arm, importance, loss, rounds)

    def state_dict(self) -> JSON:
        """All that has been learned, as plain lists."""
        return dump_arrays(self._state)

    def load_state(self, state: JSON) -> None:
        """Go on from what ``state_dict`` gave."""
        load_arrays(self._state, state)


def dump_arrays(state: NamedTuple) -> JSON:
    """Return a named tuple of arrays as plain lists, without what is scratch."""
    return {field: array.tolist() for field, array in _kept_arrays(state).items()}


def _kept_arrays(state: NamedTuple) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a state that are saved, without names of single numbers."""
    arrays = state._asdict().items()
    return {field: numbers_in(array) for field, array in arrays if not field.startswith(SCRATCH)}


def load_arrays(state: NamedTuple, saved: JSON) -> None:
    """Fill a state with what ``dump_arrays`` gave, checked before anything is changed."""
    arrays = _kept_arrays(state)
    if set(saved) != set(arrays):
        raise InputError(f"the learner's state needs {sorted(arrays)}; got {sorted(saved)}.")
    loaded = {}
    for field, array in arrays.items():
        values = np.asarray(saved[field], dtype=array.dtype)
        least = 0 if field in NEVER_NEGATIVE else -np.inf
        if values.shape != array.shape or not np.all(np.isfinite(values) & (values >= least)):
            kind = "numbers that are not negative" if least == 0 else "finite numbers"
            raise InputError(
                f"the learner's {field} must be {array.shape} {kind}; got shape {values.shape}."
            )
        loaded[field] = values
    for field, values in loaded.items():
        arrays[field][...] = values

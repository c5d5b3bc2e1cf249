"""What a release is: the only way for private losses to leave, once for each batch.

``start()`` opens a tally for a batch; ``add`` counts its losses one by one, in grid units;
``publish`` forgets the losses and publishes what the batch teaches, once. A release has two forms:

- The exact form uses integers, and randomness from the operating system that cannot be seeded,
  forked or replayed. Decisions about people use it.
- The compiled form is seeded and for simulation only. ``fast()`` gives a named tuple of its
  numbers, for which a release registers the step that publishes a sum by them. What a batch is
  counted in is a *memory*, the compiled counterpart of a tally. ``seeded(stream)`` wraps it; its
  guarantee says that epsilon is infinite.

Both have the same distribution; ``tests/privacy/test_compiled.py`` shows it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice, Ticket
from bandanna._core.compiled import kernel
from bandanna._core.dispatch import dispatched
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, Guarantee, InputError, no_guarantee
from bandanna.privacy.mechanism import BinnedLaw, Mechanism

if TYPE_CHECKING:
    from bandanna.privacy.columns import Columns


class ReleasedEpoch(NamedTuple):
    """What leaves an epoch of contexts: public numbers, in grid units."""

    products: NDArray[np.int64]
    """Of features, by arm and pair ``i <= j``; exact where contexts are public."""
    sums: NDArray[np.int64]
    """Of outcomes, by arm and feature."""
    transform: NDArray[np.float64]
    """The map that features went through."""
    rounds: NDArray[np.int64]
    """Feedback by arm; where contexts are protected, all of it at index 0."""

    def noisy(self, *, both: bool) -> list[float]:
        """Return the numbers that have noise: products where ``both`` are protected."""
        parts = (self.sums, self.products) if both else (self.sums,)
        return [float(value) for part in parts for value in part.ravel()]

    def to_dict(self) -> JSON:
        """Return plain values."""
        return {name: array.tolist() for name, array in self._asdict().items()}


Values = float | NDArray[np.float64]
"""A mean loss, or one for each expert, or for each arm played in a phase."""
Released = Values | ReleasedEpoch
"""What leaves."""


Metrics = tuple[int, ...] | None
"""Of a round, in grid units, in their order; None where there is no feedback to have any."""


class Published(NamedTuple):
    """What one batch released of an arm's columns beside its losses: public."""

    arm: int
    rounds: int
    """How many of its rounds, or slots of people, had feedback."""
    means: tuple[float, ...]


class Tally(ABC):
    """One batch's losses, from the first until they are published.

    Together with the ledger's list of open rounds it is the only place where losses live.
    """

    from_rounds: ClassVar[bool] = True
    """Whether it can be added up again from its rounds' losses and tickets, by a store that keeps
    these; otherwise ``to_dict`` is kept with every round."""

    beside: Sequence[Published] = ()
    """What was published of further columns."""

    @abstractmethod
    def add(
        self, units: int, ticket: Ticket | None = None, arm: int = 0, metrics: Metrics = None
    ) -> None:
        """Count one loss of an arm, clamped to the grid whatever the caller does.

        ``metrics`` came with it, if it came at all: None for the default loss.
        """

    def also(self, columns: Columns) -> None:
        """Count further columns beside losses."""
        raise AssertionError("this release has no further columns")

    def fill(self, missing: int) -> None:
        """Let losses that are missing say nothing: nothing is added unless a subclass does."""
        assert missing >= 0

    def add_sums(self, arm: int, count: int, totals: Sequence[int]) -> None:
        """Count losses and further columns of an arm that were added up elsewhere."""
        raise AssertionError("this release has no sums for single arms")

    @property
    def counts(self) -> dict[int, int]:
        """How many losses of each arm are counted, where each has a sum of its own: public."""
        raise AssertionError("this release has no sums for single arms")

    @abstractmethod
    def publish(self) -> Released:
        """Forget the losses and publish what is released of them. A second call is an error."""

    @abstractmethod
    def to_dict(self) -> JSON:
        """What must be known to go on after a restart: private, like the losses."""

    def opened_with(self) -> JSON:
        """What must be known besides its rounds: fixed when it opens."""
        return {}


class Release(ABC):
    """A way to publish a batch; subclasses are frozen dataclasses."""

    name: ClassVar[str]
    mechanisms: ClassVar[tuple[type[Mechanism], ...]] = ()
    """What its promise may rest on, for accounting and certificates; none if it cannot have one."""
    takes_bits: ClassVar[bool] = False
    """Whether devices released already: what is counted are their bits, not losses."""
    in_epochs: ClassVar[bool] = False
    """Whether a batch is an epoch of contexts, whose promise to persons is its own."""
    batch: int
    """Rounds in a batch, where the learner does not say otherwise."""

    @abstractmethod
    def start(self, size: int | None = None) -> Tally:
        """Open a batch of ``batch`` losses, or of another public size."""

    def start_phase(self) -> Tally:
        """Open a phase: one sum for each arm that is played in it."""
        raise InputError(f"a {self.name} release has no sums for single arms.")

    @abstractmethod
    def resume(self, saved: JSON, losses: list[int], size: int) -> Tally:
        """Go on with an open batch from what its tally's ``to_dict`` gave, checked."""

    def in_process(self) -> Release:
        """Return the release that does the same to losses in this process: itself as a rule."""
        return self

    def default_feedback(self, units: int) -> int:
        """Return what is counted for feedback that never came, given the default loss."""
        return units

    def suits(self, experts: int, arms: int, mixing: float) -> bool:
        """Whether experts can be weighed by what it publishes."""
        return False

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return what this release promises for one round's loss."""

    def fast(self) -> NamedTuple:
        """Return the numbers for the compiled form."""
        raise InputError(f"a {self.name} release has no compiled form.")

    def mean_loss(self, published: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean loss, from 0 to 1, that means of what it publishes tell of."""
        return published

    def memory(self) -> Memory:
        """Return what the compiled form counts a batch in: a tally without a name for it."""
        raise InputError(f"a {self.name} release has no compiled form.")

    @abstractmethod
    def seeded(self, stream: Stream) -> Release:
        """Return the same release with repeatable noise, which protects nobody."""

    @abstractmethod
    def to_dict(self) -> JSON:
        """Name and parameters, enough to make the release again."""

    # --- for audits: how this release is attacked -----------------------------------------

    def neighbours(self) -> tuple[int, int]:
        """Return the sums of two neighbouring batches that it tells apart best."""
        return UNITS, 0

    def guess(self, published: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Guess of each batch whether one loss among zeros was 1 or 0; -1 where there is no guess.

        None from a release that offers no guesses at all.
        """
        return None

    def bins(self, total: int) -> BinnedLaw:
        """Return the exact law of what is published for a sum."""
        raise InputError(f"the law of a {self.name} release is not known here.")


Inner = TypeVar("Inner", bound=Release)


class Seeded(Release, Generic[Inner]):
    """What releases with repeatable noise have in common: they protect nobody."""

    name = "seeded"

    def __init__(self, release: Inner, stream: Stream) -> None:
        self._release = release
        self.stream = stream
        self.batch = release.batch

    def suits(self, experts: int, arms: int, mixing: float) -> bool:
        """Ask the release inside."""
        return self._release.suits(experts, arms, mixing)

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee(
            f"{self._release.name} release with seeded noise",
            "anyone who knows the seed can subtract the noise; for tests and simulation alone",
        )

    def fast(self) -> NamedTuple:
        """Return the numbers of the release inside."""
        return self._release.fast()

    def to_dict(self) -> JSON:
        """Refuse: release randomness is never saved."""
        raise TypeError("a seeded release is for simulation and cannot be saved")


class ArmTotals(NamedTuple):
    """What a release has published of one arm: values of batches, all of them public."""

    batches: int = 0
    total: float = 0.0
    """Sum of the values, each times the size of its batch."""
    rounds: float = 0.0
    """Sum of the sizes."""
    offset: float = 0.0
    """How much larger the total is because default losses differ from the middle of the range."""

    def and_also(self, value: float, size: int, offset: float = 0.0) -> ArmTotals:
        """Add the value of a batch."""
        total, rounds = self.total + size * value, self.rounds + size
        return ArmTotals(self.batches + 1, total, rounds, self.offset + offset)

    @property
    def mean(self) -> float:
        """The mean value of a round."""
        return self.total / self.rounds


# --- the compiled form, for simulation alone ------------------------------------------------------


@dispatched
def publish(release: NamedTuple, total: int, size: int, stream: Stream) -> float:
    """Publish the sum of a batch of ``size`` losses, in grid units, with seeded noise."""
    raise NotImplementedError


class Memory(Protocol):
    """What a batch is counted in: a named tuple of arrays."""

    @property
    def estimates(self) -> NDArray[np.float64]:
        """Where to find what is published, if it is not one number."""


@dispatched
def clear(memory: Memory) -> None:
    """Begin a batch."""
    raise NotImplementedError


@dispatched
def count(
    memory: Memory, release: NamedTuple, advice: Advice, arm: int, importance: float, loss: int
) -> None:
    """Count one loss of an arm that was chosen by advice."""
    raise NotImplementedError


@dispatched
def publish_batch(memory: Memory, release: NamedTuple, size: int, stream: Stream) -> float:
    """Publish a batch of ``size`` losses; what is not one number goes into ``estimates``."""
    raise NotImplementedError


class SumMemory(NamedTuple):
    """A sum of losses."""

    total: NDArray[np.int64]
    estimates: NDArray[np.float64]
    """Nothing: a sum is published as one number."""


def _clear(memory: SumMemory) -> None:
    memory.total[0] = 0


def _count(
    memory: SumMemory, release: NamedTuple, advice: Advice, arm: int, importance: float, loss: int
) -> None:
    memory.total[0] += loss


def _publish_batch(memory: SumMemory, release: NamedTuple, size: int, stream: Stream) -> float:
    return publish(release, memory.total[0], size, stream)


clear.register(SumMemory, _clear)
count.register(SumMemory, _count)
publish_batch.register(SumMemory, _publish_batch)


@kernel
def publish_once(release: NamedTuple, total: int, size: int, stream: Stream) -> float:
    """Publish one sum, from Python."""
    return publish(release, total, size, stream)


@kernel
def _fill(
    release: NamedTuple, total: int, size: int, stream: Stream, out: NDArray[np.float64]
) -> None:
    for i in range(out.size):
        out[i] = publish(release, total, size, stream)


def publish_many(
    release: NamedTuple, total: int, size: int, count: int, stream: Stream
) -> NDArray[np.float64]:
    """Publish the same sum many times, for audits and tests."""
    values = np.empty(count)
    _fill(release, total, size, stream, values)
    return values

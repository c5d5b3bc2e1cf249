"""What a store promises.

A store makes experiments durable. The policy in memory decides, counts and learns; the store is
asked, in one transaction for everything that arrived together, to remember it.

1. **All or nothing.** A transaction that ends without an error is durable, as a whole; one that
   ends with an error, or with the end of the process, has changed nothing.
2. **One at a time.** Between ``lock`` and the end of the transaction nobody else changes the
   experiment. Its version grows by one with each transaction that wrote to it: a policy that was
   kept in memory under another version or another step is read again. ``snapshot`` reads what was
   committed last and keeps nobody out.
3. **What was written is read back.** ``read`` gives the head, the open batches, their events and
   their feedback exactly as they were written: all of them, those that fill, or a single one.
4. **A batch is released once.** A second release of the same batch is refused, whoever writes it.
5. **An identity is given once.** A second event of the same id is refused in the same experiment,
   in any of its segments. Other experiments may use it too.
6. **Losses go with their batch.** The transaction that records a release deletes all feedback of
   its batch and its tally; after a ``tidy`` that returns True not even free pages of the database
   or its log hold them.
7. **A release has a step.** Every transaction that writes to an experiment draws a random step; its
   releases keep it, and ``missing`` tells which releases with which steps are not there. Copies of
   a database that went on apart have different steps: see ``guard``.
8. **Trouble has one name.** A disk that is full and a database that is gone raise
   ``StoreUnavailableError`` and nothing else; the next transaction tries again.

``tests/contracts/test_stores.py`` holds every store to this.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from bandanna._core.types import BandannaError, DecisionError
from bandanna.store.rows import (
    Changes,
    Due,
    Event,
    Experiment,
    Feedback,
    Location,
    OpenBatch,
    ReleaseRow,
    Snapshot,
)


class StoreUnavailableError(BandannaError):
    """The database cannot be reached or written to. Nothing was changed."""


class ConflictError(BandannaError):
    """Something that exists already, or contradicts what does. Nothing was changed."""


class KeyRow(NamedTuple):
    """A key to the service: a hash of it, and what it opens."""

    id: str
    name: str
    hash: bytes
    scopes: tuple[str, ...]
    experiment: str | None
    """The only experiment it opens, or None for all."""
    created_at: float
    revoked_at: float | None = None
    expires_at: float | None = None
    projects: Mapping[str, tuple[str, ...]] | None = None
    """What it also opens, by project; never kept: people have it, keys do not."""


def new_step() -> str:
    """Draw a random step."""
    return secrets.token_hex(16)


class Stamp(NamedTuple):
    """What a locked experiment was last changed by."""

    version: int
    step: str
    """Random, of the transaction that wrote this version."""


class Mark(NamedTuple):
    """The last release of an experiment."""

    sequence: int
    """Its position in the order of the experiment's releases, from 0 on."""
    step: str
    """Random, of the transaction that recorded it."""


class Transaction(ABC):
    """One transaction."""

    @abstractmethod
    def events(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """Return the events with these ids, in all experiments; ids without any are left out."""

    @abstractmethod
    def lock(self, experiments: Iterable[int]) -> dict[int, Stamp]:
        """Keep others out of experiments until the end; returns their versions and steps."""

    @abstractmethod
    def read(self, experiment: int, *, whole: bool = True) -> Snapshot:
        """Return a locked experiment with all open batches, or with those that fill alone."""

    @abstractmethod
    def open_batch(
        self, experiment: int, number: int
    ) -> tuple[OpenBatch, list[Event], list[Feedback]] | None:
        """Return an open batch of a locked experiment, if it is one, as it was committed."""

    @abstractmethod
    def due(self, experiment: int, after: tuple[float, int], limit: int) -> list[Due]:
        """Return events that wait, by deadline and round: the first so many after these two."""

    @abstractmethod
    def latest(self, owner: int, visitor: str) -> Event | None:
        """Return the last event of a visitor in an experiment, of any of its segments."""

    @abstractmethod
    def free(self, experiment: int, limit: int) -> list[tuple[Location, float | None]]:
        """Return positions of open batches whose event was never shown, and chances of arms."""

    @abstractmethod
    def blocks(self, experiment: int, batch: int) -> list[bytes]:
        """Return the blocks of a batch of a locked experiment, in the order they were written."""

    @abstractmethod
    def write(self, experiment: int, changes: Changes) -> tuple[Stamp, Mark | None]:
        """Change a locked experiment, and raise its version by one.

        Returns its new version and step, and the last release if there was any in this transaction.
        """

    @abstractmethod
    def missing(self, marks: Mapping[int, Mark]) -> set[int]:
        """Return the experiments that do not hold the release of their mark."""


class Store(ABC):
    """Durable experiments; see the top of this file for what it promises."""

    identity: str
    """Identity of the database, made with it: 32 hexadecimal digits."""

    gather_seconds: float = 0.0
    """How long the writer waits for others, where several tasks came together the last time: a
    transaction that costs round trips is best shared by many."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction; it is durable when the context ends without an error."""

    @abstractmethod
    def snapshot(self, experiment: int) -> Snapshot:
        """Return an experiment with all open batches, as of one moment, while others write."""

    @abstractmethod
    def create(self, parts: Sequence[Experiment]) -> list[int]:
        """Add an experiment, all segments or none; returns their numbers, never given again."""

    @abstractmethod
    def experiments(self, identity: str | None = None, after: int = 0) -> list[Experiment]:
        """Return experiments in the order of their making: all, those with that id, or newer ones.

        Segments come one by one; newer are those whose number is larger than ``after``.
        """

    @abstractmethod
    def named(self, name: str) -> list[tuple[str, bool]]:
        """Return the ids of experiments of a name, and whether they are stopped; newest first."""

    @abstractmethod
    def numbers(self, after: int = 0) -> list[int]:
        """Return the numbers of experiments, or of those with a number larger than ``after``."""

    @abstractmethod
    def next_deadlines(self, experiments: Sequence[int]) -> dict[int, float]:
        """Return when the first deadline passes in experiments; those without are left out."""

    @abstractmethod
    def stop(self, identity: str) -> None:
        """Take no more decisions in an experiment, in any segment. Feedback is still taken."""

    @abstractmethod
    def charge(self, experiment: int, resumed: int) -> None:
        """Set how often an experiment was resumed from older copies, and raise its version."""

    @abstractmethod
    def last_marks(self) -> dict[int, Mark]:
        """Return the last release of every experiment that has released anything."""

    @abstractmethod
    def releases(self, experiment: int, after: int = 0, limit: int = 1_000_000) -> list[ReleaseRow]:
        """Return releases in the order of their making, from the one numbered ``after`` on."""

    @abstractmethod
    def add_key(self, key: KeyRow) -> None:
        """Keep a key."""

    @abstractmethod
    def add_first_key(self, key: KeyRow) -> bool:
        """Keep a key if there is none yet, whoever else tries; returns whether it was kept."""

    @abstractmethod
    def all_keys(self) -> list[KeyRow]:
        """Return all keys, revoked ones included."""

    @abstractmethod
    def revoke_key(self, identity: str, at: float) -> bool:
        """Revoke a key; returns whether there was one to revoke."""

    @abstractmethod
    def tidy(self) -> bool:
        """Leave no trace of deleted feedback in free pages and logs.

        Returns whether that was done. If not, a reader was in the way: try again.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""


class GoneError(BandannaError):
    """Too late: the deadline has passed. Nothing was changed."""


@contextmanager
def refusals_only() -> Iterator[None]:
    """Let a refusal through, which changes nothing; any other error undoes the transaction."""
    try:
        yield
    except DecisionError:
        raise
    except BandannaError as error:
        raise RuntimeError(f"a release or learner failed: {error}") from None


def gone(event: Event) -> GoneError:
    """Say that an event is past its deadline."""
    return GoneError(f"the deadline of event {event.id!r} has passed; nothing more is counted.")

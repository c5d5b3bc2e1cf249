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

``tests/contracts/test_stores.py`` holds ``SqlStore``, in SQLite and in PostgreSQL, to this, and to
what a reference that keeps everything in dictionaries does.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from bandanna._core.types import BandannaError, DecisionError
from bandanna.store.rows import Event


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

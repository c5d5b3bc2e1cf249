"""What is refused, and what undoes a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bandanna._core.types import BandannaError, DecisionError
from bandanna.store.rows import Event


class GoneError(BandannaError):
    """Too late: the deadline has passed. Nothing was changed."""


@contextmanager
def whole_or_broken() -> Iterator[None]:
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

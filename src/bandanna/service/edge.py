"""Experiments that decide at the edge: shares are published, and reports come in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from starlette.concurrency import run_in_threadpool

from bandanna._core.types import ArmName, BandannaError, InputError
from bandanna.phases.course import due
from bandanna.service.models import is_edge
from bandanna.store.edge_unit import EdgeUnit, OpenPhase, Reader, UnitReport, course_of
from bandanna.store.rows import Experiment, SealedBlock
from bandanna.store.writer import OverloadedError, Task, UnknownError

if TYPE_CHECKING:
    from bandanna.service.core import Core

T = TypeVar("T")

ATTEMPTS = 3
"""How often reports are read again because a phase opened or was counted meanwhile."""
LONGEST_REST, SHORTEST_REST = 60.0, 1.0
"""Seconds for which published shares may be kept."""

Refused = tuple[int, BandannaError]
"""The place of a line, and why it was refused."""


class Edge:
    """What the service does for them.

    Parameters
    ----------
    core
        The service.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._phases: dict[int, tuple[OpenPhase, ...]] = {}
        """Phases that were open when reports were read last."""

    async def go_on(self, number: int) -> float | None:
        """Do what is due in an experiment; returns when there is something to do again."""
        return await self._do(number, lambda unit: unit.go_on(self._core.signer.sign))

    async def ship(self, number: int, arm: ArmName) -> None:
        """Publish that everyone gets one arm."""
        await self._do(number, lambda unit: unit.ship(arm, self._core.signer.sign))

    def published(self, part: Experiment) -> tuple[str, float]:
        """Return the shares of an experiment as it is now, signed, and how long to keep them."""
        check_edge(part)
        state = part.head["course"]
        if not state["published"]:
            raise UnknownError("its first phase has not begun; ask again in a second.")
        now = self._core.clock()
        waits = due(course_of(part.id, part.settings), state, datetime.fromtimestamp(now, UTC))
        left = LONGEST_REST if waits is None else waits.timestamp() - now
        return state["published"], min(max(left, SHORTEST_REST), LONGEST_REST)

    async def report(
        self, part: Experiment, lines: Iterable[tuple[int, UnitReport]]
    ) -> list[tuple[int, BandannaError]]:
        """Keep reports, all of them or none; returns those that are refused, by their places.

        Arms follow from the phases that are open. Where others are by the time reports are
        written, they are read again.
        """
        check_edge(part)
        given = list(lines)
        for _ in range(ATTEMPTS):
            seen = self._phases.get(part.number, ())
            blocks, refused = await run_in_threadpool(self._read, part, seen, given)
            taking = partial(EdgeUnit.take, blocks=blocks, seen=seen)
            here = await self._do(part.number, taking)
            if here is None:
                return refused
            self._phases[part.number] = here
        raise OverloadedError("phases change faster than reports are read; send them again.")

    def _read(
        self, part: Experiment, seen: Sequence[OpenPhase], given: Sequence[tuple[int, UnitReport]]
    ) -> tuple[list[SealedBlock], list[Refused]]:
        def hashed(unit: str) -> int:
            mark = self._core.secret.hash("people", f"{part.id} {unit}")
            return int.from_bytes(mark[:8], "little")

        reader, now = Reader(course_of(part.id, part.settings), seen, hashed), self._core.clock()
        refused: list[Refused] = []
        for place, report in given:
            try:
                reader.read(report, now)
            except BandannaError as error:
                refused.append((place, error.with_traceback(None)))
        return reader.blocks(), refused

    async def _do(self, number: int, what: Callable[[EdgeUnit], T]) -> T:
        """Do something with an experiment's unit of work, durably."""
        return await self._core.do(Task(lambda unit, _: what(cast(EdgeUnit, unit)), number))


def check_edge(part: Experiment) -> None:
    """Refuse an experiment that decides in the service."""
    if not is_edge(part.settings):
        raise InputError(
            'this experiment decides in the service: ask it for decisions. Others have "decides": '
            '"edge".'
        )

"""A progress bar, shown only at a terminal."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE = 2.0
"""Seconds before a bar appears."""

QUIET = "BANDANNA_QUIET"
"""The environment variable that turns bars off; ``bandanna --quiet`` sets it."""


def _wanted() -> bool:
    return bool(sys.stderr and sys.stderr.isatty()) and not os.environ.get(QUIET)


class Progress:
    """Counts work done and draws a bar with the time left, once it has taken a while.

    A bar inside one that ``gathers`` is not drawn, but counted there.

    Parameters
    ----------
    work
        How much there will be, in any unit; None if that is not known.
    show
        Always or never; by default only when standard error is a terminal and nobody asked for
        quiet.
    label
        What the bar says.
    gathers
        Whether it counts the work of bars inside it, which is in the same unit.
    """

    _gathering: ClassVar[Progress | None] = None

    def __init__(
        self,
        work: float | None,
        show: bool | None = None,
        label: str = "simulating",
        *,
        gathers: bool = False,
    ) -> None:
        self._work = work
        self._label = label
        self._around = Progress._gathering if show is None else None
        self._gathers = gathers and self._around is None
        self._show = self._around is None and (_wanted() if show is None else show)
        self.done = 0.0
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._open)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._gathers:
            Progress._gathering = self
        if self._show:
            self._timer.start()
        return self

    def advance(self, by: float = 1.0) -> None:
        """Count work that is done."""
        self.done += by
        if self._around is not None:
            self._around.advance(by)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self.done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with self._lock:
            if self._closed:
                return
            bar = Bar(console=Console(stderr=True), transient=True)
            self._task = bar.add_task(self._label, total=self._work)
            bar.update(self._task, completed=self.done)
            bar.start()
            self._bar = bar

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._gathers:
            Progress._gathering = None
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()

"""A progress bar for whoever waits at a terminal, and nothing for anyone else."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

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
    """Counts steps and draws a bar on standard error once it has taken a while.

    Parameters
    ----------
    steps
        How many there will be.
    show
        Always or never; by default only when standard error is a terminal and nobody asked for
        quiet.
    label
        What the bar says.
    """

    def __init__(self, steps: int, show: bool | None = None, label: str = "simulating") -> None:
        self._steps = steps
        self._label = label
        self._show = _wanted() if show is None else show
        self._done = 0
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._open)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._show:
            self._timer.start()
        return self

    def advance(self) -> None:
        """Count one step."""
        self._done += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with self._lock:
            if self._closed:
                return
            bar = Bar(console=Console(stderr=True), transient=True)
            self._task = bar.add_task(self._label, total=self._steps, completed=self._done)
            bar.start()
            self._bar = bar

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()

"""A progress bar for whoever waits at a terminal, and nothing for anyone else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

PATIENCE = 2.0
"""Seconds before a bar appears."""


class Progress:
    """Counts steps and draws a bar on standard error once it has taken a while.

    Parameters
    ----------
    steps
        How many there will be.
    show
        Always or never; by default only when standard error is a terminal.
    """

    def __init__(self, steps: int, show: bool | None = None) -> None:
        self._steps = steps
        self._show = sys.stderr.isatty() if show is None else show
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        return self

    def advance(self) -> None:
        """Count one step."""
        self._done += 1
        if not self._show:
            return
        if self._bar is None and time.monotonic() - self._start > PATIENCE:
            self._open()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar

        self._bar = Bar(console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("simulating", total=self._steps)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

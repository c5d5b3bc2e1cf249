"""A policy belongs to one process: a copy of it would release its open batches a second time."""

from __future__ import annotations

import os
from typing import NoReturn

from bandanna._core.types import DecisionError


class OneProcess:
    """What neither forks, nor is copied or pickled."""

    _process: int

    def _belong_here(self) -> None:
        self._process = os.getpid()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise DecisionError(
                "this policy belongs to the process that made or loaded it; in a forked copy its "
                "open batches would be released twice. Keep one process, or save and load."
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a policy cannot be copied or pickled: its open batches would be released twice. "
            "Use save and load to move it, rehearse for a fresh one."
        )

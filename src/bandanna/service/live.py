"""What pages watch and audits found: computed once for everyone who looks."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from bandanna.audits.releases import audit_release
from bandanna.service.models import experiment_answer
from bandanna.store.rows import Experiment

if TYPE_CHECKING:
    from bandanna.audits.attack import AuditResult
    from bandanna.privacy.sums import SumRelease
    from bandanna.service.core import Core

LIVE_SECONDS = 1.0
AUDIT_DRAWS = 200_000
KEPT = 1_000


class Live:
    """The present state of experiments that are watched, at most a second old."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._states: dict[tuple[str, int], tuple[float, dict[str, str]]] = {}
        self._locks: dict[tuple[str, int], asyncio.Lock] = {}

    async def state(self, experiment: str, part: Experiment) -> dict[str, str]:
        """Return an experiment and the results of one of its parts, each as JSON text."""
        key = experiment, part.number
        async with self._locks.setdefault(key, asyncio.Lock()):
            at, kept = self._states.get(key, (-LIVE_SECONDS, {}))
            if time.monotonic() - at < LIVE_SECONDS / 2:
                return kept
            shown = experiment_answer(await self._core.current(experiment)).model_dump()
            results = await self._core.results(part)
            state = {"experiment": json.dumps(shown), "results": json.dumps(results)}
            if len(self._states) >= KEPT:
                self._states.clear()
            self._states[key] = time.monotonic(), state
            return state


class Audits:
    """Audits of releases, one at a time and once for each experiment."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "bandanna audit")
        self._found: dict[str, asyncio.Task[AuditResult]] = {}

    async def of(self, experiment: Experiment, release: SumRelease) -> AuditResult:
        """Return what an attack on an experiment's release finds; it never changes."""
        if experiment.id not in self._found:
            if len(self._found) >= KEPT:
                self._found.clear()
            self._found[experiment.id] = asyncio.create_task(self._audit(release))
        return await asyncio.shield(self._found[experiment.id])

    async def _audit(self, release: SumRelease) -> AuditResult:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, lambda: audit_release(release, draws=AUDIT_DRAWS)
        )

    def close(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

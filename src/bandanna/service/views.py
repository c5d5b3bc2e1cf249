"""What is read of experiments: from committed state, apart from the writer.

A view is a policy as it was last committed, without its open batches, so it holds nothing private.
Views and results are kept until the experiment changes, and shared by everyone who reads: twenty
open pages cost as much as one. Whoever reads one experiment all the time gets what was read a
moment ago, after a pause: reading it may take BURST seconds of a processor at once, and SHARE of
one from then on. A promise that has become weaker, by a database put back, is shown at once.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast

from bandanna._core.types import JSON, InputError
from bandanna.audits.releases import audit_release
from bandanna.policy.base import BasePolicy
from bandanna.policy.policy import Policy
from bandanna.service.models import experiment_answer, moment
from bandanna.service.summary import context_results, scorecard, summary
from bandanna.store import SqlStore
from bandanna.store.open_batches import without_batches
from bandanna.store.rows import Committed, Experiment
from bandanna.store.totals import ReleaseTotals
from bandanna.store.writer import UnknownError

if TYPE_CHECKING:
    from bandanna.audits.attack import AuditResult
    from bandanna.contextual.policy import PrivateContextual
    from bandanna.privacy.sums import SumRelease
    from bandanna.service.core import Core


KEPT = 256
"""Experiments whose views are kept."""

CARDS = 8
"""Scorecards of one experiment that are kept, for different controls and confidences."""

REST = 20.0
"""Adding up releases takes at most one part in so many of the time."""

BURST, SHARE = 0.5, 0.05
"""Processor time that reading one experiment anew may take: seconds at once, and a share."""

PAUSE = 0.05
"""Seconds that an answer waits when that is used up: a loop is slowed down, a person is not."""


class View(NamedTuple):
    """An experiment, or one of its segments, as it was last committed."""

    committed: Committed
    made: BasePolicy
    """Its policy, of either kind."""

    @property
    def policy(self) -> Policy:
        """Its policy; refused where it decides by context."""
        if not isinstance(self.made, Policy):
            raise InputError("this experiment decides by context: that does not apply to it.")
        return self.made

    @property
    def contextual(self) -> PrivateContextual | None:
        """Its policy, if it decides by context."""
        return None if isinstance(self.made, Policy) else cast("PrivateContextual", self.made)

    @property
    def part(self) -> Experiment:
        """The experiment, or the segment."""
        return self.committed.experiment

    @property
    def missed(self) -> int:
        """Rounds that nothing true was learned from, at most: each may add a loss to regret.

        How many there are in people's open slots is private until they close: all rounds in open
        batches are counted there.
        """
        state = self.policy.state
        if state.people is None:
            return state.missed_before + self.committed.given_up
        return state.missed_before + state.rounds - sum(state.played.values())


class _Entry:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._left, self._at = BURST, time.monotonic()
        self.view: View | None = None
        self.totals: ReleaseTotals | None = None
        self.totals_of = -1
        """The number of releases that were added up."""
        self.next_totals = 0.0
        self.results: tuple[tuple[int, int, int, str], JSON] | None = None
        """The results, and what they are of: how often the experiment was resumed, its version,
        the number of releases, words for feedback."""
        self.cards: OrderedDict[tuple[object, ...], JSON] = OrderedDict()
        """Scorecards of what is released now, by what was asked for."""

    @property
    def tired(self) -> bool:
        """Whether reading this experiment has taken its share of the processor."""
        now = time.monotonic()
        self._left = min(BURST, self._left + SHARE * (now - self._at))
        self._at = now
        return self._left <= 0.0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count the processor time of this thread."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._left -= time.thread_time() - began


class Views:
    """Reads experiments for those who look; may be used by several threads."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, _Entry] = OrderedDict()

    def pause(self, number: int) -> float:
        """Return how many seconds a reader of an experiment should wait first."""
        return PAUSE if self._entry(number).tired else 0.0

    def view(self, number: int) -> View:
        """Return an experiment as it was last committed."""
        entry = self._entry(number)
        with entry.lock:
            return self._view(entry, number)

    def results(self, number: int, outcome: str = "") -> JSON:
        """Return what the releases of an experiment say, in a team's words for the feedback."""
        entry = self._entry(number)
        with entry.lock:
            view, kept = self._view(entry, number), entry.results
            part = view.part
            if kept is not None and entry.tired and kept[0][0] == part.resumed:
                return kept[1]
            totals = self._totals(entry, view)
            key = part.resumed, part.version, entry.totals_of, outcome
            if kept is None or kept[0] != key:
                with entry.working():
                    said = _summary(view, totals, outcome)
                    entry.results = kept = key, said | {"health": _health(view.committed)}
            return kept[1]

    def scorecard(self, number: int, control: str | None, outcome: str, confidence: float) -> JSON:
        """Return the scorecard of an experiment, drawn anew once something was released."""
        entry = self._entry(number)
        with entry.lock:
            view = self._view(entry, number)
            policy, part = view.policy, view.part
            now = policy.released, part.resumed, policy.choices, len(policy.dropped)
            key = *now, control, outcome, confidence
            if key not in entry.cards:
                with entry.working():
                    phases = part.head.get("course", {}).get("phases")
                    entry.cards[key] = scorecard(policy, control, outcome, confidence, phases)
                if len(entry.cards) > CARDS:
                    entry.cards.popitem(last=False)
            return entry.cards[key]

    def _entry(self, number: int) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(number, _Entry())
            self._entries.move_to_end(number)
            if len(self._entries) > KEPT:
                self._entries.popitem(last=False)
            return entry

    def _view(self, entry: _Entry, number: int) -> View:
        """Return what was read before, unless epsilon has changed since, or it is time to look."""
        now = self._store.stamp(number)
        if now is None:
            raise UnknownError("there is no such experiment.")
        if entry.view is not None:
            part = entry.view.part
            if ((part.version, part.step), part.resumed) == now:
                return entry.view
            if entry.tired and part.resumed == now[1]:
                return entry.view
        with entry.working():
            committed = self._store.committed(number)
            entry.view = View(committed, _policy_of(committed.experiment))
        return entry.view

    def _totals(self, entry: _Entry, view: View) -> ReleaseTotals:
        released = view.made.released
        began = time.monotonic()
        if entry.totals is None or (entry.totals_of != released and began >= entry.next_totals):
            entry.totals, entry.totals_of = self._store.totals(view.part.number), released
            now = time.monotonic()
            entry.next_totals = now + REST * (now - began)
        return entry.totals


def _policy_of(experiment: Experiment) -> BasePolicy:
    """Return a policy without what is private of it."""
    if "course" in experiment.head:
        from bandanna.store.edge_unit import without_phases  # loaded when first used

        return without_phases(experiment)
    return without_batches(experiment)


def _summary(view: View, totals: ReleaseTotals, outcome: str) -> JSON:
    if view.contextual is not None:
        return context_results(view.contextual, totals, view.committed.slots)
    return summary(view.policy, totals, view.committed.slots, view.missed, outcome)


def _health(found: Committed) -> JSON:
    """Return what shows whether feedback comes and batches are released."""
    counters = found.experiment.head["counters"]
    times = {"oldest_open_at": found.open_since, "last_release_at": found.released_at}
    return {
        "decided": counters["rounds"],
        "observed": found.experiment.observed,
        "open_batches": found.open,
        **{name: None if at is None else moment(at) for name, at in times.items()},
    }


# --- what pages watch and audits found, computed once for everyone --------------------

LIVE_SECONDS = 1.0
AUDIT_DRAWS = 200_000
MOST_KEPT = 1_000


class Live:
    """The present state of experiments that are watched, at most a second old."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._states: dict[int, tuple[float, dict[str, str]]] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def state(self, part: Experiment) -> dict[str, str]:
        """Return an experiment and the results of one of its parts, each as JSON text."""
        key = part.number
        async with self._locks.setdefault(key, asyncio.Lock()):
            at, kept = self._states.get(key, (-LIVE_SECONDS, {}))
            if time.monotonic() - at < LIVE_SECONDS / 2:
                return kept
            said = await self._core.described(part.id)
            shown = experiment_answer(await self._core.current(part.id), said).model_dump()
            results = await self._core.results(part)
            state = {"experiment": json.dumps(shown), "results": json.dumps(results)}
            if len(self._states) >= MOST_KEPT:
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
            if len(self._found) >= MOST_KEPT:
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

"""The service without HTTP: experiments, decisions, feedback, deadlines."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import threading
import time
from asyncio import wrap_future
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON, ArmName, BandannaError, Guarantee, InputError
from bandanna.service.keys import read_signer
from bandanna.service.metrics import Metrics
from bandanna.service.models import check_days, is_edge, is_local
from bandanna.service.policies import (
    device_release,
    grouped,
    part_for,
    promised,
    same_as_made,
    settings_and_head,
)
from bandanna.service.settings import Settings
from bandanna.service.views import Audits, Live, View, Views
from bandanna.store import ConflictError, SqlStore, StoreUnavailableError, open_store
from bandanna.store.descriptions import Description, Shipped
from bandanna.store.guard import Guard, default_guard, name_of
from bandanna.store.rows import Event, Experiment, without_batch
from bandanna.store.unit_of_work import DecisionRequest, NewFeedback, UnitOfWork
from bandanna.store.writer import (
    MOST_TOGETHER,
    OverloadedError,
    Task,
    UnknownError,
    Writer,
    about_event,
)

if TYPE_CHECKING:
    from bandanna.service.edge import Edge

logger = logging.getLogger("bandanna.service")

T = TypeVar("T")

RECENT = 1_000
"""Experiments among which new ones are looked for: PostgreSQL may show a number after a later one.
"""

CLOCK_STEP_SECONDS = 0.5
"""A difference between two clocks that means that one was set."""

NO_GUARD = (
    "the database is never put back from an older copy and never run twice: there is no rollback "
    "guard that would notice"
)
ELSEWHERE = (
    "A copy that was run elsewhere with another guard, while this database went on, is not "
    "noticed here"
)
UNGUARDED = {
    None: "Whether the database was put back from an older copy: no rollback guard is kept.",
    "file": f"{ELSEWHERE}, nor is a snapshot that put back the database and the guard's file "
    "together. Count them with 'bandanna db charge'.",
    "database": f"{ELSEWHERE}, nor is a restore of both databases together. Count them with "
    "'bandanna db charge'.",
}
"""What the rollback guard cannot know, by where it is kept."""


READING_SECONDS = 0.5
"""How often a sweep looks whether what it waits for is being read, which may take long."""

STANDS_BY = "this process stands by: another one leads, and this one takes over when that ends."


class StandByError(StoreUnavailableError):
    """Another process leads. Nothing was changed."""


class Core:
    """Everything a service does; answers come when they are durable."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.clock = clock
        self.metrics = Metrics()
        self.store = open_store(settings.database, settings.secret)
        self.secret = self.store.secret
        self.guard: Guard | None = None
        try:
            self.guard = open_guard(settings, self.store)
            self.charged = self._begin()
            """Ids of experiments that were charged for being resumed from an older copy."""
            self.signer = read_signer(settings.signing)
            self.signer.note_all(self.store, self.clock())
        except BaseException:
            self._let_go()
            raise
        self.writer = Writer(self.store, self.guard, clock)
        self.views, self.live, self.audits = Views(self.store), Live(self), Audits()
        self._edge: Edge | None = None
        self._creating = threading.Lock()
        self._known: dict[str, list[Experiment]] = {}
        self._newest = 0
        """The largest number of an experiment that was seen."""
        self._seen: set[int] = set()
        self._deadlines: dict[int, float] = {}
        """Deadlines of experiments that have one, in seconds."""
        self._edges: set[int] = set()
        """Experiments that decide at the edge."""
        self._keeps: dict[int, float] = {}
        self._noting: set[asyncio.Task[None]] = set()
        """How long events are kept, where that is limited."""
        self._next_look: dict[int, float] = {}
        self._expiring: set[asyncio.Task[None]] = set()
        """What is being expired, where that takes longer than a sweep."""
        self._offset = 0.0
        """Offset of the clock from one that is never set."""
        self._written, self._erasures = 0, 0
        """Transactions when the log was last written back, and events or experiments erased."""
        self._tidied = -1, 0
        """Releases and erasures when it was last tidied; whoever was here before may not have come
        to it."""
        self.warm = True
        """Whether what a release needs is loaded."""
        self.leads = False
        """Whether this process decides and counts; otherwise it stands by until the other ends."""
        self.closing = threading.Event()
        """Set when the service is about to end."""

    def close(self) -> None:
        """Finish what was begun, and leave no trace of feedback in logs of the database."""
        self.audits.close()
        self.writer.close()
        self.store.tidy()
        self._let_go()

    def _let_go(self) -> None:
        self.store.close()
        if self.guard is not None:
            self.guard.close()

    # --- experiments ----------------------------------------------------------------------

    async def create(
        self, name: str, settings: JSON, again: str | None = None, said: JSON | None = None
    ) -> tuple[list[Experiment], bool]:
        """Make an experiment; returns its parts, and whether it is new.

        What was made with the same ``again`` before is returned as it is.
        """
        if not self.leads:
            raise StandByError(STANDS_BY)
        described = Description(**said or {})
        check_days(described)
        made, new = await run_in_threadpool(self._create, name, settings, again, described)
        self._known[made[0].id] = made
        if is_edge(made[0].settings):
            await self.edge.go_on(made[0].number)
        return made, new

    def _create(
        self, name: str, settings: JSON, again: str | None, said: Description
    ) -> tuple[list[Experiment], bool]:
        random = secrets.token_hex(8)
        hashed = random if again is None else self.secret.hash("keys", f"create {again}").hex()[:16]
        identity, parts = f"exp_{hashed}", []
        for segment in settings.get("segments") or [""]:
            kept, head = settings_and_head(settings, identity)
            if is_local(kept):
                kept["device_release"] = device_release(kept)
            parts.append(Experiment(identity, name, kept, head, self.clock(), segment=segment))
        with self._creating:
            if again is not None and (known := self.store.experiments(identity)):
                return same_as_made(known, parts), False
            for other, stopped in self.store.named(name):
                if not stopped:
                    raise ConflictError(
                        f"an experiment called {name!r} is running, {other}: stop it first, or "
                        f"give this one another name. A flag's key means the one that runs."
                    )
            numbers = self.store.create(parts, said)
        for part, number in zip(parts, numbers, strict=True):
            part.number, part.owner = number, numbers[0]
        if is_local(parts[0].settings):
            self.signer.note(self.store, parts[0], self.clock())
        return parts, True

    async def find(self, identity: str) -> list[Experiment]:
        """Return the parts of an experiment as they were made; only settings are current."""
        if identity not in self._known:
            self._known[identity] = await self.current(identity)
        return self._known[identity]

    async def find_named(self, name: str) -> list[Experiment]:
        """Return the parts of the experiment of a name: the running one, if there were several."""
        experiments = await run_in_threadpool(self.store.named, name)
        running = [identity for identity, stopped in experiments if not stopped]
        if len(running) > 1:
            raise ConflictError(f"{len(running)} running experiments are called {name!r}; use ids.")
        if not experiments:
            raise UnknownError(f"there is no experiment called {name!r}.")
        return await self.find(running[0] if running else experiments[0][0])

    async def current(self, identity: str) -> list[Experiment]:
        """Return the parts of an experiment as they are now."""
        experiments = await run_in_threadpool(self.store.experiments, identity)
        if not experiments:
            raise UnknownError(f"there is no experiment {identity!r}.")
        return experiments

    async def all_experiments(
        self,
        after: str | None = None,
        limit: int = 1_000_000,
        **which: Any,
    ) -> list[list[Experiment]]:
        """Return experiments as they are now, each with its parts, without what was learned.

        Which ones, and in which order, is said as to ``SqlStore.overview``.
        """
        rows = await run_in_threadpool(lambda: self.store.overview(after, limit, **which))
        return grouped(rows)

    async def described(self, identity: str) -> Description:
        """Return what is said of an experiment."""
        return (await self.descriptions([identity]))[identity]

    async def descriptions(self, ids: Sequence[str]) -> dict[str, Description]:
        """Return what is said of experiments."""
        described = await run_in_threadpool(self.store.descriptions, ids)
        return {identity: described.get(identity, Description()) for identity in ids}

    async def describe(self, identity: str, asked: JSON) -> JSON:
        """Change what is said of an experiment; returns what is not as it was."""
        await self.find(identity)
        known = await self.described(identity)
        changed = {name: value for name, value in asked.items() if getattr(known, name) != value}
        check_days(replace(known, **changed))
        if changed:
            await run_in_threadpool(self.store.describe, identity, changed)
        return changed

    async def ship(self, identity: str, name: str, by: str) -> tuple[Shipped, bool]:
        """End an experiment, and give everyone one arm; returns that, and whether it is new."""
        arms = (await self.current(identity))[0].settings["arms"]
        arm = next((one for one in arms if str(one) == name), None)
        if arm is None:
            known = ", ".join(map(str, arms[:20]))
            raise InputError(f"there is no arm {name!r} to ship; there are {known}.")
        known_before = (await self.described(identity)).shipped
        if known_before is not None and known_before.arm == arm:
            return known_before, False
        shipped = Shipped(arm, self.clock(), by)
        part = (await self.find(identity))[0]
        if is_edge(part.settings):
            await self.edge.ship(part.number, arm)
        await run_in_threadpool(self.store.ship, identity, shipped)
        self._next_look.pop(part.number, None)
        return shipped, True

    async def stop(self, identity: str) -> None:
        """Take no more decisions in an experiment."""
        part = (await self.find(identity))[0]
        await run_in_threadpool(self.store.stop, identity)
        self._next_look.pop(part.number, None)

    async def erase(self, identity: str) -> None:
        """Delete everything of a stopped experiment."""
        parts = await self.current(identity)
        if not parts[0].stopped:
            raise ConflictError("this experiment still decides: stop it first.")
        if self.guard is not None:  # first: a guard that expects too little refuses nothing
            names = [name_of(part.id, part.segment) for part in parts]
            await run_in_threadpool(self.guard.forget, names)
        await run_in_threadpool(self.store.erase, identity)
        self._erasures += 1
        self._known.pop(identity, None)

    async def erase_event(self, identity: str, name: str) -> None:
        """Forget the id of an event; what it may have fed into an open batch stays there."""
        owner = (await self.find(identity))[0].owner
        if not await run_in_threadpool(self.store.erase_event, owner, name):
            raise UnknownError(f"there is no such event {name!r}.")
        self._erasures += 1

    async def forget(self) -> None:
        """Forget events that are older than their experiments keep them."""
        for number, seconds in list(self._keeps.items()):
            before = self.clock() - seconds
            self._erasures += await run_in_threadpool(self.store.forget_events, number, before)

    async def look(self, part: Experiment, what: Callable[[View], T]) -> T:
        """Ask a part of an experiment something, as it was last committed."""
        await asyncio.sleep(self.views.pause(part.number))
        return await run_in_threadpool(lambda: what(self.views.view(part.number)))

    async def look_at_all(self, parts: Sequence[Experiment], what: Callable[[View], T]) -> list[T]:
        """Ask the parts of an experiment something."""
        return [await self.look(part, what) for part in parts]

    async def results(self, part: Experiment) -> JSON:
        """Return what the releases of a part say."""
        await asyncio.sleep(self.views.pause(part.number))
        outcome = (await self.described(part.id)).outcome
        return await run_in_threadpool(self.views.results, part.number, outcome)

    async def scorecard(self, part: Experiment, control: str | None, confidence: float) -> JSON:
        """Return what a team decides from, in its own words for the feedback."""
        await asyncio.sleep(self.views.pause(part.number))
        outcome = (await self.described(part.id)).outcome
        asked = part.number, control, outcome, confidence
        return await run_in_threadpool(self.views.scorecard, *asked)

    async def guarantee(self, identity: str) -> Guarantee:
        """Return what an experiment promises, all its segments together."""
        parts = await self.find(identity)
        guarantees = await self.look_at_all(parts, lambda view: view.made.guarantee)
        both = zip(parts, guarantees, strict=True)
        return self.stated(promised({part.segment: one for part, one in both}))

    def stated(self, promise: Guarantee) -> Guarantee:
        """Return a guarantee as this service can state it: without a guard more is assumed."""
        return promise if self.guard is not None else promise.assuming(NO_GUARD)

    def copies(self, resumed: int) -> JSON:
        """Say what is known of copies of the database, and what cannot be."""
        kind = None if self.guard is None else "file" if self.guard.is_file else "database"
        return {"guard": kind, "resumed": resumed, "not_known": UNGUARDED[kind]}

    async def change_arm(self, identity: str, name: str, *, add: bool) -> list[ArmName]:
        """Add or retire an arm in all segments; returns the arms that are played from now on.

        Whatever was done before is not done again, so an attempt that failed can be repeated.
        """
        parts = await self.current(identity)
        if is_local(parts[0].settings):
            raise InputError("arms of an experiment with local privacy cannot be changed.")
        arms = parts[0].settings["arms"]
        arm = next((one for one in arms if str(one) == name), name)
        if not add and arm not in arms:
            raise UnknownError(f"there is no arm {name!r}.")

        def work(unit: UnitOfWork, _: Event | None) -> list[ArmName]:
            return unit.add_arm(arm) if add else unit.retire_arm(arm)

        of_parts = [await self.do(Task(work, part.number)) for part in parts]
        self._known.pop(identity, None)
        return of_parts[0]

    async def arm_of(self, identity: str, event: Event) -> ArmName:
        """Return the arm of a decision; arms may have been added since we looked."""
        if event.arm >= len((await self.find(identity))[0].settings["arms"]):
            self._known.pop(identity, None)
        arm: ArmName = (await self.find(identity))[0].settings["arms"][event.arm]
        return arm

    @property
    def edge(self) -> Edge:
        """What it does for experiments that decide at the edge."""
        if self._edge is None:
            from bandanna.service.edge import Edge  # loaded when first used

            self._edge = Edge(self)
        return self._edge

    # --- decisions and feedback -----------------------------------------------------------

    async def decide(
        self,
        identity: str,
        name: str | None = None,
        asked: DecisionRequest = DecisionRequest(),  # noqa: B008  # it cannot be changed
        *,
        segment: str | None = None,
        visitor: str | None = None,
        defer: bool = False,
    ) -> Event:
        """Decide for an event; the same id gets the same answer.

        A ``visitor`` gets the decision that they had before, while it is theirs. Persons and
        visitors are hashed with the secret before anything else sees them.
        """
        parts = await self.find(identity)
        number = part_for(parts, segment).number
        if asked.person is not None:
            hashed = self.secret.hash("people", f"{identity} {asked.person}").hex()
            asked = asked._replace(person=hashed)
        fresh = name or f"evt_{secrets.token_hex(12)}"
        sticky, who = parts[0].settings.get("sticky_seconds"), None
        if visitor is not None and name is None and sticky != 0:
            who = self.secret.hash("people", f"visitor {identity} {segment} {visitor}").hex()[:32]

        def decided(unit: UnitOfWork, known: Event | None) -> Event:
            if who is None:
                return known or unit.decide(fresh, asked, defer=defer)
            deciding = partial(unit.decide, fresh, asked, defer=defer)
            return unit.decide_for(who, deciding, asked.eligible, sticky=sticky, defer=defer)

        try:
            return await self.do(Task(decided, number, name))
        except ConflictError:
            shipped = (await self.described(identity)).shipped
            if shipped is None:
                raise
            if asked.eligible is not None and shipped.arm not in asked.eligible:
                raise InputError(
                    f"the arm {shipped.arm!r} was shipped and is not among those eligible."
                ) from None
            arm = parts[0].settings["arms"].index(shipped.arm)
            return without_batch(fresh, parts[0].owner, number, arm, self.clock())

    async def decide_block(
        self,
        identity: str,
        names: Sequence[str],
        segment: str | None = None,
        eligible: list[str | int] | None = None,
    ) -> list[Event]:
        """Decide for many events at once, as deferred decisions."""
        number = part_for(await self.find(identity), segment).number
        asked = DecisionRequest(eligible=eligible)

        def deciding(name: str) -> Callable[[UnitOfWork, Event | None], Event]:
            return lambda unit, known: known or unit.decide(name, asked, defer=True)

        events = await self._do_all([Task(deciding(name), number, name) for name in names])
        if events and isinstance(events[0], ConflictError):  # it ended; perhaps an arm was shipped
            where: JSON = {"segment": segment, "defer": True}
            return [await self.decide(identity, name, asked, **where) for name in names]
        for one in events:
            if isinstance(one, BandannaError):
                raise one
        return cast(list[Event], events)

    async def reward_all(
        self, experiment: str, given: Sequence[tuple[str, NewFeedback]]
    ) -> list[BandannaError | None]:
        """Count the feedback of many events; returns for each what was refused, if it was."""
        owner = (await self.find(experiment))[0].owner

        def rewarding(feedback: NewFeedback) -> Callable[[UnitOfWork, Event], None]:
            return lambda unit, event: unit.observe(event, feedback)

        tasks = [about_event(name, rewarding(feedback), owner) for name, feedback in given]
        return cast(list[BandannaError | None], await self._do_all(tasks))

    async def _do_all(self, tasks: Sequence[Task[object]]) -> list[object]:
        """Do tasks, some at a time so that others need not wait for all of them."""
        results: list[object] = []
        for begin in range(0, len(tasks), MOST_TOGETHER):
            self._check_free()
            some = tasks[begin : begin + MOST_TOGETHER]
            answered: list[object] = await wrap_future(self.writer.submit_together(some))
            results += answered
        for one in results:
            if isinstance(one, StoreUnavailableError) or (
                isinstance(one, BaseException) and not isinstance(one, BandannaError)
            ):
                raise one  # what was counted stays; the same may be sent again
        return results

    async def reward(self, name: str, given: NewFeedback, experiment: str | None = None) -> None:
        """Count the feedback of an event; in experiments with local privacy, a device's bit."""
        await self._about(name, experiment, lambda unit, event: unit.observe(event, given))

    async def give_up(self, name: str, experiment: str | None = None) -> None:
        """Count the default loss of an event whose feedback will not come."""
        await self._about(name, experiment, lambda unit, event: unit.give_up(event))

    async def activate(self, name: str, experiment: str | None = None) -> None:
        """Say that the decision of an event was shown."""
        await self._about(name, experiment, lambda unit, event: unit.activate(event))

    async def _about(
        self, name: str, experiment: str | None, work: Callable[[UnitOfWork, Event], None]
    ) -> None:
        """Do something with an event: in one experiment, or in the only one that has it."""
        owner = None if experiment is None else (await self.find(experiment))[0].owner
        try:
            await self.do(about_event(name, work, owner))
        except UnknownError:  # where an arm was shipped, decisions are no events
            if experiment is None or (await self.described(experiment)).shipped is None:
                raise

    async def take_lead(self) -> None:
        """Lead if no other process does; whoever leads looks after deadlines."""
        led, self.leads = self.leads, await run_in_threadpool(self.store.take_lead)
        if self.leads and not led:
            self._next_look.clear()
            self._known.clear()  # another process may have changed arms
            logger.info("leads", extra={"facts": {}})

    async def sweep(self) -> None:
        """Expire what is due; every experiment is looked at before its next deadline."""
        await self.take_lead()
        if self.guard is not None:
            await run_in_threadpool(self.guard.watch)
        await run_in_threadpool(self._learn_deadlines)
        now, offset = self.clock(), self.clock() - time.monotonic()
        if abs(offset - self._offset) > CLOCK_STEP_SECONDS:
            self._next_look.clear()  # the clock was set: look at everything again
        self._offset = offset
        late = [n for n in self._deadlines if self._next_look.get(n, now) <= now]
        if self.leads:
            await self._expire(late, now)

    async def _expire(self, numbers: list[int], now: float) -> None:
        """Expire what is due in experiments; those where nothing is due are not opened.

        What is decided from now on is due after the experiment's own deadline at the earliest.
        """
        first: dict[int, float] = {}
        if numbers:
            first = await run_in_threadpool(self.store.next_deadlines, numbers)
        begun: dict[asyncio.Task[None], int] = {}
        for number in numbers:
            due = now if number in self._edges else first.get(number, math.inf)
            if due <= now:
                begun[asyncio.create_task(self._expire_one(number, now))] = number
            else:
                self._next_look[number] = min(due, now + self._deadlines[number])
        try:
            while not all(self.writer.reads(number) for number in begun.values()):
                done, _ = await asyncio.wait(begun, timeout=READING_SECONDS)
                for task in done:
                    del begun[task]
                    task.result()
        finally:  # others need not wait for what is being read
            for task in begun:
                self._expiring.add(task)
                task.add_done_callback(self._expired)

    def _expired(self, task: asyncio.Task[None]) -> None:
        """Forget what took long; where it failed, the next sweep tries again."""
        self._expiring.discard(task)
        if not task.cancelled():
            task.exception()

    async def _expire_one(self, number: int, now: float) -> None:
        due: float | None
        try:
            if number in self._edges:
                due = await self.edge.go_on(number)
            else:
                due = await self.do(Task(lambda unit, _: unit.expire(), number))
        except UnknownError:  # it is not in the database any more
            self._deadlines.pop(number, None)
        else:
            self._next_look[number] = min(due or math.inf, now + self._deadlines[number])

    def _learn_deadlines(self) -> None:
        """Read the deadlines of experiments not seen before; they never change."""
        begin = max(0, self._newest - RECENT)
        new = set(self.store.numbers(begin)) - self._seen
        names = ('"deadline_seconds"', '"keep_seconds"')
        for one in self.store.outlines(*names, after=min(new) - 1) if new else ():
            if one.settings.get("deadline_seconds") is not None:
                self._deadlines[one.number] = one.settings["deadline_seconds"]
            if is_edge(one.settings):
                self._edges.add(one.number)
            if one.settings.get("keep_seconds") is not None:
                self._keeps[one.number] = one.settings["keep_seconds"]
        self._newest = max(new | {self._newest})
        self._seen = {number for number in self._seen | new if number > self._newest - RECENT}

    async def tidy(self) -> None:
        """Erase what is left of feedback that was deleted since the last time."""
        written, deleted = self.writer.transactions, (self.writer.releases, self._erasures)
        if deleted != self._tidied:
            if await run_in_threadpool(self.store.tidy):  # otherwise again in a second
                self._tidied = deleted
        elif written != self._written:
            await run_in_threadpool(self.store.write_back)
        if written != self._written and self.guard is not None:
            await run_in_threadpool(self.guard.sync)
        self._written = written

    async def note(self, who: str, action: str, about: str, details: JSON | None = None) -> None:
        """Note who changed what, in the trail and in the log."""
        facts = {"who": who, "action": action, "about": about} | (details or {})
        logger.info("trail", extra={"facts": facts})
        await run_in_threadpool(self.store.note, who, action, about, details or {}, self.clock())

    def note_soon(self, who: str, action: str, about: str, details: JSON | None = None) -> None:
        """Note what was read, without waiting: a read must not wait for whoever writes."""
        noting = asyncio.create_task(self.note(who, action, about, details))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    def _check_free(self) -> None:
        """Refuse more where another process leads, or too much waits."""
        if not self.leads:
            raise StandByError(STANDS_BY)
        if self.writer.waiting >= self.settings.most_waiting:
            raise OverloadedError("too much is asked at once; nothing was changed.")

    async def do(self, task: Task[T]) -> T:
        """Do something with an experiment, durably."""
        self._check_free()
        return await wrap_future(self.writer.submit(task))

    def _begin(self) -> list[str]:
        """Compare the database with the rollback guard; returns the experiments it charged."""
        accept = self.settings.accept_restored
        if self.guard is None:
            if accept:
                raise InputError("--accept-restored needs a rollback guard; leave out --no-guard.")
            return []
        numbers = self.guard.begin(accept=accept, clock=self.clock)
        listed = self.store.listed() if numbers else []
        return list(dict.fromkeys(one.id for one in listed if one.number in numbers))

    @property
    def disk(self) -> Path:
        """Where room is needed: beside the database if it is a file, otherwise beside the guard."""
        if self.store.sqlite:
            return Path(self.settings.database.removeprefix("sqlite:///")).absolute().parent
        if self.guard is not None and self.guard.is_file:
            return Path(self.guard.address).absolute().parent
        return Path.cwd()


def open_guard(settings: Settings, store: SqlStore) -> Guard | None:
    """Open the rollback guard of a database, if it is to have one."""
    if not settings.guarded:
        return None
    return Guard(settings.guard or default_guard(store.identity), store)

"""The connection to the service: one that waits for its answers, and one for ``async`` programs."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Generic, Never, Self, TypeVar

from . import calls
from .block import DEFAULT_COUNT, AsyncBlock, Block
from .calls import JSON, PASSING, Attempts, Call, Decision, Errors, Guarantee

if TYPE_CHECKING:
    import httpx

Connected = TypeVar("Connected", "httpx.Client", "httpx.AsyncClient")
UNAVAILABLE = 503
TIMEOUT = 10.0
"""Seconds for one attempt."""


class _Connection(Generic[Connected]):
    """What both clients have in common."""

    errors: ClassVar[Errors] = Errors()
    _http: Connected

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        self._patience = patience
        self._servers = deque([url] if isinstance(url, str) else url)
        """Where the service is; the first is asked."""
        if not self._servers:
            raise self.errors.input("give an address of the service, such as http://host:8000.")
        self._headers = {"Authorization": f"Bearer {key}"}
        self._settings = {"headers": self._headers, "timeout": TIMEOUT}

    def _url(self, call: Call) -> str:
        """Return where a call is sent."""
        return f"{self._servers[0].rstrip('/')}{call.path}"

    def _read(self, answer: httpx.Response) -> JSON:
        """Return what was answered, or raise what a policy would."""
        if answer.is_success:
            if answer.headers.get("Content-Type", "").startswith("application/x-ndjson"):
                return {"lines": [json.loads(line) for line in answer.text.splitlines()]}
            body: JSON = answer.json() if answer.content else {}
            return body
        try:
            detail = str(answer.json()["detail"])
        except (ValueError, LookupError, TypeError):
            detail = None
        raise calls.refusal(answer.status_code, detail, self.errors)

    def _pause(self, attempts: Attempts, call: Call, answer: httpx.Response | None) -> float | None:
        """Return how long to wait before the next attempt; None where this answer stands."""
        if answer is not None and answer.status_code not in PASSING:
            return None
        if answer is None or answer.status_code == UNAVAILABLE:
            self._servers.rotate(-1)  # another process may lead now
            if call.again and attempts.elsewhere(len(self._servers)):
                return 0.0
        asked = None if answer is None else answer.headers.get("Retry-After")
        return attempts.pause(time.monotonic(), asked) if call.again else None

    def _ended(self, answer: httpx.Response | None, trouble: str) -> JSON:
        """Return the last answer; without any, say that the service is not there."""
        if answer is None:
            raise self.errors.service(f"the service did not answer ({trouble}).") from None
        return self._read(answer)


class Client(_Connection["httpx.Client"]):
    """A connection to the decision service.

    Requests that fail are retried for a while, with the same ids, so that nothing is decided or
    counted twice. A client may be shared by threads.

    Parameters
    ----------
    url
        Where the service is: an address, or those of a process that leads and of its stand-bys.
    key
        A key to it.
    patience
        Seconds for which a request is tried again.
    """

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        import httpx  # loaded when first used

        super().__init__(url, key, patience=patience)
        self._http = httpx.Client(**self._settings)  # type: ignore[arg-type]
        self._lost = httpx.TransportError

    def experiment(self, identity: str) -> Experiment:
        """Return an experiment that exists; nothing is sent yet."""
        return Experiment(self, identity)

    def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> Experiment:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        return self.experiment(str(self.run(calls.create(name, arms, epsilon, other))["id"]))

    def reward(self, event: str, *, loss: float | None = None, reward: float | None = None) -> None:
        """Send the feedback of an event: once, in any order."""
        self.run(calls.reward(event, loss, reward, self.errors))

    def send(self, method: str, path: str, body: JSON | None = None, *, again: bool = True) -> JSON:
        """Send a request to any path of the service; returns what was answered."""
        return self.run(Call(method, path, body, again))

    def run(self, call: Call) -> JSON:
        """Send a call, again and again while that may help."""
        attempts = Attempts(self._patience, time.monotonic())
        while True:
            answer, trouble = None, ""
            try:
                answer = self._http.request(
                    call.method,
                    self._url(call),
                    json=call.body,
                    content=call.content,
                    headers=call.headers,
                )
            except self._lost as error:
                trouble = type(error).__name__
            pause = self._pause(attempts, call, answer)
            if pause is None:
                return self._ended(answer, trouble)
            time.sleep(pause)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Experiment:
    """An experiment in the service, used like a ``PrivateBandit``."""

    def __init__(self, client: Client, identity: str) -> None:
        self._client = client
        self.id = identity
        self._path = f"/v1/experiments/{identity}"

    def decide(
        self,
        advice: object = None,
        *,
        person: str | int | None = None,
        segment: str | None = None,
        eligible: Iterable[str | int] | Mapping[str | int, bool] | None = None,
        context: Mapping[str, object] | None = None,
        before: float | None = None,
        event_id: str | None = None,
    ) -> Decision:
        """Choose an arm, among the eligible ones; the same ``event_id`` gets the same answer.

        ``context`` is what is known of the person, where the experiment has features; ``before``
        the number that is subtracted from the outcome, where it has ``adjust``.
        """
        known = context, event_id, before
        call = calls.decide(self._path, advice, person, segment, eligible, *known)
        return calls.decision(self._client.run(call))

    def block(
        self,
        count: int = DEFAULT_COUNT,
        *,
        segment: str | None = None,
        eligible: Iterable[str | int] | None = None,
    ) -> Block:
        """Return decisions that are fetched ``count`` at a time and used without a round trip.

        Feedback is sent as usual. The experiment needs ``deadline_seconds``.
        """
        return Block(self._client, self._path, count, segment=segment, eligible=eligible)

    def observe(
        self,
        decision: Decision | str,
        *unnamed: Never,
        loss: float | None = None,
        reward: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Send the feedback of a decision, or of an event id: once, in any order.

        ``metrics`` are further outcomes, where the experiment has some.
        """
        event, errors = calls.event_of(decision), self._client.errors
        if unnamed:
            raise errors.input(calls.UNNAMED_FEEDBACK)
        self._client.run(calls.reward(event, loss, reward, errors, self._path, metrics))

    def observe_all(
        self,
        rewards: Mapping[str, float] | None = None,
        *,
        losses: Mapping[str, float] | None = None,
    ) -> dict[str, str]:
        """Send the feedback of many events, by their ids; returns what was refused, and why.

        Every event is treated as if it was sent alone: the others count.
        """
        refused: dict[str, str] = {}
        for call in calls.reward_lines(self._path, rewards or {}, losses or {}):
            refused |= calls.verdicts(self._client.run(call))
        return refused

    def report(self, lines: Iterable[Mapping[str, object]]) -> dict[int, str]:
        """Report units that met an arm, where decisions are made at the edge.

        A line is such as ``{"unit": "u17", "value": 1.0, "experiment": "exp_1-3"}``. Returns the
        places of lines that were refused, and why. The same lines may be sent again.
        """
        refused: dict[int, str] = {}
        for k, call in enumerate(calls.report_lines(self._path, lines)):
            answer = self._client.run(call)
            refused |= calls.refused_reports(answer, k * calls.MOST_LINES)
        return refused

    def give_up(self, decision: Decision | str) -> None:
        """Count the default loss for feedback that has not come; where it has, nothing happens."""
        self._client.run(calls.about_event(self._path, decision, "give-up"))

    def activate(self, decision: Decision | str) -> None:
        """Say that a deferred decision has been shown."""
        self._client.run(calls.about_event(self._path, decision, "activate"))

    @property
    def arms(self) -> tuple[str | int, ...]:
        """The arms."""
        return tuple(self.show()["arms"])

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        return int(self.show()["decided"])

    @property
    def released(self) -> int:
        """Batches released so far."""
        return int(self.show()["released"])

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about feedback, and why."""
        return calls.guarantee(self._client.run(calls.privacy(self._path)))

    def certificate(self, *, segment: str | None = None) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check.

        With segments each has its own.
        """
        answer = self._client.run(calls.privacy(self._path, segment))
        return calls.certificate(answer, self._client.errors)

    def answer(self, confidence: float = 0.95, *, segment: str | None = None) -> JSON:
        """Return which arm is best, if that can be said, and what is known of each."""
        return self._client.run(calls.answer(self._path, confidence, segment))

    def results(self, *, segment: str | None = None) -> JSON:
        """Return what was learned: shares, means with intervals, the regret bound."""
        return self._client.run(calls.results(self._path, segment))

    def show(self) -> JSON:
        """Return the experiment as the service describes it."""
        return self._client.send("GET", self._path)

    def stop(self) -> None:
        """Decide nothing more."""
        self._client.send("POST", f"{self._path}/stop")


class AsyncClient(_Connection["httpx.AsyncClient"]):
    """A connection to the decision service for ``async`` programs.

    The same as ``Client``, with methods that are awaited.

    Parameters
    ----------
    url
        Where the service is: an address, or those of a process that leads and of its stand-bys.
    key
        A key to it.
    patience
        Seconds for which a request is tried again.
    """

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        import httpx  # loaded when first used

        super().__init__(url, key, patience=patience)
        self._http = httpx.AsyncClient(**self._settings)  # type: ignore[arg-type]
        self._lost = httpx.TransportError

    def experiment(self, identity: str) -> AsyncExperiment:
        """Return an experiment that exists; nothing is sent yet."""
        return AsyncExperiment(self, identity)

    async def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> AsyncExperiment:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        return self.experiment(
            str((await self.run(calls.create(name, arms, epsilon, other)))["id"])
        )

    async def reward(
        self, event: str, *, loss: float | None = None, reward: float | None = None
    ) -> None:
        """Send the feedback of an event: once, in any order."""
        await self.run(calls.reward(event, loss, reward, self.errors))

    async def send(
        self, method: str, path: str, body: JSON | None = None, *, again: bool = True
    ) -> JSON:
        """Send a request to any path of the service; returns what was answered."""
        return await self.run(Call(method, path, body, again))

    async def run(self, call: Call) -> JSON:
        """Send a call, again and again while that may help."""
        attempts = Attempts(self._patience, time.monotonic())
        while True:
            answer, trouble = None, ""
            try:
                answer = await self._http.request(
                    call.method,
                    self._url(call),
                    json=call.body,
                    content=call.content,
                    headers=call.headers,
                )
            except self._lost as error:
                trouble = type(error).__name__
            pause = self._pause(attempts, call, answer)
            if pause is None:
                return self._ended(answer, trouble)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncExperiment:
    """An experiment in the service, for ``async`` programs."""

    def __init__(self, client: AsyncClient, identity: str) -> None:
        self._client = client
        self.id = identity
        self._path = f"/v1/experiments/{identity}"

    async def decide(
        self,
        advice: object = None,
        *,
        person: str | int | None = None,
        segment: str | None = None,
        eligible: Iterable[str | int] | Mapping[str | int, bool] | None = None,
        context: Mapping[str, object] | None = None,
        before: float | None = None,
        event_id: str | None = None,
    ) -> Decision:
        """Choose an arm, among the eligible ones; the same ``event_id`` gets the same answer.

        ``context`` is what is known of the person, where the experiment has features; ``before``
        the number that is subtracted from the outcome, where it has ``adjust``.
        """
        known = context, event_id, before
        call = calls.decide(self._path, advice, person, segment, eligible, *known)
        return calls.decision(await self._client.run(call))

    def block(
        self,
        count: int = DEFAULT_COUNT,
        *,
        segment: str | None = None,
        eligible: Iterable[str | int] | None = None,
    ) -> AsyncBlock:
        """Return decisions that are fetched ``count`` at a time and used without a round trip.

        Feedback is sent as usual. The experiment needs ``deadline_seconds``.
        """
        return AsyncBlock(self._client, self._path, count, segment=segment, eligible=eligible)

    async def observe(
        self,
        decision: Decision | str,
        *unnamed: Never,
        loss: float | None = None,
        reward: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Send the feedback of a decision, or of an event id: once, in any order.

        ``metrics`` are further outcomes, where the experiment has some.
        """
        event, errors = calls.event_of(decision), self._client.errors
        if unnamed:
            raise errors.input(calls.UNNAMED_FEEDBACK)
        await self._client.run(calls.reward(event, loss, reward, errors, self._path, metrics))

    async def observe_all(
        self,
        rewards: Mapping[str, float] | None = None,
        *,
        losses: Mapping[str, float] | None = None,
    ) -> dict[str, str]:
        """Send the feedback of many events, by their ids; returns what was refused, and why.

        Every event is treated as if it was sent alone: the others count.
        """
        refused: dict[str, str] = {}
        for call in calls.reward_lines(self._path, rewards or {}, losses or {}):
            refused |= calls.verdicts(await self._client.run(call))
        return refused

    async def report(self, lines: Iterable[Mapping[str, object]]) -> dict[int, str]:
        """Report units that met an arm, where decisions are made at the edge.

        A line is such as ``{"unit": "u17", "value": 1.0, "experiment": "exp_1-3"}``. Returns the
        places of lines that were refused, and why. The same lines may be sent again.
        """
        refused: dict[int, str] = {}
        for k, call in enumerate(calls.report_lines(self._path, lines)):
            answer = await self._client.run(call)
            refused |= calls.refused_reports(answer, k * calls.MOST_LINES)
        return refused

    async def give_up(self, decision: Decision | str) -> None:
        """Count the default loss for feedback that has not come; where it has, nothing happens."""
        await self._client.run(calls.about_event(self._path, decision, "give-up"))

    async def activate(self, decision: Decision | str) -> None:
        """Say that a deferred decision has been shown."""
        await self._client.run(calls.about_event(self._path, decision, "activate"))

    async def guarantee(self) -> Guarantee:
        """Return what is promised about feedback, and why."""
        return calls.guarantee(await self._client.run(calls.privacy(self._path)))

    async def certificate(self, *, segment: str | None = None) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check."""
        answer = await self._client.run(calls.privacy(self._path, segment))
        return calls.certificate(answer, self._client.errors)

    async def answer(self, confidence: float = 0.95, *, segment: str | None = None) -> JSON:
        """Return which arm is best, if that can be said, and what is known of each."""
        return await self._client.run(calls.answer(self._path, confidence, segment))

    async def results(self, *, segment: str | None = None) -> JSON:
        """Return what was learned: shares, means with intervals, the regret bound."""
        return await self._client.run(calls.results(self._path, segment))

    async def show(self) -> JSON:
        """Return the experiment as the service describes it: arms, counts, settings."""
        return await self._client.send("GET", self._path)

    async def stop(self) -> None:
        """Decide nothing more."""
        await self._client.send("POST", f"{self._path}/stop")

"""The connection to the service: one for ``async`` programs, and one that waits for its answers.

What is asked and what the answers mean is written once, for ``async``. ``Client`` and
``Experiment`` have the same methods, which wait: what is awaited in them has its answer by then.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

from . import calls
from .block import DEFAULT_COUNT, AsyncBlock, Block, Stock
from .calls import JSON, PASSING, Attempts, Call, Decision, Errors, Guarantee
from .waiting import waiting

if TYPE_CHECKING:
    import httpx

UNAVAILABLE = 503
TIMEOUT = 10.0
"""Seconds for one attempt."""


class _Connection:
    """What both clients have in common."""

    errors: ClassVar[Errors] = Errors()

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        import httpx  # loaded when first used

        self._lost = httpx.TransportError
        self._patience = patience
        self._servers = deque([url] if isinstance(url, str) else url)
        """Where the service is; the first is asked."""
        if not self._servers:
            raise self.errors.input("give an address of the service, such as http://host:8000.")
        self._headers = {"Authorization": f"Bearer {key}"}
        self._settings: JSON = {"headers": self._headers, "timeout": TIMEOUT}

    async def _request(self, **request: Any) -> httpx.Response:
        """Send a request once."""
        raise NotImplementedError

    async def _rest(self, seconds: float) -> None:
        """Let some time pass."""
        raise NotImplementedError

    async def _send(self, call: Call) -> JSON:
        """Send a call, again and again while that may help."""
        attempts = Attempts(self._patience, time.monotonic())
        while True:
            answer, trouble = None, ""
            try:
                answer = await self._request(
                    method=call.method,
                    url=f"{self._servers[0].rstrip('/')}{call.path}",
                    json=call.body,
                    content=call.content,
                    headers=call.headers,
                )
            except self._lost as error:
                trouble = type(error).__name__
            pause = self._pause(attempts, call, answer)
            if pause is None:
                return self._ended(answer, trouble)
            await self._rest(pause)

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


class AsyncClient(_Connection):
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
        super().__init__(url, key, patience=patience)
        import httpx

        self._http = httpx.AsyncClient(**self._settings)

    async def _request(self, **request: Any) -> httpx.Response:
        return await self._http.request(**request)

    async def _rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def run(self, call: Call) -> JSON:
        """Send a call, again and again while that may help."""
        return await self._send(call)

    def experiment(self, identity: str) -> AsyncExperiment:
        """Return an experiment that exists; nothing is sent yet."""
        return AsyncExperiment(self, identity)

    async def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> AsyncExperiment:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        made = await self._send(calls.create(name, arms, epsilon, other))
        return self.experiment(str(made["id"]))

    async def reward(
        self, event: str, *, loss: float | None = None, reward: float | None = None
    ) -> None:
        """Send the feedback of an event: once, in any order."""
        await self._send(calls.reward(event, loss, reward, self.errors))

    async def send(
        self, method: str, path: str, body: JSON | None = None, *, again: bool = True
    ) -> JSON:
        """Send a request to any path of the service; returns what was answered."""
        return await self._send(Call(method, path, body, again))

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Client(_Connection):
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
        super().__init__(url, key, patience=patience)
        import httpx

        self._http = httpx.Client(**self._settings)

    async def _request(self, **request: Any) -> httpx.Response:
        return self._http.request(**request)

    async def _rest(self, seconds: float) -> None:
        time.sleep(seconds)

    run = waiting(_Connection._send)
    reward = waiting(AsyncClient.reward)
    send = waiting(AsyncClient.send)

    def experiment(self, identity: str) -> Experiment:
        """Return an experiment that exists; nothing is sent yet."""
        return Experiment(self, identity)

    def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> Experiment:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        return self.experiment(str(self.run(calls.create(name, arms, epsilon, other))["id"]))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncExperiment:
    """An experiment in the service, for ``async`` programs."""

    def __init__(self, client: AsyncClient, identity: str) -> None:
        self._client = client
        self.id = identity
        self._path = f"/v1/experiments/{identity}"

    async def _ask(self, call: Call) -> JSON:
        return await self._client.run(call)

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
        return calls.decision(await self._ask(call))

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
        return AsyncBlock(Stock(self._ask, self._path, count, segment, eligible))

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
        await self._ask(calls.reward(event, loss, reward, errors, self._path, metrics))

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
            refused |= calls.verdicts(await self._ask(call))
        return refused

    async def report(self, lines: Iterable[Mapping[str, object]]) -> dict[int, str]:
        """Report units that met an arm, where decisions are made at the edge.

        A line is such as ``{"unit": "u17", "value": 1.0, "experiment": "exp_1-3"}``. Returns the
        places of lines that were refused, and why. The same lines may be sent again.
        """
        refused: dict[int, str] = {}
        for k, call in enumerate(calls.report_lines(self._path, lines)):
            answer = await self._ask(call)
            refused |= calls.refused_reports(answer, k * calls.MOST_LINES)
        return refused

    async def give_up(self, decision: Decision | str) -> None:
        """Count the default loss for feedback that has not come; where it has, nothing happens."""
        await self._ask(calls.about_event(self._path, decision, "give-up"))

    async def activate(self, decision: Decision | str) -> None:
        """Say that a deferred decision has been shown."""
        await self._ask(calls.about_event(self._path, decision, "activate"))

    async def guarantee(self) -> Guarantee:
        """Return what is promised about feedback, and why."""
        return calls.guarantee(await self._ask(calls.privacy(self._path)))

    async def certificate(self, *, segment: str | None = None) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check.

        With segments each has its own.
        """
        answer = await self._ask(calls.privacy(self._path, segment))
        return calls.certificate(answer, self._client.errors)

    async def answer(self, confidence: float = 0.95, *, segment: str | None = None) -> JSON:
        """Return which arm is best, if that can be said, and what is known of each."""
        return await self._ask(calls.answer(self._path, confidence, segment))

    async def results(self, *, segment: str | None = None) -> JSON:
        """Return what was learned: shares, means with intervals, the regret bound."""
        return await self._ask(calls.results(self._path, segment))

    async def show(self) -> JSON:
        """Return the experiment as the service describes it: arms, counts, settings."""
        return await self._ask(Call("GET", self._path))

    async def stop(self) -> None:
        """Decide nothing more."""
        await self._ask(Call("POST", f"{self._path}/stop"))


class Experiment:
    """An experiment in the service, used like a ``PrivateBandit``."""

    def __init__(self, client: Client, identity: str) -> None:
        self._client = client
        self.id = identity
        self._path = f"/v1/experiments/{identity}"

    async def _ask(self, call: Call) -> JSON:
        return self._client.run(call)

    decide = waiting(AsyncExperiment.decide)
    observe = waiting(AsyncExperiment.observe)
    observe_all = waiting(AsyncExperiment.observe_all)
    report = waiting(AsyncExperiment.report)
    give_up = waiting(AsyncExperiment.give_up)
    activate = waiting(AsyncExperiment.activate)
    certificate = waiting(AsyncExperiment.certificate)
    answer = waiting(AsyncExperiment.answer)
    results = waiting(AsyncExperiment.results)
    show = waiting(AsyncExperiment.show)
    stop = waiting(AsyncExperiment.stop)

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
        return Block(Stock(self._ask, self._path, count, segment, eligible))

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
